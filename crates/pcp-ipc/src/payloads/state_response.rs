//! StateResponse: the state asked for. Application to daemon, daemon to client.

use pcp_core::StateSource;
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of a StateResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::StateResponse.discriminant() }>,
    /// What was asked about.
    #[serde(borrow)]
    pub topic: Text<'a>,
    /// Which state this is.
    pub state_source: StateSource,
    /// The state.
    #[serde(borrow, skip_serializing)]
    pub data_json: Json<'a>,
}

impl Payload for StateResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::StateResponse;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("data_json", self.data_json))
    }
}
