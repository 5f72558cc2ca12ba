//! What subscribers of a bus read: numbers, gaps, limits, and who waits for whom.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::future::{pending, ready};
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use pcp_core::{
    AppId, CapabilityId, Content, Delivery, DetectionMethod, Domain, Event, EventBus, EventFilter,
    EventStream, EventTopic, Subscribe, Subscriber,
};
use pcp_push::{
    DEFAULT_QUEUE_EVENTS, Error, MAX_QUEUE_EVENTS, MAX_QUEUED_EVENTS, MAX_QUEUED_EVENTS_PER_UID,
    MAX_SUBSCRIPTIONS, MAX_SUBSCRIPTIONS_PER_CONNECTION, OverflowStrategy, PushEventBus, Subscription,
};
use proptest::prelude::*;

fn event(number: u64) -> Arc<Event> {
    Arc::new(Event::DetectionCompleted { apps: number, capabilities: 0, duration_ms: 0 })
}

fn added(app: &str) -> Arc<Event> {
    Arc::new(Event::AppAdded { app_id: AppId::parse(app).unwrap(), method: DetectionMethod::Desktop })
}

fn all() -> EventFilter {
    EventFilter::reached_by(Domain::System)
}

fn wanted(connection: u64, queue: usize, overflow: OverflowStrategy) -> Subscribe {
    Subscribe { subscriber: Subscriber { connection, uid: 7 }, filter: all(), queue: Some(queue), overflow }
}

/// What is read: the numbers of events, and of gaps how many are missing and the number of the last.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Read {
    Event(u64),
    Gap(u64, u64),
}

fn read(delivery: &Delivery<Arc<Event>>) -> Read {
    match delivery.content {
        Content::Event(_) => Read::Event(delivery.sequence),
        Content::Gap { missed } => Read::Gap(missed, delivery.sequence),
    }
}

fn drain(subscription: &mut Subscription) -> Vec<Read> {
    std::iter::from_fn(|| subscription.try_next()).map(|delivery| read(&delivery)).collect()
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn what_nobody_can_hear_is_numbered_and_no_event_is_made_of_it() {
    let bus = PushEventBus::new();
    assert!(bus.pass_over(3));
    let mut subscription = bus.subscribe(wanted(1, 8, OverflowStrategy::DropOldest)).unwrap();
    assert_eq!(subscription.begins_after(), 3);

    assert!(!bus.pass_over(5), "somebody would miss them");
    bus.publish(event(1));

    assert_eq!(drain(&mut subscription), [Read::Event(4)]);
}

#[test]
fn twenty_events_to_a_slow_reader_with_a_queue_of_eight_survive_by_their_strategy() {
    let first_eight: Vec<Read> = (1..=8).map(Read::Event).chain([Read::Gap(12, 20)]).collect();
    let last_eight: Vec<Read> = [Read::Gap(12, 12)].into_iter().chain((13..=20).map(Read::Event)).collect();
    let table = [
        (OverflowStrategy::DropNewest, first_eight.clone()),
        (OverflowStrategy::DropOldest, last_eight),
        (OverflowStrategy::DropAndLog, first_eight.clone()),
        // For a publisher that cannot wait; the one that can is below.
        (OverflowStrategy::Block, first_eight),
    ];
    for (strategy, survive) in table {
        let bus = PushEventBus::new();
        let mut subscription = bus.subscribe(wanted(0, 8, strategy)).unwrap();
        for number in 1..=20 {
            assert_eq!(bus.publish(event(number)), number);
        }
        assert_eq!(drain(&mut subscription), survive, "{strategy}");
    }
}

#[test]
fn a_publisher_that_waits_for_a_blocking_subscription_loses_none_of_twenty_events() {
    let bus = PushEventBus::new();
    let mut subscription = bus.subscribe(wanted(0, 8, OverflowStrategy::Block)).unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let mut publisher = pin!(async {
        for number in 1..=20 {
            bus.publish_within(event(number), pending()).await;
        }
    });
    let mut survived = Vec::new();
    let mut waits = 0;
    while publisher.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        waits += 1;
        assert_eq!(bus.sequence(), survived.len() as u64 + 8, "it waits when the queue is full");
        survived.push(read(&subscription.try_next().unwrap()));
        assert_eq!(woken.times(), waits, "room wakes it");
    }
    survived.extend(drain(&mut subscription));

    assert_eq!(survived, (1..=20).map(Read::Event).collect::<Vec<_>>());
    assert_eq!(waits, 12);
}

