//! An audit record: its members in the order in which they are written, and how they are read back.
//!
//! `FORMAT.md` shows every member. Nothing secret is in a record: parameters come redacted.

use std::borrow::Cow;

use pcp_core::{AuditEnd, AuditEntry, OperationId, Tier};
use serde::Deserialize;

use crate::line::{Hash, LineWriter};

/// Writes the members of a record. `claim` is the hash of the intent record that a terminal answers.
pub(crate) fn write(line: &mut LineWriter<'_>, entry: &AuditEntry<'_>, claim: Option<&Hash>) {
    let caller = entry.caller;
    line.text("kind", entry.kind.as_str()).number("time_ms", entry.time_ms);
    line.text("operation_id", &entry.operation_id.to_text());
    line.object("caller", |line| {
        line.number("uid", caller.uid.into());
        match caller.pid.and_then(|pid| u64::try_from(pid).ok()) {
            Some(pid) => line.number("pid", pid),
            None => line.null("pid"),
        };
        line.text("domain", caller.domain.as_str()).number("trust", caller.trust.get().into());
        line.text("modality", caller.modality.as_str());
    });
    line.text("capability", entry.capability);
    line.object("target", |line| {
        line.text("app", entry.target_app);
    });
    line.text("class", entry.class.as_str());
    line.maybe_text("tier", entry.tier.map(Tier::as_str));
    // Synthetic input is a best effort, never verified.
    line.truth("best_effort", entry.tier == Some(Tier::Three));
    line.object("permission", |line| {
        line.text("verdict", entry.permission.verdict).text("rule", entry.permission.rule);
        line.text("gate", entry.permission.gate);
    });
    line.json("params", if entry.params.is_empty() { "null" } else { entry.params });
    line.hex("params_sha256", entry.params_sha256).hex("action_hash", entry.action_hash.as_bytes());
    if let Some(end) = &entry.end {
        write_end(line, end, claim);
    }
}

pub(crate) fn write_end(line: &mut LineWriter<'_>, end: &AuditEnd, claim: Option<&Hash>) {
    match claim {
        Some(claim) => line.hex("claim_hash", claim),
        None => line.null("claim_hash"),
    };
    line.text("stage", end.stage.as_str()).text("terminal", end.terminal.as_str());
    line.maybe_text("error", end.error.map(|error| error.as_str()));
    line.maybe_text("effect", end.effect.map(|effect| effect.as_str()));
    line.text("verification", end.verification).truth("timed_out", end.timed_out);
    line.number("duration_us", end.duration_us);
}

/// A record read back. Text borrows from the line unless it had to be unescaped.
#[derive(Clone, Debug, Deserialize)]
pub struct Record<'a> {
    /// Number in its trail.
    pub seq: u64,
    /// Which moment of the operation.
    pub kind: Cow<'a, str>,
    /// Wall clock, Unix milliseconds.
    pub time_ms: u64,
    /// The operation.
    pub operation_id: Cow<'a, str>,
    /// Who asked.
    pub caller: RecordCaller<'a>,
    /// The capability.
    pub capability: Cow<'a, str>,
    /// What it acted on.
    pub target: RecordTarget<'a>,
    /// The action class.
    pub class: Cow<'a, str>,
    /// The tier.
    pub tier: Option<Cow<'a, str>>,
    /// SHA-256 that binds the operation id.
    pub action_hash: Cow<'a, str>,
    /// How it ended.
    pub terminal: Option<Cow<'a, str>>,
    /// Why.
    pub error: Option<Cow<'a, str>>,
    /// What is known of the effect.
    pub effect: Option<Cow<'a, str>>,
    /// How long it took, in microseconds.
    pub duration_us: Option<u64>,
}

/// Who asked, as recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordCaller<'a> {
    /// The kernel's user id of the peer.
    pub uid: u32,
    /// Its process id at the time.
    pub pid: Option<u32>,
    /// Its domain.
    pub domain: Cow<'a, str>,
    /// Its trust level.
    pub trust: u8,
    /// Its modality.
    pub modality: Cow<'a, str>,
}

/// What an operation acted on, as recorded.
#[derive(Clone, Debug, Deserialize)]
pub struct RecordTarget<'a> {
    /// The application.
    pub app: Cow<'a, str>,
}

impl<'a> Record<'a> {
    /// Reads the members of a line; `None` if it is a chained line but no audit record.
    #[must_use]
    pub fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The operation, if its id is one.
    pub(crate) fn operation(&self) -> Option<OperationId> {
        OperationId::parse(&self.operation_id).ok()
    }
}
