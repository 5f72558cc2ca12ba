//! What a dry run answers.

use pcp_core::{ActionClass, CapabilityId, DetectionMethod, Domain, ErrorCode, Gate, Intent, PcpError, Tier};
use pcp_execution::Plan;
use pcp_ipc::Json;
use serde::Serialize;
use serde_json::value::RawValue;

/// What a dry run answers: exactly the intent, and what would be done with it (R-013).
#[derive(Serialize)]
struct PlanText<'a> {
    intent: PlannedIntent<'a>,
    capability: &'a CapabilityId,
    class: ActionClass,
    rule: &'a str,
    gate: Gate,
    method: DetectionMethod,
    tier: Tier,
    claims: bool,
    undo_window_ms: Option<u64>,
    budget_ms: u64,
}

#[derive(Serialize)]
struct PlannedIntent<'a> {
    domain: Domain,
    action: &'a str,
    target_app: &'a str,
    /// Byte for byte: parsing would round numbers and drop what is there twice.
    parameters: &'a RawValue,
}

/// The plan as JSON text.
///
/// # Errors
/// `invalid_request` when it would be nested deeper than an answer may be.
pub(super) fn plan_json(intent: &Intent<'_>, plan: &Plan) -> Result<String, PcpError> {
    let fault = |error: &dyn std::fmt::Display| {
        PcpError::new(ErrorCode::InvalidRequest, format!("the plan cannot be written as JSON: {error}"))
            .hint("parameters of a dry run are nested at least one level less than others")
    };
    let text = serde_json::to_string(&PlanText {
        intent: PlannedIntent {
            domain: intent.domain,
            action: intent.action,
            target_app: intent.target_app,
            parameters: serde_json::from_str(intent.parameters).map_err(|error| fault(&error))?,
        },
        capability: &plan.capability,
        class: plan.class,
        rule: &plan.rule,
        gate: plan.gate,
        method: plan.method,
        tier: plan.method.tier(),
        claims: plan.claims,
        undo_window_ms: plan.undo_window_ms,
        budget_ms: plan.budget_ms,
    })
    .map_err(|error| fault(&error))?;
    Json::parse(&text).map_err(|error| fault(&error))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_repeats_the_intent_byte_for_byte_or_says_that_it_cannot() {
        let id = CapabilityId::parse("app.x.set_value").unwrap();
        let plan = Plan {
            capability: id.clone(),
            class: ActionClass::InputText,
            rule: "app.*.*".to_owned(),
            gate: Gate::Allow,
            method: DetectionMethod::Desktop,
            claims: true,
            undo_window_ms: None,
            budget_ms: 5,
        };
        let text = |parameters: &str| {
            let intent =
                Intent { domain: id.domain(), action: id.action(), target_app: id.app(), parameters };
            plan_json(&intent, &plan).map_err(|error| error.code)
        };
        let parameters = r#"{"z":123456789012345678901234567890, "a":1.0e2}"#;
        assert!(text(parameters).unwrap().contains(parameters));
        let nested =
            |levels: usize| format!("{{\"v\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(text(&nested(29)).is_ok());
        assert_eq!(text(&nested(30)), Err(ErrorCode::InvalidRequest), "as deep as a request may carry");
    }
}
