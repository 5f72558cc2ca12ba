//! The blocking client's events, between the replies it waits for (R-143).

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use pcp_core::ErrorCode;
use pcp_ipc::payloads::{PushEvent, SubscribeEvents, SubscriptionAck};
use pcp_ipc::{Client, Json, MAX_EVENTS_ASIDE, Payload, Tag};
use pcp_stream::{ProtocolError, StreamClient, StreamMessageType};

const SECOND: Duration = Duration::from_secs(5);
const AT_ONCE: Duration = Duration::from_millis(1);

type Answer = (StreamMessageType, Vec<u8>);

fn frame<P: Payload>(payload: &P) -> Answer {
    let mut out = Vec::new();
    payload.write(&mut out).unwrap();
    (P::TYPE, out)
}

fn ack(subscription_id: u64, sequence: u64) -> Answer {
    frame(&SubscriptionAck { tag: Tag, subscription_id, sequence })
}

fn event(subscription_id: u64, number: u64) -> Answer {
    frame(&PushEvent::event(subscription_id, number, number, "app_removed", Json::EMPTY_OBJECT))
}

fn state() -> Answer {
    let payload = r#"{"type":"state_response","topic":"x","state_source":"rust","data_json":1}"#;
    (StreamMessageType::StateResponse, payload.as_bytes().to_vec())
}

/// A client and a peer that answers each request with the frames of one line of the script, then closes.
fn scripted(script: Vec<Vec<Answer>>) -> (Client, JoinHandle<Vec<String>>) {
    let (here, there) = UnixStream::pair().unwrap();
    let peer = std::thread::spawn(move || {
        let mut there = StreamClient::over(there).unwrap();
        let mut asked = Vec::new();
        for answers in script {
            let frame = there.receive(SECOND).unwrap();
            asked.push(String::from_utf8(frame.payload.to_vec()).unwrap());
            for (kind, payload) in answers {
                let sent = there.send::<ProtocolError>(kind, SECOND, |out| {
                    out.extend_from_slice(&payload);
                    Ok(())
                });
                sent.unwrap();
            }
        }
        asked
    });
    let mut client = Client::over(here).unwrap();
    client.set_timeout(SECOND);
    (client, peer)
}

/// The numbers of the events that wait, and of gaps how many are missing.
fn read(client: &mut Client, events: usize) -> Vec<(u64, u64, Option<u64>)> {
    client
        .events(SECOND)
        .take(events)
        .map(|received| {
            let received = received.unwrap();
            let event = received.read().unwrap();
            (event.subscription_id, event.sequence, event.missed)
        })
        .collect()
}

#[test]
fn events_that_come_before_a_reply_are_read_after_it_in_their_order() {
    let (mut client, peer) = scripted(vec![
        vec![ack(3, 0)],
        vec![event(3, 1), event(3, 2), state(), event(3, 3)],
        vec![ack(3, 3)],
    ]);
    let request = SubscribeEvents { topics: vec!["app_removed".into()], ..SubscribeEvents::default() };

    assert_eq!(client.subscribe(&request).unwrap().subscription_id, 3);
    assert_eq!(client.query_state("x", Json::EMPTY_OBJECT).unwrap().data_json.as_str(), "1");

    assert_eq!(read(&mut client, 3), [(3, 1, None), (3, 2, None), (3, 3, None)]);
    assert_eq!(client.acknowledge(3, 3).unwrap().sequence, 3);
    let asked = peer.join().unwrap();
    assert_eq!(asked[0], r#"{"type":"subscribe_events","topics":["app_removed"]}"#);
    assert_eq!(asked[2], r#"{"type":"event_ack","subscription_id":3,"sequence":3}"#);
}

#[test]
fn events_that_find_no_room_beside_a_reply_are_gaps_of_their_own_subscriptions() {
    let first = MAX_EVENTS_ASIDE as u64;
    let mut answers: Vec<Answer> = (1..=first).map(|number| event(1, number)).collect();
    answers.extend([event(1, first + 1), event(2, first + 2), event(1, first + 3), event(1, first + 4)]);
    answers.push(state());
    let (mut client, peer) = scripted(vec![answers]);

    client.query_state("x", Json::EMPTY_OBJECT).unwrap();

    let read = read(&mut client, MAX_EVENTS_ASIDE + 2);
    assert_eq!(read[..2], [(1, 1, None), (1, 2, None)]);
    assert_eq!(read[MAX_EVENTS_ASIDE..], [(1, first + 4, Some(3)), (2, first + 2, Some(1))]);
    peer.join().unwrap();
}

#[test]
fn no_event_for_a_while_is_no_error_and_a_daemon_that_is_gone_is_one() {
    let (here, there) = UnixStream::pair().unwrap();
    let mut client = Client::over(here).unwrap();
    assert!(client.next_event(AT_ONCE).unwrap().is_none());
    assert_eq!(client.events(AT_ONCE).count(), 0);
    drop(there);
    assert_eq!(client.next_event(SECOND).unwrap_err().code(), ErrorCode::DaemonUnreachable);
}

#[test]
fn an_error_among_the_events_is_heard() {
    let payload = br#"{"type":"error_response","code":"limit_reached","message":"slow"}"#.to_vec();
    let (mut client, peer) = scripted(vec![vec![ack(1, 0), (StreamMessageType::ErrorResponse, payload)]]);
    client.subscribe(&SubscribeEvents::default()).unwrap();
    assert_eq!(client.next_event(SECOND).unwrap_err().code(), ErrorCode::LimitReached);
    peer.join().unwrap();
}

#[test]
fn an_endless_row_of_events_is_no_reason_to_wait_longer_for_a_reply() {
    let (here, there) = UnixStream::pair().unwrap();
    let peer = std::thread::spawn(move || {
        let mut there = StreamClient::over(there).unwrap();
        let (kind, payload) = event(1, 1);
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(&payload);
            Ok::<(), ProtocolError>(())
        };
        while there.send(kind, SECOND, write).is_ok() {}
    });
    let mut client = Client::over(here).unwrap();
    client.set_timeout(Duration::from_millis(20));
    assert_eq!(client.ping().unwrap_err().code(), ErrorCode::Timeout);
    drop(client);
    peer.join().unwrap();
}
