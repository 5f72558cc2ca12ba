//! The events of one application, on their way to the daemon: what it tells is put into bounded queues, and never
//! holds it up.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pcp_core::{Content, ErrorCode, EventQueue, OverflowStrategy, PcpError, PcpServer};
use pcp_stream::FrameWriteHalf;
use tokio::sync::Notify;

use super::QueueOn as _;
use crate::embedded::Json;
use crate::error::Error;
use crate::payload::Tag;
use crate::payloads::{DeliveryMode, MAX_TOPIC_BYTES, PushEvent, SubscribeEvents, SubscriptionAck};

/// Events that wait for the daemon unless it asks for another number.
pub const DEFAULT_APP_QUEUE_EVENTS: usize = 256;
/// Largest queue of one subscription, in events.
pub const MAX_APP_QUEUE_EVENTS: usize = 1024;
/// Longest data of one event in bytes: it says what happened, and the state itself is asked for. A full queue of them
/// is 16 MiB.
pub const MAX_APP_EVENT_BYTES: usize = 16 * 1024;
/// Topics that an application is asked for in its life: each is one sink that it keeps.
pub const MAX_APP_TOPICS: usize = 64;
/// Subscriptions of one connection to an application: the daemon needs one.
pub const MAX_APP_SUBSCRIPTIONS: usize = 8;
/// Events that are written before the connection looks at requests again.
const EVENTS_AT_ONCE: usize = 64;

/// One event as the application told it.
#[derive(Debug)]
struct AppEvent {
    topic: String,
    data: String,
}

#[derive(Debug)]
struct Subscribed {
    id: u64,
    connection: u64,
    /// Which topics; none means all.
    topics: Vec<String>,
    queue: EventQueue<Arc<AppEvent>>,
    ready: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    sequence: u64,
    last_id: u64,
    last_connection: u64,
    subscriptions: Vec<Subscribed>,
}

/// Where an application's events come together. It is asked for each topic once, however often the daemon subscribes.
#[derive(Debug, Default)]
pub(super) struct AppEvents {
    state: Mutex<State>,
    /// What the application was asked for; `None` stands for everything it has. Locked while it is asked.
    asked: Mutex<BTreeSet<Option<String>>>,
}

impl AppEvents {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event that the application told its sink for `asked`.
    fn tell(&self, asked: Option<&str>, topic: &str, data: &str) {
        if asked.is_some_and(|asked| asked != topic) {
            return;
        }
        let mut state = self.state();
        state.sequence += 1;
        let sequence = state.sequence;
        let mut event = None;
        for subscribed in &mut state.subscriptions {
            let wants = match asked {
                None => subscribed.topics.is_empty(),
                Some(asked) => subscribed.topics.iter().any(|topic| topic == asked),
            };
            if !wants {
                continue;
            }
            match event.get_or_insert_with(|| AppEvent::of(topic, data)) {
                Some(event) => drop(subscribed.queue.offer(sequence, Arc::clone(event))),
                None => subscribed.queue.miss(sequence),
            }
            subscribed.ready.notify_one();
        }
    }

    /// Asks the application for what it was not asked for yet.
    fn ask(self: &Arc<Self>, topics: &[String], app: &dyn PcpServer) -> Result<(), Error> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let keys: Vec<Option<String>> =
            if topics.is_empty() { vec![None] } else { topics.iter().cloned().map(Some).collect() };
        for key in keys {
            if asked.contains(&key) {
                continue;
            }
            if asked.len() >= MAX_APP_TOPICS {
                return Err(limit_reached(format!(
                    "this application was asked for {MAX_APP_TOPICS} topics, the limit"
                )));
            }
            let events = Arc::clone(self);
            let wanted = key.clone();
            let sink = move |topic: &str, data: &str| events.tell(wanted.as_deref(), topic, data);
            app.subscribe_events(key.as_slice(), Box::new(sink)).map_err(Error::refused)?;
            asked.insert(key);
        }
        Ok(())
    }
}

impl AppEvent {
    /// `None` when it cannot be told: its topic or its data is too long, or the data is no JSON.
    fn of(topic: &str, data: &str) -> Option<Arc<Self>> {
        let fits = topic.len() <= MAX_TOPIC_BYTES && data.len() <= MAX_APP_EVENT_BYTES;
        let data = Json::parse(data).ok().filter(|_| fits)?;
        Some(Arc::new(Self { topic: topic.to_owned(), data: data.as_str().to_owned() }))
    }
}

