//! Which operation ids are bound to which action, so that none runs twice (R-181..R-183).
//!
//! A claim is the intent record, its end the terminal record; nothing is stored twice. The newest operations
//! are in memory, every other one is found in its segment. An id older than the retention horizon of which
//! nothing is known is expired, never run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pcp_core::{
    ActionHash, AuditEnd, ClaimState, Effect, ErrorCode, OperationClaims, OperationId, StoredEnd, Terminal,
    Tier,
};

use crate::Error;
use crate::archive::{Archive, Found};
use crate::index::{Id, Summary};
use crate::line::{Hash, unhex};
use crate::record::Record;

mod rows;

use rows::Rows;

/// Operations held in memory: the newest ones, at about 100 bytes each.
pub const MAX_OPERATIONS: usize = 50_000;

/// How old an operation id may be when it is first seen: a day, in which a lost answer is asked for again.
pub const RETENTION: Duration = Duration::from_hours(24);

/// How far an operation id may be dated ahead of the latest time known here: callers' clocks differ by
/// minutes, and what is further off is no clock.
pub const MAX_AHEAD: Duration = Duration::from_mins(5);

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

/// The claimed operations.
#[derive(Debug)]
pub struct OperationLedger {
    rows: Mutex<Rows>,
    archive: Option<Archive>,
    retention_ms: u64,
    /// The latest wall time in any record, which no clock that is set back takes back (TH-13).
    high_water_ms: AtomicU64,
}

impl Default for OperationLedger {
    fn default() -> Self {
        Self::over(None, RETENTION)
    }
}

impl OperationLedger {
    /// An empty ledger without segments to look into.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty ledger over the closed segments of an archive.
    pub(crate) fn over(archive: Option<Archive>, retention: Duration) -> Self {
        Self {
            rows: Mutex::default(),
            archive,
            retention_ms: millis(retention),
            high_water_ms: AtomicU64::new(0),
        }
    }

    /// What is known of an operation, also one that ended long ago; `None` if it never was claimed.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Disk`] when the segment that may hold it cannot be read.
    pub fn look_up(&self, id: OperationId) -> Result<Option<OperationStatus>, Error> {
        let rows = self.lock();
        match rows.status(id) {
            Some(status) => Ok(Some(status)),
            None => self.look_up_archived(&rows, id),
        }
    }

    /// As [`OperationLedger::look_up`]; also `None` where nothing could be read.
    #[must_use]
    pub fn status(&self, id: OperationId) -> Option<OperationStatus> {
        self.look_up(id).ok().flatten()
    }

    /// The latest wall time known here, in Unix milliseconds.
    #[must_use]
    pub fn high_water_ms(&self) -> u64 {
        self.high_water_ms.load(Ordering::Relaxed)
    }

    /// Closed segments, and how many of them must be read line by line when an operation is looked up.
    #[must_use]
    pub fn segments(&self) -> (usize, usize) {
        self.archive.as_ref().map_or((0, 0), Archive::count)
    }

    /// Notes the wall time of a record.
    pub(crate) fn reached(&self, time_ms: u64) {
        self.high_water_ms.fetch_max(time_ms, Ordering::Relaxed);
    }

    /// Puts a closed segment into the archive.
    pub(crate) fn shelve(&self, trail: usize, number: u32, summary: Summary, indexed: bool) {
        self.reached(summary.latest_ms);
        if let Some(archive) = &self.archive {
            archive.put(trail, number, summary, indexed);
        }
    }

    /// Notes that the terminals of these operations are found in the archive from now on.
    pub(crate) fn settle(&self, ids: impl Iterator<Item = Id>) {
        let mut rows = self.lock();
        ids.for_each(|id| rows.settle(&id));
    }

    /// The closed segments.
    pub(crate) fn archive(&self) -> Option<&Archive> {
        self.archive.as_ref()
    }

    /// Records up to this operation are deleted: none that is not found may run from now on, whatever the clock says.
    /// Gives the highest one that was ever forgotten.
    pub(crate) fn forget_to(&self, id: Id) -> Id {
        self.lock().forget_to(id)
    }

    /// Whether records of operations as old as this one were deleted.
    pub(crate) fn has_forgotten(&self, id: OperationId) -> bool {
        self.lock().has_forgotten(id)
    }

    /// Everything in the closed segments is old from now on: memory knows all that is newer.
    pub(crate) fn begin_behind_archive(&self) {
        let highest = self.archive.as_ref().and_then(Archive::highest);
        self.lock().raise_floor(highest);
    }

    /// What the closed segments say of an operation that memory does not know.
    fn look_up_archived(&self, rows: &Rows, id: OperationId) -> Result<Option<OperationStatus>, Error> {
        let Some(archive) = self.archive.as_ref().filter(|_| rows.was_let_go(id)) else { return Ok(None) };
        Ok(archive.find(id.as_bytes())?.and_then(|found| archived_status(&found)))
    }

