//! `WIRE.md` of `pcp-stream` and the typed payloads agree.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use pcp_core::{ErrorCode, EventTopic};
use pcp_ipc::payloads::{
    AppShutdown, AppShutdownAck, CancelRequest, ConfirmationRequest, ConfirmationResponse, DetectRequest,
    DetectResponse, ErrorResponse, EventAck, ExecuteRequest, ExecuteResponse, GetManifest, InvocationResult,
    InvokeCapability, ManifestResponse, OperationResult, PushEvent, QueryState, RegistryQuery,
    RegistryResponse, StateResponse, SubscribeEvents, SubscriptionAck, UnsubscribeEvents, ValidateParams,
    ValidateParamsResponse,
};
use pcp_ipc::{EventData, Payload, read_payload};
use serde_json::Value;

fn document() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../pcp-stream/WIRE.md")).unwrap()
}

fn vectors(document: &str) -> Vec<(String, String, String)> {
    let block = document.split("```golden\n").nth(1).unwrap().split("\n```").next().unwrap();
    block
        .lines()
        .map(|line| {
            let mut parts = line.splitn(3, ' ').map(str::to_owned);
            (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap_or_default())
        })
        .collect()
}

/// Reads a payload as its type and writes the frame again.
fn again(name: &str, payload: &str) -> Vec<u8> {
    let mut out = Vec::new();
    macro_rules! as_type {
        ($type:ty) => {
            read_payload::<$type>(payload.as_bytes()).expect(payload).write_frame(&mut out).unwrap()
        };
    }
    match name {
        "ping" | "pong" => {
            let all = pcp_stream::StreamMessageType::ALL;
            let message_type = all.into_iter().find(|kind| kind.name() == name).unwrap();
            pcp_stream::encode(message_type, b"", &mut out).unwrap();
        }
        "error_response" => as_type!(ErrorResponse<'_>),
        "execute_request" => ExecuteRequest::read(payload.as_bytes()).unwrap().write_frame(&mut out).unwrap(),
        "execute_response" => as_type!(ExecuteResponse<'_>),
        "registry_query" => as_type!(RegistryQuery<'_>),
        "registry_response" => as_type!(RegistryResponse<'_>),
        "get_manifest" => as_type!(GetManifest<'_>),
        "manifest_response" => as_type!(ManifestResponse<'_>),
        "invoke_capability" => as_type!(InvokeCapability<'_>),
        "capability_result_msg" if payload.contains("operation_id") => as_type!(OperationResult<'_>),
        "capability_result_msg" => as_type!(InvocationResult<'_>),
        "validate_params_msg" => as_type!(ValidateParams<'_>),
        "validate_params_response" => as_type!(ValidateParamsResponse<'_>),
        "query_state" => as_type!(QueryState<'_>),
        "state_response" => as_type!(StateResponse<'_>),
        "app_shutdown" => as_type!(AppShutdown<'_>),
        "app_shutdown_ack" => as_type!(AppShutdownAck),
        "cancel_request" => as_type!(CancelRequest),
        "detect_request" => as_type!(DetectRequest<'_>),
        "detect_response" => as_type!(DetectResponse<'_>),
        "subscribe_events" => as_type!(SubscribeEvents<'_>),
        "unsubscribe_events" => as_type!(UnsubscribeEvents),
        "subscription_ack" => as_type!(SubscriptionAck),
        "push_event" => PushEvent::read(payload.as_bytes()).unwrap().write_frame(&mut out).unwrap(),
        "event_ack" => as_type!(EventAck),
        "confirmation_request" => as_type!(ConfirmationRequest<'_>),
        "confirmation_response" => as_type!(ConfirmationResponse<'_>),
        other => panic!("{other} has a vector and no type"),
    }
    out
}

#[test]
fn every_golden_payload_is_read_as_its_type_and_written_back_to_the_same_bytes() {
    for (name, hex, payload) in vectors(&document()) {
        let bytes: String = again(&name, &payload).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(bytes, hex, "{name}: {payload}");
    }
}

#[test]
fn each_of_the_27_types_has_a_vector() {
    let named: BTreeSet<String> = vectors(&document()).into_iter().map(|(name, _, _)| name).collect();
    let all = pcp_stream::StreamMessageType::ALL;
    assert_eq!(named, all.into_iter().map(|kind| kind.name().to_owned()).collect());
}

#[test]
fn every_golden_event_is_read_as_what_its_topic_tells() {
    let mut topics = BTreeSet::new();
    for (_, _, payload) in vectors(&document()).iter().filter(|(name, _, _)| name == "push_event") {
        let event = PushEvent::read(payload.as_bytes()).unwrap();
        if let (Some(topic), Some(data)) = (event.topic, event.data_json) {
            let topic: EventTopic = topic.parse().unwrap();
            let mut again = Vec::new();
            EventData::read(topic, data).unwrap().write(&mut again).unwrap();
            assert_eq!(String::from_utf8(again).unwrap(), data.as_str(), "{topic}");
            topics.insert(topic);
        }
    }
    assert_eq!(topics, EventTopic::ALL.iter().copied().collect());
}

#[test]
fn every_vector_keeps_to_the_schema_of_its_type_and_every_schema_has_a_vector() {
    let document = document();
    let schemas: Vec<Value> = document
        .split("```json schema\n")
        .skip(1)
        .map(|rest| serde_json::from_str(rest.split("\n```").next().unwrap()).unwrap())
        .collect();
    let mut used = BTreeSet::new();
    for (name, _, payload) in vectors(&document) {
        if payload.is_empty() {
            continue;
        }
        let members: Value = serde_json::from_str(&payload).unwrap();
        let fits = |schema: &&Value| {
            let has = |member: &str| members.get(member).is_some();
            schema["title"] == *name
                && schema["required"].as_array().unwrap().iter().all(|member| has(member.as_str().unwrap()))
                && members
                    .as_object()
                    .unwrap()
                    .keys()
                    .all(|member| schema["properties"].get(member).is_some())
        };
        let at = schemas
            .iter()
            .position(|schema| fits(&schema))
            .unwrap_or_else(|| panic!("{payload} fits no schema"));
        used.insert(at);
    }
    assert_eq!(used.len(), schemas.len(), "schemas without a vector");
}

#[test]
fn a_reader_in_another_language_takes_every_golden_payload_apart_and_puts_it_together_again() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new("python3")
        .arg(root.join("tests/stories/python/payloads.py"))
        .arg("vectors")
        .arg(root.join("crates/pcp-stream/WIRE.md"))
        .output()
        .expect("python3 runs; install it (ci/setup does)");
    let said = String::from_utf8(output.stdout).unwrap();
    let wanted = format!("{} vectors of 27 types agree\n", vectors(&document()).len());
    assert_eq!((output.status.code(), said), (Some(0), wanted));
}

#[test]
fn the_document_lists_every_error_code_with_its_kind_and_exit_code() {
    let document = document();
    let section = document.split("## Error codes").nth(1).unwrap().split("\n## ").next().unwrap();
    let listed: Vec<(String, String, String)> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).skip(1);
            (cells.next().unwrap(), cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    let code: Vec<_> = ErrorCode::ALL
        .iter()
        .map(|code| (code.to_string(), code.kind().to_string(), code.exit_code().to_string()))
        .collect();
    assert_eq!(listed, code);
}
