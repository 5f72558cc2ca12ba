//! DetectRequest: look at an application again. Client to daemon, and what detection found.

use pcp_core::DetectionMethod;
use pcp_core::id::MAX_APP_ID_BYTES;
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::error::MAX_ERROR_TEXT_BYTES;
use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of a DetectRequest. It names an application, never a path: what is read is the daemon's choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectRequest<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::DetectRequest.discriminant() }>,
    /// Which application.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_APP_ID_BYTES>")]
    pub app: Text<'a>,
}

impl Payload for DetectRequest<'_> {
    const TYPE: StreamMessageType = StreamMessageType::DetectRequest;
}

/// The content of a DetectResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DetectResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::DetectResponse.discriminant() }>,
    /// Which application.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_APP_ID_BYTES>")]
    pub app: Text<'a>,
    /// Whether it is registered now.
    pub found: bool,
    /// How it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<DetectionMethod>,
    /// How sure the adapter is, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence_percent: Option<u8>,
    /// Capabilities that it offers now.
    pub capabilities: u32,
    /// Of these, how many it did not offer before.
    pub added: u32,
    /// Capabilities that it no longer offers.
    pub removed: u32,
    /// Capabilities that it still offers, changed.
    pub changed: u32,
    /// Why it offers nothing, where that is so.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::optional::<_, MAX_ERROR_TEXT_BYTES>"
    )]
    pub problem: Option<Text<'a>>,
}

impl Payload for DetectResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::DetectResponse;
}
