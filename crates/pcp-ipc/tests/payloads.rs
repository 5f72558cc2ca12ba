//! Every payload comes back as it was sent, and none can be read as another.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use pcp_core::{
    CapabilityId, DetectionMethod, Domain, Effect, ErrorCode, Modality, OperationId, Stage, StateSource,
    Terminal, Tier,
};
use pcp_ipc::payloads::{
    AckState, AppShutdown, AppShutdownAck, Awaiting, CancelRequest, Element, ErrorResponse, ExecuteRequest,
    ExecuteResponse, Find, GetManifest, InvocationFailure, InvocationResult, InvokeCapability,
    ManifestResponse, OperationFailure, OperationResult, PrincipalSummary, QueryState, RegistryQuery,
    RegistryResponse, RegistryRows, RequestKind, StateResponse, ValidateParams, ValidateParamsResponse,
    WireContext, WireIntent,
};
use pcp_ipc::{AppRequest, Error, Json, Payload, Request, Tag, Text, read_payload};
use pcp_stream::{Frame, Role, StreamMessageType};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

fn text() -> impl Strategy<Value = Text<'static>> {
    any::<String>().prop_map(Text::from)
}

fn json() -> impl Strategy<Value = Json<'static>> {
    select(vec!["{}", r#"{"a":[1,{"b":null}],"c":"\u00e4\n"}"#, r#"{"a" : 1 }"#]).prop_map(Json::from_checked)
}

fn operation() -> impl Strategy<Value = OperationId> {
    any::<(u64, [u8; 10])>().prop_map(|(ms, entropy)| OperationId::from_parts(ms, entropy))
}

fn capability() -> impl Strategy<Value = CapabilityId> {
    "app\\.[a-z]{1,9}(\\.[a-z]{1,9}){1,3}".prop_map(|id| CapabilityId::parse(&id).unwrap())
}

fn any_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    select(all)
}

/// Writes `payload`, reads it back and compares.
macro_rules! comes_back {
    ($payload:expr, $type:ty) => {{
        let payload = $payload;
        let mut frame = vec![0xaa];
        payload.write_frame(&mut frame).unwrap();
        let (frame, _) = Frame::decode(&frame[1..]).unwrap().unwrap();
        prop_assert_eq!(frame.message_type, <$type>::TYPE);
        let back: $type = read_payload(frame.payload).unwrap();
        prop_assert_eq!(back, payload);
    }};
}

