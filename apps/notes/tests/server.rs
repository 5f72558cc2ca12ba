//! The application as the daemon sees it: through the trait, and through the socket.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pcp_core::{
    CapabilityId, CapabilityResult, Domain, ErrorCode, InvocationContext, Modality, OperationId, PcpServer,
    StateSource, Tier, TrustLevel,
};
use pcp_ipc::{AppClient, PcpServerRunner};
use pcp_notes::{APP_ID, MAX_BODY_BYTES, MAX_RESULT_BYTES, NotesServer, Store};
use serde_json::{Value, json};

const MANIFEST: &str = include_str!("../manifest.json");

fn server() -> (tempfile::TempDir, NotesServer) {
    let space = tempfile::tempdir().unwrap();
    let store = Store::open(&space.path().join("data")).unwrap();
    (space, NotesServer::new(MANIFEST.to_owned(), store).unwrap())
}

fn id(action: &str) -> CapabilityId {
    CapabilityId::parse(&format!("app.{APP_ID}.{action}")).unwrap()
}

fn context() -> InvocationContext {
    InvocationContext {
        operation_id: OperationId::parse("0191e7a0-0000-7000-8000-000000000001").unwrap(),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Current,
        tier: Tier::One,
        budget_ms: 5000,
    }
}

async fn invoke(server: &NotesServer, action: &str, params: Value) -> CapabilityResult {
    server.invoke(&id(action), &context(), &params.to_string()).await
}

async fn data(server: &NotesServer, action: &str, params: Value) -> Value {
    let result = invoke(server, action, params).await;
    assert!(result.success, "{result:?}");
    assert_eq!(result.state_source, StateSource::Rust);
    serde_json::from_str(&result.data_json.unwrap()).unwrap()
}

#[tokio::test]
async fn a_note_lives_through_all_capabilities() {
    let (_space, server) = server();
    assert_eq!(data(&server, "create", json!({"title": "Milk"})).await, json!({"id": 1, "revision": 1}));
    let edited = data(&server, "edit", json!({"id": 1, "body": "two litres", "expected_revision": 1})).await;
    assert_eq!(edited, json!({"id": 1, "revision": 2}));
    let read = data(&server, "read", json!({"id": 1})).await;
    assert_eq!((&read["title"], &read["body"]), (&json!("Milk"), &json!("two litres")));
    let found = data(&server, "search", json!({"query": "LITRES"})).await;
    assert_eq!(found, json!({"matches": [{"id": 1, "title": "Milk", "snippet": "two litres"}]}));
    data(&server, "delete", json!({"id": 1})).await;
    assert_eq!(data(&server, "list", json!({})).await, json!({"notes": []}));
    data(&server, "restore", json!({"id": 1})).await;
    assert_eq!(data(&server, "read", json!({"id": 1})).await, read);
    let exported = data(&server, "export", json!({"id": 1, "format": "markdown"})).await;
    assert_eq!(exported["content"], "# Milk\n\ntwo litres");
}

#[tokio::test]
async fn every_refusal_has_its_code_and_certifies_that_nothing_changed() {
    let (_space, server) = server();
    data(&server, "create", json!({"title": "t"})).await;
    let long = "x".repeat(MAX_BODY_BYTES + 1);
    let table = [
        ("read", json!({"id": 9}), ErrorCode::NotFound),
        ("edit", json!({"id": 9, "body": ""}), ErrorCode::NotFound),
        ("delete", json!({"id": 9}), ErrorCode::NotFound),
        ("restore", json!({"id": 1}), ErrorCode::NotFound),
        ("export", json!({"id": 9, "format": "text"}), ErrorCode::NotFound),
        ("edit", json!({"id": 1, "body": "", "expected_revision": 2}), ErrorCode::Conflict),
        ("delete", json!({"id": 1, "expected_revision": 2}), ErrorCode::Conflict),
        ("create", json!({"title": " "}), ErrorCode::InvalidParameters),
        ("create", json!({"title": "t", "body": long}), ErrorCode::InvalidParameters),
        ("edit", json!({"id": 1}), ErrorCode::InvalidParameters),
        ("search", json!({"query": " "}), ErrorCode::InvalidParameters),
        ("read", json!({"id": "1"}), ErrorCode::InvalidParameters),
        ("read", json!({"id": 1, "more": 1}), ErrorCode::InvalidParameters),
        ("export", json!({"id": 1, "format": "pdf"}), ErrorCode::InvalidParameters),
        ("frobnicate", json!({}), ErrorCode::CapabilityNotFound),
    ];
    for (action, params, code) in table {
        let result = invoke(&server, action, params).await;

        assert!(!result.success);
        let error = result.error.unwrap();
        assert_eq!((error.code, error.no_effect), (code, true), "{action}: {}", error.message);
    }
    let note = data(&server, "read", json!({"id": 1})).await;
    assert_eq!((&note["revision"], &note["title"]), (&json!(1), &json!("t")));
}

