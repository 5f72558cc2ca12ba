//! Applications, found in files before any of them runs.
//!
//! One [`Detection::pass`] looks at everything by stat, reads what changed, and makes one change of the registry of it.
//! A watcher says when a pass is due. Nothing here runs an application.

pub mod detect;
pub mod kept;
pub mod manifests;
pub mod register;
pub mod watch;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pcp_core::{AppId, CapabilityDiff, Event};
use pcp_native::desktop::{Skips, TreeLimits};
use pcp_native::{DetectionCache, NativeDetector};
use pcp_push::PushEventBus;
use pcp_registry::{Change, InMemoryRegistry};
use pcp_trust::PrincipalTable;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use crate::config::Config;
use kept::{Kept, SAVE_PAUSE};
use manifests::Manifests;
use register::{Sources, count, events, register};
use watch::{Wanted, Watcher};

/// How long after the first sign of a change a pass begins: a package manager writes many files, an editor two.
const SETTLE: Duration = Duration::from_millis(50);
/// Least time between the end of a pass and the next: whoever writes without end costs a tenth of one core at most.
const PAUSE: Duration = Duration::from_millis(100);
/// A pass is due after this long in any case: links may come to lead elsewhere, which no watch tells.
const RECHECK: Duration = Duration::from_secs(600);
/// Requests for a pass that may wait; who asks beyond it is told to ask again.
pub const MAX_WAITING_REQUESTS: usize = 64;

/// What the last pass came to, for `doctor` and whoever asks.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Passes so far.
    pub passes: u64,
    /// Applications now.
    pub apps: usize,
    /// Capabilities now.
    pub capabilities: usize,
    /// Desktop files that were looked at.
    pub files: usize,
    /// Of these, how many were read.
    pub examined: usize,
    /// Of these, how many are as an earlier process found them.
    pub from_cache: usize,
    /// What became of the file in which findings are kept, in words.
    pub cache: Arc<str>,
    /// Manifests that were judged.
    pub judged: usize,
    /// What was left out, and why.
    pub skipped: Skips,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// How changes are noticed.
    pub mode: Mode,
}

/// How changes are noticed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not at all yet.
    #[default]
    Starting,
    /// As they happen.
    Watching {
        /// How many folders are watched.
        folders: usize,
    },
    /// By looking from time to time, because watching does not work.
    Polling {
        /// Every so many milliseconds.
        interval_ms: u64,
        /// Why.
        why: String,
    },
}

/// Finds applications and keeps the registry as the files say. Runs wherever a pass may block.
#[derive(Debug)]
pub struct Detection {
    native: NativeDetector,
    cache: DetectionCache,
    kept: Kept,
    manifests: Manifests,
    table: Arc<PrincipalTable>,
    keys: PathBuf,
    registry: Arc<InMemoryRegistry>,
    bus: PushEventBus,
    known: BTreeMap<AppId, Sources>,
    passes: u64,
}

/// What one pass did.
#[derive(Debug)]
pub struct Passed {
    /// What it came to; the mode is not its business.
    pub report: Report,
    /// What changed, sorted by application.
    pub diffs: Vec<CapabilityDiff>,
    /// What has to be watched.
    pub wanted: Wanted,
}

impl Detection {
    /// Nothing is found yet; what an earlier process kept waits to be borne out by its files.
    #[must_use]
    pub fn new(
        config: &Config,
        table: Arc<PrincipalTable>,
        registry: Arc<InMemoryRegistry>,
        bus: PushEventBus,
    ) -> Self {
        let (dirs, path) = (config.detection.data_dirs.clone(), config.detection.program_path.clone());
        let mut kept = Kept::new(config);
        Self {
            native: NativeDetector::new(dirs, path, TreeLimits::default()),
            cache: kept.load(),
            kept,
            manifests: Manifests::new(&config.paths.trusted_keys, config.identity.files_owner),
            keys: config.paths.trusted_keys.clone(),
            table,
            registry,
            bus,
            known: BTreeMap::new(),
            passes: 0,
        }
    }

