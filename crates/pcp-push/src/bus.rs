//! The bus: numbers an event and puts it into every queue that it fits.

use core::future::poll_fn;
use core::pin::pin;
use core::task::{Context, Poll, Waker};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pcp_core::{Content, Delivery, Event, EventBus, EventFilter, EventQueue, Subscribe, Subscriber};

use crate::error::Error;
use crate::overflow::{DropNotice, WaitingPublishers, holds_up, write_total};
use crate::subscription::{PolledSubscription, Subscription, SubscriptionId};

/// Events that wait for a subscriber unless it asks for another number: a scan of a few hundred applications passes
/// while a subscriber is busy for a moment.
pub const DEFAULT_QUEUE_EVENTS: usize = 256;
/// Largest queue of one subscription, in events: a full scan's worth.
pub const MAX_QUEUE_EVENTS: usize = 1024;
/// Subscriptions of one connection: a program has a few views, not dozens.
pub const MAX_SUBSCRIPTIONS_PER_CONNECTION: usize = 8;
/// Subscriptions in all: as many as connections. Each costs every publisher one filter.
pub const MAX_SUBSCRIPTIONS: usize = 1024;
/// Events that the queues of all subscriptions together hold room for: 5 MiB of queue, and the events in them.
pub const MAX_QUEUED_EVENTS: usize = 131_072;
/// Events that the queues of one user's subscriptions hold room for: half of all, so that nobody keeps the others out.
pub const MAX_QUEUED_EVENTS_PER_UID: usize = MAX_QUEUED_EVENTS / 2;

/// The bus of one daemon. A clone is the same bus.
///
/// A waker only marks its task as ready, as those of an executor do: it is called while the bus is locked and must not
/// call back into it.
#[derive(Debug, Clone, Default)]
pub struct PushEventBus {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the last event.
    sequence: u64,
    /// The id of the last subscription; none is used twice.
    last_id: u64,
    /// By id, ascending.
    subscriptions: Vec<Entry>,
    publishers: WaitingPublishers,
}

#[derive(Debug)]
struct Entry {
    id: SubscriptionId,
    subscriber: Subscriber,
    filter: EventFilter,
    queue: EventQueue<Arc<Event>>,
    /// Whoever waits for the next event.
    reader: Option<Waker>,
}

impl PushEventBus {
    /// A bus without subscriptions whose first event has number 1.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A bus whose first event comes after `sequence`, such as the last one that a journal kept.
    #[must_use]
    pub fn after(sequence: u64) -> Self {
        let bus = Self::default();
        bus.lock().sequence = sequence;
        bus
    }

