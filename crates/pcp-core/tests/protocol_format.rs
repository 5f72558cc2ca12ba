//! The text of protocol v2: golden vectors, strict reading, and what never stands in a log (S3, R-199).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use pcp_core::v2::Wire as _;
use pcp_core::v2::{
    AckState, ActionAck, ActionRequest, ContextPreservation, DeliveryRoute, Effect, Evidence, ExecuteReport,
    FailureCode, Fault, InteractionMode, InvalidRequest, MAX_ACK_BYTES, MAX_REQUEST_BYTES, ReadError,
    Receipt, SessionIsolation, Sha256Hash, Terminal, read,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use support::{judge, request, vectors, with};

#[test]
fn the_golden_vectors_of_the_reference_are_met_byte_for_byte() {
    let vectors = vectors();
    for vector in vectors["vectors"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        let valid = judge(&vector["request"].to_string()).unwrap();
        assert_eq!(valid.action_hash().to_string(), vector["action_hash"].as_str().unwrap(), "{name}");
        let back = serde_json::to_vec(valid.request()).unwrap();
        assert_eq!(ActionRequest::parse(&back).unwrap(), *valid.request(), "{name}");
    }
    let grant = judge(&request("set_value").to_string()).unwrap().request().authority.grant.signed_bytes();
    let expected = concat!(
        r#"{"action_hash":"97511442eb1c9fd7b47e666c8aa091b3cfbbcab122f9d576884d684b8bb0befc","#,
        r#""expires_at_ms":4102444800000,"issuer":"issuer","key_id":"k1","operation_id":"op-1","#,
        r#""policy_generation":"gen1","protocol_version":2,"risk":"reversible","session_id":"s1","subject":"alice"}"#
    );
    assert_eq!(String::from_utf8(grant).unwrap(), expected);
}

#[test]
fn the_hash_covers_twelve_members_and_neither_the_operation_nor_the_authority() {
    let hash = |value: &Value| judge(&value.to_string()).unwrap().action_hash();
    let original = hash(&request("type_text"));
    let changes = [
        ("/subject", json!("bob"), true),
        ("/session_id", json!("s2"), true),
        ("/action/text", json!("y"), true),
        ("/action/delay_ms", json!(0), true),
        ("/action/delay_ms", Value::Null, false),
        ("/target/target/generation", json!(2), true),
        ("/interaction_mode", json!("background_only"), true),
        ("/deadline_at_ms", json!(4_102_444_800_001_i64), true),
        ("/verification/kind", json!("snapshot_changed"), true),
        ("/safety", json!("external"), true),
        ("/operation_id", json!("op-2"), false),
        ("/authority/grant/issuer", json!("other"), false),
        ("/authority/grant/expires_at_ms", json!(1), false),
        ("/authority/signature", json!("f".repeat(128)), false),
    ];
    for (pointer, member, covered) in changes {
        let changed = hash(&with(request("type_text"), pointer, member));
        assert_eq!(changed != original, covered, "{pointer}");
    }
}

#[test]
fn a_text_with_two_meanings_or_a_member_too_many_is_refused() {
    let text = request("invoke_target_state").to_string();
    let rows = [
        (
            r#""subject":"alice","target""#,
            r#""subject":"alice","subject":"alice","target""#,
            Fault::DuplicateKey,
        ),
        (r#""kind":"invoke""#, r#""kind":"invoke","kind":"invoke""#, Fault::DuplicateKey),
        (r#""kind":"invoke""#, r#""kind":"invoke","zzz":1"#, Fault::UnknownKey),
        (r#""kind":"invoke""#, r#""kind":"invoke","zzz":null"#, Fault::UnknownKey),
        (r#"{"kind":"invoke"}"#, r#"["invoke"]"#, Fault::Spelling),
        (r#"{"kind":"invoke"}"#, r#"["invoke",{}]"#, Fault::Spelling),
        (r#"{"kind":"invoke"}"#, r#""invoke""#, Fault::Type),
        (r#"{"kind":"invoke"}"#, "{}", Fault::MissingKey("kind".into())),
        (r#"{"kind":"invoke"}"#, r#"{"kind":"explode"}"#, Fault::UnknownKind),
        (r#""kind":"target_state""#, r#""kind":"target_state","zzz":1"#, Fault::UnknownKey),
        (r#""z":null"#, r#""z":null,"z":null"#, Fault::DuplicateKey),
        (r#""z":null"#, r#""z":null,"\u007a":null"#, Fault::DuplicateKey),
        (r#""z":null"#, r#""$serde_json::private::RawValue":"{}""#, Fault::ReservedKey),
        (r#""issuer":"issuer""#, r#""issuer":"issuer","zzz":1"#, Fault::UnknownKey),
        (r#""generation":1"#, r#""generation":1,"zzz":1"#, Fault::UnknownKey),
        (r#""generation":1"#, r#""generation":1.0"#, Fault::Type),
        (r#""generation":1"#, r#""generation":"1""#, Fault::Type),
        (r#""protocol_version":2"#, r#""protocol_version":65538"#, Fault::Type),
        (r#""safety":"reversible""#, r#""safety":"Reversible""#, Fault::UnknownKind),
        (r#""safety":"reversible","#, "", Fault::MissingKey("safety".into())),
        ("1e+21", "1e400", Fault::Syntax),
        ("1e+21", "NaN", Fault::Syntax),
        ("1e+21", r#""\ud800""#, Fault::Syntax),
    ];
    for (at, (from, to, fault)) in rows.into_iter().enumerate() {
        assert!(text.contains(from), "row {at}");
        let error = judge(&text.replacen(from, to, 1)).unwrap_err();
        assert_eq!(error, InvalidRequest::Unreadable(ReadError::Malformed(fault)), "row {at}");
    }
    for (bad, fault) in [
        (format!("{text} {{"), Fault::Syntax),
        (text[..text.len() - 1].to_owned(), Fault::Ends),
        (String::new(), Fault::Ends),
        (format!("[{text}]"), Fault::Spelling),
    ] {
        let error = judge(&bad).unwrap_err();
        assert_eq!(error, InvalidRequest::Unreadable(ReadError::Malformed(fault)), "{bad}");
    }
    // An array of the members in their order is another spelling of a struct to serde.
    let members = request("type_text");
    let target = members["target"]["target"].as_object().unwrap();
    let order = ["observation_id", "provenance_hash", "element_id", "fingerprint_hash", "generation"];
    let array = Value::from_iter(order.map(|name| target[name].clone()));
    let error = judge(&with(members, "/target/target", array).to_string()).unwrap_err();
    assert_eq!(error, InvalidRequest::Unreadable(ReadError::Malformed(Fault::Spelling)));
}

#[test]
fn serde_alone_refuses_what_comes_too_much_as_well() {
    let rows = [
        r#"{"kind":"invoke","zzz":1}"#,
        r#"{"kind":"move","kind":"move"}"#,
        r#"{"kind":"paste","text":"a","text":"b"}"#,
        r#"{"kind":"paste","text":"a","extra":null}"#,
        r#"{"kind":"paste"}"#,
    ];
    for text in rows {
        assert!(serde_json::from_str::<pcp_core::v2::Action>(text).is_err(), "{text}");
    }
    let twice = r#"{"kind":"target_state","expected":{"a":[{"b":1,"b":1}]}}"#;
    assert!(serde_json::from_str::<pcp_core::v2::VerificationPolicy>(twice).is_err());
}

#[test]
fn a_request_of_the_limit_is_read_and_one_byte_more_is_not() {
    let text = request("type_text").to_string();
    let padded = format!("{text}{}", " ".repeat(MAX_REQUEST_BYTES - text.len()));
    assert!(judge(&padded).is_ok());
    let error = judge(&format!("{padded} ")).unwrap_err();
    let (bytes, limit) = (MAX_REQUEST_BYTES + 1, MAX_REQUEST_BYTES);
    assert_eq!(error, InvalidRequest::Unreadable(ReadError::TooLarge { bytes, limit }));
}

const CANARY: &str = "canary-7f3a";

#[test]
fn no_debug_text_and_no_error_says_what_was_typed_or_by_whom() {
    let mut texts = Vec::new();
    for action in [
        json!({"kind": "type_text", "text": CANARY, "clear": false, "press_return": false}),
        json!({"kind": "press", "key": CANARY, "count": 1}),
        json!({"kind": "paste", "text": CANARY}),
        json!({"kind": "hotkey", "keys": [CANARY]}),
    ] {
        texts.push(with(request("type_text"), "/action", action));
    }
    let set = with(request("set_value"), "/action/value", json!(CANARY));
    texts.push(with(set, "/verification/sha256", json!(Sha256Hash::of(CANARY.as_bytes()))));
    texts.push(with(request("invoke_target_state"), "/verification/expected", json!({CANARY: CANARY})));
    for (pointer, member) in [
        ("/subject", json!(CANARY)),
        ("/session_id", json!(CANARY)),
        ("/authority/grant/issuer", json!(CANARY)),
        ("/authority/grant/subject", json!(CANARY)),
    ] {
        texts.push(with(request("type_text"), pointer, member));
    }
    for request in texts {
        let valid = judge(&request.to_string()).unwrap();
        let said = format!("{valid:?} {:?} {:#?}", valid.request(), valid.request().authority.grant);
        assert!(!said.contains(CANARY), "{said}");
        let hash = Sha256Hash::of(CANARY.as_bytes()).to_string();
        assert!(!said.contains(&hash), "{said}");
        assert!(said.contains("[redacted]"));
    }
    let text = request("type_text").to_string();
    for (from, to) in [
        (r#""text":"x""#, format!(r#""text":["{CANARY}"]"#)),
        (r#""text":"x""#, format!(r#""text":"x","{CANARY}":1"#)),
        (r#""kind":"type_text""#, format!(r#""kind":"{CANARY}""#)),
        (r#""safety":"reversible""#, format!(r#""safety":"{CANARY}""#)),
        (r#""subject":"alice","target""#, format!(r#""subject":"{CANARY}.x","target""#)),
        (r#""generation":1"#, format!(r#""generation":"{CANARY}""#)),
        (r#""text":"x""#, format!(r#""text":"{CANARY}{}""#, "x".repeat(16_384))),
    ] {
        assert!(text.contains(from));
        let error = judge(&text.replacen(from, &to, 1)).unwrap_err();
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error:?}");
    }
}

fn receipt() -> Receipt {
    let hash = Sha256Hash::ZERO;
    Receipt {
        protocol_version: 2,
        action_name: "invoke".into(),
        action_hash: hash,
        started_at_ms: 1,
        finished_at_ms: 2,
        backend: "b".into(),
        fallback_chain: vec![],
        delivery_route: DeliveryRoute::TargetAddressed,
        session_isolation: SessionIsolation::SharedDesktop,
        interaction_mode: InteractionMode::BackgroundOnly,
        context_preservation: ContextPreservation::UnchangedAtBoundaries,
        effect: Effect::Verified,
        before: Some(Evidence {
            observation_hash: hash,
            target_fingerprint_hash: None,
            display_geometry_hash: hash,
            observed_at_ms: 1,
        }),
        after: None,
        warnings: vec!["w".into()],
    }
}

fn ack(state: AckState) -> ActionAck {
    ActionAck {
        protocol_version: 2,
        operation_id: "op-1".into(),
        sequence: state.sequence(),
        action_hash: Sha256Hash::ZERO,
        replayed: false,
        state,
    }
}

#[test]
fn every_terminal_says_whether_it_is_safe_to_ask_again() {
    let message = || "m".to_owned();
    let code = FailureCode::StaleTarget;
    let table = [
        (Terminal::Succeeded { receipt: receipt() }, "succeeded", false),
        (Terminal::Rejected { code, message: message() }, "rejected", true),
        (Terminal::Failed { code, message: message() }, "failed", true),
        (Terminal::CancelledBeforeEffect, "cancelled_before_effect", true),
        (Terminal::ExpiredBeforeEffect, "expired_before_effect", true),
        (Terminal::OutcomeUnknown { receipt: receipt(), message: message() }, "outcome_unknown", false),
    ];
    for (terminal, kind, safe) in table {
        let text = serde_json::to_value(&terminal).unwrap();
        assert_eq!((text["kind"].as_str(), text["retry_safe"].as_bool()), (Some(kind), Some(safe)));
        assert_eq!(terminal.kind().as_str(), kind);
        let back = |text: &Value| read::<Terminal>(text.to_string().as_bytes(), MAX_ACK_BYTES);
        assert_eq!(back(&text).as_ref(), Ok(&terminal));
        // What the reference wrote has no such member; what says the opposite is no terminal.
        assert_eq!(back(&support::without(text.clone(), "/retry_safe")).as_ref(), Ok(&terminal));
        assert!(back(&with(text.clone(), "/retry_safe", json!(!safe))).is_err());
        assert!(back(&with(text, "/extra", json!(1))).is_err());
    }
}

#[test]
fn an_acknowledgement_is_these_bytes() {
    let table = [
        (ack(AckState::Accepted {}), r#"{"kind":"accepted"}"#, 0),
        (ack(AckState::Executing {}), r#"{"kind":"executing"}"#, 1),
        (
            ack(AckState::Terminal { terminal: Box::new(Terminal::ExpiredBeforeEffect) }),
            r#"{"kind":"terminal","terminal":{"kind":"expired_before_effect","retry_safe":true}}"#,
            2,
        ),
    ];
    let zeros = "0".repeat(64);
    for (ack, state, sequence) in table {
        let expected = format!(
            r#"{{"protocol_version":2,"operation_id":"op-1","sequence":{sequence},"action_hash":"{zeros}","replayed":false,"state":{state}}}"#
        );
        assert_eq!(serde_json::to_string(&ack).unwrap(), expected);
        let report = ExecuteReport { acknowledgements: vec![ack] };
        assert_eq!(report.terminal().is_some(), sequence == 2);
        let text = serde_json::to_vec(&report).unwrap();
        assert_eq!(report.to_value(), serde_json::to_value(&report).unwrap(), "both writers agree");
        assert_eq!(read::<ExecuteReport>(&text, MAX_ACK_BYTES), Ok(report));
    }
    let expected = format!(
        r#"{{"protocol_version":2,"action_name":"invoke","action_hash":"{zeros}","started_at_ms":1,"finished_at_ms":2,"backend":"b","fallback_chain":[],"delivery_route":"target_addressed","session_isolation":"shared_desktop","interaction_mode":"background_only","context_preservation":"unchanged_at_boundaries","effect":"verified","before":{{"observation_hash":"{zeros}","target_fingerprint_hash":null,"display_geometry_hash":"{zeros}","observed_at_ms":1}},"after":null,"warnings":["w"]}}"#
    );
    assert_eq!(serde_json::to_string(&receipt()).unwrap(), expected);
    assert_eq!(receipt().to_value().to_string().len(), expected.len(), "the same members, in another order");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        (-400_000_i32..400_000).prop_map(|n| Value::from(f64::from(n) / 64.0)),
        (-30_i32..30, 1_u32..999).prop_map(|(e, n)| Value::from(f64::from(n) * 10_f64.powi(e))),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn action() -> impl Strategy<Value = Value> {
    let delay = proptest::option::of(0_u64..2_000);
    prop_oneof![
        Just(json!({"kind": "invoke"})),
        Just(json!({"kind": "move"})),
        (0_u32..9).prop_map(|count| {
            json!({"kind": "click", "button": "right", "count": count, "allow_coordinate_fallback": true})
        }),
        (any::<String>(), any::<bool>(), delay.clone()).prop_map(|(text, clear, delay)| {
            json!({"kind": "type_text", "text": text, "clear": clear, "press_return": !clear, "delay_ms": delay})
        }),
        (any::<String>(), any::<u32>()).prop_map(|(key, count)| json!({"kind": "press", "key": key, "count": count})),
        any::<String>().prop_map(|text| json!({"kind": "paste", "text": text})),
        proptest::collection::vec(any::<String>(), 0..4).prop_map(|keys| json!({"kind": "hotkey", "keys": keys})),
        (0_u32..200).prop_map(|amount| json!({"kind": "scroll", "direction": "down", "amount": amount})),
        any::<String>().prop_map(|value| json!({"kind": "set_value", "value": value})),
    ]
}

fn any_request() -> impl Strategy<Value = ActionRequest> {
    let words = (any::<String>(), any::<String>(), any::<String>(), any::<i64>(), any::<u64>());
    (action(), json_value(), words).prop_map(
        |(action, expected, (subject, session, issuer, deadline, generation))| {
            let mut request = with(request("type_text"), "/action", action);
            request["verification"] = json!({"kind": "target_state", "expected": expected});
            for (pointer, member) in [
                ("/subject", json!(subject)),
                ("/session_id", json!(session)),
                ("/authority/grant/issuer", json!(issuer)),
                ("/authority/grant/expires_at_ms", json!(deadline)),
                ("/deadline_at_ms", json!(deadline)),
                ("/target/target/generation", json!(generation)),
            ] {
                request = with(request, pointer, member);
            }
            ActionRequest::parse(request.to_string().as_bytes()).unwrap()
        },
    )
}

/// How many generated requests the other language hashes.
const CROSS_CHECKED: usize = 2_000;

fn python(arguments: &[&str], input: &[u8]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/python/protocol.py");
    let mut child = Command::new("python3")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is needed; ci/setup installs it");
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn another_language_computes_the_golden_vectors_and_verifies_their_signature() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data/protocol/vectors.json");
    assert_eq!(python(&["vectors", file.to_str().unwrap()], b""), "3 hashes and 1 signatures agree\n");
}

#[test]
fn another_language_computes_the_same_hashes_of_thousands_of_requests_and_its_text_reads_the_same() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[42; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = any_request();
    let requests: Vec<ActionRequest> =
        (0..CROSS_CHECKED).map(|_| strategy.new_tree(&mut runner).unwrap().current()).collect();
    let mut lines = Vec::new();
    for request in &requests {
        serde_json::to_writer(&mut lines, request).unwrap();
        lines.push(b'\n');
    }

    let said = python(&["hashes"], &lines);

    let answers: Vec<&str> = said.split_terminator('\n').collect();
    assert_eq!(answers.len(), requests.len());
    for (request, answer) in requests.iter().zip(answers) {
        let mut parts = answer.splitn(3, ' ');
        let grant = Sha256Hash::of(&request.authority.grant.signed_bytes());
        assert_eq!(parts.next().unwrap(), request.action_hash().to_string(), "{answer}");
        assert_eq!(parts.next().unwrap(), grant.to_string(), "{answer}");
        let again = ActionRequest::parse(parts.next().unwrap().as_bytes()).unwrap();
        assert_eq!(again.action_hash(), request.action_hash(), "{answer}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = ActionRequest::parse(&bytes);
    }

    #[test]
    fn a_request_with_one_byte_changed_is_refused_or_says_something_else(at in 0_usize..1_200, byte in any::<u8>()) {
        let mut text = request("set_value").to_string().into_bytes();
        let at = at % text.len();
        prop_assume!(text[at] != byte);
        let before = ActionRequest::parse(&text).unwrap();
        text[at] = byte;
        if let Ok(after) = ActionRequest::parse(&text) {
            // White space between members is the only byte that may change and mean the same; there is none here, but
            // an escaped letter may become another spelling of itself.
            let same = after == before;
            prop_assert!(!same || text[at.saturating_sub(5)..at].contains(&b'\\'), "byte {at}");
        }
    }
}
