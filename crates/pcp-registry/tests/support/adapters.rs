//! Adapters that do as they are told, and a clock that stands still.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pcp_core::{
    Adapter, AdapterHealth, AppId, BoxFuture, CapabilityResult, Clock, DetectionMethod, DetectionResult,
    ErrorCode, Invocation, PcpError,
};
use pcp_registry::{AdapterManager, AdapterRow, AdapterStateChanged, Seat, SeatFactory};

/// Virtual time.
#[derive(Debug, Default)]
pub(crate) struct StillClock(AtomicU64);

impl StillClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_micros()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for StillClock {
    fn monotonic_us(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn wall_ms(&self) -> u64 {
        0
    }
}

/// What the next health checks do, then healthy for ever.
pub(crate) type Script = Arc<Mutex<VecDeque<Box<dyn FnOnce() -> AdapterHealth + Send>>>>;

pub(crate) struct Scripted(pub(crate) Script);

impl Adapter for Scripted {
    fn detection_method(&self) -> DetectionMethod {
        DetectionMethod::Atspi2
    }

    fn detect<'a>(&'a self, app_id: &'a AppId) -> BoxFuture<'a, Result<DetectionResult, PcpError>> {
        let found = DetectionResult {
            app_id: app_id.clone(),
            capabilities: Vec::new(),
            confidence: 0.0,
            metadata: Vec::new(),
        };
        Box::pin(async { Ok(found) })
    }

    fn execute<'a>(
        &'a self,
        invocation: Invocation<'a>,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        Box::pin(async move { Ok(CapabilityResult::ok(invocation.parameters)) })
    }

    fn execute_with_method<'a>(
        &'a self,
        _invocation: Invocation<'a>,
        method: DetectionMethod,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        Box::pin(async move { Err(PcpError::new(ErrorCode::Unsupported, format!("not by {method}"))) })
    }

    fn health_check(&self) -> BoxFuture<'_, AdapterHealth> {
        let step = self.0.lock().unwrap().pop_front();
        Box::pin(async move { step.map_or(AdapterHealth::Healthy, |step| step()) })
    }
}

pub(crate) fn scripted(
    steps: impl IntoIterator<Item = Box<dyn FnOnce() -> AdapterHealth + Send>>,
) -> SeatFactory {
    let script: Script = Arc::new(Mutex::new(steps.into_iter().collect()));
    Arc::new(move || Ok(Seat::parking(Scripted(script.clone()))))
}

pub(crate) fn says(health: AdapterHealth) -> Box<dyn FnOnce() -> AdapterHealth + Send> {
    Box::new(move || health)
}

pub(crate) fn row(manager: &AdapterManager, name: &str) -> AdapterRow {
    manager.rows().into_iter().find(|row| row.name == name).unwrap()
}

/// Ticks, without any time going by, until no check of `name` is under way: its thread has answered.
pub(crate) fn settle(manager: &mut AdapterManager, name: &str) -> Vec<AdapterStateChanged> {
    let mut changes = manager.tick();
    while row(manager, name).is_checked {
        std::thread::yield_now();
        changes.extend(manager.tick());
    }
    changes
}
