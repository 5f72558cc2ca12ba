//! What a record says: every fact of one operation, in the order in which it is written.

use crate::action::ActionClass;
use crate::capability::Tier;
use crate::domain::Domain;
use crate::error::ErrorCode;
use crate::id::{ActionHash, OperationId};
use crate::outcome::{Effect, Stage, Terminal};
use crate::principal::AuthPrincipal;
use crate::words::words;

words! {
    /// The three trails, one per domain.
    Trail: "trail" {
        /// Operations of the App domain.
        Application = "application",
        /// Operations of the Compositor domain.
        Compositor = "compositor",
        /// Operations of the System domain.
        System = "system",
    }
}

impl From<Domain> for Trail {
    fn from(domain: Domain) -> Self {
        match domain {
            Domain::App => Self::Application,
            Domain::Compositor => Self::Compositor,
            Domain::System => Self::System,
        }
    }
}

words! {
    /// Which moment of an operation a record stands for.
    RecordKind: "record kind" {
        /// Before the effect, synced: this is also the ledger's claim.
        Intent = "intent",
        /// After the effect, synced.
        Terminal = "terminal",
        /// An operation that had no effect to claim; not synced on its own.
        Read = "read",
        /// An operation that was refused before any claim.
        Refusal = "refusal",
    }
}

/// What the permission stage found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermissionRecord<'a> {
    /// `allowed`, `denied`, or `unchecked` when an earlier stage refused.
    pub verdict: &'a str,
    /// The rule that decided.
    pub rule: &'a str,
    /// The effective gate, where one was found.
    pub gate: &'a str,
}

/// One record, borrowed from the pipeline; the journal adds sequence, chain and checksum.
#[derive(Debug, Clone, Copy)]
pub struct AuditEntry<'a> {
    /// Which trail it belongs to: that of the intent's domain.
    pub trail: Trail,
    /// Which moment.
    pub kind: RecordKind,
    /// Wall clock, Unix milliseconds.
    pub time_ms: u64,
    /// The operation.
    pub operation_id: OperationId,
    /// Who asked.
    pub caller: &'a AuthPrincipal,
    /// The capability as far as it is known: canonical, or the words of the request.
    pub capability: &'a str,
    /// The application that was resolved, where one was.
    pub target_app: &'a str,
    /// The class.
    pub class: ActionClass,
    /// The tier, once planned.
    pub tier: Option<Tier>,
    /// What the permission stage found.
    pub permission: PermissionRecord<'a>,
    /// The parameters with everything sensitive replaced by its hash, as compact JSON (C5).
    pub params: &'a str,
    /// SHA-256 of the parameter bytes as sent.
    pub params_sha256: &'a [u8; 32],
    /// What the operation id is bound to.
    pub action_hash: ActionHash,
    /// How it ended; absent in an intent record.
    pub end: Option<AuditEnd>,
}

/// The part of a record that only an ended operation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditEnd {
    /// The stage that ended it.
    pub stage: Stage,
    /// How.
    pub terminal: Terminal,
    /// Why, when it did not succeed.
    pub error: Option<ErrorCode>,
    /// What is known of the effect.
    pub effect: Option<Effect>,
    /// How it was verified: `result`, `none`.
    pub verification: &'static str,
    /// Whether a budget overran.
    pub timed_out: bool,
    /// From entry to exit, microseconds of the monotonic clock.
    pub duration_us: u64,
}

/// Where a record stands: enough to wait for it and to find it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditTicket {
    /// Which trail.
    pub trail: Trail,
    /// Its sequence number there.
    pub seq: u64,
    /// SHA-256 of its line: the `audit_hash` of a result.
    pub hash: [u8; 32],
}