/// The subscriptions of one connection. They end with it.
#[derive(Debug)]
pub(super) struct ConnectionEvents {
    events: Arc<AppEvents>,
    connection: u64,
    ready: Arc<Notify>,
}

impl ConnectionEvents {
    pub(super) fn new(events: Arc<AppEvents>) -> Self {
        let connection = {
            let mut state = events.state();
            state.last_connection += 1;
            state.last_connection
        };
        Self { events, connection, ready: Arc::default() }
    }

    /// Begins a subscription: what the application tells from now on is delivered.
    pub(super) fn subscribe(
        &self,
        request: &SubscribeEvents<'_>,
        app: &dyn PcpServer,
    ) -> Result<SubscriptionAck, Error> {
        let queue = check(request)?;
        let topics: Vec<String> = request.topics.iter().map(ToString::to_string).collect();
        let ack = {
            let mut state = self.events.state();
            let open = state.subscriptions.iter().filter(|known| known.connection == self.connection).count();
            if open >= MAX_APP_SUBSCRIPTIONS {
                let message =
                    format!("this connection holds {MAX_APP_SUBSCRIPTIONS} subscriptions, the limit");
                return Err(limit_reached(message));
            }
            state.last_id += 1;
            let id = state.last_id;
            let queue = EventQueue::new(queue, request.overflow());
            let (connection, topics, ready) = (self.connection, topics.clone(), Arc::clone(&self.ready));
            state.subscriptions.push(Subscribed { id, connection, topics, queue, ready });
            SubscriptionAck { tag: Tag, subscription_id: id, sequence: state.sequence }
        };
        // Asked after the subscription is there, so that what the application tells at once is not lost.
        self.events.ask(&topics, app).inspect_err(|_| {
            self.events.state().subscriptions.retain(|known| known.id != ack.subscription_id);
        })?;
        Ok(ack)
    }

    /// Ready when there may be something to deliver.
    pub(super) async fn ready(&self) {
        self.ready.notified().await;
    }

    /// Queues what waits on the connection, in its order, and no more than some at once.
    pub(super) fn queue_on(&self, writer: &mut FrameWriteHalf) -> Result<(), Error> {
        for _ in 0..EVENTS_AT_ONCE {
            let mut state = self.events.state();
            let next = state
                .subscriptions
                .iter_mut()
                .filter(|known| known.connection == self.connection)
                .find_map(|known| known.queue.take().map(|delivery| (known.id, delivery)));
            drop(state);
            let Some((id, delivery)) = next else { return Ok(()) };
            let (sequence, count) = (delivery.sequence, delivery.count);
            match &delivery.content {
                Content::Event(event) => {
                    let data = Json::from_checked(&event.data);
                    PushEvent::event(id, sequence, count, event.topic.as_str(), data).queue_on(writer)?;
                }
                Content::Gap { missed } => PushEvent::gap(id, sequence, count, *missed).queue_on(writer)?,
            }
        }
        // There may be more.
        self.ready.notify_one();
        Ok(())
    }
}

impl Drop for ConnectionEvents {
    fn drop(&mut self) {
        self.events.state().subscriptions.retain(|known| known.connection != self.connection);
    }
}

fn limit_reached(message: String) -> Error {
    Error::refused(PcpError::new(ErrorCode::LimitReached, message))
}

/// What means nothing towards an application is refused and not passed over. Gives the size of the queue.
fn check(request: &SubscribeEvents<'_>) -> Result<usize, Error> {
    if request.app.is_some() || request.domain.is_some() {
        return Err(Error::value(
            "app",
            "an application has events of its own alone; leave app and domain out",
        ));
    }
    if request.from.is_some() || request.delivery() == DeliveryMode::Polled {
        return Err(Error::unsupported(
            "from",
            "an application delivers events as they happen and keeps none",
        ));
    }
    if request.overflow() == OverflowStrategy::Block {
        return Err(Error::unsupported(
            "overflow",
            "nobody holds up an application; ask for another strategy",
        ));
    }
    let queue = request.queue().unwrap_or(DEFAULT_APP_QUEUE_EVENTS);
    if (1..=MAX_APP_QUEUE_EVENTS).contains(&queue) {
        Ok(queue)
    } else {
        Err(Error::value("queue", format!("{queue} events are outside 1 to {MAX_APP_QUEUE_EVENTS}")))
    }
}
