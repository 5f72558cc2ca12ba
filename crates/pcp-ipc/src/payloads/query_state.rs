//! QueryState: a read-only question. Client to daemon, daemon to application.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of a QueryState.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryState<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::QueryState.discriminant() }>,
    /// What is asked about.
    #[serde(borrow)]
    pub topic: Text<'a>,
    /// An object; absent means the empty one.
    #[serde(borrow, default, skip_serializing)]
    pub arguments: Option<Json<'a>>,
}

impl Payload for QueryState<'_> {
    const TYPE: StreamMessageType = StreamMessageType::QueryState;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        self.arguments.map(|arguments| ("arguments", arguments))
    }
}

impl<'a> QueryState<'a> {
    /// The arguments, the empty object when there are none.
    #[must_use]
    pub fn arguments(&self) -> Json<'a> {
        self.arguments.unwrap_or(Json::EMPTY_OBJECT)
    }
}
