//! ExecuteRequest: execute an intent (R-013, R-226, R-227). Client to daemon.

use pcp_core::intent::MAX_PARAMETERS_BYTES;
use pcp_core::{Domain, Envelope, Intent, OperationId};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::error::Error;
use crate::payload::{Payload, Tag, operation_id, read_payload, wire_words};
use crate::text::Text;

wire_words! {
    /// Which of the two doors a request takes (C46).
    RequestKind {
        /// An intent: what shall happen.
        Intent = "intent",
    }
}

/// The content of an ExecuteRequest: the envelope, and the intent in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteRequest<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ExecuteRequest.discriminant() }>,
    /// Which door.
    pub kind: RequestKind,
    /// The operation's id, chosen by the requester.
    #[serde(with = "operation_id")]
    pub operation_id: OperationId,
    /// Unix milliseconds after which nothing may begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Whether to wait for a person where one has to confirm.
    #[serde(default = "waits")]
    pub wait: bool,
    /// Whether to stop before anything is done and to answer with the plan.
    #[serde(default)]
    pub dry_run: bool,
    /// What shall happen.
    #[serde(borrow)]
    pub intent: WireIntent<'a>,
}

const fn waits() -> bool {
    true
}

/// An intent as it stands on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireIntent<'a> {
    /// The domain it is bound to.
    pub domain: Domain,
    /// What to do.
    #[serde(borrow)]
    pub action: Text<'a>,
    /// Which application shall do it.
    #[serde(borrow)]
    pub target_app: Text<'a>,
    /// The parameters, one object.
    #[serde(borrow)]
    pub parameters: Json<'a>,
    /// Which element is meant, never by coordinates.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub element: Option<Element<'a>>,
}

/// Which element is meant: by observation and tag, by what to find, or by a phrase; exactly one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Element<'a> {
    /// The observation that showed it; goes with `tag`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Text<'a>>,
    /// Its short name in that observation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Text<'a>>,
    /// What to look for.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub find: Option<Find<'a>>,
    /// A phrase for target resolution.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Text<'a>>,
}

/// What to look for; at least one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Find<'a> {
    /// The window's name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Text<'a>>,
    /// The element's role.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub role: Option<Text<'a>>,
    /// The element's name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
}

impl Payload for ExecuteRequest<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ExecuteRequest;
}

impl<'a> ExecuteRequest<'a> {
    /// A request for `intent` in `envelope`, its parameters being one JSON object.
    ///
    /// # Errors
    /// [`Error::Payload`] or [`Error::Value`] when the parameters are not.
    pub fn new(envelope: &Envelope, intent: &Intent<'a>) -> Result<Self, Error> {
        let request = Self {
            tag: Tag,
            kind: RequestKind::Intent,
            operation_id: envelope.operation_id,
            deadline_ms: envelope.deadline_ms,
            wait: envelope.wait,
            dry_run: envelope.dry_run,
            intent: WireIntent {
                domain: intent.domain,
                action: intent.action.into(),
                target_app: intent.target_app.into(),
                parameters: Json::parse(intent.parameters)?,
                element: None,
            },
        };
        request.check()?;
        Ok(request)
    }

    /// Reads a request and checks what its schema alone cannot say.
    ///
    /// # Errors
    /// As [`read_payload`]; [`Error::Value`] for wrong parameters or a vague element.
    pub fn read(payload: &'a [u8]) -> Result<Self, Error> {
        let request: Self = read_payload(payload)?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), Error> {
        let parameters = self.intent.parameters;
        if !parameters.is_object() {
            return Err(Error::value("intent.parameters", "an object is expected"));
        }
        if parameters.as_str().len() > MAX_PARAMETERS_BYTES {
            let problem =
                format!("{} bytes exceed the {MAX_PARAMETERS_BYTES}-byte limit", parameters.as_str().len());
            return Err(Error::value("intent.parameters", problem));
        }
        self.intent.element.as_ref().map_or(Ok(()), Element::check)
    }

