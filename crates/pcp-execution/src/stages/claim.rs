//! Stage 5, first half: the durable intent record, which is also the ledger's claim.
//! Nothing reaches the world before it is on stable storage.

use std::future::poll_fn;
use std::time::Duration;

use pcp_core::{
    AuditLogger, ClaimState, Durability, ErrorCode, OperationClaims, OperationId, RecordKind, Stage,
    Terminal, Trail,
};

use super::Refusal;
use super::plan::Planned;
use super::record::entry;
use super::share::{Share, Shares};
use crate::facts::Facts;

/// How far ahead of the device's clock an operation id may be dated, in milliseconds: a caller's clock that is a
/// little off. The index keeps the newest ids and refuses everything older than what it let go, so whoever could
/// fill it with ids of the future would shut out every id of now (R-181, TH-06). In ten seconds nobody fills it.
const MAX_AHEAD_MS: u64 = 10_000;

/// What the record and the index of claims are.
#[derive(Clone, Copy)]
pub(crate) struct Records<'p> {
    pub(crate) audit: &'p dyn AuditLogger,
    pub(crate) claims: &'p dyn OperationClaims,
    pub(crate) shares: &'p Shares,
}

/// Claimed, or a read that has nothing to claim. Only this can be dispatched.
#[derive(Debug)]
pub(crate) struct Claimed<'p> {
    pub(super) planned: Planned,
    /// Held until the effect is over.
    pub(super) share: Option<Share<'p>>,
}

/// A claim that was not made.
#[derive(Debug)]
pub(crate) enum NotClaimed {
    /// It was refused.
    Refused(Refusal),
    /// The same operation already ended.
    Ended(Terminal),
}

impl From<Refusal> for NotClaimed {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Binds the operation id and waits until the intent record is durable.
pub(crate) async fn claim<'p>(
    planned: Planned,
    operation: OperationId,
    records: Records<'p>,
    moment: (u64, Duration),
    params: &str,
    facts: &mut Facts<'_>,
) -> Result<Claimed<'p>, NotClaimed> {
    if planned.is_read {
        return Ok(Claimed { planned, share: None });
    }
    let refuse = |code, message: String| NotClaimed::Refused(Refusal::new(Stage::Execute, code, message));
    let (wall_ms, budget) = moment;
    match records.claims.begin(operation, facts.action_hash) {
        ClaimState::Fresh => {}
        ClaimState::Ended(terminal) => return Err(NotClaimed::Ended(terminal)),
        ClaimState::Running => {
            return Err(refuse(ErrorCode::Conflict, format!("operation {operation} is still under way")));
        }
        ClaimState::Conflict => {
            let message = format!("operation {operation} was already claimed with another action hash");
            let refusal = Refusal::new(Stage::Execute, ErrorCode::Conflict, message);
            let hint = "another action, other parameters or another caller need an operation id of their own";
            return Err(NotClaimed::Refused(refusal.hint(hint)));
        }
        ClaimState::Full { limit } => {
            let message = format!("{limit} operations are under way, the limit; this one was not started");
            return Err(refuse(ErrorCode::LimitReached, message));
        }
    }
    // Only a fresh id is judged by its date and its caller's share; one that ended is answered in any case.
    let share = refuse_ahead(operation, wall_ms)
        .and_then(|()| Ok(records.shares.take(facts.caller.uid, &planned.capability.app_id)?))
        .inspect_err(|_| records.claims.forget(operation))?;
    let record = entry(RecordKind::Intent, operation, wall_ms, params, facts, None);
    let ticket = records.audit.append(&record, Durability::Durable).map_err(|error| {
        records.claims.forget(operation);
        refuse(ErrorCode::AuditUnavailable, format!("{error}; nothing was done"))
    })?;
    facts.claimed = true;
    debug_assert_eq!(ticket.trail, Trail::from(planned.capability.domain));
    match tokio::time::timeout(budget, poll_fn(|cx| records.audit.poll_durable(&ticket, cx))).await {
        Ok(Ok(())) => Ok(Claimed { planned, share: Some(share) }),
        Ok(Err(error)) => Err(refuse(ErrorCode::AuditUnavailable, format!("{error}; nothing was done"))),
        Err(_) => {
            let message = format!(
                "stage execute overran its budget of {} ms waiting for the intent record; nothing was done",
                budget.as_millis()
            );
            let refusal = Refusal::new(Stage::Execute, ErrorCode::Timeout, message);
            Err(NotClaimed::Refused(Refusal { timed_out: true, ..refusal }))
        }
    }
}

/// An id that ended before the device's clock was set back keeps its end.
fn refuse_ahead(operation: OperationId, wall_ms: u64) -> Result<(), NotClaimed> {
    let ahead = operation.unix_ms().saturating_sub(wall_ms);
    if ahead <= MAX_AHEAD_MS {
        return Ok(());
    }
    let message = format!(
        "operation id {operation} is dated {ahead} ms ahead of the device's clock, more than the {MAX_AHEAD_MS} allowed"
    );
    let refusal = Refusal::new(Stage::Execute, ErrorCode::InvalidRequest, message);
    Err(NotClaimed::Refused(refusal.hint("make the id from this device's time and ask again")))
}