    /// Looks at all files, registers what changed in one piece, and tells of it.
    pub fn pass(&mut self) -> Passed {
        let began = Instant::now();
        let found = self.native.pass(&mut self.cache);
        let mut now: BTreeMap<AppId, Sources> = BTreeMap::new();
        let (mut judged, mut broken) = (0, Vec::new());
        for app in self.table.apps() {
            let (manifest, again) = self.manifests.of(app);
            judged += usize::from(again);
            if let (true, Some(problem)) = (again, &manifest.problem) {
                warn!(app = %app.app_id, %problem, "a manifest does not count");
                broken.push(Event::ManifestInvalid { app_id: app.app_id.clone(), problem: problem.clone() });
            }
            now.insert(app.app_id.clone(), Sources { manifest: Some(manifest), desktop: None });
        }
        for app in &found.apps {
            let sources = now.entry(app.app_id.clone()).or_insert(Sources { manifest: None, desktop: None });
            sources.found(app);
        }
        let changes = self.changes(&now);
        let applied = register(&self.registry, changes, &now);
        // Of what was there at the start nobody can hear, and the log has a line for all of it.
        let unheard = applied.diffs.iter().map(count).sum::<u64>() + broken.len() as u64;
        if self.passes > 0 || !self.bus.pass_over(unheard) {
            for event in broken.into_iter().chain(applied.diffs.iter().cloned().flat_map(events)) {
                self.bus.publish(Arc::new(event));
            }
        }
        self.known = now;
        self.passes += 1;
        let (capabilities, apps) = self.registry.len();
        let duration = began.elapsed();
        // A pass that found everything as it was is no news.
        if self.passes == 1 || !applied.diffs.is_empty() {
            let completed = Event::DetectionCompleted {
                apps: apps as u64,
                capabilities: capabilities as u64,
                duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            };
            self.bus.publish(Arc::new(completed));
        }
        let wanted = self.wanted(found.directories);
        let report = Report {
            passes: self.passes,
            apps,
            capabilities,
            files: found.files,
            examined: found.examined,
            from_cache: found.from_store,
            cache: self.kept.state(),
            judged,
            skipped: found.skipped,
            duration_us: u64::try_from(duration.as_micros()).unwrap_or(u64::MAX),
            mode: Mode::default(),
        };
        Passed { report, diffs: applied.diffs, wanted }
    }

    fn changes(&self, now: &BTreeMap<AppId, Sources>) -> Vec<Change> {
        let gone = self.known.keys().filter(|id| !now.contains_key(*id)).cloned().map(Change::RemoveApp);
        let changed = now
            .iter()
            .filter(|(id, sources)| self.known.get(*id).is_none_or(|known| !known.is_same(sources)))
            .map(|(id, sources)| sources.change(id));
        gone.chain(changed).collect()
    }

    /// Folders of desktop files, and what stands for those that are not there; manifests and keys.
    fn wanted(&self, directories: Vec<PathBuf>) -> Wanted {
        let mut wanted = Wanted::default();
        directories.into_iter().for_each(|folder| wanted.desktop(folder));
        for dir in self.native.dirs() {
            // The folder itself may go, and come back.
            wanted.file(&dir.join("applications"));
        }
        for app in self.table.apps() {
            wanted.file(&app.manifest);
            wanted.file(&self.keys.join(format!("{}.pub", app.app_id)));
        }
        wanted
    }
}

/// Whoever asks for an application to be looked at again, and what is answered.
#[derive(Debug)]
pub struct Request {
    /// The application.
    pub app: AppId,
    /// Told what the pass changed of it, if anything.
    pub answer: oneshot::Sender<Option<CapabilityDiff>>,
}

/// Why a pass is made.
enum Due {
    Changed,
    Requested(Request),
    Time,
    /// Nobody is left who could ask.
    Over,
}

