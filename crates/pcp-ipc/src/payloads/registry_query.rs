//! RegistryQuery: which capabilities or applications are there? Client to daemon.

use pcp_core::{DetectionMethod, Domain, RegistryFilter};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, Tag, wire_words};
use crate::text::Text;

wire_words! {
    /// What the rows of an answer are.
    RegistryRows {
        /// Capabilities.
        Capabilities = "capabilities",
        /// Applications.
        Apps = "apps",
    }
}

/// The content of a RegistryQuery; an absent member matches everything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegistryQuery<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::RegistryQuery.discriminant() }>,
    /// What the rows shall be.
    pub what: RegistryRows,
    /// Only this domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// Only this detection method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<DetectionMethod>,
    /// Only applications that match this glob.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub app: Option<Text<'a>>,
    /// Exactly this capability or application.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<'a>>,
    /// Go on after the page that gave this cursor.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Text<'a>>,
}

impl Payload for RegistryQuery<'_> {
    const TYPE: StreamMessageType = StreamMessageType::RegistryQuery;
}

impl RegistryQuery<'_> {
    /// A query for all rows of a kind.
    #[must_use]
    pub const fn all(what: RegistryRows) -> Self {
        Self { tag: Tag, what, domain: None, method: None, app: None, id: None, cursor: None }
    }

    /// The filter as core knows it.
    #[must_use]
    pub fn filter(&self) -> RegistryFilter<'_> {
        RegistryFilter { domain: self.domain, method: self.method, app: self.app.as_deref() }
    }
}
