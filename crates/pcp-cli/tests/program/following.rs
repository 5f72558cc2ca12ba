//! Verbs that go on: each event is a line of its own the moment it comes, and the end says why it is one.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use pcp_stream::StreamMessageType as Message;
use serde_json::{Value, json};

use super::daemon::{Answer, Daemon};
use super::pcp_cli;

const ACK: &str = r#"{"type":"subscription_ack","subscription_id":7,"sequence":3}"#;

fn event(sequence: u64) -> (Message, String) {
    let text = format!(
        r#"{{"type":"push_event","subscription_id":7,"sequence":{sequence},"count":{sequence},"topic":"app_removed","app":"org.x","data_json":{{}}}}"#
    );
    (Message::PushEvent, text)
}

fn gap(missed: u64, sequence: u64) -> (Message, String) {
    let text = format!(
        r#"{{"type":"push_event","subscription_id":7,"sequence":{sequence},"count":{sequence},"missed":{missed}}}"#
    );
    (Message::PushEvent, text)
}

/// Takes the subscription and sends these.
fn sends(events: Vec<(Message, String)>) -> Daemon {
    Daemon::serve(move |_, _| [vec![(Message::SubscriptionAck, ACK.to_owned())], events.clone()].concat())
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn events_are_objects_a_line_each_and_a_gap_says_how_many_were_missed() {
    let daemon = sends(vec![event(4), gap(5, 9), event(10), event(11)]);
    let (code, out, err, asked) = daemon.run(&[
        "events",
        "-f",
        "--count",
        "3",
        "--topic",
        "app_removed,app_added",
        "--app",
        "org.*",
        "--domain",
        "app",
        "--queue",
        "8",
        "--overflow",
        "drop_newest",
    ]);
    assert_eq!((code, err.as_str()), (0, ""));
    let expected = [
        json!({"sequence": 4, "count": 4, "topic": "app_removed", "app": "org.x", "data": {}}),
        json!({"missed": 5, "sequence": 9, "count": 9}),
        json!({"sequence": 10, "count": 10, "topic": "app_removed", "app": "org.x", "data": {}}),
    ];
    assert_eq!(lines(&out), expected);
    let wanted = json!({"type": "subscribe_events", "topics": ["app_removed", "app_added"], "app": "org.*",
        "domain": "app", "queue": 8, "overflow": "drop_newest", "delivery": "pushed"});
    assert_eq!(asked.len(), 1);
    assert_eq!(serde_json::from_str::<Value>(&asked[0].1).unwrap(), wanted);
}

#[test]
fn time_that_is_over_is_7_only_where_more_events_were_waited_for() {
    let (code, out, err, _) = sends(vec![event(4)]).run_for("0.3", &["events"]);
    assert_eq!((code, lines(&out).len(), err.as_str()), (0, 1, ""));

    let (code, out, err, _) = sends(vec![event(4)]).run_for("0.3", &["events", "--count", "2"]);
    assert_eq!((code, err.as_str()), (7, ""));
    let told = lines(&out);
    assert_eq!((told.len(), &told[0]["sequence"], &told[1]["ok"]), (2, &json!(4), &json!(false)));
    assert_eq!(told[1]["error"]["code"], "timeout");
    assert_eq!(told[1]["error"]["message"], "only 1 of 2 events came within 0.3 s");
}

#[test]
fn a_daemon_that_goes_away_or_says_no_is_one_more_line() {
    let mut asked = 0;
    let daemon = Daemon::serve(move |_, _| {
        asked += 1;
        if asked == 1 { vec![(Message::SubscriptionAck, ACK.to_owned()), event(4)] } else { Answer::new() }
    });
    // The second question of a polled subscription finds the connection closed.
    let (code, out, err, _) = daemon.run(&["events", "--v1"]);
    assert_eq!((code, err.as_str()), (3, ""));
    let told = lines(&out);
    assert_eq!((told.len(), &told[1]["error"]["code"]), (2, &json!("daemon_unreachable")));

    let refusal = r#"{"type":"error_response","code":"limit_reached","message":"8 subscriptions"}"#;
    let (code, out, _, _) = Daemon::answer(Message::ErrorResponse, refusal).run(&["events"]);
    assert_eq!((code, lines(&out)[0]["error"]["code"].clone()), (8, json!("limit_reached")));
}

#[test]
fn a_polled_subscription_asks_again_after_what_it_was_told() {
    let mut asked = 0;
    let daemon = Daemon::serve(move |_, _| {
        asked += 1;
        let ack = (Message::SubscriptionAck, ACK.to_owned());
        match asked {
            1 => vec![ack],
            2 => vec![event(4), event(5), ack],
            _ => vec![event(6), ack],
        }
    });
    let (code, out, _, asked) = daemon.run(&["events", "--v1", "--count", "3"]);
    assert_eq!((code, lines(&out).len()), (0, 3));
    let acks: Vec<&str> = asked.iter().skip(1).map(|(_, text)| text.as_str()).collect();
    let ack = |sequence| format!(r#"{{"type":"event_ack","subscription_id":7,"sequence":{sequence}}}"#);
    assert_eq!(acks, [ack(3), ack(5)]);
}

#[test]
fn people_get_a_line_and_are_told_that_it_waits() {
    let (code, out, err, _) =
        sends(vec![event(4), gap(2, 6)]).run(&["events", "--count", "2", "--format", "table"]);
    assert_eq!((code, err.as_str()), (0, "following; what happens from now on is printed\n"));
    let told: Vec<&str> = out.lines().map(|line| &line["00:00:00.000  ".len()..]).collect();
    assert_eq!(
        told,
        [
            "app_removed            org.x  gone",
            "missed                 2 events were missed: more happened than was read"
        ]
    );
}

#[test]
fn a_line_is_out_before_the_next_event_and_a_reader_that_goes_away_ends_it_silently() {
    let (more, wait) = std::sync::mpsc::channel::<()>();
    let mut asked = 0;
    let daemon = Daemon::serve(move |_, _| {
        asked += 1;
        let ack = (Message::SubscriptionAck, ACK.to_owned());
        if asked == 1 {
            return vec![ack, event(4)];
        }
        // Polls go on until the reader has gone.
        let gone = wait.try_recv().is_ok();
        if gone { vec![event(5), ack] } else { vec![ack] }
    });
    let uid = nix::unistd::getuid().to_string();
    let mut command = pcp_cli();
    command.args(["events", "--v1", "--expect-uid", &uid, "--socket"]).arg(daemon.socket());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());

    out.read_line(&mut line).unwrap();
    assert_eq!(lines(&line)[0]["sequence"], 4);
    drop(out);
    more.send(()).unwrap();

    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(1), &b""[..]));
}

#[test]
fn adapters_are_shown_with_their_states() {
    let state = r#"{"type":"state_response","topic":"adapters","state_source":"rust","data_json":{"adapters":[{"name":"native","method":"desktop","tier":"1","state":"degraded","generation":2,"reason":"r","abandoned":0,"held_back":false,"retry_in_ms":null}]}}"#;
    let daemon = || Daemon::answer(Message::StateResponse, state);
    let (code, out, _, _) = daemon().run(&["adapters", "--format", "table"]);
    assert_eq!(code, 0);
    assert!(out.contains("native  desktop  1     degraded  2           r\n"), "{out}");
    let (_, out, _, _) = daemon().run(&["adapters"]);
    assert_eq!(lines(&out)[0]["data"]["adapters"][0]["state"], "degraded");
}
