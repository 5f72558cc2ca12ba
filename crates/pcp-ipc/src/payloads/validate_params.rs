//! ValidateParamsMsg: would these parameters do? Daemon to application, and the answer.

use pcp_core::{CapabilityId, server::InvalidParams};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::error::cut;
use crate::payload::{Payload, Tag};
use crate::text::Text;

/// The content of a ValidateParamsMsg.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateParams<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ValidateParamsMsg.discriminant() }>,
    /// Which capability.
    pub capability_id: CapabilityId,
    /// The parameters, one object.
    #[serde(borrow, skip_serializing)]
    pub params_json: Json<'a>,
}

impl Payload for ValidateParams<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ValidateParamsMsg;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("params_json", self.params_json))
    }
}

/// The content of a ValidateParamsResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValidateParamsResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ValidateParamsResponse.discriminant() }>,
    /// Whether they would.
    pub valid: bool,
    /// Where not: a JSON pointer.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Text<'a>>,
    /// Why not.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
}

impl Payload for ValidateParamsResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ValidateParamsResponse;
}

impl ValidateParamsResponse<'_> {
    /// The answer that carries an application's judgement.
    #[must_use]
    pub fn of(judgement: &Result<(), InvalidParams>) -> Self {
        match judgement {
            Ok(()) => Self { tag: Tag, valid: true, pointer: None, message: None },
            Err(invalid) => Self {
                tag: Tag,
                valid: false,
                pointer: Some(cut(&invalid.pointer).into()),
                message: Some(cut(&invalid.message).into()),
            },
        }
    }
}
