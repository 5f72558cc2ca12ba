//! CancelRequest: stop an operation that has not taken effect. Client to daemon.

use pcp_core::OperationId;
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, Tag, operation_id};

/// The content of a CancelRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::CancelRequest.discriminant() }>,
    /// Which operation.
    #[serde(with = "operation_id")]
    pub operation_id: OperationId,
}

impl Payload for CancelRequest {
    const TYPE: StreamMessageType = StreamMessageType::CancelRequest;
}
