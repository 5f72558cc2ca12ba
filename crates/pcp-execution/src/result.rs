//! What a caller gets back, and the buffers that it lends so that a read allocates nothing.

use pcp_core::{
    ActionClass, CapabilityId, DetectionMethod, Effect, Gate, OperationId, PcpError, StateSource, Terminal,
    Tier,
};

/// The most that a scratch buffer keeps between requests, in bytes: one large answer must not stay for good.
const KEPT_BYTES: usize = 64 * 1024;

/// Buffers of one connection, reused from request to request.
#[derive(Debug, Default)]
pub struct Scratch {
    /// The application's answer.
    pub(crate) data: Vec<u8>,
    /// The parameters as they stand in a record.
    pub(crate) params: String,
}

impl Scratch {
    /// Empties the buffers; a large one is given back.
    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.data.shrink_to(KEPT_BYTES);
        self.params.clear();
        self.params.push_str("{}");
    }

    /// The application's answer as JSON text; empty when there was none.
    #[must_use]
    pub fn data(&self) -> &str {
        std::str::from_utf8(&self.data).unwrap_or_default()
    }
}

/// How an operation ended, as told to the caller.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an outcome that nobody looks at may be an effect that nobody knows of"]
pub struct ExecutionResult {
    /// The operation.
    pub operation_id: OperationId,
    /// How it ended.
    pub terminal: Terminal,
    /// Why, when it did not succeed.
    pub error: Option<PcpError>,
    /// What is known of the effect; absent where there was none to know of.
    pub effect: Option<Effect>,
    /// The tier that acted.
    pub tier: Option<Tier>,
    /// Which state the data came from.
    pub state_source: StateSource,
    /// SHA-256 of the operation's last record: found again in the trail.
    pub audit_hash: Option<[u8; 32]>,
    /// Whether this is the stored end of an earlier run.
    pub replayed: bool,
    /// From entry to exit, microseconds.
    pub duration_us: u64,
    /// What would be done, for a dry run.
    pub plan: Option<Plan>,
}

/// What a dry run tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The capability.
    pub capability: CapabilityId,
    /// The class that it is gated as.
    pub class: ActionClass,
    /// The rule that allows it.
    pub rule: String,
    /// Whether a person has to confirm.
    pub gate: Gate,
    /// How it would be reached.
    pub method: DetectionMethod,
    /// Whether it would be claimed before dispatch.
    pub claims: bool,
    /// How long it could be taken back, in milliseconds.
    pub undo_window_ms: Option<u64>,
    /// The budget from claim to verification, in milliseconds.
    pub budget_ms: u64,
}
