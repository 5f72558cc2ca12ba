//! Requests as a host makes and signs them.

use std::time::{SystemTime, UNIX_EPOCH};

use pcp_core::v2::*;
use pcp_trust::Signer;
use serde_json::{Value, json};

/// A day from now: long enough for every story.
const DAY_MS: i64 = 86_400_000;

/// The host's key.
pub(super) fn signer() -> Signer {
    Signer::from_secret_bytes(&[0x2a; 32])
}

/// The file of root that pins it.
pub(super) fn authority_file() -> String {
    let key: String = signer().verifier().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("issuer = \"issuer\"\nkey_id = \"k1\"\npolicy_generation = \"gen1\"\npublic_key = \"{key}\"\n")
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

/// A signed request.
pub(super) fn request(operation_id: &str, target: &SemanticTargetRef, action: Action) -> ActionRequest {
    let verification = match &action {
        Action::SetValue { value } => {
            VerificationPolicy::TargetValueHash { sha256: Sha256Hash::of(value.as_bytes()).to_string() }
        }
        _ => VerificationPolicy::None {},
    };
    let deadline_at_ms = now_ms() + DAY_MS;
    let grant = AuthorityGrant {
        protocol_version: PROTOCOL_VERSION,
        issuer: "issuer".into(),
        key_id: "k1".into(),
        operation_id: operation_id.into(),
        subject: "alice".into(),
        session_id: "s1".into(),
        risk: SafetyClass::Reversible,
        expires_at_ms: deadline_at_ms,
        policy_generation: "gen1".into(),
        action_hash: String::new(),
    };
    signed(ActionRequest {
        protocol_version: PROTOCOL_VERSION,
        action_version: PROTOCOL_VERSION,
        target_version: PROTOCOL_VERSION,
        verification_version: PROTOCOL_VERSION,
        operation_id: operation_id.into(),
        subject: "alice".into(),
        session_id: "s1".into(),
        authority: SignedAuthority { grant, signature: String::new() },
        action,
        target: TargetRef::Element { target: target.clone() },
        interaction_mode: InteractionMode::Interactive,
        deadline_at_ms,
        verification,
        safety: SafetyClass::Reversible,
    })
}

/// A request that sets the application's value.
pub(super) fn set_value(operation_id: &str, target: &SemanticTargetRef, value: &str) -> ActionRequest {
    request(operation_id, target, Action::SetValue { value: value.into() })
}

/// The request signed again, after a change.
pub(super) fn signed(mut request: ActionRequest) -> ActionRequest {
    let hash = request.action_hash().to_string();
    let grant = &mut request.authority.grant;
    grant.operation_id.clone_from(&request.operation_id);
    grant.risk = request.safety;
    grant.action_hash = hash;
    let signature = signer().sign(&grant.signed_bytes()).to_bytes();
    request.authority.signature = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    request
}

/// The request as a program sends it.
pub(super) fn text(request: &ActionRequest) -> String {
    json!(request).to_string()
}

/// The request with one member replaced, by its JSON pointer; its signature is of what was there before.
pub(super) fn with(request: &ActionRequest, pointer: &str, value: Value) -> String {
    let mut text = json!(request);
    *text.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    text.to_string()
}
