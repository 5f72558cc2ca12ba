//! What becomes of an event that finds no room in its subscriber's queue: it is counted, never forgotten.

use std::collections::VecDeque;

use crate::words::words;

words! {
    /// What a full queue does. Whatever is dropped, the subscriber reads how many there were, and where.
    OverflowStrategy: "overflow strategy" {
        /// A publisher that can wait does so until there is room; one that cannot drops the newest.
        Block = "block",
        /// What was there first stays.
        DropNewest = "drop_newest",
        /// What comes last stays.
        DropOldest = "drop_oldest",
        /// As [`Self::DropNewest`], with a line in the log.
        DropAndLog = "drop_and_log",
    }
}

/// What a subscriber reads: an event, or that some were dropped where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery<T> {
    /// The event's number on its bus; of a gap, that of the last event in it.
    pub sequence: u64,
    /// Events meant for this subscriber until here, this one and those in gaps included: it has no hole.
    pub count: u64,
    /// The event.
    pub content: Content<T>,
}

/// An event, or a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content<T> {
    /// One event.
    Event(T),
    /// Events that found no room.
    Gap {
        /// How many; never zero.
        missed: u64,
    },
}

/// Whether an event found room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// It waits for its subscriber.
    Kept,
    /// One event was dropped for want of room: this one or the oldest.
    Dropped {
        /// Whether the one before it was kept, so that a log needs one line for many drops.
        first: bool,
    },
}

/// Events in a row that were dropped.
#[derive(Debug, Clone, Copy, Default)]
struct Missed {
    events: u64,
    last_sequence: u64,
}

impl Missed {
    fn add(&mut self, sequence: u64) {
        self.events += 1;
        self.last_sequence = sequence;
    }
}

#[derive(Debug)]
struct Waiting<T> {
    /// What was dropped between the one before and this.
    before: Missed,
    sequence: u64,
    item: T,
}

/// The bounded queue of one subscriber. Its memory is taken once: neither offering nor taking allocates.
#[derive(Debug)]
pub struct EventQueue<T> {
    waiting: VecDeque<Waiting<T>>,
    /// What was dropped after the last that waits.
    behind: Missed,
    capacity: usize,
    strategy: OverflowStrategy,
    count: u64,
}

impl<T> EventQueue<T> {
    /// An empty queue for `capacity` events, at least one.
    #[must_use]
    pub fn new(capacity: usize, strategy: OverflowStrategy) -> Self {
        let capacity = capacity.max(1);
        Self {
            waiting: VecDeque::with_capacity(capacity),
            behind: Missed::default(),
            capacity,
            strategy,
            count: 0,
        }
    }

    /// Events that fit.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// What it does when it is full.
    #[must_use]
    pub const fn strategy(&self) -> OverflowStrategy {
        self.strategy
    }

