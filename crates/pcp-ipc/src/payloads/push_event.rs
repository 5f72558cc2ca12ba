//! PushEvent: one event, or how many were missed (R-143, R-156). Daemon to client, application to daemon.

use pcp_core::id::MAX_APP_ID_BYTES;
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use super::subscribe_events::MAX_TOPIC_BYTES;
use crate::bounded;
use crate::embedded::Json;
use crate::error::Error;
use crate::payload::{Payload, Tag, read_payload};
use crate::text::Text;

/// The content of a PushEvent: either `topic` and `data_json`, or `missed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PushEvent<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::PushEvent.discriminant() }>,
    /// Which subscription it is for.
    pub subscription_id: u64,
    /// The event's number; of a gap, that of the last event in it.
    pub sequence: u64,
    /// Events of this subscription until here, this one and those that were missed included: it has no hole.
    pub count: u64,
    /// How many events were missed here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// What kind of event it is.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::optional::<_, MAX_TOPIC_BYTES>"
    )]
    pub topic: Option<Text<'a>>,
    /// The application it is about, where it is about one.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::optional::<_, MAX_APP_ID_BYTES>"
    )]
    pub app: Option<Text<'a>>,
    /// What happened.
    #[serde(borrow, default, skip_serializing)]
    pub data_json: Option<Json<'a>>,
}

impl Payload for PushEvent<'_> {
    const TYPE: StreamMessageType = StreamMessageType::PushEvent;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        self.data_json.map(|data| ("data_json", data))
    }
}

impl<'a> PushEvent<'a> {
    /// An event.
    #[must_use]
    pub fn event(
        subscription_id: u64,
        sequence: u64,
        count: u64,
        topic: impl Into<Text<'a>>,
        data: Json<'a>,
    ) -> Self {
        let (topic, data_json) = (Some(topic.into()), Some(data));
        Self { tag: Tag, subscription_id, sequence, count, missed: None, topic, app: None, data_json }
    }

    /// Events that were missed; `sequence` and `count` are those of the last of them.
    #[must_use]
    pub const fn gap(subscription_id: u64, sequence: u64, count: u64, missed: u64) -> Self {
        let missed = Some(missed);
        Self { tag: Tag, subscription_id, sequence, count, missed, topic: None, app: None, data_json: None }
    }

    /// Reads an event and checks what its schema alone cannot say.
    ///
    /// # Errors
    /// As [`read_payload`]; [`Error::Value`] for what is neither an event nor a gap, or both.
    pub fn read(payload: &'a [u8]) -> Result<Self, Error> {
        let event: Self = read_payload(payload)?;
        match (event.missed, &event.topic, event.data_json) {
            (None, Some(_), Some(_)) => Ok(event),
            (Some(missed), None, None) if event.app.is_none() && missed > 0 && missed <= event.count => {
                Ok(event)
            }
            (Some(_), None, None) => {
                Err(Error::value("missed", "at least one, at most count, and no app is expected"))
            }
            _ => Err(Error::value("missed", "either topic and data_json or missed is expected")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_an_event_or_a_gap_and_never_both_or_neither() {
        let table = [
            (r#""topic":"app_removed","data_json":{}"#, true),
            (r#""topic":"app_removed","app":"org.x","data_json":{}"#, true),
            (r#""missed":2"#, true),
            (r#""missed":3"#, false),
            (r#""missed":0"#, false),
            (r#""missed":1,"app":"org.x""#, false),
            (r#""missed":1,"topic":"app_removed","data_json":{}"#, false),
            (r#""topic":"app_removed""#, false),
            (r#""data_json":{}"#, false),
        ];
        for (members, good) in table {
            let text =
                format!(r#"{{"type":"push_event","subscription_id":1,"sequence":9,"count":2,{members}}}"#);
            assert_eq!(PushEvent::read(text.as_bytes()).is_ok(), good, "{members}");
        }
        let nothing = br#"{"type":"push_event","subscription_id":1,"sequence":9,"count":2}"#;
        assert!(PushEvent::read(nothing).is_err());
    }
}
