//! What was found, kept in the state directory for the next start.
//!
//! A start believes nothing of it that its files do not bear out: every entry is asked for by stat in the first pass.
//! Manifests are not kept; each start verifies their signatures again. Start with [`Kept::load`].

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pcp_durable::cache::{
    self, CacheFault, CacheIdentity, CachedApp, CachedEntry, CachedFile, CachedFinding, Detected, FileStat,
};
use pcp_native::desktop::{Ignored, Standing, StatKey};
use pcp_native::{Basis, DesktopApp, DetectionCache, Finding, Toolkit};
use tracing::{info, warn};

use crate::config::Config;

/// Least time between two writings of the file: the installation of many packages writes it a few times.
pub const SAVE_PAUSE: Duration = Duration::from_secs(30);
/// Most bytes of the file that names the system, which are part of the identity.
const MAX_RELEASE_BYTES: usize = 64 * 1024;

/// The file of the state directory.
#[derive(Debug)]
pub struct Kept {
    directory: PathBuf,
    identity: CacheIdentity,
    /// When it was last written, or could not be.
    tried: Option<Instant>,
    /// What became of it, for `doctor`.
    state: Arc<str>,
}

impl Kept {
    /// The file of this configuration; nothing is read yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let (directory, identity) = (config.paths.state.clone(), identity(config));
        Self { directory, identity, tried: None, state: "".into() }
    }

    /// What became of the file, in words.
    #[must_use]
    pub fn state(&self) -> Arc<str> {
        self.state.clone()
    }

    /// What the last process found; nothing where the file does not count.
    pub fn load(&mut self) -> DetectionCache {
        let read = cache::load(&self.directory, self.identity);
        match read.and_then(|bytes| restore(&Detected::read(&bytes)?)) {
            Ok(cache) => {
                self.state = format!("{} files are kept from the last start", cache.len()).into();
                cache
            }
            Err(fault) => {
                self.state = format!("nothing is kept from the last start: {fault}").into();
                match fault {
                    CacheFault::Absent | CacheFault::Identity | CacheFault::Version => {
                        info!(why = %fault, "what was found before is not taken over");
                    }
                    _ => {
                        warn!(file = cache::CACHE_FILE, why = %fault, "what was found before does not count")
                    }
                }
                DetectionCache::default()
            }
        }
    }

    /// Whether what was found is to be written now.
    #[must_use]
    pub fn is_due(&self, cache: &DetectionCache) -> bool {
        cache.has_changes() && self.tried.is_none_or(|tried| tried.elapsed() >= SAVE_PAUSE)
    }

    /// Writes what was found. A failure costs the next start its time and nothing else; it is tried again when something
    /// changes, not every half minute for as long as a disk is full.
    pub fn save(&mut self, cache: &mut DetectionCache) {
        self.tried = Some(Instant::now());
        let written = cache::store(&self.directory, &bytes(self.identity, cache));
        cache.stored();
        match written {
            Ok(()) => {
                self.state = format!("what was found is kept in {}", cache::CACHE_FILE).into();
            }
            Err(error) => {
                warn!(%error, file = cache::CACHE_FILE, "what was found cannot be kept for the next start");
                self.state = format!("what was found cannot be kept for the next start: {error}").into();
            }
        }
    }
}

/// What findings depend on besides files that are asked for: this program, the system's image, the configuration. The
/// times of files on an image may be the same in the next one.
fn identity(config: &Config) -> CacheIdentity {
    let mut release = fs::read("/etc/os-release").unwrap_or_default();
    release.truncate(MAX_RELEASE_BYTES);
    let own = fs::metadata("/proc/self/exe").map(|facts| {
        let parts = [
            facts.dev() as i64,
            facts.ino() as i64,
            facts.size() as i64,
            facts.mtime(),
            facts.mtime_nsec(),
            facts.ctime(),
            facts.ctime_nsec(),
        ];
        parts.map(i64::to_le_bytes).concat()
    });
    let paths =
        |paths: &[PathBuf]| paths.iter().map(|path| path.as_os_str().as_bytes()).collect::<Vec<_>>().join(&0);
    let (dirs, path) = (paths(&config.detection.data_dirs), paths(&config.detection.program_path));
    let own = own.unwrap_or_default();
    CacheIdentity::of([env!("CARGO_PKG_VERSION").as_bytes(), &own, &release, &dirs, &path])
}

