//! The applications of a system, as files declare them, kept from pass to pass.
//!
//! A pass looks at every desktop file by stat and reads only what is not as it was: an unchanged system costs a few
//! thousand stats and not one read. Start with [`NativeDetector::pass`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use pcp_core::{AppId, DetectionResult};

use crate::desktop::{AppFacts, Candidate, Locale, Skips, Standing, StatKey, TreeLimits, examine, list};
use crate::predict::{knows_category, predict, toolkit_word};
use crate::program::{ProgramKind, ProgramReport, Programs, Root};
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
    fn of(facts: AppFacts, report: &ProgramReport) -> Self {
        let told = report.evidence.as_deref().or(report.why.as_deref());
        Self {
            name: facts.name.into(),
            categories: facts.categories.into_iter().map(Arc::from).collect(),
            toolkit: report.toolkit,
            evidence: told.map(Arc::from),
            program: last(report).resolved.as_deref().map(Arc::from),
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

/// The program at the end of a chain of scripts.
fn last(report: &ProgramReport) -> &ProgramReport {
    report.starts.as_deref().map_or(report, last)
}

/// What is known of one desktop file.
#[derive(Debug, Clone)]
struct Known {
    stat: StatKey,
    standing: Standing<Arc<DesktopApp>>,
    /// The files of its program, as they were.
    programs: Vec<(PathBuf, StatKey)>,
    /// Whether it has to be looked at again in any case.
    is_doubtful: bool,
}

/// What passes remember. One entry a desktop file, so that [`TreeLimits::files`] bounds it.
#[derive(Debug, Clone, Default)]
pub struct DetectionCache {
    /// By the path as it is written: a path is compared and hashed part by part, which costs as much as a stat.
    known: HashMap<OsString, Known>,
}

impl DetectionCache {
    /// How many files are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
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
        let (mut buffer, mut examined) = (Vec::new(), 0);
        let now_ns = now_ns();
        let resolved = listing.resolve(|candidate| {
            let known = match before.remove(candidate.path.as_os_str()) {
                Some(known) if known.holds(candidate) => known,
                known => {
                    examined += 1;
                    self.look(candidate, &programs, &mut buffer, now_ns).same_as(known)
                }
            };
            let standing = known.standing.clone();
            cache.known.insert(candidate.path.clone().into_os_string(), known);
            standing
        });
        let apps = resolved.winners.into_iter();
        let apps = apps.map(|won| FoundApp { app_id: won.app_id, file: won.candidate.path, app: won.value });
        let (skipped, directories) = (resolved.skipped, resolved.directories);
        Pass { apps: apps.collect(), skipped, directories, files, examined }
    }

    fn look(
        &self,
        candidate: &Candidate,
        programs: &Programs<'_>,
        buffer: &mut Vec<u8>,
        now_ns: i64,
    ) -> Known {
        let mut probed = Vec::new();
        let mut is_doubtful = now_ns.saturating_sub(candidate.stat.ctime_ns) < TICK_NS;
        let standing = match examine(candidate, buffer, self.locale.as_ref()) {
            Standing::Wins(facts) => {
                let report = programs.probe_entry(&facts);
                is_doubtful |= !follow(&report, &mut probed);
                Standing::Wins(Arc::new(DesktopApp::of(facts, &report)))
            }
            Standing::Masks(why) => Standing::Masks::<Arc<DesktopApp>>(why),
            Standing::Passes(reason) => {
                // Nothing tells when it becomes readable.
                is_doubtful = true;
                Standing::Passes(reason)
            }
        };
        Known { stat: candidate.stat, standing, programs: probed, is_doubtful }
    }
}

/// Notes the files of a program; `false` when one of them is not there, so that its coming would go unseen.
fn follow(report: &ProgramReport, probed: &mut Vec<(PathBuf, StatKey)>) -> bool {
    let own = match (&report.resolved, report.kind) {
        (Some(path), _) => {
            probed.extend(report.stat.map(|key| (PathBuf::from(path), key)));
            report.stat.is_some()
        }
        (None, ProgramKind::Missing | ProgramKind::Error) => false,
        (None, _) => true,
    };
    report.starts.as_deref().is_none_or(|next| follow(next, probed)) && own
}

fn stat_key(path: &Path) -> Option<StatKey> {
    std::fs::metadata(path).ok().map(|facts| StatKey::of(&facts))
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

impl Known {
    /// Whether the file and its program are as they were.
    fn holds(&self, candidate: &Candidate) -> bool {
        !self.is_doubtful
            && self.stat == candidate.stat
            && self.programs.iter().all(|(path, key)| stat_key(path).as_ref() == Some(key))
    }

    /// Keeps the value that was there when it says the same, so that nobody takes it for changed.
    fn same_as(mut self, before: Option<Self>) -> Self {
        if let (Standing::Wins(now), Some(Self { standing: Standing::Wins(then), .. })) =
            (&self.standing, before)
            && *now == then
        {
            self.standing = Standing::Wins(then);
        }
        self
    }
}
