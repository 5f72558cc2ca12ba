//! An application's events on their way to the daemon, between the replies (R-140, R-143).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use pcp_core::{
    AppId, BoxFuture, CapabilityId, CapabilityResult, Domain, ErrorCode, EventSink, InvocationContext,
    OverflowStrategy, PcpError, PcpServer,
};
use pcp_ipc::payloads::{DeliveryMode, PushEvent, SubscribeEvents, SubscriptionAck};
use pcp_ipc::{
    AppClient, MAX_APP_EVENT_BYTES, MAX_APP_QUEUE_EVENTS, MAX_APP_SUBSCRIPTIONS, MAX_APP_TOPICS,
    Payload as _, PcpServerRunner, read_payload,
};
use pcp_stream::{Connection, StreamMessageType};

/// An application that tells what a test tells it.
struct Teller {
    id: AppId,
    sinks: Mutex<Vec<(Vec<String>, EventSink)>>,
}

impl Teller {
    /// Tells an event to every sink that asked for it, as an application does.
    fn tell(&self, topic: &str, data: &str) {
        for (topics, sink) in &*self.sinks.lock().unwrap() {
            if topics.is_empty() || topics.iter().any(|known| known == topic) {
                sink(topic, data);
            }
        }
    }

    fn asked(&self) -> Vec<Vec<String>> {
        self.sinks.lock().unwrap().iter().map(|(topics, _)| topics.clone()).collect()
    }
}

impl PcpServer for Teller {
    fn app_id(&self) -> &AppId {
        &self.id
    }

    fn manifest(&self) -> &str {
        "{}"
    }

    fn invoke<'a>(
        &'a self,
        _: &'a CapabilityId,
        _: &'a InvocationContext,
        _: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(async { CapabilityResult::ok("null") })
    }

    fn subscribe_events(&self, topics: &[String], sink: EventSink) -> Result<(), PcpError> {
        if topics.iter().any(|topic| topic == "secret") {
            return Err(PcpError::new(ErrorCode::PermissionDenied, "no events of that"));
        }
        if topics.iter().any(|topic| topic == "hasty") {
            sink("hasty", "1");
        }
        self.sinks.lock().unwrap().push((topics.to_vec(), sink));
        Ok(())
    }
}

struct Running {
    app: Arc<Teller>,
    path: PathBuf,
    _dir: tempfile::TempDir,
}

fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

fn serve() -> Running {
    let dir = tempfile::tempdir().unwrap();
    let app = Arc::new(Teller { id: AppId::parse("org.x.teller").unwrap(), sinks: Mutex::default() });
    let runner = PcpServerRunner::bind(dir.path(), app.clone(), own_uid()).unwrap();
    let path = runner.path().to_owned();
    tokio::spawn(runner.run());
    Running { app, path, _dir: dir }
}

