//! AppShutdown and its acknowledgement. Daemon to application, and back.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of an AppShutdown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppShutdown<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::AppShutdown.discriminant() }>,
    /// Why, for the application's log.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text<'a>>,
}

impl Payload for AppShutdown<'_> {
    const TYPE: StreamMessageType = StreamMessageType::AppShutdown;
}

/// The content of an AppShutdownAck.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppShutdownAck {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::AppShutdownAck.discriminant() }>,
}

impl Payload for AppShutdownAck {
    const TYPE: StreamMessageType = StreamMessageType::AppShutdownAck;
}
