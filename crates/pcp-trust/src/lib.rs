//! Who signed this, and who is asking: strict Ed25519, canonical JSON, and root's files.
//!
//! Turns bytes that only root or a key holder can have written into values that may be believed. It does not
//! decide what a believed caller may do (`pcp-core` does), nor where manifests lie (`pcp-native` does).
//! Start with [`verify_manifest`] for documents, [`PrincipalTable`] for peers, [`Ed25519AuthorityVerifier`] for grants.

pub mod authority;
mod base64;
pub mod canonical;
pub mod ed25519;
mod error;
pub mod keys;
pub mod manifest;
mod principal_file;
pub mod principals;
pub mod root_file;
mod strict_json;

pub use authority::{AuthorityKey, Ed25519AuthorityVerifier};
pub use canonical::CanonicalJson;
pub use ed25519::{Signature, Signer, Verifier};
pub use error::Error;
pub use keys::Keyring;
pub use manifest::{CheckedManifest, ManifestVerdict, Rejection, verify_manifest};
pub use principal_file::{MAX_NAME_BYTES, MAX_RATE_PER_SECOND};
pub use principals::{AppRegistration, PrincipalEntry, PrincipalTable};