fn to(topics: &[&'static str]) -> SubscribeEvents<'static> {
    SubscribeEvents { topics: topics.iter().map(|topic| (*topic).into()).collect(), ..Default::default() }
}

/// Sends a subscription over a raw connection and gives its answer.
async fn subscribe(
    connection: &mut Connection,
    request: &SubscribeEvents<'_>,
) -> Result<SubscriptionAck, String> {
    connection.writer.queue(SubscribeEvents::TYPE, |out| request.write(out)).unwrap();
    connection.writer.flush().await.unwrap();
    let frame = connection.reader.next().await.unwrap().unwrap();
    read_payload(frame.payload).map_err(|_| String::from_utf8(frame.payload.to_vec()).unwrap())
}

async fn connect(running: &Running) -> Connection {
    Connection::connect(&running.path, own_uid()).await.unwrap()
}

#[tokio::test]
async fn what_an_application_tells_arrives_at_whoever_subscribed_to_it() {
    let running = serve();
    let client = |topics: &'static [&str]| AppClient::new(&running.path, own_uid()).subscribe_to(topics);
    let mut notes = client(&["note"]).await;
    let mut both = client(&["note", "list"]).await;
    let mut all = client(&[]).await;

    running.app.tell("note", r#"{"id":1}"#);
    running.app.tell("list", "[2]");

    for (stream, wanted) in [
        (&mut notes, vec![("note", r#"{"id":1}"#)]),
        (&mut both, vec![("note", r#"{"id":1}"#), ("list", "[2]")]),
    ] {
        for (topic, data) in wanted {
            let event = stream.next().await.unwrap().unwrap();
            assert_eq!((event.topic.as_deref(), event.data_json.unwrap().as_str()), (Some(topic), data));
        }
    }
    let id = all.ack().subscription_id;
    for (topic, count) in [("note", 1), ("list", 2)] {
        let event = all.next().await.unwrap().unwrap();
        assert_eq!((event.topic.as_deref(), event.count, event.subscription_id), (Some(topic), count, id));
    }
}

trait SubscribeTo {
    async fn subscribe_to(self, topics: &[&'static str]) -> pcp_ipc::AppEventStream;
}

impl SubscribeTo for AppClient {
    async fn subscribe_to(self, topics: &[&'static str]) -> pcp_ipc::AppEventStream {
        self.subscribe(&to(topics)).await.unwrap()
    }
}

#[tokio::test]
async fn an_application_is_asked_for_each_topic_once_however_often_the_daemon_comes_back() {
    let running = serve();
    for _ in 0..3 {
        let mut connection = connect(&running).await;
        subscribe(&mut connection, &to(&["note"])).await.unwrap();
        subscribe(&mut connection, &to(&[])).await.unwrap();
    }
    assert_eq!(running.app.asked(), [vec!["note".to_owned()], vec![]]);
}

#[tokio::test]
async fn an_event_that_is_told_while_the_application_is_asked_comes_after_the_acknowledgement() {
    let running = serve();
    let mut connection = connect(&running).await;
    let ack = subscribe(&mut connection, &to(&["hasty"])).await.unwrap();

    let frame = connection.reader.next().await.unwrap().unwrap();

    let event = PushEvent::read(frame.payload).unwrap();
    assert_eq!((event.subscription_id, event.sequence), (ack.subscription_id, ack.sequence + 1));
}

#[tokio::test]
async fn ten_thousand_events_keep_their_order_between_the_replies_and_every_drop_is_a_gap() {
    const EVENTS: u64 = 10_000;
    let running = serve();
    let mut connection = connect(&running).await;
    let mut request = to(&["tick"]);
    request.queue = Some(64);
    subscribe(&mut connection, &request).await.unwrap();
    let (mut replies, mut count, mut sequence) = (0, 0, 0);
    let mut told = 0;

    while count < EVENTS {
        if told < EVENTS {
            let question = br#"{"type":"query_state","topic":"x"}"#;
            connection.writer.send(StreamMessageType::QueryState, question).await.unwrap();
            (0..100).for_each(|_| running.app.tell("tick", "{}"));
            told += 100;
        }
        let frame = connection.reader.next().await.unwrap().unwrap();
        match frame.message_type {
            StreamMessageType::PushEvent => {
                let event = PushEvent::read(frame.payload).unwrap();
                count += event.missed.unwrap_or(1);
                assert_eq!((event.count, event.sequence), (count, count), "no hole that no gap names");
                assert!(event.sequence > sequence);
                sequence = event.sequence;
            }
            StreamMessageType::ErrorResponse => replies += 1,
            other => panic!("{other:?}"),
        }
    }
    while replies < EVENTS / 100 {
        let frame = connection.reader.next().await.unwrap().unwrap();
        assert_eq!(frame.message_type, StreamMessageType::ErrorResponse);
        replies += 1;
    }
    assert_eq!((count, told), (EVENTS, EVENTS));
}

#[tokio::test]
async fn a_daemon_that_does_not_read_costs_the_application_a_queue_and_reads_the_gap() {
    let running = serve();
    let mut stream = {
        let mut request = to(&["tick"]);
        request.queue = Some(8);
        AppClient::new(&running.path, own_uid()).subscribe(&request).await.unwrap()
    };
    // Nothing of this test's runtime runs meanwhile, so that all of it has to wait in the queue.
    (1..=20).for_each(|number| running.app.tell("tick", &number.to_string()));

    let gap = stream.next().await.unwrap().unwrap();
    assert_eq!((gap.missed, gap.sequence, gap.count), (Some(12), 12, 12));
    for number in 13..=20 {
        let event = stream.next().await.unwrap().unwrap();
        assert_eq!(
            (event.sequence, event.data_json.unwrap().as_str()),
            (number, number.to_string().as_str())
        );
    }
}

#[tokio::test]
async fn what_cannot_be_told_is_a_gap_of_one() {
    let running = serve();
    let mut all = AppClient::new(&running.path, own_uid()).subscribe(&to(&[])).await.unwrap();
    let at_limit = format!("\"{}\"", "x".repeat(MAX_APP_EVENT_BYTES - 2));
    running.app.tell("note", "{not json");
    running.app.tell("note", &at_limit);
    running.app.tell("note", &format!("{at_limit} "));
    running.app.tell(&"t".repeat(65), "1");
    running.app.tell(&"t".repeat(64), "1");

    let mut read = Vec::new();
    while read.len() < 4 {
        let event = all.next().await.unwrap().unwrap();
        read.push((event.sequence, event.missed));
    }

    assert_eq!(read, [(1, Some(1)), (2, None), (4, Some(2)), (5, None)]);
}

#[tokio::test]
async fn what_an_application_does_not_serve_is_refused_and_the_connection_goes_on() {
    let running = serve();
    let mut connection = connect(&running).await;
    let everything = SubscribeEvents::default;
    let table = [
        (SubscribeEvents { app: Some("org.*".into()), ..everything() }, "invalid_request"),
        (SubscribeEvents { domain: Some(Domain::App), ..everything() }, "invalid_request"),
        (SubscribeEvents { from: Some(1), ..everything() }, "unsupported"),
        (SubscribeEvents { delivery: Some(DeliveryMode::Polled), ..everything() }, "unsupported"),
        (SubscribeEvents { overflow: Some(OverflowStrategy::Block), ..everything() }, "unsupported"),
        (SubscribeEvents { queue: Some(0), ..everything() }, "invalid_request"),
        (
            SubscribeEvents { queue: Some(u32::try_from(MAX_APP_QUEUE_EVENTS).unwrap() + 1), ..everything() },
            "invalid_request",
        ),
        (to(&["note", "secret"]), "permission_denied"),
    ];
    for (request, code) in table {
        let refused = subscribe(&mut connection, &request).await.unwrap_err();
        assert!(refused.contains(&format!(r#""code":"{code}""#)), "{request:?}: {refused}");
    }
    // A subscription that was refused holds no place and hears of nothing.
    for _ in 0..MAX_APP_SUBSCRIPTIONS {
        subscribe(&mut connection, &to(&["list"])).await.unwrap();
    }
    let refused = subscribe(&mut connection, &to(&["list"])).await.unwrap_err();
    assert!(refused.contains(r#""code":"limit_reached""#), "{refused}");
}

#[tokio::test]
async fn an_application_is_asked_for_no_more_topics_than_the_limit() {
    let running = serve();
    for n in 0..=MAX_APP_TOPICS {
        let mut connection = connect(&running).await;
        let request = SubscribeEvents { topics: vec![format!("topic{n}").into()], ..Default::default() };
        let answer = subscribe(&mut connection, &request).await;
        assert_eq!(answer.is_ok(), n < MAX_APP_TOPICS, "{answer:?}");
    }
    assert_eq!(running.app.asked().len(), MAX_APP_TOPICS);
}

#[tokio::test]
async fn an_application_without_events_says_so() {
    struct Silent(AppId);
    impl PcpServer for Silent {
        fn app_id(&self) -> &AppId {
            &self.0
        }
        fn manifest(&self) -> &str {
            "{}"
        }
        fn invoke<'a>(
            &'a self,
            _: &'a CapabilityId,
            _: &'a InvocationContext,
            _: &'a str,
        ) -> BoxFuture<'a, CapabilityResult> {
            Box::pin(async { CapabilityResult::ok("null") })
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let app = Arc::new(Silent(AppId::parse("org.x.silent").unwrap()));
    let runner = PcpServerRunner::bind(dir.path(), app, own_uid()).unwrap();
    let path = runner.path().to_owned();
    tokio::spawn(runner.run());

    let failure = AppClient::new(path, own_uid()).subscribe(&to(&[])).await.unwrap_err();

    assert_eq!((failure.error.code, failure.no_effect), (ErrorCode::Unsupported, true));
}
