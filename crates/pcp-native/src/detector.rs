//! The applications of a system, as files declare them, kept from pass to pass.
//!
//! A pass looks at every desktop file by stat and reads only what is not as it was: an unchanged system costs a few
//! thousand stats and not one read. Start with [`NativeDetector::pass`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pcp_core::{AppId, DetectionResult};

use crate::cache::{DetectionCache, Known, Round};
use crate::desktop::{AppFacts, Candidate, Locale, Skips, Standing, StatKey, TreeLimits, examine, list};
use crate::predict::{knows_category, predict, toolkit_word};
use crate::program::basis::stat_key;
use crate::program::entry::Probed;
use crate::program::{Programs, Root};
use crate::toolkit::Toolkit;

/// How sure a detection has to be for its capabilities to count.
pub const CONFIDENCE_OF_CAPABILITIES: f32 = 0.5;
/// A file that was changed this short before it was read may be changed again without its times telling, in
/// nanoseconds: the coarsest tick of a kernel's clock is 10 ms.
const TICK_NS: i64 = 20_000_000;

/// An application that was found in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesktopApp {
    /// What menus call it.
    pub name: Arc<str>,
    /// Its categories.
    pub categories: Box<[Arc<str>]>,
    /// The toolkit of its windows, if it can be told.
    pub toolkit: Option<Toolkit>,
    /// What tells the toolkit, or why nothing does.
    pub evidence: Option<Arc<str>>,
    /// The program that its command line starts, at the end of all links, if there is one.
    pub program: Option<Arc<str>>,
    /// The class of its windows.
    pub window_class: Option<Arc<str>>,
    /// Whether menus leave it out.
    pub no_display: bool,
    /// Whether its file breaks the format somewhere.
    pub diagnosed: bool,
}

impl DesktopApp {
    fn of(facts: AppFacts, probed: &Probed) -> Self {
        Self {
            name: facts.name.into(),
            categories: facts.categories.into_iter().map(Arc::from).collect(),
            toolkit: probed.toolkit,
            evidence: probed.told.clone(),
            program: probed.program.clone(),
            window_class: facts.window_class.map(Arc::from),
            no_display: facts.no_display,
            diagnosed: facts.diagnosed,
        }
    }

    /// How sure the prediction is: a toolkit and a known category together say most, neither of them nothing.
    #[must_use]
    pub fn confidence(&self) -> f32 {
        match (self.toolkit.is_some(), self.categories.iter().any(|category| knows_category(category))) {
            (true, true) => 0.9,
            (true, false) => 0.6,
            (false, true) => 0.7,
            (false, false) => 0.4,
        }
    }

    /// What the detection pipeline is told.
    #[must_use]
    pub fn result(&self, app_id: &AppId) -> DetectionResult {
        let mut metadata = vec![
            ("name".to_owned(), self.name.to_string()),
            ("categories".to_owned(), self.categories.join(";")),
            ("toolkit".to_owned(), toolkit_word(self.toolkit).to_owned()),
        ];
        let further =
            [("program", &self.program), ("evidence", &self.evidence), ("window_class", &self.window_class)];
        metadata.extend(
            further
                .into_iter()
                .filter_map(|(key, value)| Some((key.to_owned(), value.as_ref()?.to_string()))),
        );
        DetectionResult {
            app_id: app_id.clone(),
            capabilities: predict(app_id, &self.categories, self.toolkit),
            confidence: self.confidence(),
            metadata,
        }
    }
}

/// What one pass found.
#[derive(Debug, Clone, Default)]
pub struct Pass {
    /// The applications, sorted by file id. One that is as it was is the very same value as in the pass before.
    pub apps: Vec<FoundApp>,
    /// What was left out, with the reason.
    pub skipped: Skips,
    /// The folders that were looked through: what has to be watched.
    pub directories: Vec<PathBuf>,
    /// Files that were looked at by stat.
    pub files: usize,
    /// Files that were read, their programs probed.
    pub examined: usize,
    /// Files whose finding an earlier process kept and that are as they were.
    pub from_store: usize,
}

/// One application of a pass.
#[derive(Debug, Clone)]
pub struct FoundApp {
    /// Its id.
    pub app_id: AppId,
    /// Its desktop file.
    pub file: PathBuf,
    /// What it says.
    pub app: Arc<DesktopApp>,
}

