//! How the newest operations went through the stages: what `explain` tells.
//!
//! Kept in memory only, so that a read costs no more on the disk; the trail holds the end of every operation for good.

use std::sync::{Mutex, PoisonError};

use pcp_core::id::MAX_CAPABILITY_ID_BYTES;
use pcp_core::{ActionClass, Clock, ErrorCode, OperationId, Stage, Terminal, Tier};

use crate::facts::RULE_BYTES;

/// Operations that are kept: what a person asks about a moment later, in 230 KiB of the daemon's memory.
pub const MAX_TRACES: usize = 256;

/// One stage of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageSpan {
    /// The stage.
    pub stage: Stage,
    /// When it began, in microseconds after the operation entered.
    pub start_us: u64,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

/// Times the stages of one operation. Each ends when the next one begins.
#[derive(Clone)]
pub(crate) struct Stopwatch<'c> {
    clock: &'c dyn Clock,
    started_us: u64,
    spans: heapless::Vec<StageSpan, { Stage::ALL.len() }>,
}

impl std::fmt::Debug for Stopwatch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopwatch").field("spans", &self.spans).finish_non_exhaustive()
    }
}

impl<'c> Stopwatch<'c> {
    pub(crate) fn start(clock: &'c dyn Clock) -> Self {
        Self { clock, started_us: clock.monotonic_us(), spans: heapless::Vec::new() }
    }

    /// Microseconds since the operation entered.
    pub(crate) fn elapsed_us(&self) -> u64 {
        self.clock.monotonic_us().saturating_sub(self.started_us)
    }

    /// The stage before has ended, and this one begins. A stage of two halves is entered once.
    pub(crate) fn enter(&mut self, stage: Stage) {
        let now = self.elapsed_us();
        self.end_last(now);
        // Seven stages have seven places; each is entered once.
        let _ = self.spans.push(StageSpan { stage, start_us: now, duration_us: 0 });
    }

    /// The last stage has ended.
    pub(crate) fn stop(&mut self) {
        let now = self.elapsed_us();
        self.end_last(now);
    }

    fn end_last(&mut self, now: u64) {
        if let Some(last) = self.spans.last_mut() {
            last.duration_us = now.saturating_sub(last.start_us);
        }
    }

    pub(crate) fn spans(&self) -> &heapless::Vec<StageSpan, { Stage::ALL.len() }> {
        &self.spans
    }
}

/// How one operation went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// The operation.
    pub operation_id: OperationId,
    /// Who asked.
    pub uid: u32,
    /// What was asked for.
    pub capability: heapless::String<MAX_CAPABILITY_ID_BYTES>,
    /// The class that it was gated as.
    pub class: ActionClass,
    /// Allowed, denied or not asked.
    pub verdict: &'static str,
    /// The rule that decided.
    pub rule: heapless::String<RULE_BYTES>,
    /// What the gate said; empty before it was asked.
    pub gate: &'static str,
    /// The tier that was to act.
    pub tier: Option<Tier>,
    /// Whether nothing was registered and a read went on without a descriptor of its own.
    pub fallback: bool,
    /// Whether it only said what would be done.
    pub dry_run: bool,
    /// Whether this is the stored end of an earlier run.
    pub replayed: bool,
    /// The stages that were entered, in order.
    pub spans: heapless::Vec<StageSpan, { Stage::ALL.len() }>,
    /// How it ended.
    pub terminal: Terminal,
    /// Why, when it did not succeed.
    pub error: Option<ErrorCode>,
    /// Whether a budget ran out.
    pub timed_out: bool,
    /// From entry to exit, in microseconds.
    pub duration_us: u64,
}

/// The newest traces; the oldest makes room.
#[derive(Debug)]
pub(crate) struct Traces {
    ring: Mutex<Ring>,
}

#[derive(Debug)]
struct Ring {
    kept: Vec<Trace>,
    next: usize,
}

impl Default for Traces {
    fn default() -> Self {
        Self { ring: Mutex::new(Ring { kept: Vec::with_capacity(MAX_TRACES), next: 0 }) }
    }
}

impl Traces {
    pub(crate) fn keep(&self, trace: Trace) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let next = ring.next;
        match ring.kept.get_mut(next) {
            Some(oldest) => *oldest = trace,
            None => ring.kept.push(trace),
        }
        ring.next = (next + 1) % MAX_TRACES;
    }

    /// The newest run of the operation.
    pub(crate) fn of(&self, operation: OperationId) -> Option<Trace> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let (newer, older) = ring.kept.split_at(ring.next.min(ring.kept.len()));
        newer.iter().rev().chain(older.iter().rev()).find(|trace| trace.operation_id == operation).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Debug, Default)]
    struct Steps(AtomicU64);

    impl Clock for Steps {
        fn monotonic_us(&self) -> u64 {
            self.0.fetch_add(10, Ordering::Relaxed)
        }
        fn wall_ms(&self) -> u64 {
            0
        }
    }

    fn trace(n: u64) -> Trace {
        let mut entropy = [0; 10];
        entropy[..8].copy_from_slice(&n.to_be_bytes());
        Trace {
            operation_id: OperationId::from_parts(1, entropy),
            uid: 1,
            capability: heapless::String::new(),
            class: ActionClass::Read,
            verdict: "allowed",
            rule: heapless::String::new(),
            gate: "",
            tier: None,
            fallback: false,
            dry_run: false,
            replayed: false,
            spans: heapless::Vec::new(),
            terminal: Terminal::Succeeded,
            error: None,
            timed_out: false,
            duration_us: n,
        }
    }

    #[test]
    fn each_stage_ends_where_the_next_begins() {
        let clock = Steps::default();
        let mut watch = Stopwatch::start(&clock);
        watch.enter(Stage::Classify);
        watch.enter(Stage::ResolveTarget);
        watch.stop();
        let spans: Vec<_> = watch.spans().iter().map(|span| (span.start_us, span.duration_us)).collect();
        assert_eq!(spans, [(10, 10), (20, 10)]);
    }

    #[test]
    fn the_newest_traces_are_kept_and_the_newest_run_of_an_operation_is_found() {
        let traces = Traces::default();
        let first = trace(0);
        traces.keep(first.clone());
        for n in 1..MAX_TRACES as u64 {
            traces.keep(trace(n));
        }
        assert_eq!(traces.of(first.operation_id), Some(first.clone()), "as many as there is room for");
        traces.keep(Trace { replayed: true, ..trace(9) });
        assert_eq!(traces.of(first.operation_id), None, "the oldest made room");
        assert!(traces.of(trace(9).operation_id).is_some_and(|trace| trace.replayed));
        assert!(traces.of(trace(MAX_TRACES as u64 - 1).operation_id).is_some());
    }
}
