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
    let state = records.claims.begin(operation, facts.action_hash, wall_ms);
    refuse_unless_fresh(state, operation)?;
    let share = records
        .shares
        .take(facts.caller.uid, &planned.capability.app_id)
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

/// Only an id of which nothing is known goes on. One that ended is answered in any case, however old it is and
/// whatever the clock says.
fn refuse_unless_fresh(state: ClaimState, operation: OperationId) -> Result<(), NotClaimed> {
    let (code, message, hint) = match state {
        ClaimState::Fresh => return Ok(()),
        ClaimState::Ended(terminal) => return Err(NotClaimed::Ended(terminal)),
        ClaimState::Running => {
            (ErrorCode::Conflict, format!("operation {operation} is still under way"), None)
        }
        ClaimState::Conflict => (
            ErrorCode::Conflict,
            format!("operation {operation} was already claimed with another action hash"),
            Some("another action, other parameters or another caller need an operation id of their own"),
        ),
        ClaimState::Full { limit } => (
            ErrorCode::LimitReached,
            format!("{limit} operations are under way, the limit; this one was not started"),
            None,
        ),
        ClaimState::Skewed { ahead_ms, limit_ms } => (
            ErrorCode::ClockSkew,
            format!(
                "operation id {operation} is dated {ahead_ms} ms ahead of the device's clock, more than the {limit_ms} allowed"
            ),
            Some("make the id from this device's time and ask again"),
        ),
        ClaimState::Unreadable => (
            ErrorCode::AuditUnavailable,
            format!("the records that may hold operation {operation} cannot be read; nothing was done"),
            Some("`pcp-cli audit verify` names the file"),
        ),
    };
    let refusal = Refusal::new(Stage::Execute, code, message);
    Err(NotClaimed::Refused(match hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }))
}