    /// Whether one more event fits.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.waiting.len() < self.capacity
    }

    /// Whether there is nothing to read, not even a gap.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.behind.events == 0
    }

    /// Takes an event in; without room, the strategy decides which one is dropped.
    pub fn offer(&mut self, sequence: u64, item: T) -> Offered {
        if self.has_room() {
            let before = core::mem::take(&mut self.behind);
            self.waiting.push_back(Waiting { before, sequence, item });
            return Offered::Kept;
        }
        if self.strategy != OverflowStrategy::DropOldest {
            let first = self.behind.events == 0;
            self.behind.add(sequence);
            return Offered::Dropped { first };
        }
        let oldest = self.waiting.pop_front();
        self.waiting.push_back(Waiting { before: Missed::default(), sequence, item });
        let mut first = true;
        if let (Some(oldest), Some(front)) = (oldest, self.waiting.front_mut()) {
            let mut missed = oldest.before;
            first = missed.events == 0;
            missed.add(oldest.sequence);
            front.before.events += missed.events;
            front.before.last_sequence = front.before.last_sequence.max(missed.last_sequence);
        }
        Offered::Dropped { first }
    }

    /// Counts an event that could not be told at all, such as one that is too large.
    pub fn miss(&mut self, sequence: u64) {
        self.behind.add(sequence);
    }

    /// The next event, or the gap before it.
    pub fn take(&mut self) -> Option<Delivery<T>> {
        let gap = match self.waiting.front_mut() {
            Some(front) => &mut front.before,
            None => &mut self.behind,
        };
        if gap.events > 0 {
            let Missed { events, last_sequence } = core::mem::take(gap);
            self.count += events;
            let content = Content::Gap { missed: events };
            return Some(Delivery { sequence: last_sequence, count: self.count, content });
        }
        let next = self.waiting.pop_front()?;
        self.count += 1;
        Some(Delivery { sequence: next.sequence, count: self.count, content: Content::Event(next.item) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// What is read: the numbers of events, and of gaps how many are missing.
    #[derive(Debug, PartialEq, Eq)]
    enum Read {
        Event(u64),
        Gap(u64),
    }

    fn drain(queue: &mut EventQueue<u64>) -> Vec<Read> {
        core::iter::from_fn(|| queue.take())
            .map(|delivery| match delivery.content {
                Content::Event(item) => Read::Event(item),
                Content::Gap { missed } => Read::Gap(missed),
            })
            .collect()
    }

    #[test]
    fn twenty_events_into_a_queue_of_eight_leave_exactly_these() {
        let newest: Vec<Read> = (1..=8).map(Read::Event).chain([Read::Gap(12)]).collect();
        let oldest: Vec<Read> = [Read::Gap(12)].into_iter().chain((13..=20).map(Read::Event)).collect();
        let table = [
            (OverflowStrategy::Block, &newest),
            (OverflowStrategy::DropNewest, &newest),
            (OverflowStrategy::DropOldest, &oldest),
            (OverflowStrategy::DropAndLog, &newest),
        ];
        for (strategy, wanted) in table {
            let mut queue = EventQueue::new(8, strategy);
            for sequence in 1..=20 {
                queue.offer(sequence, sequence);
            }
            assert_eq!(&drain(&mut queue), wanted, "{strategy}");
            assert!(queue.is_empty());
        }
    }

    #[test]
    fn a_gap_stands_where_its_events_are_missing() {
        let mut queue = EventQueue::new(2, OverflowStrategy::DropNewest);
        for sequence in 1..=4 {
            queue.offer(sequence, sequence);
        }
        assert_eq!(queue.take().unwrap().content, Content::Event(1));
        assert_eq!(queue.offer(5, 5), Offered::Kept);
        assert_eq!(drain(&mut queue), [Read::Event(2), Read::Gap(2), Read::Event(5)]);
    }

    #[test]
    fn only_the_first_drop_of_many_is_worth_a_line() {
        for strategy in OverflowStrategy::ALL {
            let mut queue = EventQueue::new(1, *strategy);
            let offered: Vec<Offered> = (1..=3).map(|sequence| queue.offer(sequence, ())).collect();
            let dropped = |first| Offered::Dropped { first };
            assert_eq!(offered, [Offered::Kept, dropped(true), dropped(false)], "{strategy}");
        }
    }

    #[test]
    fn an_event_that_cannot_be_told_is_a_gap_where_it_would_have_stood() {
        let mut queue = EventQueue::new(4, OverflowStrategy::DropOldest);
        queue.offer(1, 1);
        queue.miss(2);
        queue.offer(3, 3);
        assert_eq!(drain(&mut queue), [Read::Event(1), Read::Gap(1), Read::Event(3)]);
    }

    proptest! {
        #[test]
        fn what_is_delivered_and_what_is_in_gaps_is_all_that_was_published_in_order(
            capacity in 1..6usize, strategy in prop::sample::select(OverflowStrategy::ALL),
            steps in prop::collection::vec(any::<bool>(), 0..80),
        ) {
            let mut queue = EventQueue::new(capacity, strategy);
            let (mut published, mut accounted) = (0_u64, 0_u64);
            let mut check = |delivery: Delivery<u64>| {
                let before = accounted;
                accounted += match delivery.content {
                    Content::Event(item) => { assert_eq!(item, delivery.sequence); 1 }
                    Content::Gap { missed } => missed,
                };
                assert!(accounted > before);
                assert_eq!((delivery.sequence, delivery.count), (accounted, accounted));
            };
            for publishes in steps {
                if publishes {
                    published += 1;
                    queue.offer(published, published);
                } else if let Some(delivery) = queue.take() {
                    check(delivery);
                }
                prop_assert!(queue.waiting.len() <= capacity);
            }
            while let Some(delivery) = queue.take() {
                check(delivery);
            }
            prop_assert_eq!(accounted, published);
        }
    }
}
