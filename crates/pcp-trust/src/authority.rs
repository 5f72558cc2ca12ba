//! The keys of the hosts whose grants count, and the strict verification of a grant.
//!
//! A keyring is pinned when it is made and never grows by what a request says. One key belongs to one issuer and one
//! generation of its policy: a host that changes its policy names a new generation, and every older grant is void.

use pcp_core::v2::{
    AuthorityDenied, AuthorityVerifier, Authorized, DenialReason, ValidRequest, is_identifier,
};

use crate::ed25519::{Signature, Verifier};
use crate::error::Error;

/// Most keys of one keyring. A device has one host, or a few; a rotation doubles them for a while.
pub const MAX_AUTHORITY_KEYS: usize = 64;

/// One key that a host signs its grants with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorityKey {
    /// Who signs.
    pub issuer: String,
    /// Which of their keys it is.
    pub key_id: String,
    /// The generation of their policy that it signs for.
    pub policy_generation: String,
    /// The raw Ed25519 public key.
    pub public_key: [u8; 32],
}

/// Verifies grants against pinned keys by the strict rule of [`Verifier`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ed25519AuthorityVerifier {
    keys: Vec<(AuthorityKey, Verifier)>,
}

impl Ed25519AuthorityVerifier {
    /// Pins `keys`. Without any, every grant is denied.
    ///
    /// # Errors
    /// [`Error::AuthorityTooMany`], [`Error::AuthorityIdentifier`], [`Error::AuthorityKey`] if the bytes are no key or
    /// one of small order, [`Error::AuthorityDuplicate`] if an issuer has two keys of one name: none is chosen.
    pub fn new(keys: impl IntoIterator<Item = AuthorityKey>) -> Result<Self, Error> {
        let keys: Vec<AuthorityKey> = keys.into_iter().collect();
        if keys.len() > MAX_AUTHORITY_KEYS {
            return Err(Error::AuthorityTooMany { keys: keys.len(), limit: MAX_AUTHORITY_KEYS });
        }
        let mut pinned: Vec<(AuthorityKey, Verifier)> = Vec::with_capacity(keys.len());
        for (at, key) in keys.into_iter().enumerate() {
            for (field, name) in [
                ("issuer", &key.issuer),
                ("key_id", &key.key_id),
                ("policy_generation", &key.policy_generation),
            ] {
                if !is_identifier(name) {
                    return Err(Error::AuthorityIdentifier { at, field });
                }
            }
            if let Some(first) = position(&pinned, &key.issuer, &key.key_id) {
                return Err(Error::AuthorityDuplicate { at, first });
            }
            let verifier = Verifier::from_bytes(&key.public_key)
                .map_err(|source| Error::AuthorityKey { at, source: Box::new(source) })?;
            pinned.push((key, verifier));
        }
        Ok(Self { keys: pinned })
    }
}

fn position(keys: &[(AuthorityKey, Verifier)], issuer: &str, key_id: &str) -> Option<usize> {
    keys.iter().position(|(key, _)| key.issuer == issuer && key.key_id == key_id)
}

impl AuthorityVerifier for Ed25519AuthorityVerifier {
    /// The bindings first, then the key, then the signature. A grant whose time is over verifies: its expiry is in the
    /// answer, and whoever acts compares it; an operation that has ended is replayed all the same.
    fn verify(&self, request: &ValidRequest) -> Result<Authorized, AuthorityDenied> {
        let authority = &request.request().authority;
        let grant = &authority.grant;
        grant.binds(request)?;
        let key = position(&self.keys, &grant.issuer, &grant.key_id).and_then(|at| self.keys.get(at));
        let (key, verifier) = key.ok_or(DenialReason::UnknownKey)?;
        if key.policy_generation != grant.policy_generation {
            return Err(DenialReason::PolicyGeneration.into());
        }
        let signature = authority.signature_bytes().ok_or(DenialReason::Signature)?;
        verifier
            .verify(&grant.signed_bytes(), &Signature::from_bytes(signature))
            .map_err(|_| DenialReason::Signature)?;
        Ok(Authorized { expires_at_ms: grant.expires_at_ms })
    }
}
