//! GetManifest: send a manifest. Client to daemon, daemon to application.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of a GetManifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetManifest<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::GetManifest.discriminant() }>,
    /// Whose; absent towards the application itself.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub app: Option<Text<'a>>,
}

impl Payload for GetManifest<'_> {
    const TYPE: StreamMessageType = StreamMessageType::GetManifest;
}
