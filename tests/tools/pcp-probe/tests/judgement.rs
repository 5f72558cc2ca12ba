//! The probe calls a right listener right and wrong ones wrong.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcp_probe::{Sending, exchange, judge_cases, judge_types};
use pcp_stream::{ProtocolError, StreamClient, StreamMessageType};

/// What a listener does.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Right,
    ClosesOnAnything,
    PongsToAnything,
}

fn listener(manner: Manner) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || serve(stream, manner));
        }
    });
    (dir, path)
}

fn serve(stream: UnixStream, manner: Manner) {
    let mut connection = StreamClient::over(stream).unwrap();
    loop {
        let answer = match connection.receive(Duration::from_secs(10)) {
            Ok(frame) if frame.message_type == StreamMessageType::Ping => Ok(("", false)),
            Ok(_) => Err(("invalid_request", false)),
            Err(error @ ProtocolError::UnknownType { .. }) => {
                Err(("unsupported_message", error.ends_stream()))
            }
            Err(_) => Err(("protocol_error", true)),
        };
        let (kind, payload, ends) = match (manner, answer) {
            (Manner::PongsToAnything, Ok((_, ends)) | Err((_, ends))) | (_, Ok((_, ends))) => {
                (StreamMessageType::Pong, String::new(), ends)
            }
            (_, Err((code, ends))) => {
                let payload = format!(r#"{{"type":"error_response","code":"{code}","message":"m"}}"#);
                (StreamMessageType::ErrorResponse, payload, ends)
            }
        };
        let sent = connection.send::<ProtocolError>(kind, Duration::from_secs(5), |out| {
            out.extend_from_slice(payload.as_bytes());
            Ok(())
        });
        if sent.is_err() || ends || manner == Manner::ClosesOnAnything {
            return;
        }
    }
}

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../stories/data/frames")
}

fn wrong_cases(manner: Manner) -> Vec<String> {
    let (_dir, socket) = listener(manner);
    let verdicts = judge_cases(&cases(), &socket).unwrap();
    assert_eq!(verdicts.len(), 15);
    verdicts
        .into_iter()
        .filter_map(|verdict| verdict.problem.map(|problem| format!("{} {problem}", verdict.case)))
        .collect()
}

#[test]
fn a_right_listener_passes_all_cases() {
    assert_eq!(wrong_cases(Manner::Right), [""; 0]);
}

#[test]
fn a_listener_that_closes_on_anything_fails_where_the_stream_has_to_go_on() {
    let wrong = wrong_cases(Manner::ClosesOnAnything);
    for case in ["F01", "F02", "F10", "F11", "F15"] {
        assert!(wrong.iter().any(|line| line.starts_with(case)), "{case} passed");
    }
}

#[test]
fn a_listener_that_takes_anything_fails_where_it_has_to_refuse() {
    let wrong = wrong_cases(Manner::PongsToAnything);
    for case in ["F02", "F03", "F04", "F06", "F07", "F08", "F14"] {
        assert!(wrong.iter().any(|line| line.starts_with(case)), "{case} passed: {wrong:#?}");
    }
}

#[test]
fn all_256_type_numbers_are_judged() {
    let (_dir, socket) = listener(Manner::Right);
    let verdicts = judge_types(&socket).unwrap();
    assert_eq!(verdicts.len(), 256);
    assert!(verdicts.iter().all(|verdict| verdict.problem.is_none()));
    assert_eq!(verdicts[0].answer, Some("pong"));

    let (_dir, socket) = listener(Manner::PongsToAnything);
    let verdicts = judge_types(&socket).unwrap();
    assert_eq!(verdicts.iter().filter(|verdict| verdict.problem.is_some()).count(), 229);
}

#[test]
fn an_exchange_tells_what_came_back_and_whether_the_connection_is_open() {
    let (_dir, socket) = listener(Manner::Right);
    let ping = std::fs::read(cases().join("files/ping-empty.bin")).unwrap();

    let open = exchange(&socket, &ping, Sending { enough: 1, ..Sending::default() }).unwrap();
    assert_eq!((open.sent, open.replies[0].name, open.open), (13, "pong", true));

    let closed = exchange(&socket, &ping[..9], Sending { eof: true, ..Sending::default() }).unwrap();
    assert!(!closed.open);
}