    /// The number of the last event; 0 before the first.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.lock().sequence
    }

    /// Subscriptions that are open.
    #[must_use]
    pub fn subscriptions(&self) -> usize {
        self.lock().subscriptions.len()
    }

    /// Hands the event to every subscription that it fits and gives its number. Never waits; a blocking subscription
    /// without room reads a gap.
    pub fn publish(&self, event: Arc<Event>) -> u64 {
        let (sequence, notices) = self.lock().publish(&event);
        notices.into_iter().for_each(DropNotice::write);
        sequence
    }

    /// Numbers `count` events that nobody can hear, as long as there is no subscription; says whether it did. A start
    /// registers thousands of things before anybody can subscribe, and makes no event of each.
    pub fn pass_over(&self, count: u64) -> bool {
        let mut state = self.lock();
        let is_unheard = state.subscriptions.is_empty();
        if is_unheard {
            state.sequence += count;
        }
        is_unheard
    }

    /// Waits until every blocking subscription that the event fits has room, or until `limit` is ready; then publishes.
    /// Dropped before it is ready, it publishes nothing.
    pub async fn publish_within(&self, event: Arc<Event>, limit: impl Future<Output = ()>) -> u64 {
        let mut limit = pin!(limit);
        let (sequence, notices) = poll_fn(|cx| {
            let gives_up = limit.as_mut().poll(cx).is_ready();
            let mut state = self.lock();
            if !gives_up && state.holds_up(&event) {
                state.publishers.add(cx.waker());
                return Poll::Pending;
            }
            Poll::Ready(state.publish(&event))
        })
        .await;
        notices.into_iter().for_each(DropNotice::write);
        sequence
    }

    /// Hears of events from now on, as they happen (R-151, v2).
    ///
    /// # Errors
    /// [`Error`] names the limit that is reached.
    pub fn subscribe(&self, wanted: Subscribe) -> Result<Subscription, Error> {
        let (id, begins_after) = self.lock().add(wanted)?;
        Ok(Subscription::new(self.clone(), id, begins_after))
    }

    /// Hears of events whenever the subscription is polled, which is when `handler` runs (R-151, v1).
    ///
    /// # Errors
    /// As [`Self::subscribe`].
    pub fn subscribe_with<H>(&self, wanted: Subscribe, handler: H) -> Result<PolledSubscription<H>, Error>
    where
        H: FnMut(Delivery<Arc<Event>>),
    {
        Ok(PolledSubscription::new(self.subscribe(wanted)?, handler))
    }

    pub(crate) fn take(&self, id: SubscriptionId) -> Option<Delivery<Arc<Event>>> {
        let (taken, logs) = self.lock().take(id);
        if let Some(Delivery { sequence, content: Content::Gap { missed }, .. }) = &taken
            && logs
        {
            write_total(id, *missed, *sequence);
        }
        taken
    }

    pub(crate) fn poll_take(&self, id: SubscriptionId, cx: &mut Context<'_>) -> Poll<Delivery<Arc<Event>>> {
        // Noted before the queue is looked at, so that what comes in between wakes the reader.
        if let Some(entry) = self.lock().entry(id) {
            match &mut entry.reader {
                Some(reader) => reader.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
        }
        self.take(id).map_or(Poll::Pending, Poll::Ready)
    }

    pub(crate) fn remove(&self, id: SubscriptionId) {
        let removed = self.lock().remove(id);
        // What waited in its queue is let go without the lock.
        drop(removed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn holds_up(&self, event: &Event) -> bool {
        self.subscriptions.iter().any(|entry| holds_up(&entry.queue) && entry.filter.matches(event))
    }

    fn publish(&mut self, event: &Arc<Event>) -> (u64, Vec<DropNotice>) {
        self.sequence += 1;
        let sequence = self.sequence;
        // Takes memory only when there is something to write.
        let mut notices = Vec::new();
        for entry in &mut self.subscriptions {
            if entry.filter.matches(event) {
                let offered = entry.queue.offer(sequence, Arc::clone(event));
                notices.extend(DropNotice::of(entry.id, sequence, &entry.queue, offered));
                if let Some(reader) = &entry.reader {
                    reader.wake_by_ref();
                }
            }
        }
        (sequence, notices)
    }

    fn add(&mut self, wanted: Subscribe) -> Result<(SubscriptionId, u64), Error> {
        let asked = wanted.queue.unwrap_or(DEFAULT_QUEUE_EVENTS);
        if !(1..=MAX_QUEUE_EVENTS).contains(&asked) {
            return Err(Error::QueueSize { asked });
        }
        let Subscriber { connection, uid } = wanted.subscriber;
        let of_connection =
            self.subscriptions.iter().filter(|entry| entry.subscriber.connection == connection);
        if of_connection.count() >= MAX_SUBSCRIPTIONS_PER_CONNECTION {
            return Err(Error::ConnectionFull);
        }
        let room = |entry: &Entry| entry.queue.capacity();
        let held = self.subscriptions.iter().filter(|entry| entry.subscriber.uid == uid).map(room).sum();
        if held + asked > MAX_QUEUED_EVENTS_PER_UID {
            return Err(Error::UserFull { uid, held, asked });
        }
        let held: usize = self.subscriptions.iter().map(room).sum();
        let subscriptions = self.subscriptions.len();
        if subscriptions >= MAX_SUBSCRIPTIONS || held + asked > MAX_QUEUED_EVENTS {
            return Err(Error::BusFull { subscriptions, held });
        }
        self.last_id += 1;
        let id = SubscriptionId::new(self.last_id);
        let queue = EventQueue::new(asked, wanted.overflow);
        self.subscriptions.push(Entry {
            id,
            subscriber: wanted.subscriber,
            filter: wanted.filter,
            queue,
            reader: None,
        });
        Ok((id, self.sequence))
    }

    fn position(&self, id: SubscriptionId) -> Option<usize> {
        self.subscriptions.binary_search_by_key(&id, |entry| entry.id).ok()
    }

    fn entry(&mut self, id: SubscriptionId) -> Option<&mut Entry> {
        let at = self.position(id)?;
        self.subscriptions.get_mut(at)
    }

    /// The next delivery, and whether a gap is worth a line.
    fn take(&mut self, id: SubscriptionId) -> (Option<Delivery<Arc<Event>>>, bool) {
        let Some(entry) = self.entry(id) else { return (None, false) };
        let made_room = holds_up(&entry.queue);
        let taken = entry.queue.take();
        let logs = entry.queue.strategy() == pcp_core::OverflowStrategy::DropAndLog;
        if made_room && !holds_up(&entry.queue) {
            self.publishers.wake();
        }
        (taken, logs)
    }

    fn remove(&mut self, id: SubscriptionId) -> Option<Entry> {
        let at = self.position(id)?;
        let removed = self.subscriptions.remove(at);
        self.publishers.wake();
        Some(removed)
    }
}

impl EventBus for PushEventBus {
    type Stream = Subscription;
    type Error = Error;

    fn publish(&self, event: Arc<Event>) -> u64 {
        Self::publish(self, event)
    }

    fn publish_within(
        &self,
        event: Arc<Event>,
        limit: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = u64> + Send {
        Self::publish_within(self, event, limit)
    }

    fn subscribe(&self, wanted: Subscribe) -> Result<Subscription, Error> {
        Self::subscribe(self, wanted)
    }
}