const fn key(stat: FileStat) -> StatKey {
    let FileStat { dev, ino, size, mtime_ns, ctime_ns } = stat;
    StatKey { dev, ino, size, mtime_ns, ctime_ns }
}

const fn stat(key: StatKey) -> FileStat {
    let StatKey { dev, ino, size, mtime_ns, ctime_ns } = key;
    FileStat { dev, ino, size, mtime_ns, ctime_ns }
}

fn restore(detected: &Detected<'_>) -> Result<DetectionCache, CacheFault> {
    let file =
        |file: &CachedFile<'_>| Arc::new(Basis::new(Path::new(OsStr::from_bytes(file.path)), key(file.stat)));
    let basis: Vec<Arc<Basis>> = detected.basis.iter().map(file).collect();
    let folders = detected.folders.as_ref();
    let folders = folders.map(|folders| folders.iter().map(|folder| folder.map(key)).collect());
    let mut findings = Vec::with_capacity(detected.entries.len());
    for entry in &detected.entries {
        let places = entry.basis.iter().filter_map(|place| basis.get(*place as usize).cloned());
        findings.push(Finding {
            file: OsStr::from_bytes(entry.file.path),
            stat: key(entry.file.stat),
            standing: standing(&entry.finding)?,
            basis: places.collect(),
            searched: entry.searched,
        });
    }
    Ok(DetectionCache::restored(folders, findings.into_iter()))
}

fn standing(finding: &CachedFinding<'_>) -> Result<Standing<Arc<DesktopApp>>, CacheFault> {
    Ok(match finding {
        CachedFinding::App(app) => {
            let toolkit = match app.toolkit {
                "" => None,
                word => Some(Toolkit::from_word(word).ok_or(CacheFault::Malformed("a toolkit"))?),
            };
            Standing::Wins(Arc::new(DesktopApp {
                name: app.name.into(),
                categories: app.categories.iter().map(|category| Arc::from(*category)).collect(),
                toolkit,
                evidence: app.evidence.map(Arc::from),
                program: app.program.map(Arc::from),
                window_class: app.window_class.map(Arc::from),
                no_display: app.no_display,
                diagnosed: app.diagnosed,
            }))
        }
        CachedFinding::Hidden => Standing::Masks(Ignored::Hidden),
        CachedFinding::OtherType(kind) => Standing::Masks(Ignored::Type((*kind).to_owned())),
    })
}

/// The bytes that are written of a cache.
fn bytes(identity: CacheIdentity, cache: &DetectionCache) -> Vec<u8> {
    let findings: Vec<Finding<'_>> = cache.findings().collect();
    let mut detected = Detected::default();
    let known = cache.folders();
    detected.folders = known.map(|folders| folders.iter().map(|folder| folder.map(stat)).collect());
    let mut places: HashMap<*const Basis, u32> = HashMap::new();
    for finding in &findings {
        let Some(found) = found(&finding.standing) else { continue };
        let mut basis = Vec::with_capacity(finding.basis.len());
        for one in &finding.basis {
            let next = u32::try_from(places.len()).unwrap_or(u32::MAX);
            let place = *places.entry(Arc::as_ptr(one)).or_insert(next);
            if place == next {
                let path = one.path().as_bytes();
                detected.basis.push(CachedFile { path, stat: stat(one.key()) });
            }
            basis.push(place);
        }
        let file = CachedFile { path: finding.file.as_bytes(), stat: stat(finding.stat) };
        detected.entries.push(CachedEntry { file, finding: found, searched: finding.searched, basis });
    }
    cache::encode(identity, &detected)
}

fn found(standing: &Standing<Arc<DesktopApp>>) -> Option<CachedFinding<'_>> {
    Some(match standing {
        Standing::Wins(app) => CachedFinding::App(CachedApp {
            name: &app.name,
            categories: app.categories.iter().map(|category| &**category).collect(),
            toolkit: app.toolkit.map_or("", Toolkit::as_str),
            evidence: app.evidence.as_deref(),
            program: app.program.as_deref(),
            window_class: app.window_class.as_deref(),
            no_display: app.no_display,
            diagnosed: app.diagnosed,
        }),
        Standing::Masks(Ignored::Hidden) => CachedFinding::Hidden,
        Standing::Masks(Ignored::Type(kind)) => CachedFinding::OtherType(kind),
        // Another reason, or none that is certain.
        Standing::Masks(_) | Standing::Passes(_) => return None,
    })
}
