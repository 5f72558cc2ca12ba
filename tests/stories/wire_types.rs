//! Payloads from the live socket, read by a program that knows WIRE.md alone.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcp_stream::StreamMessageType;
use serde_json::{Value, json};

use crate::support::python::python;
use crate::support::{Device, Plan, new_operation};

const PATIENCE: Duration = Duration::from_secs(10);

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pcp-stream/WIRE.md")
}

/// Sends the requests as another language writes them; gives every byte that came back.
fn say(socket: &Path, requests: &[Value]) -> Vec<u8> {
    let lines: String = requests
        .iter()
        .map(|request| {
            let name = request["type"].as_str().unwrap();
            let kind = StreamMessageType::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
            let payload = if name == "ping" { String::new() } else { request.to_string() };
            format!("{}\n", json!({"type": kind.discriminant(), "payload": payload}))
        })
        .collect();
    let (code, bytes) = python("frames.py", &["encode"], lines.as_bytes());
    assert_eq!(code, 0);
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&bytes).and_then(|()| stream.shutdown(Shutdown::Write)).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// The names of the payloads that the other language took apart and put together to the same bytes.
fn agreed(bytes: &[u8]) -> Vec<String> {
    let (code, said) = python("payloads.py", &["check", document().to_str().unwrap()], bytes);
    let said = String::from_utf8(said).unwrap();
    assert_eq!(code, 0, "{said}");
    let (_, names) = said.trim().split_once("agree:").unwrap();
    names.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_golden_payload_of_each_of_the_27_types_is_put_together_again_in_another_language() {
    let (code, said) = python("payloads.py", &["vectors", document().to_str().unwrap()], b"");
    let said = String::from_utf8(said).unwrap();
    assert_eq!(code, 0, "{said}");
    assert!(said.ends_with("of 27 types agree\n"), "{said}");
}

#[test]
fn every_answer_of_the_live_socket_keeps_to_its_schema_and_is_put_together_again_byte_for_byte() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();
    let intent =
        json!({"domain": "app", "action": "create", "target_app": "org.example.fake", "parameters": {}});
    let execute = |dry_run: bool, operation: &str| {
        json!({"type": "execute_request", "kind": "intent", "operation_id": operation, "dry_run": dry_run,
            "intent": intent})
    };
    let requests = [
        json!({"type": "ping"}),
        execute(false, &operation),
        execute(true, &new_operation().to_string()),
        json!({"type": "registry_query", "what": "capabilities"}),
        json!({"type": "registry_query", "what": "apps"}),
        json!({"type": "get_manifest", "app": "org.example.fake"}),
        json!({"type": "query_state", "topic": "doctor"}),
        json!({"type": "cancel_request", "operation_id": operation}),
        json!({"type": "get_manifest", "app": "org.example.ghost"}),
    ];

    let names = agreed(&say(&device.socket(), &requests));

    let answers = names.iter().filter(|name| *name != "execute_response");
    let wanted = [
        "pong",
        "capability_result_msg",
        "capability_result_msg",
        "registry_response",
        "registry_response",
        "manifest_response",
        "state_response",
        "error_response",
        "error_response",
    ];
    assert_eq!(answers.collect::<Vec<_>>(), wanted);
    assert_eq!(fake.effect_count(), 1);
}
