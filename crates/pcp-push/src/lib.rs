//! Events to subscribers: one bus, a bounded queue for each subscription, every drop visible.
//!
//! Numbers what is published and hands it to the subscriptions that it fits. It does not know what an event looks
//! like on the wire (`pcp-ipc` does), needs no async runtime and reads no clock: who waits brings the limit. It runs
//! nobody's code while it publishes.
//!
//! Start with [`PushEventBus`], then [`Subscription`]; what a full queue does is [`OverflowStrategy`].

mod bus;
mod error;
mod overflow;
mod subscription;

pub use bus::{
    DEFAULT_QUEUE_EVENTS, MAX_QUEUE_EVENTS, MAX_QUEUED_EVENTS, MAX_QUEUED_EVENTS_PER_UID, MAX_SUBSCRIPTIONS,
    MAX_SUBSCRIPTIONS_PER_CONNECTION, PushEventBus,
};
pub use error::Error;
pub use pcp_core::overflow::OverflowStrategy;
pub use subscription::{PolledSubscription, Subscription, SubscriptionId};
