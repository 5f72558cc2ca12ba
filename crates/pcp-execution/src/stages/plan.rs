//! Stage 4: how it will be done. The last stage before the claim, so everything that can be refused without an
//! effect is refused here at the latest.

use std::sync::Arc;
use std::time::Duration;

use pcp_core::{
    ActionClass, CapabilityDescriptor, DispatchFailure, Dispatcher, ErrorCode, Invocation, InvocationContext,
    Stage, Tier,
};

use super::Refusal;
use super::permit::Consented;
use crate::facts::Facts;
use crate::pipeline::Request;
use crate::result::Plan;
use crate::schema::ParameterSchemas;

/// Where the parameters are told, for whoever got them wrong.
const SHOW: &str =
    "`pcp-cli show ID` has their schema; on the command line a number is written name:=1, a text name=text";

/// Everything that the claim and the dispatch need.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(super) capability: Arc<CapabilityDescriptor>,
    pub(super) is_read: bool,
    class: ActionClass,
    gate: pcp_core::Gate,
}

impl Planned {
    /// The tier that will act.
    pub(crate) fn tier(&self) -> Tier {
        self.capability.method.tier()
    }

    /// What a dry run answers.
    pub(crate) fn describe(&self, facts: &Facts<'_>, budget: Duration) -> Plan {
        Plan {
            capability: self.capability.id.clone(),
            class: self.class,
            rule: facts.rule.as_str().to_owned(),
            gate: self.gate,
            method: self.capability.method,
            claims: !self.is_read,
            undo_window_ms: self.class.undo_window_ms(),
            budget_ms: u64::try_from(budget.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Checks that it can be done: executable, in time, parameters that fit, an application that is there.
pub(crate) async fn plan<D: Dispatcher>(
    consented: Consented,
    request: &Request<'_>,
    context: &InvocationContext,
    checks: &Checks<'_, D>,
    facts: &mut Facts<'_>,
) -> Result<Planned, Refusal> {
    let Consented { capability, class, gate } = consented;
    let refuse = |code, message: String| Refusal::new(Stage::ResolveAction, code, message);
    facts.tier = Some(capability.method.tier());
    if !capability.executable {
        let message =
            format!("capability {} was predicted from files and nothing live is bound to it", capability.id);
        return Err(refuse(ErrorCode::NotValidated, message).hint("start the application once"));
    }
    if request.names_element {
        let message = format!(
            "capability {} is reached by tier {}, which has no elements",
            capability.id,
            capability.method.tier()
        );
        return Err(refuse(ErrorCode::Unsupported, message)
            .hint("leave the element out; elements come with the accessibility tier"));
    }
    if let Some(deadline) = request.envelope.deadline_ms.filter(|deadline| *deadline <= checks.wall_ms) {
        let message = format!("the request's deadline {deadline} is {} ms ago", checks.wall_ms - deadline);
        return Err(refuse(ErrorCode::ExpiredBeforeEffect, message));
    }
    // Nobody declared what a fallback takes: the action is not resolved, only sent (R-047, C3).
    if !facts.fallback {
        checks
            .schemas
            .check(&capability, request.intent.parameters, &facts.params_sha256)
            .map_err(|invalid| refuse(ErrorCode::InvalidParameters, invalid.to_string()).hint(SHOW))?;
    }
    if !request.envelope.dry_run {
        checks.application(&capability, request, context, facts.fallback).await?;
    }
    let is_read = class == ActionClass::Read && !capability.side_effects;
    facts.is_read = is_read;
    Ok(Planned { capability, is_read, class, gate })
}

/// What planning asks of the world: the time, the schemas, the application.
pub(crate) struct Checks<'p, D> {
    pub(crate) wall_ms: u64,
    pub(crate) schemas: &'p ParameterSchemas,
    pub(crate) dispatcher: &'p D,
    pub(crate) validate: Duration,
}

impl<D: Dispatcher> Checks<'_, D> {
    async fn application(
        &self,
        capability: &CapabilityDescriptor,
        request: &Request<'_>,
        context: &InvocationContext,
        fallback: bool,
    ) -> Result<(), Refusal> {
        let refuse = |code, message: String| Refusal::new(Stage::ResolveAction, code, message);
        if !self.dispatcher.serves(&capability.app_id) {
            if fallback {
                let message = format!(
                    "nothing serves application {}, and {} is not registered (read by fallback)",
                    capability.app_id, capability.id
                );
                return Err(
                    refuse(ErrorCode::CapabilityNotFound, message).hint("`pcp-cli apps` shows what there is")
                );
            }
            let message =
                format!("application {} is not running: nothing serves its socket", capability.app_id);
            return Err(refuse(ErrorCode::Unavailable, message).hint("start the application and try again"));
        }
        if !capability.validates_params {
            return Ok(());
        }
        let invocation = Invocation { capability, context, parameters: request.intent.parameters };
        match tokio::time::timeout(self.validate, self.dispatcher.validate(invocation)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(DispatchFailure { error, .. })) => Err(Refusal {
                error: error.at(Stage::ResolveAction),
                stage: Stage::ResolveAction,
                may_have_happened: false,
                timed_out: false,
            }),
            Err(_) => {
                let message =
                    format!("stage resolve_action overran its budget of {} ms", self.validate.as_millis());
                Err(Refusal { timed_out: true, ..refuse(ErrorCode::Timeout, message) })
            }
        }
    }
}