#[test]
fn a_blocking_subscription_holds_up_nobody_but_who_waits_for_it() {
    let bus = PushEventBus::new();
    let mut slow = bus.subscribe(wanted(0, 1, OverflowStrategy::Block)).unwrap();
    let mut quick = bus.subscribe(wanted(1, 8, OverflowStrategy::DropNewest)).unwrap();
    bus.publish(event(1));
    let mut waiting = pin!(bus.publish_within(event(9), pending()));
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(waiting.as_mut().poll(cx).is_pending());

    assert_eq!(bus.publish(event(2)), 2, "another publisher goes on");
    assert_eq!(drain(&mut quick), [Read::Event(1), Read::Event(2)]);

    assert_eq!(drain(&mut slow), [Read::Event(1), Read::Gap(1, 2)]);
    assert_eq!(waiting.as_mut().poll(cx), Poll::Ready(3));
    assert_eq!(drain(&mut slow), [Read::Event(3)]);
}

#[test]
fn a_publisher_that_has_waited_long_enough_publishes_and_the_gap_is_read() {
    let bus = PushEventBus::new();
    let mut slow = bus.subscribe(wanted(0, 1, OverflowStrategy::Block)).unwrap();
    bus.publish(event(1));
    let mut publisher = pin!(bus.publish_within(event(2), ready(())));

    assert_eq!(publisher.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(2));

    assert_eq!(drain(&mut slow), [Read::Event(1), Read::Gap(1, 2)]);
}

#[test]
fn a_blocking_subscription_that_ends_or_does_not_want_the_event_lets_its_publisher_go() {
    let bus = PushEventBus::new();
    let mut asked = wanted(0, 1, OverflowStrategy::Block);
    asked.filter = all().topics([EventTopic::DetectionCompleted]);
    let slow = bus.subscribe(asked).unwrap();
    bus.publish(event(1));
    let cx = &mut Context::from_waker(Waker::noop());

    assert_eq!(pin!(bus.publish_within(added("org.x"), pending())).poll(cx), Poll::Ready(2));

    let woken = Arc::new(Woken::default());
    let mut publisher = pin!(bus.publish_within(event(3), pending()));
    assert!(publisher.as_mut().poll(&mut Context::from_waker(&Waker::from(woken.clone()))).is_pending());
    drop(slow);
    assert_eq!(woken.times(), 1);
    assert_eq!(publisher.as_mut().poll(cx), Poll::Ready(3));
}

