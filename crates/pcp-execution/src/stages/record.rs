//! Stage 7: the record. Always, for success and refusal alike, outside every deadline.

use std::future::poll_fn;

use pcp_core::{
    AuditEnd, AuditEntry, AuditLogger, AuditTicket, Durability, Effect, ErrorCode, OperationId, PcpError,
    PermissionRecord, RecordKind, Stage, StateSource, Terminal,
};

use super::Refusal;
use super::verify::Verified;
use crate::facts::Facts;

/// How an operation ended, before it is recorded.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) terminal: Terminal,
    pub(crate) error: Option<PcpError>,
    pub(crate) effect: Option<Effect>,
    pub(crate) state_source: StateSource,
    stage: Stage,
    verification: &'static str,
    timed_out: bool,
}

impl Ended {
    /// The one place where the outcome of the steps becomes a terminal.
    pub(crate) fn of(outcome: Result<Verified, Refusal>) -> Self {
        match outcome {
            Ok(Verified { effect, state_source, method }) => Self {
                terminal: Terminal::Succeeded,
                error: None,
                effect,
                state_source,
                stage: Stage::Audit,
                verification: method,
                timed_out: false,
            },
            Err(Refusal { error, stage, may_have_happened, timed_out }) => {
                let terminal = match (may_have_happened, error.code) {
                    (true, _) => Terminal::OutcomeUnknown,
                    (_, ErrorCode::ExpiredBeforeEffect) => Terminal::ExpiredBeforeEffect,
                    (_, ErrorCode::CancelledBeforeEffect) => Terminal::CancelledBeforeEffect,
                    (_, code) if code.kind() == pcp_core::OutcomeKind::Refused => Terminal::Rejected,
                    _ => Terminal::Failed,
                };
                Self {
                    terminal,
                    error: Some(error),
                    effect: may_have_happened.then_some(Effect::Unknown),
                    state_source: StateSource::Unknown,
                    stage,
                    verification: "none",
                    timed_out,
                }
            }
        }
    }

    /// Whether a budget ran out.
    pub(crate) const fn timed_out(&self) -> bool {
        self.timed_out
    }

    /// The end turns unknown: the effect happened, and its record could not be kept (C6).
    pub(crate) fn lose_record(&mut self, cause: &str) {
        self.terminal = Terminal::OutcomeUnknown;
        self.effect = Some(Effect::Unknown);
        self.error = Some(
            PcpError::new(
                ErrorCode::OutcomeUnknown,
                format!("the terminal record could not be kept: {cause}"),
            )
            .at(Stage::Audit)
            .hint("no further effects run until the store is repaired; `pcp-cli doctor` says more"),
        );
    }
}

/// Writes the terminal, read or refusal record, and waits for it where a claim is open, for room where none is.
pub(crate) async fn record(
    ended: &Ended,
    operation: OperationId,
    moment: (u64, u64),
    params: &str,
    facts: &Facts<'_>,
    audit: &dyn AuditLogger,
) -> Result<AuditTicket, pcp_core::AuditError> {
    let (wall_ms, duration_us) = moment;
    let (kind, durability) = match (facts.claimed, facts.is_read && ended.terminal == Terminal::Succeeded) {
        (true, _) => (RecordKind::Terminal, Durability::Durable),
        (false, true) => (RecordKind::Read, Durability::Lazy),
        (false, false) => (RecordKind::Refusal, Durability::Lazy),
    };
    let end = AuditEnd {
        stage: ended.stage,
        terminal: ended.terminal,
        error: ended.error.as_ref().map(|error| error.code),
        effect: ended.effect,
        verification: ended.verification,
        timed_out: ended.timed_out,
        duration_us,
    };
    if durability == Durability::Lazy {
        poll_fn(|cx| audit.poll_room(facts.trail, kind, cx)).await;
    }
    let ticket = audit.append(&entry(kind, operation, wall_ms, params, facts, Some(end)), durability)?;
    if durability == Durability::Durable {
        poll_fn(|cx| audit.poll_durable(&ticket, cx)).await?;
    }
    Ok(ticket)
}

/// The facts as a record.
pub(crate) fn entry<'e>(
    kind: RecordKind,
    operation_id: OperationId,
    time_ms: u64,
    params: &'e str,
    facts: &'e Facts<'_>,
    end: Option<AuditEnd>,
) -> AuditEntry<'e> {
    AuditEntry {
        trail: facts.trail,
        kind,
        time_ms,
        operation_id,
        caller: facts.caller,
        capability: &facts.capability,
        target_app: facts.target_app,
        class: facts.class,
        tier: facts.tier,
        permission: PermissionRecord { verdict: facts.verdict, rule: &facts.rule, gate: facts.gate },
        params,
        params_sha256: &facts.params_sha256,
        action_hash: facts.action_hash,
        end,
    }
}
