//! CapabilityResultMsg in its two forms: an application's answer to an invocation, and the daemon's last word
//! on an operation (C25, R-132, R-194).

use pcp_core::{
    CapabilityFailure, CapabilityResult, Effect, ErrorCode, OperationId, PcpError, Stage, StateSource,
    Terminal, Tier,
};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::error::{Error, cut};
use crate::payload::{Payload, Tag, operation_id};
use crate::text::Text;

/// What an application answers. Application to daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvocationResult<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::CapabilityResultMsg.discriminant() }>,
    /// Whether the application says that it did it.
    pub success: bool,
    /// The failure, where there is one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<InvocationFailure<'a>>,
    /// Which state the result came from; unknown when the application does not say.
    #[serde(default = "unknown_source")]
    pub state_source: StateSource,
    /// The capability's own result.
    #[serde(borrow, default, skip_serializing)]
    pub data_json: Option<Json<'a>>,
}

const fn unknown_source() -> StateSource {
    StateSource::Unknown
}

/// Why an application did not do it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvocationFailure<'a> {
    /// The stable word.
    pub code: ErrorCode,
    /// The application's words.
    #[serde(borrow)]
    pub message: Text<'a>,
    /// Whether the application certifies that nothing changed.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub no_effect: bool,
}

impl Payload for InvocationResult<'_> {
    const TYPE: StreamMessageType = StreamMessageType::CapabilityResultMsg;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        self.data_json.map(|data| ("data_json", data))
    }
}

impl<'a> InvocationResult<'a> {
    /// The answer that carries an application's result.
    ///
    /// # Errors
    /// [`Error::Payload`] when the result's data is no JSON.
    pub fn of(result: &'a CapabilityResult) -> Result<Self, Error> {
        Ok(Self {
            tag: Tag,
            success: result.success,
            error: result.error.as_ref().map(|failure| InvocationFailure {
                code: failure.code,
                message: cut(&failure.message).into(),
                no_effect: failure.no_effect,
            }),
            state_source: result.state_source,
            data_json: result.data_json.as_deref().map(Json::parse).transpose()?,
        })
    }

    /// The failure as core knows it.
    #[must_use]
    pub fn failure(&self) -> Option<CapabilityFailure> {
        self.error.as_ref().map(|failure| CapabilityFailure {
            code: failure.code,
            message: failure.message.to_string(),
            no_effect: failure.no_effect,
        })
    }
}

/// How an operation ended. Daemon to client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationResult<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::CapabilityResultMsg.discriminant() }>,
    /// Whether it was done.
    pub success: bool,
    /// Which operation.
    #[serde(with = "operation_id")]
    pub operation_id: OperationId,
    /// How it ended.
    pub terminal: Terminal,
    /// What is known of its effect; absent when there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
    /// Why it was not done.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub error: Option<OperationFailure<'a>>,
    /// The record's hash in the trail, in hexadecimal.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub audit_hash: Option<Text<'a>>,
    /// Which state the result came from.
    pub state_source: StateSource,
    /// The tier that served it; absent when none was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// Microseconds from request to end.
    pub duration_us: u64,
    /// Whether this is a stored result, and nothing was done now.
    pub replayed: bool,
    /// Whether a new operation cannot double an effect.
    pub retry_safe: bool,
    /// What a dry run would have done.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Json<'a>>,
    /// The capability's own result.
    #[serde(borrow, default, skip_serializing)]
    pub data_json: Option<Json<'a>>,
}

/// Why an operation was not done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationFailure<'a> {
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
}

impl<'a> From<&'a PcpError> for OperationFailure<'a> {
    fn from(error: &'a PcpError) -> Self {
        Self {
            code: error.code,
            message: (&*error.message).into(),
            hint: error.hint.as_deref().map(Text::from),
            stage: error.stage,
        }
    }
}

impl OperationFailure<'_> {
    /// The failure as core knows it.
    #[must_use]
    pub fn to_pcp(&self) -> PcpError {
        let mut error = PcpError::new(self.code, self.message.to_string());
        error.hint = self.hint.as_ref().map(|hint| hint.to_string().into());
        error.stage = self.stage;
        error
    }
}

impl Payload for OperationResult<'_> {
    const TYPE: StreamMessageType = StreamMessageType::CapabilityResultMsg;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        self.data_json.map(|data| ("data_json", data))
    }
}
