//! ManifestResponse: a manifest, byte for byte as it was signed. Application to daemon, daemon to client.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::payload::{Payload, Tag};

/// The content of a ManifestResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ManifestResponse.discriminant() }>,
    /// The manifest.
    #[serde(borrow, skip_serializing)]
    pub manifest: Json<'a>,
}

impl Payload for ManifestResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ManifestResponse;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("manifest", self.manifest))
    }
}