    /// Operations in memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// True if no operation is in memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Notes the intent record of an operation.
    pub(crate) fn claimed(&self, id: OperationId, action: ActionHash, tier: Option<Tier>, line: Hash) {
        let mut rows = self.lock();
        let status = OperationStatus { tier, audit_hash: line, ..OperationStatus::begun(action) };
        rows.put(id, status);
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
        let status = OperationStatus {
            action_hash: action,
            terminal: Some(end.terminal),
            error: end.error,
            effect: end.effect,
            tier,
            audit_hash: line,
            duration_us: end.duration_us,
        };
        self.lock().put(id, status);
    }

    /// The hash of the intent record of an operation under way.
    pub(crate) fn claim_hash(&self, id: OperationId) -> Option<Hash> {
        let rows = self.lock();
        let status = rows.status(id)?;
        (status.terminal.is_none() && status.audit_hash != Hash::default()).then_some(status.audit_hash)
    }

    /// Takes a record read back from a trail.
    pub(crate) fn replay(&self, record: &Record<'_>, line: Hash) {
        self.reached(record.time_ms);
        if let Some((id, status)) = read_status(record, line) {
            self.lock().put(id, status);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A claim that nobody works on any more and that has no end is unknown for ever.
fn archived_status(found: &Found) -> Option<OperationStatus> {
    let (_, mut status) = read_status(&Record::read(&found.line)?, found.hash)?;
    if !found.is_end {
        status.terminal = Some(Terminal::OutcomeUnknown);
        (status.error, status.effect) = (Some(ErrorCode::OutcomeUnknown), Some(Effect::Unknown));
    }
    Some(status)
}

/// What an intent or a terminal record says of its operation.
fn read_status(record: &Record<'_>, line: Hash) -> Option<(OperationId, OperationStatus)> {
    let id = record.operation()?;
    let action_hash = ActionHash::from_bytes(unhex(record.action_hash.as_bytes())?);
    let tier = record.tier.as_deref().and_then(|tier| tier.parse().ok());
    let claim = OperationStatus {
        action_hash,
        terminal: None,
        error: None,
        effect: None,
        tier,
        audit_hash: line,
        duration_us: 0,
    };
    match &*record.kind {
        "intent" => Some((id, claim)),
        "terminal" => {
            let word = record.terminal.as_deref().and_then(|word| word.parse().ok());
            // A terminal that this build does not know is not a licence to run again.
            let terminal = Some(word.unwrap_or(Terminal::OutcomeUnknown));
            let error = record.error.as_deref().and_then(|word| word.parse().ok());
            let effect = record.effect.as_deref().and_then(|word| word.parse().ok());
            let duration_us = record.duration_us.unwrap_or(0);
            Some((id, OperationStatus { terminal, error, effect, duration_us, ..claim }))
        }
        _ => None,
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl OperationClaims for OperationLedger {
    fn begin(&self, id: OperationId, action: ActionHash, wall_ms: u64) -> ClaimState {
        let mut rows = self.lock();
        let known = match rows.status(id) {
            Some(status) => Some(status),
            // The lock is kept: nobody else may find the id fresh meanwhile.
            None => match self.look_up_archived(&rows, id) {
                Ok(status) => status,
                Err(_) => return ClaimState::Unreadable,
            },
        };
        if let Some(status) = known {
            return match status.terminal {
                _ if status.action_hash != action => ClaimState::Conflict,
                Some(terminal) => ClaimState::Ended(terminal),
                None => ClaimState::Running,
            };
        }
        let latest_ms = self.high_water_ms().max(wall_ms);
        let (ahead_ms, limit_ms) = (id.unix_ms().saturating_sub(latest_ms), millis(MAX_AHEAD));
        if ahead_ms > limit_ms {
            return ClaimState::Skewed { ahead_ms, limit_ms };
        }
        if id.unix_ms().saturating_add(self.retention_ms) < wall_ms || rows.has_forgotten(id) {
            return ClaimState::Ended(Terminal::ExpiredBeforeEffect);
        }
        if rows.running() >= MAX_RUNNING {
            return ClaimState::Full { limit: MAX_RUNNING };
        }
        rows.put(id, OperationStatus::begun(action));
        ClaimState::Fresh
    }

    fn forget(&self, id: OperationId) {
        self.lock().forget(id);
    }

    fn end(&self, id: OperationId, terminal: Terminal) {
        let mut rows = self.lock();
        let Some(status) = rows.status(id) else { return };
        if status.terminal != Some(terminal) {
            // The record says something else or could not be kept: its details do not describe this end.
            rows.put(id, OperationStatus { terminal: Some(terminal), error: None, effect: None, ..status });
        }
    }

    fn stored(&self, id: OperationId) -> StoredEnd {
        self.status(id).map_or_else(StoredEnd::default, |status| StoredEnd {
            effect: status.effect,
            tier: status.tier,
            audit_hash: (status.audit_hash != Hash::default()).then_some(status.audit_hash),
        })
    }
}

impl OperationStatus {
    /// An operation that begins.
    const fn begun(action_hash: ActionHash) -> Self {
        Self {
            action_hash,
            terminal: None,
            error: None,
            effect: None,
            tier: None,
            audit_hash: [0; 32],
            duration_us: 0,
        }
    }
}

#[cfg(test)]
mod tests;
