//! Every payload comes back as it was sent, and none can be read as another.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use pcp_core::{
    CapabilityId, DetectionMethod, Domain, Effect, ErrorCode, Modality, OperationId, OverflowStrategy, Stage,
    StateSource, Terminal, Tier,
};
use pcp_ipc::payloads::{
    AckState, AppShutdown, AppShutdownAck, Awaiting, CancelRequest, ConfirmationRequest,
    ConfirmationResponse, Decision, DeliveryMode, DetectRequest, DetectResponse, Element, ErrorResponse,
    EventAck, ExecuteRequest, ExecuteResponse, Find, GetManifest, InvocationFailure, InvocationResult,
    InvokeCapability, ManifestResponse, OperationFailure, OperationResult, PrincipalSummary, PromptKind,
    PushEvent, QueryState, RegistryQuery, RegistryResponse, RegistryRows, RequestKind, StateResponse,
    SubscribeEvents, SubscriptionAck, UnsubscribeEvents, ValidateParams, ValidateParamsResponse, WireContext,
    WireIntent,
};
use pcp_ipc::{AppRequest, Error, Json, Payload, Request, Tag, Text, read_payload};
use pcp_stream::{Frame, Role, StreamMessageType};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

fn text() -> impl Strategy<Value = Text<'static>> {
    any::<String>().prop_map(Text::from)
}

/// A text that fits a member with a limit.
fn short() -> impl Strategy<Value = Text<'static>> {
    any::<String>().prop_map(|text| text.chars().take(8).collect::<String>().into())
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
    fn a_detection_and_its_answer_come_back(
        app in short(), found: bool, method in of(any_of(DetectionMethod::ALL)), confidence_percent in of(0..=100u8),
        counts: [u32; 4], problem in of(short()),
    ) {
        comes_back!(DetectRequest { tag: Tag, app: app.clone() }, DetectRequest<'_>);
        let [capabilities, added, removed, changed] = counts;
        comes_back!(
            DetectResponse {
                tag: Tag, app, found, method, confidence_percent, capabilities, added, removed, changed, problem,
            },
            DetectResponse<'_>
        );
    }

    #[test]
    fn a_subscription_comes_back(
        topics in prop::collection::vec(short(), 0..5), app in of(short()), domain in of(any_of(Domain::ALL)),
        from: Option<u64>, queue: Option<u32>, overflow in of(any_of(OverflowStrategy::ALL)),
        delivery in of(select(vec![DeliveryMode::Polled, DeliveryMode::Pushed])),
    ) {
        comes_back!(
            SubscribeEvents { tag: Tag, topics, app, domain, from, queue, overflow, delivery }, SubscribeEvents<'_>
        );
    }

    #[test]
    fn the_state_of_a_subscription_comes_back(subscription_id: u64, sequence: u64) {
        comes_back!(UnsubscribeEvents { tag: Tag, subscription_id }, UnsubscribeEvents);
        comes_back!(SubscriptionAck { tag: Tag, subscription_id, sequence }, SubscriptionAck);
        comes_back!(EventAck { tag: Tag, subscription_id, sequence }, EventAck);
    }

    #[test]
    fn an_event_and_a_gap_come_back(
        subscription_id: u64, sequence: u64, count: u64, missed: u64, topic in short(), app in of(short()), data in json(),
    ) {
        comes_back!(PushEvent::gap(subscription_id, sequence, count, missed), PushEvent<'_>);
        let mut event = PushEvent::event(subscription_id, sequence, count, topic, data);
        event.app = app;
        comes_back!(event, PushEvent<'_>);
    }

    #[test]
    fn a_prompt_and_a_decision_come_back(
        words in [short(), short(), short(), short()], choices in prop::collection::vec(short(), 0..4), expires_ms: u64,
        kind in select(vec![PromptKind::Confirm, PromptKind::Choice]), choice: Option<u32>,
        decision in select(vec![Decision::Confirm, Decision::Refuse]),
    ) {
        let [prompt_id, intent_hash, nonce, text] = words;
        comes_back!(
            ConfirmationResponse {
                tag: Tag, prompt_id: prompt_id.clone(), intent_hash: intent_hash.clone(), nonce: nonce.clone(), decision,
                choice,
            },
            ConfirmationResponse<'_>
        );
        comes_back!(
            ConfirmationRequest { tag: Tag, prompt_id, kind, intent_hash, nonce, text, choices, expires_ms },
            ConfirmationRequest<'_>
        );
    }

    #[test]
    fn arbitrary_payloads_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0..27u32) {
        let message_type = StreamMessageType::from_discriminant(kind).unwrap();
        let frame = Frame { message_type, payload: &bytes };
        let _ = Request::read(frame, Role::Client);
        let _ = AppRequest::read(frame);
    }
}

/// The golden payloads of the wire's document: at least one of each type but Pong, which is as empty as Ping and asks for
/// nothing either.
fn samples() -> Vec<(StreamMessageType, String)> {
    let document = include_str!("../../pcp-stream/WIRE.md");
    let block = document.split("```golden\n").nth(1).unwrap().split("\n```").next().unwrap();
    let sample = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let name = parts.next().unwrap();
        let kind = StreamMessageType::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
        (kind, parts.nth(1).unwrap_or_default().to_owned())
    };
    block.lines().map(sample).filter(|(kind, _)| *kind != StreamMessageType::Pong).collect()
}

/// Whether a payload is accepted in a frame of this type, by the daemon or by an application.
fn accepted(message_type: StreamMessageType, payload: &str) -> bool {
    let frame = Frame { message_type, payload: payload.as_bytes() };
    Request::read(frame, Role::Confirmer).is_ok() || AppRequest::read(frame).is_ok()
}

#[test]
fn no_payload_is_read_as_a_request_of_another_type() {
    let mut requests = std::collections::BTreeSet::new();
    for (kind, payload) in samples() {
        for other in StreamMessageType::ALL {
            if accepted(other, &payload) {
                assert_eq!(other, kind, "{payload} was read as {other:?}");
                requests.insert(kind.discriminant());
            }
        }
    }
    let wanted = [0, 3, 5, 7, 9, 10, 13, 14, 16, 18, 20, 22, 25, 26];
    assert_eq!(requests.into_iter().collect::<Vec<_>>(), wanted, "each request was read as itself");
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

/// Every type against every pair of roles: what the direction table allows and nothing else is read (R-139, R-140).
#[test]
fn each_side_reads_its_own_types_and_refuses_the_others_by_name() {
    let table: [(Role, bool, &[u32]); 5] = [
        (Role::Client, false, &[0, 3, 5, 7, 9, 10, 13, 14, 20, 26]),
        (Role::Confirmer, false, &[0, 3, 5, 7, 9, 10, 13, 14, 20, 25, 26]),
        (Role::App, false, &[]),
        (Role::Daemon, false, &[]),
        (Role::Daemon, true, &[9, 14, 16, 18, 20, 22]),
    ];
    for (from, to_app, served) in table {
        for message_type in StreamMessageType::ALL {
            let frame = Frame { message_type, payload: b"" };
            let error = if to_app { AppRequest::read(frame).err() } else { Request::read(frame, from).err() };
            let unsupported = matches!(&error, Some(Error::UnsupportedMessage { .. }));
            assert_eq!(
                !unsupported,
                served.contains(&message_type.discriminant()),
                "{message_type:?} {from:?}"
            );
            if let Some(error) = error.filter(|_| unsupported) {
                assert_eq!(error.to_string(), format!("{} is not served here", message_type.name()));
                assert_eq!(error.code(), ErrorCode::UnsupportedMessage);
                assert!(!error.ends_stream());
            }
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
