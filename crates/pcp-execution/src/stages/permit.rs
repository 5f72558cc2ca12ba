//! Stage 3: may this caller do this, and does a person have to confirm (R-046, R-069..R-075, R-083).

use std::sync::Arc;

use pcp_core::{
    ActionClass, AppId, CapabilityDescriptor, CapabilityId, DetectionMethod, ErrorCode, Gate,
    PermissionChecker, PermissionQuestion, SignatureStatus, StabilityLevel, Stage, TrustLevel, Verdict,
};

use super::Refusal;
use super::resolve::Resolved;
use crate::facts::Facts;

/// The schema of parameters that nobody declared.
const ANY_OBJECT: &str = r#"{"type":"object"}"#;

/// The caller may; `gate` says what is still needed.
#[derive(Debug)]
pub(crate) struct Permitted {
    capability: Arc<CapabilityDescriptor>,
    class: ActionClass,
    gate: Gate,
}

/// The caller may, and nothing is left to wait for.
#[derive(Debug)]
pub(crate) struct Consented {
    pub(super) capability: Arc<CapabilityDescriptor>,
    pub(super) class: ActionClass,
    pub(super) gate: Gate,
}

/// Asks the checker. A caller who may not is told so before it could learn whether the capability exists.
pub(crate) fn permit(
    resolved: Resolved,
    checker: &dyn PermissionChecker,
    facts: &mut Facts<'_>,
) -> Result<Permitted, Refusal> {
    let Resolved { id, class, service, found } = resolved;
    let asked = PermissionQuestion {
        id: &id,
        class,
        service,
        confirmation_required: found.as_ref().is_some_and(|capability| capability.confirmation_required),
        minimum_trust: found.as_ref().map_or(TrustLevel::OBSERVE, |capability| capability.minimum_trust),
    };
    match checker.check(facts.caller, &asked) {
        Verdict::Denied(denial) => {
            facts.verdict = "denied";
            facts.set_rule(denial.rule());
            let message = format!("capability {id} is denied: {denial}");
            Err(Refusal::new(Stage::CheckPermissions, ErrorCode::PermissionDenied, message))
        }
        Verdict::Allowed { rule, gate } => {
            facts.verdict = "allowed";
            facts.set_rule(rule);
            facts.gate = gate.as_str();
            if let Some(capability) = found {
                return Ok(Permitted { capability, class, gate });
            }
            // Only what cannot have an effect may go on without a descriptor of its own (C2).
            if let Some(capability) =
                fallback(&id).filter(|_| class == ActionClass::Read && gate == Gate::Allow)
            {
                facts.fallback = true;
                return Ok(Permitted { capability, class, gate });
            }
            let message = format!("no capability {id} is registered");
            Err(Refusal::new(Stage::ResolveTarget, ErrorCode::TargetNotFound, message)
                .hint("`pcp-cli list` shows what there is"))
        }
    }
}

/// What stands in for a read that nobody registered (R-045): any object in, anything out.
fn fallback(id: &CapabilityId) -> Option<Arc<CapabilityDescriptor>> {
    Some(Arc::new(CapabilityDescriptor {
        app_id: AppId::parse(id.app()).ok()?,
        domain: id.domain(),
        id: id.clone(),
        name: "".into(),
        description: "".into(),
        category: "".into(),
        input_schema: ANY_OBJECT.into(),
        output_schema: "{}".into(),
        method: DetectionMethod::Desktop,
        stability: StabilityLevel::Predicted,
        version: "".into(),
        side_effects: false,
        confirmation_required: false,
        minimum_trust: TrustLevel::OBSERVE,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Unsigned,
        clear_parameters: Box::default(),
    }))
}

impl Permitted {
    /// Waits for a person where the gate asks for one. No confirmer can be connected yet, so a gated intent
    /// is refused; never let through (R-088).
    pub(crate) fn wait(self) -> Result<Consented, Refusal> {
        match self.gate {
            Gate::Allow => Ok(self.consented()),
            Gate::Confirm => {
                let message = format!(
                    "capability {} needs a person's confirmation (class {}), and no confirmer is connected",
                    self.capability.id, self.class
                );
                Err(Refusal::new(Stage::CheckPermissions, ErrorCode::ConfirmationUnavailable, message)
                    .hint("confirmers are not part of this release; nothing was done"))
            }
        }
    }

    /// What a dry run goes on with: it never reaches the claim.
    pub(crate) fn without_waiting(self) -> Consented {
        self.consented()
    }

    fn consented(self) -> Consented {
        Consented { capability: self.capability, class: self.class, gate: self.gate }
    }
}