#[test]
fn a_publisher_that_gives_up_waiting_published_nothing() {
    let bus = PushEventBus::new();
    let _slow = bus.subscribe(wanted(0, 1, OverflowStrategy::Block)).unwrap();
    bus.publish(event(1));
    {
        let mut publisher = pin!(bus.publish_within(event(2), pending()));
        assert!(publisher.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(bus.sequence(), 1);
}

#[test]
fn a_subscription_hears_of_what_comes_after_it_until_it_is_dropped() {
    let bus = PushEventBus::after(40);
    bus.publish(event(1));
    let mut subscription = bus.subscribe(wanted(0, 4, OverflowStrategy::DropOldest)).unwrap();
    let other = bus.subscribe(wanted(0, 4, OverflowStrategy::DropOldest)).unwrap();
    assert_eq!((subscription.begins_after(), bus.subscriptions()), (41, 2));
    assert!(other.id() > subscription.id());

    bus.publish(event(2));

    assert_eq!(drain(&mut subscription), [Read::Event(42)]);
    drop((subscription, other));
    assert_eq!(bus.subscriptions(), 0);
    let later = bus.subscribe(wanted(0, 4, OverflowStrategy::DropOldest)).unwrap();
    assert_eq!(later.id().get(), 3, "no id is used twice");
}

#[test]
fn an_event_wakes_the_readers_that_it_fits_and_no_others() {
    let bus = PushEventBus::new();
    let mut about_apps = wanted(0, 4, OverflowStrategy::DropOldest);
    about_apps.filter = all().app("org.*").unwrap();
    let mut fits = bus.subscribe(about_apps.clone()).unwrap();
    about_apps.filter = all().app("com.*").unwrap();
    let mut fits_not = bus.subscribe(about_apps).unwrap();
    let (one, two) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    let (one_waker, two_waker) = (Waker::from(one.clone()), Waker::from(two.clone()));
    assert!(fits.poll_next(&mut Context::from_waker(&one_waker)).is_pending());
    assert!(fits_not.poll_next(&mut Context::from_waker(&two_waker)).is_pending());

    bus.publish(added("org.x"));

    assert_eq!((one.times(), two.times()), (1, 0));
    assert!(fits.poll_next(&mut Context::from_waker(&one_waker)).is_ready());
}

#[test]
fn the_handler_of_a_polled_subscription_runs_when_it_is_polled_and_at_no_other_time() {
    let bus = PushEventBus::new();
    let heard = Mutex::new(Vec::new());
    let handler = |delivery: Delivery<Arc<Event>>| {
        // An event that is published meanwhile waits for the next poll.
        bus.publish(event(0));
        heard.lock().unwrap().push(read(&delivery));
    };
    let mut polled = bus.subscribe_with(wanted(0, 8, OverflowStrategy::DropNewest), handler).unwrap();
    bus.publish(event(1));
    bus.publish(event(2));
    assert!(heard.lock().unwrap().is_empty());

    assert_eq!(polled.poll(), 2);

    assert_eq!(*heard.lock().unwrap(), [Read::Event(1), Read::Event(2)]);
    assert_eq!(polled.poll(), 2);
    assert_eq!((polled.begins_after(), polled.id().get()), (0, 1));
}

#[test]
fn each_limit_holds_exactly() {
    let bus = PushEventBus::new();
    let strategy = OverflowStrategy::DropOldest;
    for asked in [0, MAX_QUEUE_EVENTS + 1] {
        assert_eq!(bus.subscribe(wanted(0, asked, strategy)).unwrap_err(), Error::QueueSize { asked });
    }
    let _held: Vec<_> = (0..MAX_SUBSCRIPTIONS_PER_CONNECTION)
        .map(|_| bus.subscribe(wanted(0, 1, strategy)).unwrap())
        .collect();
    assert_eq!(bus.subscribe(wanted(0, 1, strategy)).unwrap_err(), Error::ConnectionFull);

    let bus = PushEventBus::new();
    let of = |uid: u32, connection: usize, queue| Subscribe {
        subscriber: Subscriber { connection: connection as u64, uid },
        ..wanted(0, queue, strategy)
    };
    let full = MAX_QUEUED_EVENTS_PER_UID / MAX_QUEUE_EVENTS;
    let mut held: Vec<_> = (0..full).map(|n| bus.subscribe(of(7, n, MAX_QUEUE_EVENTS)).unwrap()).collect();
    let refused = Error::UserFull { uid: 7, held: MAX_QUEUED_EVENTS_PER_UID, asked: 1 };
    assert_eq!(bus.subscribe(of(7, full, 1)).unwrap_err(), refused);
    held.extend((0..full).map(|n| bus.subscribe(of(8, 1000 + n, MAX_QUEUE_EVENTS)).unwrap()));
    let refused = Error::BusFull { subscriptions: 2 * full, held: MAX_QUEUED_EVENTS };
    assert_eq!(bus.subscribe(of(9, 5000, 1)).unwrap_err(), refused);
    drop(held);

    let _held: Vec<_> = (0..MAX_SUBSCRIPTIONS).map(|n| bus.subscribe(of(7, n, 1)).unwrap()).collect();
    let refused = Error::BusFull { subscriptions: MAX_SUBSCRIPTIONS, held: MAX_SUBSCRIPTIONS };
    assert_eq!(bus.subscribe(of(7, MAX_SUBSCRIPTIONS, 1)).unwrap_err(), refused);
}

#[test]
fn who_names_no_size_gets_the_default_queue() {
    let bus = PushEventBus::new();
    let mut asked = wanted(0, 1, OverflowStrategy::DropOldest);
    asked.queue = None;
    let mut subscription = bus.subscribe(asked).unwrap();
    (0..=DEFAULT_QUEUE_EVENTS as u64).for_each(|number| {
        bus.publish(event(number));
    });
    assert_eq!(drain(&mut subscription).first(), Some(&Read::Gap(1, 1)));
}

/// What is written to the log, as text.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn many_drops_in_a_row_are_two_lines_of_the_log_and_only_where_it_was_asked_for() {
    for (strategy, lines) in [(OverflowStrategy::DropAndLog, 2), (OverflowStrategy::DropNewest, 0)] {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        tracing::subscriber::with_default(subscriber, || {
            let bus = PushEventBus::new();
            let mut subscription = bus.subscribe(wanted(0, 8, strategy)).unwrap();
            (1..=20).for_each(|number| {
                bus.publish(event(number));
            });
            drain(&mut subscription);
        });
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), lines, "{text}");
        if lines > 0 {
            assert!(text.contains("the queue of 8 events is full") && text.contains("missed=12"), "{text}");
        }
    }
}

