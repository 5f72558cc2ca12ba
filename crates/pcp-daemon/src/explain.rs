//! Why something happened, or would: the topic `explain` (R-042, R-058).
//!
//! An operation is told from its trace, a capability from what each stage would say now. Reading it changes nothing.

use pcp_core::{
    AuthPrincipal, CapabilityDescriptor, CapabilityId, CapabilityRegistry, Domain, ErrorCode,
    IntentClassifier, OperationId, OutcomeKind, PcpError, Stage, Terminal, Tier, Trail,
};
use pcp_execution::{MAX_TRACES, Trace};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::daemon::Core;
use crate::policy;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// An operation that ran.
    operation: Option<String>,
    /// A capability that might be asked for.
    capability: Option<String>,
    /// By whom; the caller when absent.
    principal: Option<String>,
}

/// The answer to the topic's `arguments`.
///
/// # Errors
/// `invalid_request`; `not_found` for an operation that is not kept or is another's; as the topic `policy`.
pub(crate) fn answer(core: &Core, caller: &AuthPrincipal, arguments: &str) -> Result<Value, PcpError> {
    let invalid = |why: String| {
        PcpError::new(ErrorCode::InvalidRequest, format!("the arguments of topic explain: {why}"))
            .hint(r#"{"operation":"0191…"}, or {"capability":"app.x.read","principal":"me"}"#)
    };
    let asked: Asked = serde_json::from_str(arguments).map_err(|error| invalid(error.to_string()))?;
    match (asked.operation, asked.capability) {
        (Some(operation), None) if asked.principal.is_none() => {
            let id: OperationId =
                operation.parse().map_err(|error| invalid(format!("operation {operation:?}: {error}")))?;
            operation_told(core, caller, id)
        }
        (None, Some(capability)) => {
            let id = CapabilityId::parse(&capability).map_err(|error| invalid(error.to_string()))?;
            let principal =
                policy::principal_named(core, caller, asked.principal.as_deref().unwrap_or("me"))?;
            Ok(capability_told(core, &principal, &id))
        }
        _ => Err(invalid("either `operation` alone or `capability` is expected".to_owned())),
    }
}

/// What happened, stage by stage. Another's operation is told like one that is not there (RELIABILITY L10).
fn operation_told(core: &Core, caller: &AuthPrincipal, id: OperationId) -> Result<Value, PcpError> {
    let sees_all = caller.domain == Domain::System || caller.admin;
    let trace =
        core.pipeline.trace(id).filter(|trace| sees_all || trace.uid == caller.uid).ok_or_else(|| {
            let message =
                format!("operation {id} is not among the newest {MAX_TRACES} of this daemon's life");
            PcpError::new(ErrorCode::NotFound, message).hint(format!(
                "`pcp-cli audit show --op {id}` shows its records, and `pcp-cli status {id}` its end"
            ))
        })?;
    let stages: Vec<Value> = Stage::ALL.iter().map(|stage| stage_row(*stage, &trace)).collect();
    Ok(json!({
        "operation_id": trace.operation_id.to_string(),
        "capability": trace.capability.as_str(),
        "uid": trace.uid,
        "class": trace.class,
        "verdict": trace.verdict,
        "rule": trace.rule.as_str(),
        "source": policy::BUILT_IN,
        "gate": (!trace.gate.is_empty()).then_some(trace.gate),
        "tier": trace.tier,
        "fallback": trace.fallback,
        "dry_run": trace.dry_run,
        "replayed": trace.replayed,
        "terminal": trace.terminal,
        "error": trace.error,
        "timed_out": trace.timed_out,
        "duration_us": trace.duration_us,
        "stages": stages,
    }))
}

fn stage_row(stage: Stage, trace: &Trace) -> Value {
    let span = trace.spans.iter().find(|span| span.stage == stage);
    let last = trace.spans.iter().rfind(|span| span.stage != Stage::Audit).map(|span| span.stage);
    let outcome = match (span, trace.error) {
        (None, _) => "not_reached",
        (Some(_), Some(error)) if last == Some(stage) => match error.kind() {
            OutcomeKind::Refused => "refused",
            OutcomeKind::Unknown => "unknown",
            _ if trace.terminal == Terminal::OutcomeUnknown => "unknown",
            _ => "failed",
        },
        (Some(_), _) if stage == Stage::ResolveTarget && trace.fallback => "fallback",
        (Some(_), _) if stage == Stage::ResolveAction && trace.fallback => "skipped",
        (Some(_), _) => "ok",
    };
    json!({
        "number": stage.number(),
        "stage": stage,
        "start_us": span.map(|span| span.start_us),
        "duration_us": span.map(|span| span.duration_us),
        "outcome": outcome,
    })
}

/// What each stage would say now.
fn capability_told(core: &Core, principal: &AuthPrincipal, id: &CapabilityId) -> Value {
    let judged = policy::test(core, principal, id);
    let found = core.registry.get(id).filter(|_| judged["verdict"] != "deny");
    let words: Vec<String> = IntentClassifier
        .classify(id)
        .matches
        .iter()
        .map(|(class, word)| format!("{word} ({class})"))
        .collect();
    let would = verdict_word(core, &judged, found.as_deref(), id);
    let row = |stage: Stage, says: &str, detail: String| json!({ "number": stage.number(), "stage": stage, "says": says, "detail": detail });
    let text = |name: &str| judged[name].as_str().unwrap_or_default().to_owned();
    let words = if words.is_empty() { "no word of the table".to_owned() } else { words.join(", ") };
    let permission = match text("reason") {
        reason if reason.is_empty() => format!("rule {} ({})", text("rule"), text("source")),
        reason => format!("rule {} ({}): {reason}", text("rule"), text("source")),
    };
    let (resolves, target) = target(&judged, found.as_deref(), id);
    let (action_says, action) = action(core, found.as_deref());
    let tier = found.as_ref().map(|found| found.method.tier());
    let stages = vec![
        row(Stage::Classify, &text("class"), words),
        row(Stage::ResolveTarget, resolves, target),
        row(Stage::CheckPermissions, &text("verdict"), permission),
        row(Stage::ResolveAction, action_says, action),
        row(
            Stage::Execute,
            if text("class") == "read" { "send" } else { "claim, then send" },
            budget(core, id),
        ),
        row(Stage::Verify, if tier == Some(Tier::One) { "result" } else { "none" }, verification(tier)),
        row(Stage::Audit, "record", format!("trail {}", Trail::from(id.domain()))),
    ];
    json!({
        "capability": id,
        "principal": judged["principal"],
        "would": would.0,
        "because": would.1,
        "would_allow": judged["would_allow"],
        "stages": stages,
    })
}

/// `run`, `ask_a_person`, `refuse`; and why, in a sentence.
fn verdict_word(
    core: &Core,
    judged: &Value,
    found: Option<&CapabilityDescriptor>,
    id: &CapabilityId,
) -> (&'static str, String) {
    let reason = judged["reason"].as_str().unwrap_or_default();
    match (judged["verdict"].as_str(), found) {
        (Some("deny"), _) => ("refuse", format!("permission_denied: {reason}")),
        (_, None) if judged["class"] == "read" => {
            ("refuse", format!("capability_not_found: {id} is not registered"))
        }
        (_, None) => ("refuse", format!("target_not_found: {id} is not registered")),
        (Some("confirm"), _) => ("ask_a_person", reason.to_owned()),
        (_, Some(found)) if !found.executable => (
            "refuse",
            "not_validated: it was predicted from files and nothing live is bound to it".to_owned(),
        ),
        (_, Some(found)) if !core.is_running(&found.app_id) => {
            ("refuse", format!("unavailable: application {} is not running", found.app_id))
        }
        _ => ("run", "every stage agrees".to_owned()),
    }
}

fn target(judged: &Value, found: Option<&CapabilityDescriptor>, id: &CapabilityId) -> (&'static str, String) {
    match found {
        Some(found) => (
            "found",
            format!("application {}, {} (tier {})", found.app_id, found.method, found.method.tier()),
        ),
        None if judged["verdict"] == "deny" => {
            ("not_told", "what lies behind the wall is not told".to_owned())
        }
        None => ("absent", format!("{id} is not registered")),
    }
}

fn action(core: &Core, found: Option<&CapabilityDescriptor>) -> (&'static str, String) {
    match found {
        None => ("skipped", "nothing to resolve".to_owned()),
        Some(found) if !found.executable => ("refuse", "predicted; start the application once".to_owned()),
        Some(found) if !core.is_running(&found.app_id) => {
            ("refuse", "the application is not running".to_owned())
        }
        Some(found) => ("ok", format!("parameters are held against the schema of version {}", found.version)),
    }
}

fn budget(core: &Core, id: &CapabilityId) -> String {
    let pipeline = &core.config.pipeline;
    let ms = match id.domain() {
        Domain::App => pipeline.app_ms,
        Domain::Compositor => pipeline.compositor_ms,
        Domain::System => pipeline.system_ms,
    };
    format!("within {ms} ms")
}

fn verification(tier: Option<Tier>) -> String {
    match tier {
        Some(Tier::One) => "the typed result is held against the declared schema".to_owned(),
        Some(_) => "this tier is never called verified".to_owned(),
        None => "nothing to verify".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(spans: &[Stage], error: Option<ErrorCode>, terminal: Terminal) -> Trace {
        let mut kept = heapless::Vec::new();
        for (place, stage) in spans.iter().enumerate() {
            let start_us = place as u64 * 10;
            kept.push(pcp_execution::StageSpan { stage: *stage, start_us, duration_us: 10 }).unwrap();
        }
        Trace {
            operation_id: OperationId::from_parts(1, [0; 10]),
            uid: 1,
            capability: heapless::String::new(),
            class: pcp_core::ActionClass::Read,
            verdict: "allowed",
            rule: heapless::String::new(),
            gate: "",
            tier: None,
            fallback: false,
            dry_run: false,
            replayed: false,
            spans: kept,
            terminal,
            error,
            timed_out: false,
            duration_us: 1,
        }
    }

    fn outcomes(trace: &Trace) -> Vec<String> {
        Stage::ALL
            .iter()
            .map(|stage| stage_row(*stage, trace)["outcome"].as_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_failing_stage_is_named_as_what_it_did_and_those_after_it_as_not_reached() {
        use Stage::*;
        let denied = trace(
            &[Classify, ResolveTarget, CheckPermissions, Audit],
            Some(ErrorCode::PermissionDenied),
            Terminal::Rejected,
        );
        assert_eq!(
            outcomes(&denied),
            ["ok", "ok", "refused", "not_reached", "not_reached", "not_reached", "ok"]
        );
        let hung = trace(
            &[Classify, ResolveTarget, CheckPermissions, ResolveAction, Execute, Audit],
            Some(ErrorCode::OutcomeUnknown),
            Terminal::OutcomeUnknown,
        );
        assert_eq!(outcomes(&hung), ["ok", "ok", "ok", "ok", "unknown", "not_reached", "ok"]);
        let done = trace(Stage::ALL, None, Terminal::Succeeded);
        assert_eq!(outcomes(&done), ["ok"; 7]);
        let read = Trace { fallback: true, ..done };
        assert_eq!(outcomes(&read), ["ok", "fallback", "ok", "skipped", "ok", "ok", "ok"]);
    }
}
