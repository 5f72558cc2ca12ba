//! What a subscriber holds: the channel of v2, and the polled form of v1.

use core::fmt;
use core::task::{Context, Poll};
use std::sync::Arc;

use pcp_core::{Delivery, Event, EventStream};

use crate::bus::PushEventBus;

/// Names one subscription of a bus; never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(u64);

impl SubscriptionId {
    pub(crate) const fn new(id: u64) -> Self {
        Self(id)
    }

    /// The number on the wire.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A bounded channel of events. Dropping it ends the subscription.
#[derive(Debug)]
pub struct Subscription {
    bus: PushEventBus,
    id: SubscriptionId,
    begins_after: u64,
}

impl Subscription {
    pub(crate) const fn new(bus: PushEventBus, id: SubscriptionId, begins_after: u64) -> Self {
        Self { bus, id, begins_after }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.id
    }

    /// The number of the last event before the subscription began: later ones are delivered.
    #[must_use]
    pub const fn begins_after(&self) -> u64 {
        self.begins_after
    }

    /// The next event or gap, if there is one now.
    pub fn try_next(&mut self) -> Option<Delivery<Arc<Event>>> {
        self.bus.take(self.id)
    }
}

impl EventStream for Subscription {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Delivery<Arc<Event>>> {
        self.bus.poll_take(self.id, cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.bus.remove(self.id);
    }
}

/// A subscription whose handler runs when it is polled, never while somebody publishes.
#[derive(Debug)]
pub struct PolledSubscription<H> {
    subscription: Subscription,
    handler: H,
}

impl<H: FnMut(Delivery<Arc<Event>>)> PolledSubscription<H> {
    pub(crate) const fn new(subscription: Subscription, handler: H) -> Self {
        Self { subscription, handler }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> SubscriptionId {
        self.subscription.id()
    }

    /// The number of the last event before the subscription began.
    #[must_use]
    pub const fn begins_after(&self) -> u64 {
        self.subscription.begins_after()
    }

    /// Hands what waits to the handler and gives how much it was. What is published meanwhile does not keep it going,
    /// so that a poll has an end.
    pub fn poll(&mut self) -> usize {
        let until = self.subscription.bus.sequence();
        let mut handled = 0;
        while let Some(delivery) = self.subscription.try_next() {
            let last = delivery.sequence >= until;
            (self.handler)(delivery);
            handled += 1;
            if last {
                break;
            }
        }
        handled
    }
}
