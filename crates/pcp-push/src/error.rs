//! Why a subscription is refused. Publishing has no errors.

use crate::bus::{
    MAX_QUEUE_EVENTS, MAX_QUEUED_EVENTS, MAX_QUEUED_EVENTS_PER_UID, MAX_SUBSCRIPTIONS,
    MAX_SUBSCRIPTIONS_PER_CONNECTION,
};

/// Which limit a subscription would exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A queue of this size is not given to anybody.
    #[error("a queue of {asked} events is outside 1 to {MAX_QUEUE_EVENTS}")]
    QueueSize {
        /// What was asked for.
        asked: usize,
    },
    /// The connection has as many as it may.
    #[error(
        "this connection holds {MAX_SUBSCRIPTIONS_PER_CONNECTION} subscriptions, the limit; end one with \
         unsubscribe_events"
    )]
    ConnectionFull,
    /// The user's subscriptions take as much room as they may.
    #[error(
        "the subscriptions of uid {uid} hold room for {held} events, {asked} more exceed the limit of \
         {MAX_QUEUED_EVENTS_PER_UID}; ask for a smaller queue"
    )]
    UserFull {
        /// The user.
        uid: u32,
        /// Events that its queues hold room for.
        held: usize,
        /// What was asked for.
        asked: usize,
    },
    /// All subscriptions together take as much room as they may.
    #[error(
        "{subscriptions} subscriptions with room for {held} events are open, the limits are {MAX_SUBSCRIPTIONS} and \
         {MAX_QUEUED_EVENTS}; try again later"
    )]
    BusFull {
        /// Subscriptions that are open.
        subscriptions: usize,
        /// Events that their queues hold room for.
        held: usize,
    },
}
