//! The request: one action, its target, its authority (C46). A model proposes it; the host signs it.

use core::fmt;
use std::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::{Action, REDACTED};
use super::authority::SignedAuthority;
use super::canonical::canonical_hash;
use super::identifier::Sha256Hash;
use super::invalid::InvalidRequest;
use super::read::read;
use super::receipt::InteractionMode;
use super::target::{SemanticTargetRef, TargetRef};
use super::verification::VerificationPolicy;
use super::wire::Wire as _;
use crate::action::SafetyClass;
use crate::intent::MAX_PARAMETERS_BYTES;

/// Longest request in bytes: the most that fits a frame of the wire with everything around it. The largest
/// valid one, every character escaped, is well below.
pub const MAX_REQUEST_BYTES: usize = MAX_PARAMETERS_BYTES;

/// A request as it came, before any rule was applied. There is no member for session isolation, and none for a key:
/// both belong to whoever built the executor and the verifier.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// 2.
    pub protocol_version: u16,
    /// 2.
    pub action_version: u16,
    /// 2.
    pub target_version: u16,
    /// 2.
    pub verification_version: u16,
    /// What at-most-once is about: the same id with the same hash is the same operation.
    pub operation_id: String,
    /// For whom.
    pub subject: String,
    /// In which of their sessions.
    pub session_id: String,
    /// The host's signature over all that counts.
    pub authority: SignedAuthority,
    /// What to do.
    pub action: Action,
    /// To which element.
    pub target: TargetRef,
    /// Whether the person's own foreground, focus and pointer may change.
    pub interaction_mode: InteractionMode,
    /// Until when, in Unix milliseconds.
    pub deadline_at_ms: i64,
    /// What proves the effect.
    pub verification: VerificationPolicy,
    /// How bad a mistake would be; a label that must equal the grant's risk.
    pub safety: SafetyClass,
}

impl ActionRequest {
    /// Reads a request, strictly.
    ///
    /// # Errors
    /// [`InvalidRequest::Unreadable`]; the rules for its values are [`ValidRequest::new`]'s.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidRequest> {
        Ok(read(bytes, MAX_REQUEST_BYTES)?)
    }

    /// What the host signs and the ledger keeps: the hash over twelve members, not over the operation id or the
    /// authority. The deadline is one of them, so that a host keeps the exact request to ask again.
    #[must_use]
    pub fn action_hash(&self) -> Sha256Hash {
        canonical_hash(&Value::Array(std::vec![
            self.protocol_version.into(),
            self.action_version.into(),
            self.target_version.into(),
            self.verification_version.into(),
            self.subject.as_str().into(),
            self.session_id.as_str().into(),
            self.action.to_value(),
            self.target.to_value(),
            self.interaction_mode.to_value(),
            self.deadline_at_ms.into(),
            self.verification.to_value(),
            self.safety.to_value(),
        ]))
    }
}

impl fmt::Debug for ActionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActionRequest")
            .field("protocol_version", &self.protocol_version)
            .field("operation_id", &self.operation_id)
            .field("subject", &REDACTED)
            .field("session_id", &REDACTED)
            .field("authority", &REDACTED)
            .field("action", &self.action)
            .field("target", &self.target)
            .field("interaction_mode", &self.interaction_mode)
            .field("deadline_at_ms", &self.deadline_at_ms)
            .field("verification", &self.verification)
            .field("safety", &self.safety)
            .finish_non_exhaustive()
    }
}

/// A request that keeps every rule, with its hash. Only this can be verified, claimed and executed.
#[derive(Debug, Clone, PartialEq)]
pub struct ValidRequest {
    request: ActionRequest,
    element: SemanticTargetRef,
    action_hash: Sha256Hash,
}

impl ValidRequest {
    /// Applies the rules in their order: versions, mode, identifiers, target kind, bounds of the action, bounds of the
    /// verification, the value's hash, the deadline, the form of the signature, the target's hashes.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn new(request: ActionRequest) -> Result<Self, InvalidRequest> {
        let element = request.validate()?.clone();
        let action_hash = request.action_hash();
        Ok(Self { request, element, action_hash })
    }

    /// The request.
    #[must_use]
    pub const fn request(&self) -> &ActionRequest {
        &self.request
    }

    /// Its hash, computed once.
    #[must_use]
    pub const fn action_hash(&self) -> Sha256Hash {
        self.action_hash
    }

    /// Its element.
    #[must_use]
    pub const fn element(&self) -> &SemanticTargetRef {
        &self.element
    }
}
