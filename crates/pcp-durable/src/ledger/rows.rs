//! The operations in memory: sorted by id, the oldest ended ones let go first.

use std::collections::VecDeque;

use pcp_core::{ActionHash, Effect, ErrorCode, OperationId, Terminal, Tier};

use super::{MAX_OPERATIONS, OperationStatus};
use crate::index::Id;
use crate::line::Hash;

/// An operation and its status, flat: nested, it would take eight bytes more.
#[derive(Clone, Copy, Debug)]
struct Row {
    id: OperationId,
    action_hash: ActionHash,
    audit_hash: Hash,
    duration_us: u64,
    terminal: Option<Terminal>,
    error: Option<ErrorCode>,
    effect: Option<Effect>,
    tier: Option<Tier>,
    /// Its terminal stands in a closed segment, where it is found when it is let go here.
    settled: bool,
}

impl Row {
    fn new(id: OperationId, status: OperationStatus, settled: bool) -> Self {
        let OperationStatus { action_hash, terminal, error, effect, tier, audit_hash, duration_us } = status;
        Self { id, action_hash, audit_hash, duration_us, terminal, error, effect, tier, settled }
    }

    fn status(&self) -> OperationStatus {
        let Self { action_hash, audit_hash, duration_us, terminal, error, effect, tier, .. } = *self;
        OperationStatus { action_hash, terminal, error, effect, tier, audit_hash, duration_us }
    }
}

#[derive(Debug)]
pub(super) struct Rows {
    /// Sorted by id, which is by time: new ones go to the end.
    rows: VecDeque<Row>,
    running: usize,
    limit: usize,
    /// The newest id that may have been let go: all operations with a newer one are here.
    floor: Option<Id>,
    /// The highest id whose records may be deleted.
    forgotten: Id,
}

impl Default for Rows {
    fn default() -> Self {
        Self::with_limit(MAX_OPERATIONS)
    }
}

impl Rows {
    pub(super) fn with_limit(limit: usize) -> Self {
        Self { rows: VecDeque::new(), running: 0, limit, floor: None, forgotten: Id::default() }
    }

    pub(super) fn forget_to(&mut self, id: Id) -> Id {
        self.forgotten = self.forgotten.max(id);
        self.forgotten
    }

    pub(super) fn has_forgotten(&self, id: OperationId) -> bool {
        *id.as_bytes() <= self.forgotten
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) const fn running(&self) -> usize {
        self.running
    }

    pub(super) fn status(&self, id: OperationId) -> Option<OperationStatus> {
        self.find(id.as_bytes()).ok().map(|at| self.rows[at].status())
    }

    /// Whether an operation that is not here may have been, or was before this process.
    pub(super) fn was_let_go(&self, id: OperationId) -> bool {
        self.floor.is_some_and(|floor| *id.as_bytes() <= floor)
    }

    pub(super) fn raise_floor(&mut self, id: Option<Id>) {
        self.floor = self.floor.max(id);
    }

    /// Enters what is known of an operation now.
    pub(super) fn put(&mut self, id: OperationId, status: OperationStatus) {
        let runs = usize::from(status.terminal.is_none());
        if let Ok(at) = self.find(id.as_bytes()) {
            let row = &mut self.rows[at];
            let ran = usize::from(row.terminal.is_none());
            *row = Row::new(id, status, row.settled);
            self.running = self.running + runs - ran;
            return;
        }
        self.make_room();
        let (Ok(at) | Err(at)) = self.find(id.as_bytes());
        self.rows.insert(at, Row::new(id, status, false));
        self.running += runs;
    }

    pub(super) fn forget(&mut self, id: OperationId) {
        if let Ok(at) = self.find(id.as_bytes())
            && self.rows[at].terminal.is_none()
        {
            self.rows.remove(at);
            self.running -= 1;
        }
    }

    pub(super) fn settle(&mut self, id: &Id) {
        if let Ok(at) = self.find(id) {
            self.rows[at].settled = true;
        }
    }

    fn find(&self, id: &Id) -> Result<usize, usize> {
        self.rows.binary_search_by(|row| row.id.as_bytes().cmp(id))
    }

    /// Lets the oldest go that ended and are found elsewhere, until there is room for one more. What is neither
    /// stays, whatever the limit: a segment holds fewer operations than it.
    fn make_room(&mut self) {
        while self.rows.len() >= self.limit {
            let oldest = self.rows.iter().position(|row| row.settled && row.terminal.is_some());
            let Some(row) = oldest.and_then(|at| self.rows.remove(at)) else { return };
            self.raise_floor(Some(*row.id.as_bytes()));
        }
    }

    #[cfg(test)]
    pub(super) fn row_bytes() -> usize {
        size_of::<Row>()
    }
}
