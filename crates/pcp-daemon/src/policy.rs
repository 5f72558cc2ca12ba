//! What the policy says, and why: the topic `policy` (R-069, R-072, R-083). Reading it changes nothing.

use pcp_core::{
    ActionClass, AuthPrincipal, CapabilityId, CapabilityRegistry, ConfirmationConfig, Denial, Domain,
    ErrorCode, Gate, IntentClassifier, PcpError, PermissionQuestion, TrustLevel, Verdict,
};
use pcp_trust::PrincipalEntry;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::daemon::Core;

/// Where a rule comes from that no file holds.
pub(crate) const BUILT_IN: &str = "built-in";

/// What the topic is asked.
#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
enum Asked {
    /// The rules and the gated globs.
    List {},
    /// Class, severity, gate, trust, undo window.
    Matrix {},
    /// What a principal may do with a capability.
    Test {
        /// A uid, a name or file of `principals.d`, an application's id, or `me`.
        principal: String,
        /// The capability's id.
        capability: String,
    },
}

/// The answer to the topic's `arguments`.
///
/// # Errors
/// `invalid_request`, `not_found` for an unknown principal, `permission_denied` for another's principal.
pub(crate) fn answer(core: &Core, caller: &AuthPrincipal, arguments: &str) -> Result<Value, PcpError> {
    let asked = serde_json::from_str(arguments).map_err(|error| {
        PcpError::new(ErrorCode::InvalidRequest, format!("the arguments of topic policy: {error}"))
            .hint(r#"{"ask":"list"}, {"ask":"matrix"} or {"ask":"test","principal":"me","capability":"app.x.read"}"#)
    })?;
    match asked {
        Asked::List {} => Ok(list(core)),
        Asked::Matrix {} => Ok(matrix()),
        Asked::Test { principal, capability } => {
            let id = CapabilityId::parse(&capability)
                .map_err(|error| PcpError::new(ErrorCode::InvalidRequest, error.to_string()))?;
            let principal = principal_named(core, caller, &principal)?;
            Ok(test(core, &principal, &id))
        }
    }
}

fn list(core: &Core) -> Value {
    let rules = core.permissions.store().rules();
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| {
            json!({ "says": rule.says.as_str(), "pattern": &*rule.pattern, "from": rule.caller, "source": BUILT_IN })
        })
        .collect();
    let gated: Vec<Value> = ConfirmationConfig::default()
        .globs()
        .iter()
        .map(|glob| json!({ "says": "confirm", "pattern": glob, "source": BUILT_IN }))
        .collect();
    json!({ "rules": rules, "gated": gated })
}

fn matrix() -> Value {
    let rows: Vec<Value> = ActionClass::ALL
        .iter()
        .map(|class| {
            json!({
                "class": class,
                "severity": class.severity(),
                "safety": class.safety(),
                "gate": class.gate(),
                "minimum_trust": class.minimum_trust().get(),
                "undo_window_ms": class.undo_window_ms(),
            })
        })
        .collect();
    json!({ "classes": rows })
}

/// Whom a name means. Others than oneself are the business of those who may see everything.
pub(crate) fn principal_named(
    core: &Core,
    caller: &AuthPrincipal,
    name: &str,
) -> Result<AuthPrincipal, PcpError> {
    let by_name = |name: &str| {
        let mut entries = core.table.principals();
        let named = |entry: &&PrincipalEntry| {
            entry.name.as_deref() == Some(name) || entry.file.file_stem().is_some_and(|stem| stem == name)
        };
        entries.find(named).map(|entry| entry.principal.uid)
    };
    let by_app = |name: &str| core.table.apps().find(|app| app.app_id.as_str() == name).map(|app| app.uid);
    let uid = match name {
        "me" => Some(caller.uid),
        name => name.parse().ok().or_else(|| by_name(name)).or_else(|| by_app(name)),
    };
    let sees_all = caller.domain == Domain::System || caller.admin;
    if uid != Some(caller.uid) && !sees_all {
        let message = format!(
            "what principal {name:?} may is told to the system domain; the caller holds {}",
            caller.domain
        );
        return Err(PcpError::new(ErrorCode::PermissionDenied, message).hint("`me` stands for the caller"));
    }
    uid.and_then(|uid| core.table.principal(uid, None)).ok_or_else(|| {
        PcpError::new(ErrorCode::NotFound, format!("no principal {name:?}: neither a uid nor a name of principals.d, nor an application of apps.d"))
            .hint("`me` stands for the caller; `pcp-cli doctor` says which files do not count")
    })
}

pub(crate) fn test(core: &Core, principal: &AuthPrincipal, id: &CapabilityId) -> Value {
    let found = core.registry.get(id);
    let classification = IntentClassifier.classify(id);
    let changes_nothing = found.as_ref().is_some_and(|capability| capability.changes_nothing());
    let class = classification.effective(changes_nothing);
    let asked = PermissionQuestion {
        id,
        class,
        service: classification.service,
        confirmation_required: found.as_ref().is_some_and(|one| one.confirmation_required),
        minimum_trust: found.as_ref().map_or(TrustLevel::OBSERVE, |one| one.minimum_trust),
    };
    let verdict = core.permissions.check(principal, &asked);
    let (word, rule, reason, allow) = match &verdict {
        Verdict::Allowed { rule, gate: Gate::Allow } => ("allow", *rule, None, None),
        Verdict::Allowed { rule, gate: Gate::Confirm } => {
            let reason = gate_reason(id, class, &asked);
            ("confirm", *rule, Some(reason), Some("a person confirms through another channel".to_owned()))
        }
        Verdict::Denied(denial) => {
            ("deny", denial.rule(), Some(denial.to_string()), Some(what_would_allow(denial)))
        }
    };
    // Behind the wall nobody learns what there is.
    let registered = (word != "deny").then_some(found.is_some());
    json!({
        "principal": { "uid": principal.uid, "domain": principal.domain, "trust": principal.trust.get() },
        "capability": id,
        "registered": registered,
        "class": class,
        "verdict": word,
        "rule": rule,
        "source": BUILT_IN,
        "reason": reason,
        "would_allow": allow,
    })
}

/// Which source asks for a person; the strictest wins, and all that ask are named (R-087).
fn gate_reason(id: &CapabilityId, class: ActionClass, asked: &PermissionQuestion<'_>) -> String {
    let mut reasons = Vec::new();
    if class.gate() == Gate::Confirm {
        reasons.push(format!("class {class}"));
    }
    if let Some(glob) = ConfirmationConfig::default().gated_by(id) {
        reasons.push(format!("gated glob {glob}"));
    }
    if asked.confirmation_required {
        reasons.push("the manifest".to_owned());
    }
    if reasons.is_empty() {
        reasons.push("a confirm rule".to_owned());
    }
    format!("confirmation is asked for by {}", reasons.join(", "))
}

fn what_would_allow(denial: &Denial) -> String {
    match denial {
        Denial::Domain { needs, .. } => format!("a principal of the {needs} domain asks itself"),
        Denial::NoRule => "a rule of the policy that allows it".to_owned(),
        Denial::Trust { needs, .. } => format!("`trust = {}` or more in the principal's file", needs.get()),
    }
}
