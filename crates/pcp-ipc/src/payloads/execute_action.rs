//! ExecuteRequest of kind `action`, its answer, and its cancellation: protocol v2 as it travels (C46). What is inside
//! belongs to `pcp-core`, which reads it by its own strict rules.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::error::Error;
use crate::payload::{Payload, Tag, wire_words};
use crate::request::Request;
use crate::text::Text;

wire_words! {
    /// The door of signed requests.
    ActionKind {
        /// A signed action on an observed element.
        Action = "action",
    }
}

/// A signed request. Client to daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteAction<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ExecuteRequest.discriminant() }>,
    /// Which door.
    pub kind: ActionKind,
    /// The ActionRequest of protocol v2.
    #[serde(borrow, skip_serializing)]
    pub action: Json<'a>,
}

impl Payload for ExecuteAction<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ExecuteRequest;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("action", self.action))
    }
}

impl<'a> ExecuteAction<'a> {
    /// The request that carries `action`.
    #[must_use]
    pub const fn new(action: Json<'a>) -> Self {
        Self { tag: Tag, kind: ActionKind::Action, action }
    }
}

/// How far the operation came: every acknowledgement at once. Daemon to client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionReport<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::CapabilityResultMsg.discriminant() }>,
    /// Which door.
    pub kind: ActionKind,
    /// The ExecuteReport of protocol v2.
    #[serde(borrow, skip_serializing)]
    pub report: Json<'a>,
}

impl Payload for ActionReport<'_> {
    const TYPE: StreamMessageType = StreamMessageType::CapabilityResultMsg;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("report", self.report))
    }
}

impl<'a> ActionReport<'a> {
    /// The answer that carries `report`.
    #[must_use]
    pub const fn new(report: Json<'a>) -> Self {
        Self { tag: Tag, kind: ActionKind::Action, report }
    }
}

/// Stop an operation of protocol v2 that has not taken effect. Client to daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelAction<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::CancelRequest.discriminant() }>,
    /// Which door.
    pub kind: ActionKind,
    /// Which operation.
    #[serde(borrow)]
    pub operation_id: Text<'a>,
}

impl Payload for CancelAction<'_> {
    const TYPE: StreamMessageType = StreamMessageType::CancelRequest;
}

impl<'a> CancelAction<'a> {
    /// The request to cancel `operation_id`.
    #[must_use]
    pub fn new(operation_id: &'a str) -> Self {
        Self { tag: Tag, kind: ActionKind::Action, operation_id: operation_id.into() }
    }
}

/// What comes through this door, read by one reader for all of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed<'a> {
    #[serde(rename = "type", borrow)]
    message_type: Text<'a>,
    #[serde(borrow)]
    kind: Text<'a>,
    #[serde(borrow, default)]
    action: Option<Json<'a>>,
    #[serde(borrow, default)]
    operation_id: Option<Text<'a>>,
}

/// A request of this door, of one that could not be read as a request of the other one because of `error`.
pub(crate) fn signed(payload: &[u8], error: Error) -> Result<Request<'_>, Error> {
    let text = core::str::from_utf8(payload).unwrap_or_default();
    let Ok(Signed { message_type, kind, action, operation_id }) = crate::reader::read::<Signed<'_>>(text)
    else {
        return Err(error);
    };
    if &*kind != ActionKind::Action.as_str() {
        return Err(error);
    }
    let is = |wanted: StreamMessageType| &*message_type == wanted.name();
    match (action, operation_id) {
        (Some(action), None) if is(StreamMessageType::ExecuteRequest) => {
            Ok(Request::Action(ExecuteAction::new(action)))
        }
        (None, Some(operation_id)) if is(StreamMessageType::CancelRequest) => {
            Ok(Request::CancelAction(CancelAction { tag: Tag, kind: ActionKind::Action, operation_id }))
        }
        _ => Err(Error::value(
            "kind",
            "a request of kind action has the member action, a cancellation operation_id",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::read_payload;

    #[test]
    fn what_is_inside_travels_byte_for_byte() {
        let inner = r#"{"z":1e21, "a":[null]}"#;
        let mut out = Vec::new();
        ExecuteAction::new(Json::parse(inner).unwrap()).write(&mut out).unwrap();
        let text = r#"{"type":"execute_request","kind":"action","action":{"z":1e21, "a":[null]}}"#;
        assert_eq!(std::str::from_utf8(&out).unwrap(), text);
        assert_eq!(read_payload::<ExecuteAction<'_>>(&out).unwrap().action.as_str(), inner);

        out.clear();
        ActionReport::new(Json::parse(inner).unwrap()).write(&mut out).unwrap();
        assert_eq!(read_payload::<ActionReport<'_>>(&out).unwrap().report.as_str(), inner);
    }

    #[test]
    fn a_request_of_this_door_is_told_from_one_of_the_other() {
        let of = |text: &'static str| match signed(text.as_bytes(), Error::value("x", "the other's error")) {
            Ok(Request::Action(action)) => action.action.as_str().to_owned(),
            Ok(Request::CancelAction(cancel)) => cancel.operation_id.to_string(),
            Ok(other) => panic!("{other:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(of(r#"{"type":"execute_request","kind":"action","action":{"a":1}}"#), r#"{"a":1}"#);
        assert_eq!(of(r#"{"type":"cancel_request","kind":"action","operation_id":"op-1"}"#), "op-1");
        for text in [
            r#"{"type":"execute_request","kind":"dance","action":{}}"#,
            r#"{"type":"execute_request","kind":"action","action":{},"wait":true}"#,
            r#"{"type":"execute_request","kind":"action","kind":"action","action":{}}"#,
        ] {
            assert_eq!(of(text), "x: the other's error", "{text}");
        }
        assert!(
            of(r#"{"type":"cancel_request","kind":"action","action":{}}"#).starts_with("kind: a request")
        );
    }

    #[test]
    fn members_of_the_other_door_are_refused() {
        for text in [
            r#"{"type":"execute_request","kind":"intent","action":{}}"#,
            r#"{"type":"execute_request","kind":"action"}"#,
            r#"{"type":"execute_request","kind":"action","action":{},"deadline_ms":1}"#,
            r#"{"type":"execute_request","kind":"action","action":{},"action":{}}"#,
        ] {
            assert!(read_payload::<ExecuteAction<'_>>(text.as_bytes()).is_err(), "{text}");
        }
    }
}
