//! A request read and a reply written cost no allocation in a steady state.

#![allow(unsafe_code, reason = "a global allocator that counts is the only way to see every allocation")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use pcp_core::{
    CapabilityId, Domain, Effect, InvocationContext, Modality, OperationId, StateSource, Terminal, Tier,
    TrustLevel,
};
use pcp_ipc::payloads::{
    AckState, ExecuteResponse, InvocationResult, InvokeCapability, OperationResult, QueryState, RegistryPage,
    RegistryRows, StateResponse,
};
use pcp_ipc::{AppRequest, Json, Payload, Request, Tag, Text, read_payload};
use pcp_stream::{Frame, Role, StreamMessageType};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is handed on to the system allocator unchanged; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds `alloc`'s contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above and so from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of the second and later rounds of `work`.
fn steady_allocations(mut work: impl FnMut()) -> usize {
    work();
    let before = ALLOCATIONS.with(Cell::get);
    for _ in 0..50 {
        work();
    }
    ALLOCATIONS.with(Cell::get) - before
}

const PARAMETERS: &str =
    r#"{"title":"Milch","tags":["a","b",{"deep":[1,2,{"er":null}]}],"text":"an \u00e9scape \"inside\""}"#;

fn request(kind: StreamMessageType, payload: &str) -> Vec<u8> {
    let mut out = Vec::new();
    pcp_stream::encode(kind, payload.as_bytes(), &mut out).unwrap();
    out
}

fn operation() -> OperationId {
    OperationId::from_parts(1_700_000_000_000, [7; 10])
}

#[test]
fn an_execute_request_is_read_without_allocating_even_with_nested_parameters() {
    let payload = format!(
        r#"{{"type":"execute_request","kind":"intent","operation_id":"{}","deadline_ms":1,"wait":true,"dry_run":false,"intent":{{"domain":"app","action":"create","target_app":"org.portal.notes","parameters":{PARAMETERS},"element":{{"find":{{"role":"button"}}}}}}}}"#,
        operation()
    );
    let frame = request(StreamMessageType::ExecuteRequest, &payload);
    assert_eq!(
        steady_allocations(|| {
            let (frame, _) = Frame::decode(&frame).unwrap().unwrap();
            let Request::Execute(request) = Request::read(frame, Role::Client).unwrap() else { panic!() };
            assert_eq!(request.intent().parameters, PARAMETERS);
            assert!(request.intent().capability_id().is_ok());
        }),
        0
    );
}

#[test]
fn an_invocation_is_written_and_read_without_allocating() {
    let capability = CapabilityId::parse("app.org.portal.notes.create").unwrap();
    let context = InvocationContext {
        operation_id: operation(),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Current,
        tier: Tier::One,
        budget_ms: 5000,
    };
    let mut out = Vec::new();
    assert_eq!(
        steady_allocations(|| {
            out.clear();
            InvokeCapability::new(&capability, &context, Json::from_checked(PARAMETERS))
                .write_frame(&mut out)
                .unwrap();
            let (frame, _) = Frame::decode(&out).unwrap().unwrap();
            let AppRequest::Invoke(invocation) = AppRequest::read(frame).unwrap() else { panic!() };
            assert_eq!(invocation.params_json.as_str(), PARAMETERS);
            assert_eq!(invocation.core_context().unwrap(), context);
        }),
        0
    );
}

#[test]
fn results_are_written_and_read_without_allocating() {
    let mut out = Vec::new();
    assert_eq!(
        steady_allocations(|| {
            out.clear();
            let data_json = Some(Json::from_checked(PARAMETERS));
            let state_source = StateSource::Rust;
            InvocationResult { tag: Tag, success: true, error: None, state_source, data_json }
                .write_frame(&mut out)
                .unwrap();
            let (frame, _) = Frame::decode(&out).unwrap().unwrap();
            let result: InvocationResult<'_> = read_payload(frame.payload).unwrap();
            assert_eq!(result.data_json, data_json);
        }),
        0
    );
    let hash = "5f".repeat(32);
    assert_eq!(
        steady_allocations(|| {
            out.clear();
            ExecuteResponse::new(operation(), 0, AckState::Accepted).write_frame(&mut out).unwrap();
            out.clear();
            OperationResult {
                tag: Tag,
                success: true,
                operation_id: operation(),
                terminal: Terminal::Succeeded,
                effect: Some(Effect::Verified),
                error: None,
                audit_hash: Some(Text::from(&*hash)),
                state_source: StateSource::Rust,
                tier: Some(Tier::One),
                duration_us: 830,
                replayed: false,
                retry_safe: false,
                plan: None,
                data_json: Some(Json::from_checked(PARAMETERS)),
            }
            .write_frame(&mut out)
            .unwrap();
            let (frame, _) = Frame::decode(&out).unwrap().unwrap();
            let result: OperationResult<'_> = read_payload(frame.payload).unwrap();
            assert_eq!(result.data_json.unwrap().as_str(), PARAMETERS);
        }),
        0
    );
}

#[test]
fn a_registry_query_and_a_question_are_served_without_allocating() {
    let query = request(
        StreamMessageType::RegistryQuery,
        r#"{"type":"registry_query","what":"apps","domain":"app","app":"org.*","cursor":"x"}"#,
    );
    let question = request(
        StreamMessageType::QueryState,
        r#"{"type":"query_state","topic":"health","arguments":{"a":{"b":[]}}}"#,
    );
    let mut out = Vec::new();
    assert_eq!(
        steady_allocations(|| {
            out.clear();
            let (frame, _) = Frame::decode(&query).unwrap().unwrap();
            let Request::Registry(query) = Request::read(frame, Role::Client).unwrap() else { panic!() };
            assert_eq!(query.filter().app, Some("org.*"));
            let mut page = RegistryPage::begin(&mut out, RegistryRows::Apps);
            for _ in 0..10 {
                assert!(page.push(&"row").unwrap());
            }
            page.finish(None).unwrap();

            out.clear();
            let (frame, _) = Frame::decode(&question).unwrap().unwrap();
            let Request::QueryState(question) = Request::read(frame, Role::Client).unwrap() else { panic!() };
            let data_json = question.arguments();
            StateResponse { tag: Tag, topic: question.topic, state_source: StateSource::Rust, data_json }
                .write_frame(&mut out)
                .unwrap();
            let (frame, _) = Frame::decode(&out).unwrap().unwrap();
            let state: StateResponse<'_> = read_payload(frame.payload).unwrap();
            assert_eq!(state.data_json.as_str(), r#"{"a":{"b":[]}}"#);
        }),
        0
    );
    let sent = QueryState { tag: Tag, topic: "health".into(), arguments: None };
    assert_eq!(
        steady_allocations(|| {
            out.clear();
            sent.write_frame(&mut out).unwrap();
        }),
        0
    );
}
