//! What is kept of an operation: its claim, then its end, as they stand in a record.

use std::borrow::ToOwned as _;
use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};

use super::PROTOCOL_VERSION;
use super::acknowledgement::{AckState, ActionAck, MAX_ACK_BYTES, Terminal};
use super::action::ActionName;
use super::identifier::Sha256Hash;
use super::read::{ReadError, read};
use super::receipt::{ContextPreservation, DeliveryRoute, InteractionMode, Receipt, SessionIsolation};
use super::wire::Wire as _;
use crate::outcome::Effect;
use crate::words::words;

/// What a receipt says of the backend of an operation whose end was lost.
const UNKNOWN_BACKEND: &str = "unknown";
const RECOVERED: &str = "the operation was claimed and its end is not known; it is not repeated";
/// Longest text that is kept of an operation: its acknowledgement, and as much again for its claim.
const MAX_KEPT_BYTES: usize = 2 * MAX_ACK_BYTES;

/// A claim: what is known of an operation before its effect, and all that is known if its end is never stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimRecord {
    /// The operation.
    pub operation_id: String,
    /// What it is bound to.
    pub action_hash: Sha256Hash,
    /// When, in Unix milliseconds.
    pub claimed_at_ms: i64,
    /// The kind of action.
    pub action_name: ActionName,
    /// How it would travel.
    pub delivery_route: DeliveryRoute,
    /// Whose desktop.
    pub session_isolation: SessionIsolation,
    /// What the request asked for.
    pub interaction_mode: InteractionMode,
}

impl ClaimRecord {
    /// One state of the operation.
    #[must_use]
    pub fn ack(&self, state: AckState) -> ActionAck {
        ActionAck {
            protocol_version: PROTOCOL_VERSION,
            operation_id: self.operation_id.clone(),
            sequence: state.sequence(),
            action_hash: self.action_hash,
            replayed: false,
            state,
        }
    }

    /// The end of an operation of which only the claim is left, found out at `now_ms`.
    #[must_use]
    pub fn recovered(&self, now_ms: i64) -> ActionAck {
        let receipt = Receipt {
            protocol_version: PROTOCOL_VERSION,
            action_name: self.action_name.as_str().to_owned(),
            action_hash: self.action_hash,
            started_at_ms: self.claimed_at_ms,
            finished_at_ms: now_ms.max(self.claimed_at_ms),
            backend: UNKNOWN_BACKEND.to_owned(),
            fallback_chain: Vec::new(),
            delivery_route: self.delivery_route,
            session_isolation: self.session_isolation,
            interaction_mode: self.interaction_mode,
            context_preservation: ContextPreservation::Unavailable,
            effect: Effect::Unknown,
            before: None,
            after: None,
            warnings: Vec::new(),
        };
        let terminal = Terminal::OutcomeUnknown { receipt, message: RECOVERED.to_owned() };
        self.ack(AckState::Terminal { terminal: std::boxed::Box::new(terminal) })
    }
}

words! {
    /// Which door the operation came through, for whoever reads records of both (C46).
    Door: "door" {
        /// That of protocol v2.
        Action = "action",
    }
}

/// The `params` of an operation's records: `{"kind":"action","claim":{…},"ack":…}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptOperation {
    pub(super) kind: Door,
    /// The claim.
    pub claim: ClaimRecord,
    /// The end, in the record that stores one.
    pub ack: Option<ActionAck>,
}

impl KeptOperation {
    /// What is kept of a claimed operation.
    #[must_use]
    pub const fn new(claim: ClaimRecord, ack: Option<ActionAck>) -> Self {
        Self { kind: Door::Action, claim, ack }
    }

    /// Reads `params`.
    ///
    /// # Errors
    /// [`ReadError`]: it is no operation of this protocol.
    pub fn read(params: &str) -> Result<Self, ReadError> {
        read(params.as_bytes(), MAX_KEPT_BYTES)
    }

    /// As JSON.
    #[must_use]
    pub fn write(&self) -> String {
        std::string::ToString::to_string(&self.to_value())
    }

    /// How the operation ended; without a stored end it was found out at `time_ms` that nobody knows.
    #[must_use]
    pub fn end(self, time_ms: i64) -> ActionAck {
        self.ack.unwrap_or_else(|| self.claim.recovered(time_ms))
    }
}