    /// The envelope as core knows it.
    #[must_use]
    pub fn envelope(&self) -> Envelope {
        Envelope {
            operation_id: self.operation_id,
            deadline_ms: self.deadline_ms,
            wait: self.wait,
            dry_run: self.dry_run,
        }
    }

    /// The intent as core knows it.
    #[must_use]
    pub fn intent(&self) -> Intent<'_> {
        Intent {
            domain: self.intent.domain,
            action: &self.intent.action,
            target_app: &self.intent.target_app,
            parameters: self.intent.parameters.as_str(),
        }
    }
}

impl Element<'_> {
    fn check(&self) -> Result<(), Error> {
        let by_tag = self.observation.is_some() || self.tag.is_some();
        let forms = [by_tag, self.find.is_some(), self.reference.is_some()];
        if forms.into_iter().filter(|form| *form).count() != 1 {
            return Err(Error::value(
                "intent.element",
                "exactly one of observation with tag, find, and reference is expected",
            ));
        }
        if by_tag && (self.observation.is_none() || self.tag.is_none()) {
            return Err(Error::value("intent.element", "observation and tag go together"));
        }
        if self.find.as_ref().is_some_and(|find| *find == Find::default()) {
            return Err(Error::value("intent.element.find", "window, role or name is expected"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(rest: &str, parameters: &str, element: &str) -> String {
        format!(
            r#"{{"type":"execute_request","operation_id":"0191e7a0-0000-7000-8000-000000000001",{rest},"intent":{{"domain":"app","action":"create","target_app":"x","parameters":{parameters}{element}}}}}"#
        )
    }

    fn refusal(text: &str) -> String {
        let error = ExecuteRequest::read(text.as_bytes()).unwrap_err();
        format!("{}: {error}", error.code())
    }

    #[test]
    fn wait_and_dry_run_have_their_defaults() {
        let text = request(r#""kind":"intent""#, "{}", "");
        let envelope = ExecuteRequest::read(text.as_bytes()).unwrap().envelope();
        assert!(envelope.wait && !envelope.dry_run && envelope.deadline_ms.is_none());
    }

    #[test]
    fn a_request_of_another_kind_is_never_read_as_an_intent() {
        for kind in ["action", "dance"] {
            let text = request(&format!(r#""kind":"{kind}""#), "{}", "");
            assert!(refusal(&text).starts_with(&format!(
                "invalid_request: payload of execute_request: unknown variant `{kind}`"
            )));
        }
    }

    #[test]
    fn an_element_has_exactly_one_form_and_no_coordinates() {
        let table = [
            (r#"{"observation":"o","tag":"e1"}"#, None),
            (r#"{"find":{"role":"button"}}"#, None),
            (r#"{"reference":"the red one"}"#, None),
            ("{}", Some("exactly one")),
            (r#"{"observation":"o"}"#, Some("go together")),
            (r#"{"observation":"o","tag":"e1","reference":"x"}"#, Some("exactly one")),
            (r#"{"find":{}}"#, Some("window, role or name")),
            (r#"{"x":1,"y":2}"#, Some("unknown field `x`")),
        ];
        for (element, wanted) in table {
            let text = request(r#""kind":"intent""#, "{}", &format!(r#","element":{element}"#));
            match wanted {
                None => assert!(ExecuteRequest::read(text.as_bytes()).is_ok(), "{element}"),
                Some(wanted) => assert!(refusal(&text).contains(wanted), "{element}: {}", refusal(&text)),
            }
        }
    }

    #[test]
    fn parameters_are_an_object_no_larger_than_the_limit() {
        assert!(refusal(&request(r#""kind":"intent""#, "[]", "")).contains("an object is expected"));
        let sized = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
        let at_limit = request(r#""kind":"intent""#, &sized(MAX_PARAMETERS_BYTES), "");
        assert!(ExecuteRequest::read(at_limit.as_bytes()).is_ok());
        let over = request(r#""kind":"intent""#, &sized(MAX_PARAMETERS_BYTES + 1), "");
        assert!(refusal(&over).contains("786433 bytes exceed the 786432-byte limit"));
    }
}
