//! The hands of an engine. What they say of failures is fixed text: no content can come out of them.

use std::future::Future;
use std::sync::Arc;

use pcp_core::v2::{
    Action, Capabilities, Evidence, FailureCode, SemanticTargetRef, SessionIsolation, Sha256Hash,
    VerificationPolicy,
};
use serde_json::Value;

use super::boundary::Boundary;

/// What was seen of one element.
#[derive(Clone, PartialEq)]
pub struct TargetObservation {
    /// Hash of all that was observed.
    pub observation_hash: Sha256Hash,
    /// What the element looks like.
    pub fingerprint_hash: Sha256Hash,
    /// The displays' arrangement.
    pub display_geometry_hash: Sha256Hash,
    /// The element's state; its member `value_hash` is the SHA-256 of its value, where there is one.
    pub state: Value,
    /// When, in Unix milliseconds.
    pub observed_at_ms: i64,
}

impl TargetObservation {
    /// What of it goes into a receipt: hashes and a time.
    #[must_use]
    pub fn evidence(&self) -> Evidence {
        Evidence {
            observation_hash: self.observation_hash,
            target_fingerprint_hash: Some(self.fingerprint_hash),
            display_geometry_hash: self.display_geometry_hash,
            observed_at_ms: self.observed_at_ms,
        }
    }
}

impl std::fmt::Debug for TargetObservation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TargetObservation").field("evidence", &self.evidence()).finish_non_exhaustive()
    }
}

/// What kept an executor from a step that has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExecutorFault {
    /// The element is no longer what was observed.
    Stale,
    /// There is no such element.
    NotFound,
    /// The request makes no sense here.
    Invalid,
    /// The system does not let it.
    PermissionDenied,
    /// It cannot.
    Unsupported,
    /// It does not work now, or a time limit of its own has passed.
    Failed,
}

/// A step that failed, with a fixed sentence that names the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExecutorError {
    /// Which kind.
    pub fault: ExecutorFault,
    /// The cause.
    pub message: &'static str,
}

/// What an executor certifies of the effect of a dispatch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DispatchEffect {
    /// There was none.
    NoEffect,
    /// There may have been one.
    Unknown,
    /// It saw the cancellation before the first effect.
    CancelledBeforeEffect,
    /// It saw the deadline before the first effect.
    ExpiredBeforeEffect,
}

/// A dispatch that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DispatchError {
    /// The cause, a fixed sentence.
    pub message: &'static str,
    /// What is certain of the effect.
    pub effect: DispatchEffect,
    /// What to tell, when there was none.
    pub code: FailureCode,
}

/// One backend on one desktop, chosen and configured by the host. Steps get the operation's [`Boundary`] and are dropped
/// at its end; only a dispatch is given a moment to say what it knows.
pub trait Executor: Send + Sync {
    /// A live element, found again.
    type Resolved;

    /// Whose desktop this is. Configured, never asked for.
    fn session_isolation(&self) -> SessionIsolation;

    /// What it can do now.
    ///
    /// # Errors
    /// [`ExecutorError`].
    fn capabilities(&self, boundary: &Boundary) -> impl Future<Output = Result<Capabilities, ExecutorError>>;

    /// Looks at the element.
    ///
    /// # Errors
    /// [`ExecutorError`].
    fn observe(
        &self,
        target: &SemanticTargetRef,
        boundary: &Boundary,
    ) -> impl Future<Output = Result<TargetObservation, ExecutorError>>;

    /// Finds the live element, with every fence of the target.
    ///
    /// # Errors
    /// [`ExecutorError`].
    fn resolve(
        &self,
        target: &SemanticTargetRef,
        boundary: &Boundary,
    ) -> impl Future<Output = Result<Self::Resolved, ExecutorError>>;

    /// Hash of foreground, focus and pointer of a shared desktop; `None` if they cannot be read.
    fn shared_context(&self, boundary: &Boundary) -> impl Future<Output = Option<Sha256Hash>>;

    /// Acts. The only step with an effect.
    ///
    /// # Errors
    /// [`DispatchError`] with what is certain of the effect.
    fn dispatch(
        &self,
        action: &Action,
        resolved: Self::Resolved,
        verification: &VerificationPolicy,
        boundary: &Boundary,
    ) -> impl Future<Output = Result<(), DispatchError>>;

    /// Waits until the element may have changed; `false` if the backend cannot tell. The engine bounds the wait.
    fn changed(&self, _target: &SemanticTargetRef, _boundary: &Boundary) -> impl Future<Output = bool> {
        std::future::ready(false)
    }
}

impl<E: Executor> Executor for Arc<E> {
    type Resolved = E::Resolved;

    fn session_isolation(&self) -> SessionIsolation {
        (**self).session_isolation()
    }

    fn capabilities(&self, boundary: &Boundary) -> impl Future<Output = Result<Capabilities, ExecutorError>> {
        (**self).capabilities(boundary)
    }

    fn observe(
        &self,
        target: &SemanticTargetRef,
        boundary: &Boundary,
    ) -> impl Future<Output = Result<TargetObservation, ExecutorError>> {
        (**self).observe(target, boundary)
    }

    fn resolve(
        &self,
        target: &SemanticTargetRef,
        boundary: &Boundary,
    ) -> impl Future<Output = Result<Self::Resolved, ExecutorError>> {
        (**self).resolve(target, boundary)
    }

    fn shared_context(&self, boundary: &Boundary) -> impl Future<Output = Option<Sha256Hash>> {
        (**self).shared_context(boundary)
    }

    fn dispatch(
        &self,
        action: &Action,
        resolved: Self::Resolved,
        verification: &VerificationPolicy,
        boundary: &Boundary,
    ) -> impl Future<Output = Result<(), DispatchError>> {
        (**self).dispatch(action, resolved, verification, boundary)
    }

    fn changed(&self, target: &SemanticTargetRef, boundary: &Boundary) -> impl Future<Output = bool> {
        (**self).changed(target, boundary)
    }
}
