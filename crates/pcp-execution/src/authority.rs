//! What a host needs to pin its keys, beside the engine that asks for them (S3).
//!
//! The verifier itself is with the one Ed25519 of the product, in `pcp-trust`.

pub use pcp_trust::{AuthorityKey, Ed25519AuthorityVerifier};