#[test]
fn the_bus_is_used_through_the_port_of_core() {
    fn tell<B: EventBus>(bus: &B, wanted: Subscribe) -> Read {
        let mut stream = bus.subscribe(wanted).unwrap();
        bus.publish(event(1));
        let cx = &mut Context::from_waker(Waker::noop());
        assert_eq!(pin!(bus.publish_within(event(2), pending())).poll(cx), Poll::Ready(2));
        let Poll::Ready(delivery) = pin!(stream.next()).poll(cx) else { panic!("nothing came") };
        read(&delivery)
    }
    assert_eq!(tell(&PushEventBus::new(), wanted(0, 4, OverflowStrategy::DropOldest)), Read::Event(1));
}

/// One step of a history: publish about one of two applications, or let one of the subscribers read.
#[derive(Debug, Clone, Copy)]
enum Step {
    Publish(usize),
    Read(usize),
}

const APPS: [&str; 2] = ["org.a", "com.b"];

fn subscriber() -> impl Strategy<Value = (usize, OverflowStrategy, usize)> {
    (1..6_usize, prop::sample::select(OverflowStrategy::ALL), 0..3_usize)
}

proptest! {
    #[test]
    fn for_every_subscriber_what_it_reads_and_what_gaps_name_is_what_was_published_for_it(
        subscribers in prop::collection::vec(subscriber(), 1..4),
        steps in prop::collection::vec(
            prop_oneof![(0..2_usize).prop_map(Step::Publish), (0..3_usize).prop_map(Step::Read)], 0..120),
    ) {
        let bus = PushEventBus::new();
        let mut held: Vec<_> = subscribers
            .iter()
            .zip(0..)
            .map(|((queue, overflow, app), connection)| {
                let mut asked = wanted(connection, *queue, *overflow);
                if let Some(app) = APPS.get(*app) {
                    asked.filter = all().app(*app).unwrap();
                }
                bus.subscribe(asked).unwrap()
            })
            .collect();
        let mut published = Vec::new();
        let mut heard: Vec<Vec<Delivery<Arc<Event>>>> = vec![Vec::new(); held.len()];
        for step in steps {
            match step {
                Step::Publish(app) => {
                    prop_assert_eq!(bus.publish(added(APPS[app])), published.len() as u64 + 1);
                    published.push(app);
                }
                Step::Read(at) => if let Some(subscription) = held.get_mut(at) {
                    heard[at].extend(subscription.try_next());
                }
            }
        }
        for ((subscription, heard), (_, _, app)) in held.iter_mut().zip(&mut heard).zip(&subscribers) {
            heard.extend(std::iter::from_fn(|| subscription.try_next()));
            let fits = |published: &usize| APPS.get(*app).is_none() || published == app;
            let mut meant = published.iter().zip(1_u64..).filter(|(app, _)| fits(app)).map(|(_, sequence)| sequence);
            let mut count = 0;
            for delivery in heard {
                let events = match &delivery.content {
                    Content::Event(_) => 1,
                    Content::Gap { missed } => *missed,
                };
                count += events;
                let last = (0..events).map(|_| meant.next().unwrap()).last();
                prop_assert_eq!((Some(delivery.sequence), delivery.count), (last, count));
            }
            prop_assert_eq!(meant.next(), None);
        }
    }
}

#[test]
fn a_capability_behind_the_wall_of_a_subscriber_is_neither_heard_of_nor_counted() {
    let bus = PushEventBus::new();
    let mut asked = wanted(0, 4, OverflowStrategy::DropOldest);
    asked.filter = EventFilter::reached_by(Domain::App);
    let mut subscription = bus.subscribe(asked).unwrap();
    let id = CapabilityId::parse("system.power.shutdown").unwrap();
    bus.publish(Arc::new(Event::CapabilityRegistered { id, app_id: AppId::parse("power").unwrap() }));
    bus.publish(event(2));

    let delivery = subscription.try_next().unwrap();

    assert_eq!((delivery.sequence, delivery.count), (2, 1));
}