/// Makes a pass whenever one is due, on a thread where it may block.
pub async fn keep_up(
    mut detection: Detection,
    first: Passed,
    reported: Rc<LastReport>,
    mut requests: mpsc::Receiver<Request>,
    interval: Duration,
) {
    let mut watch = Watch::start(interval);
    let mut last = first;
    loop {
        let unseen = watch.arm(&last.wanted);
        if detection.kept.is_due(&detection.cache) {
            let saved = off_thread(detection, |detection| {
                detection.kept.save(&mut detection.cache);
                detection.kept.state()
            });
            let Some((whole, state)) = saved.await else { return };
            (detection, last.report.cache) = (whole, state);
        }
        reported.set(Report { mode: watch.mode(), ..last.report.clone() });
        let mut asked = Vec::new();
        if !unseen {
            match watch.due(&mut requests, detection.cache.has_changes()).await {
                Due::Over => return,
                Due::Requested(request) => asked.push(request),
                Due::Changed => {
                    tokio::time::sleep(SETTLE).await;
                    watch.drain();
                }
                Due::Time => {}
            }
        }
        while let Ok(request) = requests.try_recv() {
            asked.push(request);
        }
        let Some(passed) = off_thread(detection, Detection::pass).await else { return };
        (detection, last) = passed;
        for Request { app, answer } in asked {
            // Whoever asked may have gone.
            let _ = answer.send(last.diffs.iter().find(|diff| diff.app_id == app).cloned());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Does what may block where it may; `None` when that ended detection.
async fn off_thread<T: Send + 'static>(
    mut detection: Detection,
    work: impl FnOnce(&mut Detection) -> T + Send + 'static,
) -> Option<(Detection, T)> {
    let done = tokio::task::spawn_blocking(move || {
        let done = work(&mut detection);
        crate::memory::give_back();
        (detection, done)
    });
    let why =
        |error| warn!(%error, "detection ended: applications stay as they are until the daemon is restarted");
    done.await.map_err(why).ok()
}

/// The last report. Written by the task that makes the passes and read by sessions, all on one thread.
#[derive(Debug, Default)]
pub struct LastReport(RefCell<Rc<Report>>);

impl LastReport {
    /// The last report.
    #[must_use]
    pub fn get(&self) -> Rc<Report> {
        self.0.borrow().clone()
    }

    /// Puts a newer one in its place.
    pub fn set(&self, report: Report) {
        *self.0.borrow_mut() = Rc::new(report);
    }
}

/// The watcher, or the reason why there is none.
struct Watch {
    interval: Duration,
    state: Result<Watcher, String>,
}

impl Watch {
    fn start(interval: Duration) -> Self {
        let state = Watcher::new().map_err(|error| format!("no watcher can be had: {error}"));
        let mut watch = Self { interval, state: Err(String::new()) };
        match state {
            Ok(watcher) => watch.state = Ok(watcher),
            Err(why) => watch.poll(why),
        }
        watch
    }

    fn poll(&mut self, why: String) {
        let interval_ms = self.interval.as_millis();
        warn!(%why, interval_ms, "folders cannot be watched and are looked through from time to time");
        self.state = Err(why);
    }

    /// Watches what has to be watched; gives whether a pass has to see to what went unseen until now.
    fn arm(&mut self, wanted: &Wanted) -> bool {
        let Ok(watcher) = &mut self.state else { return false };
        match watcher.arm(wanted) {
            Ok(unseen) => unseen,
            Err((folder, errno)) => {
                self.poll(format!("{} cannot be watched: {}", folder.display(), errno.desc()));
                false
            }
        }
    }

    fn mode(&self) -> Mode {
        match &self.state {
            Ok(watcher) => Mode::Watching { folders: watcher.len() },
            Err(why) => {
                let interval_ms = u64::try_from(self.interval.as_millis()).unwrap_or(u64::MAX);
                Mode::Polling { interval_ms, why: why.clone() }
            }
        }
    }

    fn drain(&mut self) {
        if let Ok(watcher) = &mut self.state {
            watcher.drain();
        }
    }

    /// Waits until a pass is due. One that finds nothing new is also when what could not be kept before is kept.
    async fn due(&mut self, requests: &mut mpsc::Receiver<Request>, has_changes: bool) -> Due {
        let time = match (&self.state, has_changes) {
            (Ok(_), false) => RECHECK,
            (Ok(_), true) => SAVE_PAUSE,
            (Err(_), _) => self.interval,
        };
        let seen = async {
            match &mut self.state {
                Ok(watcher) => watcher.changed().await,
                Err(_) => std::future::pending().await,
            }
        };
        let seen = tokio::select! {
            seen = seen => seen,
            request = requests.recv() => return request.map_or(Due::Over, Due::Requested),
            () = tokio::time::sleep(time) => return Due::Time,
        };
        if let Err(error) = seen {
            self.poll(format!("the watcher failed: {error}"));
        }
        Due::Changed
    }
}

/// What the start of the daemon logs of its first pass.
pub fn log_first(passed: &Passed) {
    let Report { apps, capabilities, files, skipped, from_cache, duration_us, .. } = &passed.report;
    let skipped = skipped.kept().len();
    info!(applications = apps, capabilities, files, from_cache, skipped, duration_us, "full scan");
}
