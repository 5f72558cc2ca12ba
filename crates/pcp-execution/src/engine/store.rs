//! The memory of an engine: which operation ids are bound to which action, and how they ended (R-181..R-183).

use std::future::Future;
use std::sync::Arc;

use pcp_core::v2::{ActionAck, ClaimRecord, Sha256Hash};

use super::error::StoreError;

/// What a store knows of an operation id together with an action hash.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "what is known of an operation decides whether it may run"]
pub enum Known {
    /// Nothing, and the id may be claimed; as the answer of [`OperationStore::claim`]: it is claimed now, durably.
    Fresh,
    /// It is under way in this engine or in another.
    Running,
    /// It ended like this.
    Ended(Box<ActionAck>),
    /// It was claimed, nobody is at it, and its end was never stored: it may have happened.
    Unfinished(Box<ClaimRecord>),
    /// The id is bound to another action.
    Conflict,
    /// The id is older than what the store remembers; it might have run.
    Forgotten,
}

/// Where claims and ends are kept. A claim and an end are durable when the future is ready.
pub trait OperationStore: Send + Sync {
    /// What is known of the operation; nothing is written.
    ///
    /// # Errors
    /// What is stored cannot be read. It is never taken for [`Known::Fresh`].
    fn look_up(
        &self,
        operation_id: &str,
        action_hash: Sha256Hash,
    ) -> impl Future<Output = Result<Known, StoreError>>;

    /// Claims the id, if nothing is known of it; of several at once exactly one is told [`Known::Fresh`]. Dropped before
    /// it is ready, it has claimed the id for nobody: the operation is [`Known::Unfinished`] or [`Known::Fresh`].
    ///
    /// # Errors
    /// The claim could not be made durable. Then the id is not claimed.
    fn claim(&self, claim: &ClaimRecord) -> impl Future<Output = Result<Known, StoreError>>;

    /// Stores how a claimed operation ended.
    ///
    /// # Errors
    /// It could not be made durable; the operation then is [`Known::Unfinished`].
    fn finish(&self, end: &ActionAck) -> impl Future<Output = Result<(), StoreError>>;

    /// Records that an operation was refused before its claim. Its id stays free.
    fn refused(&self, end: &ActionAck) -> impl Future<Output = ()>;

    /// Says that nobody is at a claimed operation any more, whose end was not stored. Must not wait.
    fn abandon(&self, operation_id: &str);

    /// The latest acknowledgement of an operation, whatever its hash; for an unfinished one, the claim.
    ///
    /// # Errors
    /// What is stored cannot be read.
    fn status(
        &self,
        operation_id: &str,
    ) -> impl Future<Output = Result<Option<(ClaimRecord, Known)>, StoreError>>;
}

impl<S: OperationStore> OperationStore for Arc<S> {
    fn look_up(
        &self,
        operation_id: &str,
        action_hash: Sha256Hash,
    ) -> impl Future<Output = Result<Known, StoreError>> {
        (**self).look_up(operation_id, action_hash)
    }

    fn claim(&self, claim: &ClaimRecord) -> impl Future<Output = Result<Known, StoreError>> {
        (**self).claim(claim)
    }

    fn finish(&self, end: &ActionAck) -> impl Future<Output = Result<(), StoreError>> {
        (**self).finish(end)
    }

    fn refused(&self, end: &ActionAck) -> impl Future<Output = ()> {
        (**self).refused(end)
    }

    fn abandon(&self, operation_id: &str) {
        (**self).abandon(operation_id);
    }

    fn status(
        &self,
        operation_id: &str,
    ) -> impl Future<Output = Result<Option<(ClaimRecord, Known)>, StoreError>> {
        (**self).status(operation_id)
    }
}
