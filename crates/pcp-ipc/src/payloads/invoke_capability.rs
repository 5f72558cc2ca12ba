//! InvokeCapability: carry out a capability. Daemon to application.

use pcp_core::{CapabilityId, Domain, InvocationContext, Modality, OperationId, Tier, TrustLevel};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::embedded::Json;
use crate::error::Error;
use crate::payload::{Payload, Tag, operation_id};
use crate::text::Text;

/// The content of an InvokeCapability.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InvokeCapability<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::InvokeCapability.discriminant() }>,
    /// Which capability.
    pub capability_id: CapabilityId,
    /// On whose behalf and under which limits.
    #[serde(borrow)]
    pub context: WireContext<'a>,
    /// The parameters, one object.
    #[serde(borrow, skip_serializing)]
    pub params_json: Json<'a>,
}

/// What an application is told about an invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WireContext<'a> {
    /// The operation's id.
    #[serde(with = "operation_id")]
    pub operation_id: OperationId,
    /// Who asked.
    pub principal: PrincipalSummary,
    /// Milliseconds left when this was sent.
    pub budget_ms: u64,
    /// The tier that serves it.
    pub tier: Tier,
    /// How the requester reaches a person.
    pub modality: Modality,
    /// The prompt that a person confirmed, where one did.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Text<'a>>,
}

/// What an application is told about who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrincipalSummary {
    /// The kernel's user id.
    pub uid: u32,
    /// The highest domain the principal reaches.
    pub domain: Domain,
    /// Its trust level, 0 to 3.
    pub trust: u8,
}

impl Payload for InvokeCapability<'_> {
    const TYPE: StreamMessageType = StreamMessageType::InvokeCapability;

    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        Some(("params_json", self.params_json))
    }
}

impl<'a> InvokeCapability<'a> {
    /// An invocation with parameters that came out of a request.
    #[must_use]
    pub fn new(capability: &CapabilityId, context: &InvocationContext, params: Json<'a>) -> Self {
        Self {
            tag: Tag,
            capability_id: capability.clone(),
            context: WireContext {
                operation_id: context.operation_id,
                principal: PrincipalSummary {
                    uid: context.uid,
                    domain: context.domain,
                    trust: context.trust.get(),
                },
                budget_ms: context.budget_ms,
                tier: context.tier,
                modality: context.modality,
                confirmation: None,
            },
            params_json: params,
        }
    }

    /// The context as core knows it.
    ///
    /// # Errors
    /// [`Error::Value`] for a trust level that does not exist or parameters that are no object.
    pub fn core_context(&self) -> Result<InvocationContext, Error> {
        if !self.params_json.is_object() {
            return Err(Error::value("params_json", "an object is expected"));
        }
        let principal = self.context.principal;
        let trust = TrustLevel::new(principal.trust)
            .ok_or_else(|| Error::value("context.principal.trust", "0 to 3 is expected"))?;
        Ok(InvocationContext {
            operation_id: self.context.operation_id,
            uid: principal.uid,
            domain: principal.domain,
            trust,
            modality: self.context.modality,
            tier: self.context.tier,
            budget_ms: self.context.budget_ms,
        })
    }
}
