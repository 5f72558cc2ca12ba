//! ExecuteResponse: how far an execution has come (C25). Daemon to client.

use pcp_core::OperationId;
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, Tag, operation_id, wire_words};
use crate::text::Text;

wire_words! {
    /// How far an operation has come.
    AckState {
        /// It was read and is on its way.
        Accepted = "accepted",
        /// Its claim is kept; from here on it may take effect.
        Executing = "executing",
        /// A person has to decide first.
        AwaitingConfirmation = "awaiting_confirmation",
    }
}

/// The content of an ExecuteResponse: one acknowledgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ExecuteResponse.discriminant() }>,
    /// Which operation.
    #[serde(with = "operation_id")]
    pub operation_id: OperationId,
    /// Counts the acknowledgements of one operation from 0.
    pub sequence: u32,
    /// How far it has come.
    pub state: AckState,
    /// What is waited for, exactly when a person has to decide.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Awaiting<'a>>,
}

/// The prompt that a person has to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Awaiting<'a> {
    /// Its id, for the confirmer's side.
    #[serde(borrow)]
    pub prompt_id: Text<'a>,
    /// Unix milliseconds after which it is void.
    pub expires_ms: u64,
}

impl Payload for ExecuteResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ExecuteResponse;
}

impl ExecuteResponse<'_> {
    /// An acknowledgement that waits for nobody.
    #[must_use]
    pub const fn new(operation_id: OperationId, sequence: u32, state: AckState) -> Self {
        Self { tag: Tag, operation_id, sequence, state, confirmation: None }
    }
}