/// Finds the applications of a system in its files.
#[derive(Debug)]
pub struct NativeDetector {
    dirs: Vec<PathBuf>,
    path: Vec<PathBuf>,
    root: Root,
    locale: Option<Locale>,
    limits: TreeLimits,
}

impl NativeDetector {
    /// Looks for desktop entries in the data folders `dirs`, the most important one first, and for programs in the
    /// folders of `path`.
    #[must_use]
    pub fn new(dirs: Vec<PathBuf>, path: Vec<PathBuf>, limits: TreeLimits) -> Self {
        Self { dirs, path, root: Root::system(), locale: None, limits }
    }

    /// The data folders.
    #[must_use]
    pub fn dirs(&self) -> &[PathBuf] {
        &self.dirs
    }

    /// Looks at every desktop file and reads those that are not as they were.
    pub fn pass(&self, cache: &mut DetectionCache) -> Pass {
        let listing = list(&self.dirs, self.limits);
        let files = listing.candidates.len();
        let programs = Programs::new(&self.root, self.path.iter().cloned());
        let mut before = std::mem::take(&mut cache.known);
        cache.known.reserve(files);
        let (mut buffer, mut examined, mut from_store, mut changes) = (Vec::new(), 0, 0, false);
        let now_ns = now_ns();
        let round = Round { pass: cache.next(), folders_hold: self.look_at_folders(cache, now_ns) };
        let resolved = listing.resolve(|candidate| {
            let known = match before.remove(candidate.path.as_os_str()) {
                Some(known) if known.holds(candidate, round) => {
                    from_store += usize::from(known.is_stored);
                    known
                }
                known => {
                    examined += 1;
                    let found = self.look(candidate, &programs, &mut buffer, now_ns);
                    // What is doubtful is not stored, and never will be where it stays so.
                    changes |= !found.is_doubtful;
                    found.same_as(known)
                }
            };
            let standing = known.standing.clone();
            cache.known.insert(candidate.path.clone().into_os_string(), known);
            standing
        });
        let apps = resolved.winners.into_iter();
        let apps = apps.map(|won| FoundApp { app_id: won.app_id, file: won.candidate.path, app: won.value });
        let (skipped, directories) = (resolved.skipped, resolved.directories);
        cache.changes |= changes || !before.is_empty();
        Pass { apps: apps.collect(), skipped, directories, files, examined, from_store }
    }

    fn look(
        &self,
        candidate: &Candidate,
        programs: &Programs<'_>,
        buffer: &mut Vec<u8>,
        now_ns: i64,
    ) -> Known {
        let mut is_doubtful = is_recent(candidate.stat, now_ns);
        let (mut basis, mut searched) = (Box::default(), false);
        let standing = match examine(candidate, buffer, self.locale.as_ref()) {
            Standing::Wins(facts) => {
                let probed = programs.probed(&facts);
                is_doubtful |= probed.is_missing;
                (basis, searched) = (probed.basis.clone(), probed.searched);
                Standing::Wins(Arc::new(DesktopApp::of(facts, &probed)))
            }
            Standing::Masks(why) => Standing::Masks::<Arc<DesktopApp>>(why),
            Standing::Passes(reason) => {
                // Nothing tells when it becomes readable.
                is_doubtful = true;
                Standing::Passes(reason)
            }
        };
        is_doubtful |= basis.iter().any(|one| is_recent(one.key(), now_ns));
        Known { stat: candidate.stat, standing, basis, searched, is_doubtful, is_stored: false }
    }

    /// Whether the folders of the search path are as they were at the last pass. A program that comes into one of
    /// them may come before one of the same name.
    fn look_at_folders(&self, cache: &mut DetectionCache, now_ns: i64) -> bool {
        let folders: Vec<Option<StatKey>> = self.path.iter().map(|path| stat_key(path)).collect();
        let recent = folders.iter().flatten().any(|key| is_recent(*key, now_ns));
        let hold = cache.folders.as_ref() == Some(&folders);
        cache.folders = (!recent).then_some(folders);
        hold
    }
}

/// Whether a file was changed so short ago that it may be changed again without its times telling.
const fn is_recent(key: StatKey, now_ns: i64) -> bool {
    now_ns.saturating_sub(key.ctime_ns) < TICK_NS
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
