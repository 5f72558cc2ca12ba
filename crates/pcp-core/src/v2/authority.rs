//! What a host signs for: one operation, bound to everything that could be swapped.

use core::fmt;
use std::string::String;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::action::REDACTED;
use super::canonical::canonical_bytes;
use super::request::ValidRequest;
use super::wire::Wire as _;
use super::{PROTOCOL_VERSION, identifier};
use crate::action::SafetyClass;

/// Hexadecimal digits of a signature.
pub const SIGNATURE_DIGITS: usize = 128;

/// A grant and its signature. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedAuthority {
    /// What is granted.
    pub grant: AuthorityGrant,
    /// Ed25519 over [`AuthorityGrant::signed_bytes`]: 128 hexadecimal digits of either case.
    pub signature: String,
}

impl SignedAuthority {
    /// The 64 bytes of the signature, `None` unless it is 128 hexadecimal digits.
    #[must_use]
    pub fn signature_bytes(&self) -> Option<[u8; SIGNATURE_DIGITS / 2]> {
        let digits: &[u8; SIGNATURE_DIGITS] = self.signature.as_bytes().try_into().ok()?;
        let mut bytes = [0; SIGNATURE_DIGITS / 2];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            for digit in pair {
                let value = u8::try_from(char::from(*digit).to_digit(16)?).ok()?;
                *byte = (*byte << 4) | value;
            }
        }
        Some(bytes)
    }
}

impl fmt::Debug for SignedAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedAuthority([redacted])")
    }
}

/// One bounded permission for one operation.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthorityGrant {
    /// 2.
    pub protocol_version: u16,
    /// Who granted it.
    pub issuer: String,
    /// With which of their keys.
    pub key_id: String,
    /// For which operation.
    pub operation_id: String,
    /// For whom.
    pub subject: String,
    /// In which session.
    pub session_id: String,
    /// How bad a mistake would be, as the host judged it.
    pub risk: SafetyClass,
    /// Until when, in Unix milliseconds.
    pub expires_at_ms: i64,
    /// Under which of the host's policies.
    pub policy_generation: String,
    /// The action, by its hash.
    pub action_hash: String,
}

impl AuthorityGrant {
    /// The bytes that are signed: the canonical form of its ten members, nothing before it.
    #[must_use]
    pub fn signed_bytes(&self) -> std::vec::Vec<u8> {
        canonical_bytes(&self.to_value())
    }

    /// Whether the grant is about this request and well formed; everything but the key and the signature.
    ///
    /// # Errors
    /// [`AuthorityDenied`] with the first binding that differs.
    pub fn binds(&self, request: &ValidRequest) -> Result<(), AuthorityDenied> {
        let asked = request.request();
        let bindings = [
            (self.operation_id == asked.operation_id, Binding::OperationId),
            (self.subject == asked.subject, Binding::Subject),
            (self.session_id == asked.session_id, Binding::SessionId),
            (self.risk == asked.safety, Binding::Risk),
            (
                self.action_hash == std::string::ToString::to_string(&request.action_hash()),
                Binding::ActionHash,
            ),
        ];
        if self.protocol_version != PROTOCOL_VERSION {
            return Err(DenialReason::Version.into());
        }
        if let Some((_, binding)) = bindings.into_iter().find(|(equal, _)| !equal) {
            return Err(DenialReason::Binding(binding).into());
        }
        if self.expires_at_ms <= 0 {
            return Err(DenialReason::Expiry.into());
        }
        let names = [&self.issuer, &self.key_id, &self.policy_generation];
        if !names.into_iter().all(|name| identifier::is_identifier(name)) {
            return Err(DenialReason::Identifier.into());
        }
        Ok(())
    }
}

impl fmt::Debug for AuthorityGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorityGrant")
            .field("operation_id", &self.operation_id)
            .field("subject", &REDACTED)
            .field("session_id", &REDACTED)
            .finish_non_exhaustive()
    }
}

/// What a grant shares with its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Binding {
    /// The operation.
    OperationId,
    /// The person.
    Subject,
    /// The session.
    SessionId,
    /// The risk.
    Risk,
    /// The action.
    ActionHash,
}

/// Why a grant was denied: for logs and tests, never for whoever asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DenialReason {
    /// Another version.
    Version,
    /// A binding that is not the request's.
    Binding(Binding),
    /// An expiry that is no time.
    Expiry,
    /// Issuer, key or generation is no identifier.
    Identifier,
    /// No such issuer and key.
    UnknownKey,
    /// The key belongs to another generation of the policy.
    PolicyGeneration,
    /// The signature is not this key's over this grant, by the strict rule.
    Signature,
}

/// The grant does not permit the request. Whoever asks learns no more: not which binding, not whether the key exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("authority denied")]
pub struct AuthorityDenied(DenialReason);

impl AuthorityDenied {
    /// The reason, for the log of the host.
    #[must_use]
    pub const fn reason(self) -> DenialReason {
        self.0
    }
}

impl From<DenialReason> for AuthorityDenied {
    fn from(reason: DenialReason) -> Self {
        Self(reason)
    }
}

/// A grant that was verified. It may be over: whoever acts compares its expiry, and whoever replays need not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Authorized {
    /// Until when, in Unix milliseconds.
    pub expires_at_ms: i64,
}

/// Decides whether a request's authority is genuine. Chosen by the host, never by the request.
pub trait AuthorityVerifier: Send + Sync {
    /// Verifies the grant of `request`.
    ///
    /// # Errors
    /// [`AuthorityDenied`].
    fn verify(&self, request: &ValidRequest) -> Result<Authorized, AuthorityDenied>;
}

impl<V: AuthorityVerifier + ?Sized> AuthorityVerifier for std::sync::Arc<V> {
    fn verify(&self, request: &ValidRequest) -> Result<Authorized, AuthorityDenied> {
        (**self).verify(request)
    }
}
