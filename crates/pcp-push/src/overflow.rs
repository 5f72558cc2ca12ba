//! The part of the four strategies that touches the world: a line in the log for what is dropped, and who waits for room
//! . What is kept and what is counted is [`pcp_core::overflow`]'s.

use core::task::Waker;

use pcp_core::{EventQueue, Offered, OverflowStrategy};
use tracing::warn;

use crate::subscription::SubscriptionId;

/// A line that is written after the bus's lock is gone, because a log may be slow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DropNotice {
    id: SubscriptionId,
    sequence: u64,
    capacity: usize,
}

impl DropNotice {
    /// The line that this outcome is worth: the first drop of many, and only where the subscriber asked for a log.
    pub(crate) fn of<T>(
        id: SubscriptionId,
        sequence: u64,
        queue: &EventQueue<T>,
        offered: Offered,
    ) -> Option<Self> {
        let logs = queue.strategy() == OverflowStrategy::DropAndLog;
        (logs && offered == Offered::Dropped { first: true }).then(|| Self {
            id,
            sequence,
            capacity: queue.capacity(),
        })
    }

    pub(crate) fn write(self) {
        warn!(
            subscription = self.id.get(),
            sequence = self.sequence,
            "events are dropped from here on: the queue of {} events is full",
            self.capacity
        );
    }
}

/// Says how many events a gap held, once its subscriber has come to it.
pub(crate) fn write_total(id: SubscriptionId, missed: u64, sequence: u64) {
    warn!(subscription = id.get(), sequence, missed, "events were dropped until here");
}

/// Whether a publisher that can wait has to: the strategy asks for it and there is no room.
pub(crate) fn holds_up<T>(queue: &EventQueue<T>) -> bool {
    queue.strategy() == OverflowStrategy::Block && !queue.has_room()
}

/// Publishers that wait for room. Each stands in it once.
#[derive(Debug, Default)]
pub(crate) struct WaitingPublishers(Vec<Waker>);

impl WaitingPublishers {
    pub(crate) fn add(&mut self, waker: &Waker) {
        if !self.0.iter().any(|known| known.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    /// Lets all of them look again.
    pub(crate) fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }
}