proptest! {
    #[test]
    fn an_error_response_comes_back(
        code in any_of(ErrorCode::ALL), message in text(), hint in of(text()), stage in of(any_of(Stage::ALL)),
        retry_safe: Option<bool>,
    ) {
        comes_back!(ErrorResponse { tag: Tag, code, message, hint, stage, retry_safe }, ErrorResponse<'_>);
    }

    #[test]
    fn an_execute_request_comes_back(
        operation_id in operation(), deadline_ms: Option<u64>, wait: bool, dry_run: bool,
        domain in any_of(Domain::ALL), action in text(), target_app in text(), parameters in json(),
        form in of(0..3), words in [text(), text(), text()],
    ) {
        let [one, two, three] = words;
        let element = form.map(|form| match form {
            0 => Element { observation: Some(one), tag: Some(two), ..Element::default() },
            1 => Element {
                find: Some(Find { window: Some(one), role: Some(two), name: Some(three) }), ..Element::default()
            },
            _ => Element { reference: Some(one), ..Element::default() },
        });
        let intent = WireIntent { domain, action, target_app, parameters, element };
        comes_back!(
            ExecuteRequest { tag: Tag, kind: RequestKind::Intent, operation_id, deadline_ms, wait, dry_run, intent },
            ExecuteRequest<'_>
        );
    }

    #[test]
    fn an_execute_response_comes_back(
        operation_id in operation(), sequence: u32, prompt in of(text()), expires_ms: u64,
        state in select(vec![AckState::Accepted, AckState::Executing, AckState::AwaitingConfirmation]),
    ) {
        let confirmation = prompt.map(|prompt_id| Awaiting { prompt_id, expires_ms });
        comes_back!(ExecuteResponse { tag: Tag, operation_id, sequence, state, confirmation }, ExecuteResponse<'_>);
    }

    #[test]
    fn a_registry_query_and_its_response_come_back(
        what in select(vec![RegistryRows::Capabilities, RegistryRows::Apps]), domain in of(any_of(Domain::ALL)),
        method in of(any_of(DetectionMethod::ALL)), app in of(text()), id in of(text()), cursor in of(text()),
    ) {
        comes_back!(
            RegistryQuery { tag: Tag, what, domain, method, app, id, cursor: cursor.clone() }, RegistryQuery<'_>
        );
        let rows = Json::from_checked(r#"[{"id":"a"}, {"id":"b"}]"#);
        comes_back!(RegistryResponse { tag: Tag, what, cursor, rows }, RegistryResponse<'_>);
    }

    #[test]
    fn a_manifest_request_and_its_response_come_back(app in of(text()), manifest in json()) {
        comes_back!(GetManifest { tag: Tag, app }, GetManifest<'_>);
        comes_back!(ManifestResponse { tag: Tag, manifest }, ManifestResponse<'_>);
    }

    #[test]
    fn an_invocation_comes_back(
        capability_id in capability(), operation_id in operation(), uid: u32, domain in any_of(Domain::ALL),
        trust in 0..=3u8, budget_ms: u64, tier in any_of(Tier::ALL), modality in any_of(Modality::ALL),
        confirmation in of(text()), params_json in json(),
    ) {
        let principal = PrincipalSummary { uid, domain, trust };
        let context = WireContext { operation_id, principal, budget_ms, tier, modality, confirmation };
        comes_back!(InvokeCapability { tag: Tag, capability_id, context, params_json }, InvokeCapability<'_>);
    }

    #[test]
    fn the_result_of_an_invocation_comes_back(
        success: bool, failure in of((any_of(ErrorCode::ALL), text(), any::<bool>())),
        state_source in any_of(StateSource::ALL), data_json in of(json()),
    ) {
        let error = failure.map(|(code, message, no_effect)| InvocationFailure { code, message, no_effect });
        comes_back!(InvocationResult { tag: Tag, success, error, state_source, data_json }, InvocationResult<'_>);
    }

    #[test]
    fn the_result_of_an_operation_comes_back(
        ends in (any::<bool>(), operation(), any_of(Terminal::ALL), of(any_of(Effect::ALL))),
        failure in of((any_of(ErrorCode::ALL), text(), of(text()), of(any_of(Stage::ALL)))),
        audit_hash in of("[0-9a-f]{64}"), state_source in any_of(StateSource::ALL), tier in of(any_of(Tier::ALL)),
        duration_us: u64, flags: (bool, bool), plan in of(json()), data_json in of(json()),
    ) {
        let (success, operation_id, terminal, effect) = ends;
        let error = failure.map(|(code, message, hint, stage)| OperationFailure { code, message, hint, stage });
        let (replayed, retry_safe) = flags;
        let audit_hash = audit_hash.map(Text::from);
        comes_back!(
            OperationResult {
                tag: Tag, success, operation_id, terminal, effect, error, audit_hash, state_source, tier,
                duration_us, replayed, retry_safe, plan, data_json,
            },
            OperationResult<'_>
        );
    }

    #[test]
    fn a_validation_comes_back(
        capability_id in capability(), params_json in json(), valid: bool, pointer in of(text()),
        message in of(text()),
    ) {
        comes_back!(ValidateParams { tag: Tag, capability_id, params_json }, ValidateParams<'_>);
        comes_back!(ValidateParamsResponse { tag: Tag, valid, pointer, message }, ValidateParamsResponse<'_>);
    }

    #[test]
    fn a_question_about_state_and_its_answer_come_back(
        topic in text(), arguments in of(json()), state_source in any_of(StateSource::ALL), data_json in json(),
    ) {
        comes_back!(QueryState { tag: Tag, topic: topic.clone(), arguments }, QueryState<'_>);
        comes_back!(StateResponse { tag: Tag, topic, state_source, data_json }, StateResponse<'_>);
    }

    #[test]
    fn a_shutdown_and_a_cancellation_come_back(reason in of(text()), operation_id in operation()) {
        comes_back!(AppShutdown { tag: Tag, reason }, AppShutdown<'_>);
        comes_back!(AppShutdownAck { tag: Tag }, AppShutdownAck);
        comes_back!(CancelRequest { tag: Tag, operation_id }, CancelRequest);
    }

    #[test]
    fn arbitrary_payloads_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..27u32) {
        let message_type = StreamMessageType::from_discriminant(kind).unwrap();
        let frame = Frame { message_type, payload: &bytes };
        let _ = Request::read(frame, Role::Client);
        let _ = AppRequest::read(frame);
    }
}

const OPERATION: &str = "0191e7a0-0000-7000-8000-000000000001";

/// One payload of every type that a client or the daemon may send as a request, and every reply.
fn samples() -> Vec<(StreamMessageType, String)> {
    use StreamMessageType as T;
    let operation = format!(r#""operation_id":"{OPERATION}""#);
    let sample = |kind: T, members: &str| {
        let comma = if members.is_empty() { "" } else { "," };
        (kind, format!(r#"{{"type":"{}"{comma}{members}}}"#, kind.name()))
    };
    vec![
        (T::Ping, String::new()),
        sample(
            T::ExecuteRequest,
            &format!(
                r#""kind":"intent",{operation},"intent":{{"domain":"app","action":"a","target_app":"b","parameters":{{}}}}"#
            ),
        ),
        sample(T::RegistryQuery, r#""what":"apps""#),
        sample(T::GetManifest, ""),
        sample(T::QueryState, r#""topic":"health""#),
        sample(T::CancelRequest, &operation),
        sample(T::AppShutdown, ""),
        sample(T::AppShutdownAck, ""),
        sample(T::ValidateParamsMsg, r#""capability_id":"app.x.read","params_json":{}"#),
        sample(T::ManifestResponse, r#""manifest":{}"#),
        sample(T::StateResponse, r#""topic":"x","state_source":"rust","data_json":1"#),
        sample(T::ErrorResponse, r#""code":"not_found","message":"m""#),
    ]
}

/// Whether a payload is accepted in a frame of this type, by the daemon or by an application.
fn accepted(message_type: StreamMessageType, payload: &str) -> bool {
    let frame = Frame { message_type, payload: payload.as_bytes() };
    Request::read(frame, Role::Confirmer).is_ok() || AppRequest::read(frame).is_ok()
}

#[test]
fn no_payload_is_read_as_a_request_of_another_type() {
    let mut requests = 0;
    for (kind, payload) in samples() {
        for other in StreamMessageType::ALL {
            if accepted(other, &payload) {
                assert_eq!(other, kind, "{payload} was read as {other:?}");
                requests += 1;
            }
        }
    }
    assert_eq!(requests, 8, "each request was read as itself");
}

#[test]
fn a_flipped_type_byte_never_yields_a_request() {
    for (kind, payload) in samples() {
        for bit in 0..8 {
            let flipped = StreamMessageType::from_discriminant(kind.discriminant() ^ (1 << bit));
            if let Some(flipped) = flipped {
                assert!(!accepted(flipped, &payload), "{payload} as {flipped:?}");
            }
        }
    }
}

#[test]
fn the_daemon_serves_six_types_and_refuses_the_others_by_name() {
    let served = [0, 5, 7, 14, 20, 26];
    for message_type in StreamMessageType::ALL {
        let read = Request::read(Frame { message_type, payload: b"" }, Role::Client);
        let unsupported = matches!(&read, Err(Error::UnsupportedMessage { .. }));
        assert_eq!(!unsupported, served.contains(&message_type.discriminant()), "{message_type:?}");
        if unsupported {
            let error = read.unwrap_err();
            assert_eq!(error.to_string(), format!("{} is not served here", message_type.name()));
            assert_eq!(error.code(), ErrorCode::UnsupportedMessage);
            assert!(!error.ends_stream());
        }
    }
}

#[test]
fn requests_break_their_schema_loudly() {
    use StreamMessageType as T;
    let table: &[(T, &[u8], &str)] = &[
        (T::Ping, b"{}", "ping has no payload, but 2 bytes came with it"),
        (
            T::RegistryQuery,
            b"{\"app\":\"\xff\xfe\"}",
            "payload of registry_query is not UTF-8 from byte 8 on",
        ),
        (T::RegistryQuery, b"", "payload of registry_query: an object is missing at byte 0"),
        (
            T::RegistryQuery,
            br#"{"what":"apps"}"#,
            "payload of registry_query: missing field `type` at byte 15",
        ),
        (
            T::RegistryQuery,
            br#"{"type":"query_state","what":"apps"}"#,
            "payload of registry_query: invalid value: string \"query_state\", expected the message type \"registry_query\" at byte 8",
        ),
        (
            T::RegistryQuery,
            br#"{"type":"registry_query","what":"apps","extra":1}"#,
            "payload of registry_query: unknown field `extra`, expected one of `type`, `what`, `domain`, `method`, `app`, `id`, `cursor` at byte 39",
        ),
        (
            T::CancelRequest,
            br#"{"type":"cancel_request","operation_id":"7"}"#,
            "payload of cancel_request: operation id \"7\" is not allowed: a UUID has 36 characters at byte 43",
        ),
    ];
    for (message_type, payload, wanted) in table {
        let error = Request::read(Frame { message_type: *message_type, payload }, Role::Client).unwrap_err();
        assert_eq!(error.to_string(), *wanted);
        assert_eq!(error.code(), ErrorCode::InvalidRequest);
    }
}

#[test]
fn an_error_that_quotes_a_megabyte_is_cut() {
    let payload = format!(r#"{{"type":"registry_query","{}":1}}"#, "x".repeat(1_000_000));
    let frame = Frame { message_type: StreamMessageType::RegistryQuery, payload: payload.as_bytes() };
    let error = Request::read(frame, Role::Client).unwrap_err().to_pcp();
    assert!(error.message.len() <= pcp_ipc::MAX_ERROR_TEXT_BYTES);
}
