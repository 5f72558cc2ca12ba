//! Which operation ids are bound to which action, so that none runs twice (R-181..R-183).
//!
//! An index in memory over the trails: a claim is the intent record, its end the terminal record; nothing
//! is stored twice. Ids are ordered by time, so the newest ones are kept and an id older than everything
//! that was let go is refused, never run.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pcp_core::{
    ActionHash, AuditEnd, ClaimState, Effect, ErrorCode, OperationClaims, OperationId, StoredEnd, Terminal,
    Tier,
};

use crate::line::{Hash, unhex};
use crate::record::Record;

/// Operations the index holds: the newest ones, at about 100 bytes each.
pub const MAX_OPERATIONS: usize = 50_000;

/// Operations that may be under way at once: fewer than records may wait to become durable.
pub const MAX_RUNNING: usize = 128;

/// What is known of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationStatus {
    /// What its id is bound to.
    pub action_hash: ActionHash,
    /// How it ended; `None` while it is under way.
    pub terminal: Option<Terminal>,
    /// Why, when it did not succeed.
    pub error: Option<ErrorCode>,
    /// What is known of its effect.
    pub effect: Option<Effect>,
    /// The tier that acted.
    pub tier: Option<Tier>,
    /// SHA-256 of its last record; zeros before there is one.
    pub audit_hash: Hash,
    /// How long it took, in microseconds.
    pub duration_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Row {
    id: OperationId,
    status: OperationStatus,
}

/// The index of claimed operations.
#[derive(Debug, Default)]
pub struct OperationLedger {
    rows: Mutex<Rows>,
}

#[derive(Debug)]
struct Rows {
    /// Sorted by id, which is by time: new ones go to the end.
    rows: VecDeque<Row>,
    running: usize,
    limit: usize,
    /// The newest id that was let go.
    floor: Option<OperationId>,
}

impl Default for Rows {
    fn default() -> Self {
        Self { rows: VecDeque::new(), running: 0, limit: MAX_OPERATIONS, floor: None }
    }
}

impl OperationLedger {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What is known of an operation; `None` if it never was claimed, or so long ago that it was let go.
    #[must_use]
    pub fn status(&self, id: OperationId) -> Option<OperationStatus> {
        let rows = self.lock();
        rows.find(id).ok().map(|at| rows.rows[at].status)
    }

