//! Why a request has no acknowledgement at all.

use pcp_core::v2::{AuthorityDenied, InvalidRequest};

/// What stopped a request before anything was accepted, or a store that could not keep a promise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// A rule of the protocol is broken; nothing was written.
    #[error("invalid request: {0}")]
    InvalidRequest(#[from] InvalidRequest),
    /// The grant does not permit it; nothing was written.
    #[error(transparent)]
    AuthorityDenied(#[from] AuthorityDenied),
    /// The operation id stands for another action; nothing was written.
    #[error(
        "the operation id was already claimed with another action hash: another action needs an id of its own"
    )]
    Conflict,
    /// The store could not be read or written. Nothing was done.
    #[error("{0}; nothing was done")]
    Store(#[from] StoreError),
}

/// What a store could not do, in its own words. They name files and offsets, never content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(pub String);
