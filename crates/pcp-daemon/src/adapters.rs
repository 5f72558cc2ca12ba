//! The adapters that this daemon has, each on a thread of its own, watched for as long as it runs.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pcp_core::{AdapterState, Clock, DetectionMethod, Event};
use pcp_native::NativeAdapter;
use pcp_push::PushEventBus;
use pcp_registry::{AdapterManager, AdapterRow, AdapterStateChanged, Seat, SeatFactory};
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::config::Config;
use crate::daemon::Core;

/// What an adapter gets to be ready before the daemon goes on without it; it is tried again.
const START_WAIT: Duration = Duration::from_millis(250);
/// Between two looks at adapters that have been asked how they are.
const LOOK: Duration = Duration::from_millis(500);
/// Between two looks while the daemon waits for them to start.
const START_LOOK: Duration = Duration::from_millis(1);

/// An adapter beside the daemon's own, such as a host's, or a test's that hangs.
#[derive(Clone)]
pub struct OtherAdapter {
    /// What it is called.
    pub name: &'static str,
    /// How it finds applications.
    pub method: DetectionMethod,
    /// Makes it, on its own thread.
    pub factory: SeatFactory,
}

impl std::fmt::Debug for OtherAdapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtherAdapter")
            .field("name", &self.name)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

/// The manager, and what it is known by.
#[allow(missing_debug_implementations, reason = "the manager has none")]
pub struct Adapters {
    manager: AdapterManager,
    /// Those that have worked: the others are not registered.
    registered: BTreeSet<&'static str>,
}

impl std::fmt::Debug for Adapters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapters").field("registered", &self.registered).finish_non_exhaustive()
    }
}

impl Adapters {
    /// None yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { manager: AdapterManager::new(clock), registered: BTreeSet::new() }
    }

    /// Starts them, and waits a moment until they are ready; one that is not is warned of and tried again later.
    pub fn start(&mut self, config: &Config, others: Vec<OtherAdapter>, bus: &PushEventBus) {
        let (dirs, path) = (config.detection.data_dirs.clone(), config.detection.program_path.clone());
        let factory = Arc::new(move || Ok(Seat::parking(NativeAdapter::new(dirs.clone(), path.clone()))));
        let native = OtherAdapter { name: "native", method: DetectionMethod::Desktop, factory };
        for OtherAdapter { name, method, factory } in std::iter::once(native).chain(others) {
            match self.manager.add(name, method, factory) {
                Ok(changes) => self.tell(changes, bus),
                Err(error) => warn!(%error, "an adapter was not started"),
            }
        }
        let began = Instant::now();
        loop {
            let changes = self.manager.tick();
            self.tell(changes, bus);
            let waiting = self.manager.rows().iter().any(|row| row.state == AdapterState::Initializing);
            if !waiting || began.elapsed() >= START_WAIT {
                break;
            }
            std::thread::sleep(START_LOOK);
        }
        for row in self.manager.rows().iter().filter(|row| !self.registered.contains(row.name)) {
            let why = if row.reason.is_empty() { "it did not become ready in time" } else { &row.reason };
            warn!(adapter = row.name, state = %row.state, %why, "an adapter is left out and tried again later");
        }
    }

    /// Those that have worked at some time, in the order in which they are asked.
    #[must_use]
    pub fn rows(&self) -> Vec<AdapterRow> {
        let rows = self.manager.rows().into_iter();
        rows.filter(|row| self.registered.contains(row.name)).collect()
    }

    /// Lets them go.
    pub fn shutdown(&mut self) {
        drop(self.manager.shutdown());
    }

    fn tick(&mut self, bus: &PushEventBus) {
        let changes = self.manager.tick();
        self.tell(changes, bus);
    }

    fn tell(&mut self, changes: Vec<AdapterStateChanged>, bus: &PushEventBus) {
        for change in changes {
            info!(adapter = change.name, generation = change.generation, to = %change.to, reason = %change.reason, "adapter");
            if change.to == AdapterState::Ready {
                self.registered.insert(change.name);
            }
            bus.publish(Arc::new(Event::from(change)));
        }
    }

    /// How long nothing is due.
    fn idle(&self, now_us: u64) -> Duration {
        if self.manager.rows().iter().any(|row| row.is_checked) {
            return LOOK;
        }
        let due =
            self.manager.next_due_us().map_or(LOOK, |due| Duration::from_micros(due.saturating_sub(now_us)));
        due.max(LOOK)
    }
}

/// Asks the adapters how they are, for as long as the daemon runs.
pub async fn keep_watch(core: Rc<Core>) {
    loop {
        let idle = core.adapters.borrow().idle(core.now_us());
        tokio::time::sleep(idle).await;
        core.adapters.borrow_mut().tick(&core.bus);
    }
}

/// The topic `adapters`: each with its state, which instance it is, and when a failed one is tried again.
pub(crate) fn report(adapters: &Adapters, now_us: u64) -> Value {
    let rows = adapters.rows().into_iter().map(|row| {
        json!({
            "name": row.name,
            "method": row.method,
            "tier": row.method.tier(),
            "state": row.state,
            "generation": row.generation,
            "reason": (!row.reason.is_empty()).then_some(&*row.reason),
            "abandoned": row.abandoned,
            "held_back": row.is_held_back,
            "retry_in_ms": row.retry_at_us.map(|at| at.saturating_sub(now_us) / 1000),
        })
    });
    json!({ "adapters": rows.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;

    fn started(data_dir: std::path::PathBuf) -> Adapters {
        let mut config = Config::default();
        config.detection.data_dirs = vec![data_dir];
        let mut adapters = Adapters::new(Arc::new(SystemClock));
        adapters.start(&config, Vec::new(), &PushEventBus::new());
        adapters
    }

    #[test]
    fn adapters_that_fail_their_first_check_are_left_out_and_the_others_are_ready() {
        let space = tempfile::tempdir().unwrap();
        let good = started(space.path().join("absent"));
        let rows = good.rows();
        assert_eq!((rows.len(), rows[0].state, rows[0].generation), (1, AdapterState::Ready, 1));
        assert_eq!(report(&good, 0)["adapters"][0]["tier"], "1");

        std::fs::write(space.path().join("applications"), "no folder").unwrap();
        let bad = started(space.path().to_owned());
        assert!(bad.rows().is_empty());
        assert_eq!(report(&bad, 0), json!({ "adapters": [] }));
    }
}