#[tokio::test]
async fn a_capability_of_another_application_is_not_served() {
    let (_space, server) = server();
    for other in ["app.org.example.other.list", "system.files.list"] {
        let result = server.invoke(&CapabilityId::parse(other).unwrap(), &context(), "{}").await;
        assert_eq!(result.error.unwrap().code, ErrorCode::CapabilityNotFound, "{other}");
    }
}

#[tokio::test]
async fn errors_never_repeat_what_was_typed() {
    let (_space, server) = server();
    for params in [
        json!({"title": "canary\n"}),
        json!({"title": ["canary"]}),
        json!({"title": 7, "canary": 1}),
        json!({"title": "t", "body": "canary\u{0}"}),
    ] {
        let message = invoke(&server, "create", params.clone()).await.error.unwrap().message;
        assert!(!message.contains("canary"), "{message}");
        let invalid = server.validate_params(&id("create"), &params.to_string()).await.unwrap_err();
        assert!(!invalid.message.contains("canary"), "{invalid:?}");
    }
}

#[tokio::test]
async fn what_a_schema_cannot_say_is_refused_before_the_call_with_its_place() {
    let (_space, server) = server();
    for (action, params, pointer) in [
        ("create", json!({"title": "\t"}), "/title"),
        ("create", json!({"title": "t", "body": "\u{7f}"}), "/body"),
        ("create", json!({"title": "t", "body": "ü".repeat(MAX_BODY_BYTES / 2 + 1)}), "/body"),
        ("edit", json!({"id": 1}), ""),
        ("search", json!({"query": "  "}), "/query"),
    ] {
        let invalid = server.validate_params(&id(action), &params.to_string()).await.unwrap_err();
        assert_eq!(invalid.pointer, pointer, "{action}");
    }
    let longest = json!({"title": "t", "body": "ü".repeat(MAX_BODY_BYTES / 2)});
    server.validate_params(&id("create"), &longest.to_string()).await.unwrap();
    assert_eq!(data(&server, "list", json!({})).await, json!({"notes": []}));
}

#[tokio::test]
async fn the_worst_note_can_be_read_and_an_export_that_fits_no_frame_is_refused() {
    let (_space, server) = server();
    data(&server, "create", json!({"title": "t", "body": "\\".repeat(MAX_BODY_BYTES)})).await;

    let read = invoke(&server, "read", json!({"id": 1})).await;
    assert!(read.data_json.unwrap().len() <= MAX_RESULT_BYTES);

    let error = invoke(&server, "export", json!({"id": 1, "format": "json"})).await.error.unwrap();
    assert_eq!((error.code, error.no_effect), (ErrorCode::LimitReached, true));
    assert!(error.message.contains("export as text"), "{}", error.message);
    data(&server, "export", json!({"id": 1, "format": "text"})).await;
}

#[tokio::test]
async fn the_state_topic_tells_how_full_the_store_is() {
    let (_space, server) = server();
    data(&server, "create", json!({"title": "t"})).await;
    let state = server.query_dynamic_state("fill", "{}").await;
    assert_eq!(state.data_json.unwrap(), r#"{"limit":10000,"notes":1,"trash":0}"#);
    let error = server.query_dynamic_state("weather", "{}").await.error.unwrap();
    assert_eq!(error.code, ErrorCode::NotFound);
}

#[tokio::test]
async fn the_daemon_reaches_everything_through_the_socket() {
    let (space, server) = server();
    let uid = nix::unistd::getuid().as_raw();
    let runner = PcpServerRunner::bind(space.path(), Arc::new(server), uid).unwrap();
    let (path, stopper) = (runner.path().to_owned(), runner.stopper());
    assert_eq!(path, space.path().join("org.portal.notes.sock"));
    let running = tokio::spawn(runner.run());
    let mut daemon = AppClient::new(&path, uid);
    let mut answer = Vec::new();

    daemon.manifest(&mut answer).await.unwrap();
    assert_eq!(answer, MANIFEST.trim_end().as_bytes(), "byte for byte");
    let reply = daemon.invoke(&id("create"), &context(), r#"{"title":"Milk"}"#, &mut answer).await.unwrap();
    assert!(reply.success);
    assert_eq!(answer, br#"{"id":1,"revision":1}"#);
    let reply = daemon.invoke(&id("read"), &context(), r#"{"id":2}"#, &mut answer).await.unwrap();
    assert!(reply.failure.unwrap().no_effect);
    let judged = daemon.validate(&id("create"), r#"{"title":" "}"#).await.unwrap();
    assert_eq!(judged.unwrap_err().pointer, "/title");
    daemon.query_state("fill", "{}", &mut answer).await.unwrap();

    stopper.send_replace(true);
    running.await.unwrap();
    assert!(!path.exists());
}