    /// Operations in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().rows.len()
    }

    /// True if no operation was ever claimed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes the intent record of an operation.
    pub(crate) fn claimed(&self, id: OperationId, action: ActionHash, tier: Option<Tier>, line: Hash) {
        let mut rows = self.lock();
        let row = rows.enter(id, action);
        (row.tier, row.audit_hash) = (tier, line);
        if row.terminal.take().is_some() {
            rows.running += 1;
        }
    }

    /// Notes the terminal record of an operation.
    pub(crate) fn ended(
        &self,
        id: OperationId,
        action: ActionHash,
        tier: Option<Tier>,
        end: &AuditEnd,
        line: Hash,
    ) {
        let mut rows = self.lock();
        let row = rows.enter(id, action);
        let was_running = row.terminal.is_none();
        *row = OperationStatus {
            action_hash: action,
            terminal: Some(end.terminal),
            error: end.error,
            effect: end.effect,
            tier,
            audit_hash: line,
            duration_us: end.duration_us,
        };
        rows.running -= usize::from(was_running);
    }

    /// The hash of the intent record of an operation under way.
    pub(crate) fn claim_hash(&self, id: OperationId) -> Option<Hash> {
        let status = self.status(id)?;
        (status.terminal.is_none() && status.audit_hash != Hash::default()).then_some(status.audit_hash)
    }

    /// Takes a record read back from a trail.
    pub(crate) fn replay(&self, record: &Record<'_>, line: Hash) {
        let id = OperationId::parse(&record.operation_id);
        let action = unhex(record.action_hash.as_bytes()).map(ActionHash::from_bytes);
        let (Ok(id), Some(action)) = (id, action) else { return };
        let tier = record.tier.as_deref().and_then(|tier| tier.parse().ok());
        match &*record.kind {
            "intent" => self.claimed(id, action, tier, line),
            "terminal" => {
                let word = record.terminal.as_deref().and_then(|word| word.parse().ok());
                let end = AuditEnd {
                    stage: pcp_core::Stage::Audit,
                    // A terminal that this build does not know is not a licence to run again.
                    terminal: word.unwrap_or(Terminal::OutcomeUnknown),
                    error: record.error.as_deref().and_then(|word| word.parse().ok()),
                    effect: record.effect.as_deref().and_then(|word| word.parse().ok()),
                    verification: "",
                    timed_out: false,
                    duration_us: record.duration_us.unwrap_or(0),
                };
                self.ended(id, action, tier, &end, line);
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows {
    fn find(&self, id: OperationId) -> Result<usize, usize> {
        self.rows.binary_search_by(|row| row.id.cmp(&id))
    }

    /// The row of an operation; a new one is under way.
    fn enter(&mut self, id: OperationId, action_hash: ActionHash) -> &mut OperationStatus {
        if self.find(id).is_err() {
            self.make_room();
        }
        let at = match self.find(id) {
            Ok(at) => at,
            Err(at) => {
                let status = OperationStatus {
                    action_hash,
                    terminal: None,
                    error: None,
                    effect: None,
                    tier: None,
                    audit_hash: Hash::default(),
                    duration_us: 0,
                };
                self.rows.insert(at, Row { id, status });
                self.running += 1;
                at
            }
        };
        &mut self.rows[at].status
    }

    /// Lets the oldest ended operations go until there is room for one more.
    fn make_room(&mut self) {
        while self.rows.len() >= self.limit {
            let oldest = self.rows.iter().position(|row| row.status.terminal.is_some());
            let Some(row) = oldest.and_then(|at| self.rows.remove(at)) else { return };
            self.floor = self.floor.max(Some(row.id));
        }
    }
}

impl OperationClaims for OperationLedger {
    fn begin(&self, id: OperationId, action: ActionHash) -> ClaimState {
        let mut rows = self.lock();
        if let Ok(at) = rows.find(id) {
            let status = rows.rows[at].status;
            return match status.terminal {
                _ if status.action_hash != action => ClaimState::Conflict,
                Some(terminal) => ClaimState::Ended(terminal),
                None => ClaimState::Running,
            };
        }
        if rows.floor.is_some_and(|floor| id <= floor) {
            return ClaimState::Ended(Terminal::ExpiredBeforeEffect);
        }
        if rows.running >= MAX_RUNNING {
            return ClaimState::Full { limit: MAX_RUNNING };
        }
        rows.enter(id, action);
        ClaimState::Fresh
    }

    fn forget(&self, id: OperationId) {
        let mut rows = self.lock();
        if let Ok(at) = rows.find(id)
            && rows.rows[at].status.terminal.is_none()
        {
            rows.rows.remove(at);
            rows.running -= 1;
        }
    }

    fn end(&self, id: OperationId, terminal: Terminal) {
        let mut rows = self.lock();
        let Ok(at) = rows.find(id) else { return };
        let status = &mut rows.rows[at].status;
        let was_running = status.terminal.is_none();
        if status.terminal != Some(terminal) {
            // The record says something else or could not be kept: its details do not describe this end.
            *status = OperationStatus { terminal: Some(terminal), error: None, effect: None, ..*status };
        }
        rows.running -= usize::from(was_running);
    }

    fn stored(&self, id: OperationId) -> StoredEnd {
        self.status(id).map_or_else(StoredEnd::default, |status| StoredEnd {
            effect: status.effect,
            tier: status.tier,
            audit_hash: (status.audit_hash != Hash::default()).then_some(status.audit_hash),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(n: u64) -> OperationId {
        OperationId::from_parts(1_000_000 + n, [7; 10])
    }

    fn action(n: u8) -> ActionHash {
        ActionHash::from_bytes([n; 32])
    }

    #[test]
    fn an_id_is_fresh_once_then_running_then_ended_and_never_another_action() {
        let ledger = OperationLedger::new();

        assert_eq!(ledger.begin(op(1), action(1)), ClaimState::Fresh);
        assert_eq!(ledger.begin(op(1), action(1)), ClaimState::Running);
        assert_eq!(ledger.begin(op(1), action(2)), ClaimState::Conflict);
        ledger.end(op(1), Terminal::Succeeded);
        for _ in 0..100 {
            assert_eq!(ledger.begin(op(1), action(1)), ClaimState::Ended(Terminal::Succeeded));
            assert_eq!(ledger.begin(op(1), action(2)), ClaimState::Conflict);
        }
    }

    #[test]
    fn a_forgotten_claim_leaves_the_id_free_and_an_ended_one_cannot_be_forgotten() {
        let ledger = OperationLedger::new();
        let _ = ledger.begin(op(1), action(1));
        ledger.forget(op(1));
        assert_eq!(ledger.begin(op(1), action(2)), ClaimState::Fresh);

        ledger.end(op(1), Terminal::Failed);
        ledger.forget(op(1));

        assert_eq!(ledger.begin(op(1), action(2)), ClaimState::Ended(Terminal::Failed));
    }

    #[test]
    fn only_so_many_operations_are_under_way_at_once() {
        let ledger = OperationLedger::new();
        for n in 0..MAX_RUNNING as u64 {
            assert_eq!(ledger.begin(op(n), action(1)), ClaimState::Fresh);
        }
        assert_eq!(ledger.begin(op(999), action(1)), ClaimState::Full { limit: MAX_RUNNING });
        ledger.end(op(5), Terminal::Succeeded);
        assert_eq!(ledger.begin(op(999), action(1)), ClaimState::Fresh);
    }

    #[test]
    fn an_id_older_than_what_was_let_go_is_expired_and_one_under_way_is_never_let_go() {
        let ledger = OperationLedger { rows: Mutex::new(Rows { limit: 10, ..Rows::default() }) };
        let _ = ledger.begin(op(0), action(1));
        for n in 1..=20 {
            assert_eq!(ledger.begin(op(n), action(1)), ClaimState::Fresh);
            ledger.end(op(n), Terminal::Succeeded);
        }

        assert_eq!(ledger.len(), 10);
        assert_eq!(ledger.begin(op(0), action(1)), ClaimState::Running);
        for n in 1..=11 {
            let state = ledger.begin(op(n), action(1));
            assert_eq!(state, ClaimState::Ended(Terminal::ExpiredBeforeEffect), "{n}");
        }
        assert_eq!(ledger.begin(op(12), action(1)), ClaimState::Ended(Terminal::Succeeded));
        assert_eq!(ledger.begin(op(21), action(1)), ClaimState::Fresh);
    }

    #[test]
    fn a_row_is_at_most_a_hundred_bytes() {
        assert!(size_of::<Row>() <= 100, "{}", size_of::<Row>());
    }
}
