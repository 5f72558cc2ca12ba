//! ErrorResponse: a request was not served, and why. Any direction.

use pcp_core::{ErrorCode, PcpError, Stage};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Refusal, cut};
use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of an ErrorResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ErrorResponse.discriminant() }>,
    /// The stable word.
    pub code: ErrorCode,
    /// The thing, the value, the limit.
    #[serde(borrow)]
    pub message: Text<'a>,
    /// What to do next.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<Text<'a>>,
    /// The stage that refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    /// Whether it is certain that nothing was done; absent when that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_safe: Option<bool>,
}

impl Payload for ErrorResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ErrorResponse;
}

impl<'a> ErrorResponse<'a> {
    /// An answer without hint and stage.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<Text<'a>>) -> Self {
        Self { tag: Tag, code, message: message.into(), hint: None, stage: None, retry_safe: None }
    }

    /// The answer that carries `error`; `retry_safe` says whether it is certain that nothing was done.
    #[must_use]
    pub fn of(error: &'a PcpError, retry_safe: bool) -> Self {
        let message = if error.message.len() > crate::error::MAX_ERROR_TEXT_BYTES {
            Text::from(cut(&error.message))
        } else {
            Text::from(&*error.message)
        };
        Self {
            tag: Tag,
            code: error.code,
            message,
            hint: error.hint.as_deref().map(Text::from),
            stage: error.stage,
            retry_safe: Some(retry_safe),
        }
    }

    /// The answer as the error it is for whoever asked.
    #[must_use]
    pub fn into_error(self) -> Error {
        let mut error = PcpError::new(self.code, self.message.to_string());
        error.hint = self.hint.map(|hint| hint.to_string().into());
        error.stage = self.stage;
        Error::Refused(Box::new(Refusal { error, retry_safe: self.retry_safe.unwrap_or(false) }))
    }
}
