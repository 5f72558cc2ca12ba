//! The rules of a request, each at its limit and one past it (S3; ).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use pcp_core::v2::{ActionName, Fault, InvalidRequest, ReadError, Sha256Hash};
use serde_json::{Value, json};

use support::{judge, request, with, without};

fn malformed(fault: Fault) -> Option<InvalidRequest> {
    Some(InvalidRequest::Unreadable(ReadError::Malformed(fault)))
}

fn bound(
    field: &'static str,
    value: u64,
    unit: &'static str,
    least: u64,
    most: u64,
) -> Option<InvalidRequest> {
    Some(InvalidRequest::Bound { field, value, unit, least, most })
}

/// Every row: the request, and the rule that it breaks.
fn hold(rows: Vec<(Value, Option<InvalidRequest>)>) {
    for (at, (request, expected)) in rows.into_iter().enumerate() {
        assert_eq!(judge(&request.to_string()).err(), expected, "row {at}");
    }
}

fn acting(action: Value) -> Value {
    with(request("type_text"), "/action", action)
}

fn setting(value: &str) -> Value {
    let request = with(request("set_value"), "/action/value", json!(value));
    with(request, "/verification/sha256", json!(Sha256Hash::of(value.as_bytes())))
}

#[test]
fn each_of_the_four_versions_must_be_2() {
    for field in ["protocol_version", "action_version", "target_version", "verification_version"] {
        for value in [0, 1, 3, 65_535] {
            let request = with(request("type_text"), &format!("/{field}"), json!(value));
            assert_eq!(judge(&request.to_string()).unwrap_err(), InvalidRequest::Version { field, value });
        }
    }
}

#[test]
fn the_interaction_mode_is_asked_for_and_the_isolation_is_not() {
    hold(vec![
        (with(request("type_text"), "/interaction_mode", json!("background_only")), None),
        (
            with(request("type_text"), "/interaction_mode", json!("unknown")),
            Some(InvalidRequest::InteractionMode),
        ),
        (
            without(request("type_text"), "/interaction_mode"),
            malformed(Fault::MissingKey("interaction_mode".into())),
        ),
        (with(request("type_text"), "/interaction_mode", json!("both")), malformed(Fault::UnknownKind)),
        (
            with(request("type_text"), "/session_isolation", json!("host_isolated")),
            malformed(Fault::UnknownKey),
        ),
        (with(request("type_text"), "/key", json!("00")), malformed(Fault::UnknownKey)),
    ]);
}

#[test]
fn the_three_identifiers_have_256_characters_of_a_narrow_alphabet() {
    for field in ["operation_id", "subject", "session_id"] {
        let id = |text: &str| with(request("type_text"), &format!("/{field}"), json!(text));
        let length = |bytes| Some(InvalidRequest::IdentifierLength { field, bytes });
        let character = |at| Some(InvalidRequest::IdentifierCharacter { field, at });
        hold(vec![
            (id(&"a".repeat(256)), None),
            (id("AZaz09-_:"), None),
            (id(""), length(0)),
            (id(&"a".repeat(257)), length(257)),
            (id("a.b"), character(1)),
            (id("a b"), character(1)),
            (id("\u{e9}"), character(0)),
        ]);
    }
}

#[test]
fn only_an_element_with_its_five_fences_is_a_target() {
    let target = |target: Value| with(request("type_text"), "/target", target);
    let place = json!({"kind": "coordinates", "x": 1.5, "y": -2, "display_id": "d", "display_geometry_hash": "h",
                       "snapshot_id": "s", "snapshot_content_hash": "c"});
    let mut rows = vec![
        (target(place), Some(InvalidRequest::Target { kind: "coordinates" })),
        (target(json!({"kind": "none"})), Some(InvalidRequest::Target { kind: "none" })),
        (target(json!({"kind": "none", "zzz": 1})), malformed(Fault::UnknownKey)),
        (target(json!({"kind": "window"})), malformed(Fault::UnknownKind)),
        (with(request("type_text"), "/target/target/generation", json!(0)), Some(InvalidRequest::Generation)),
        (with(request("type_text"), "/target/target/generation", json!(u64::MAX)), None),
        (with(request("type_text"), "/target/target/generation", json!(-1)), malformed(Fault::Type)),
    ];
    for (name, field) in [
        ("observation_id", "target.target.observation_id"),
        ("provenance_hash", "target.target.provenance_hash"),
        ("element_id", "target.target.element_id"),
        ("fingerprint_hash", "target.target.fingerprint_hash"),
    ] {
        let pointer = format!("/target/target/{name}");
        for bad in ["1".repeat(63), "1".repeat(65), "A".repeat(64), "g".repeat(64), String::new()] {
            let characters = bad.len();
            let row = with(request("type_text"), &pointer, json!(bad));
            rows.push((row, Some(InvalidRequest::Hash { field, characters })));
        }
        rows.push((without(request("type_text"), &pointer), malformed(Fault::MissingKey(name.into()))));
    }
    hold(rows);
}

#[test]
fn every_action_has_its_bounds() {
    let typing = |text: String, delay: Value| {
        acting(
            json!({"kind": "type_text", "text": text, "clear": true, "press_return": false, "delay_ms": delay}),
        )
    };
    let click = |count: u32| {
        let button = "middle";
        acting(json!({"kind": "click", "button": button, "count": count, "allow_coordinate_fallback": false}))
    };
    let press = |key: usize, count: u64, delay: u64| {
        acting(json!({"kind": "press", "key": "k".repeat(key), "count": count, "delay_ms": delay}))
    };
    let paste = |bytes: usize| acting(json!({"kind": "paste", "text": "p".repeat(bytes)}));
    let hotkey =
        |keys: usize, bytes: usize| acting(json!({"kind": "hotkey", "keys": vec!["k".repeat(bytes); keys]}));
    let scroll = |amount: u32| acting(json!({"kind": "scroll", "direction": "left", "amount": amount}));
    let text = |value| bound("action.text", value, "bytes", 1, 16_384);
    let delay = |value| bound("action.delay_ms", value, "ms", 0, 1_000);
    hold(vec![
        (acting(json!({"kind": "move"})), None),
        (click(1), None),
        (click(3), None),
        (click(0), bound("action.count", 0, "clicks", 1, 3)),
        (click(4), bound("action.count", 4, "clicks", 1, 3)),
        (typing("t".repeat(16_384), json!(1_000)), None),
        (typing("t".into(), Value::Null), None),
        (typing(String::new(), Value::Null), text(0)),
        (typing("t".repeat(16_385), Value::Null), text(16_385)),
        (typing("\u{e9}".repeat(8_193), Value::Null), text(16_386)),
        (typing("t".into(), json!(1_001)), delay(1_001)),
        (press(64, 100, 1_000), None),
        (press(0, 1, 0), bound("action.key", 0, "bytes", 1, 64)),
        (press(65, 1, 0), bound("action.key", 65, "bytes", 1, 64)),
        (press(1, 0, 0), bound("action.count", 0, "presses", 1, 100)),
        (press(1, 101, 0), bound("action.count", 101, "presses", 1, 100)),
        (press(1, 1, 1_001), delay(1_001)),
        (paste(16_384), None),
        (paste(0), text(0)),
        (paste(16_385), text(16_385)),
        (hotkey(8, 64), None),
        (hotkey(0, 1), bound("action.keys", 0, "keys", 1, 8)),
        (hotkey(9, 1), bound("action.keys", 9, "keys", 1, 8)),
        (hotkey(2, 65), bound("action.keys[]", 65, "bytes", 1, 64)),
        (hotkey(1, 0), bound("action.keys[]", 0, "bytes", 1, 64)),
        (scroll(100), None),
        (scroll(0), bound("action.amount", 0, "steps", 1, 100)),
        (scroll(101), bound("action.amount", 101, "steps", 1, 100)),
        (setting(""), None),
        (setting(&"v".repeat(16_384)), None),
        (setting(&"v".repeat(16_385)), bound("action.value", 16_385, "bytes", 0, 16_384)),
    ]);
}

#[test]
fn a_value_is_set_with_its_own_hash_and_nothing_else_has_one() {
    let hash = |sha256: &str| json!({"kind": "target_value_hash", "sha256": sha256});
    let other = "0".repeat(64);
    let field = "verification.sha256";
    hold(vec![
        (request("set_value"), None),
        (with(request("set_value"), "/verification", hash(&other)), Some(InvalidRequest::ValueHashDiffers)),
        (
            with(request("set_value"), "/verification", json!({"kind": "none"})),
            Some(InvalidRequest::ValueHashMissing),
        ),
        (
            with(request("set_value"), "/verification", json!({"kind": "snapshot_changed"})),
            Some(InvalidRequest::ValueHashMissing),
        ),
        (
            with(request("type_text"), "/verification", hash(&other)),
            Some(InvalidRequest::ValueHashOfOther { action: ActionName::TypeText }),
        ),
        (
            with(request("set_value"), "/verification", hash(&"A".repeat(64))),
            Some(InvalidRequest::Hash { field, characters: 64 }),
        ),
    ]);
}

#[test]
fn an_expected_state_that_is_too_large_is_refused_as_a_request() {
    let expecting =
        |expected: Value| with(request("invoke_target_state"), "/verification/expected", expected);
    let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
    let too_large = |unit, limit| Some(InvalidRequest::ExpectedTooLarge { unit, limit });
    hold(vec![
        (expecting(json!(vec![1; 4_095])), None),
        (expecting(json!(vec![1; 4_096])), too_large("values", 4_096)),
        (expecting(nested(32)), None),
        (expecting(nested(33)), too_large("levels", 32)),
        (expecting(json!("x".repeat(65_536))), None),
        (expecting(json!("x".repeat(65_537))), too_large("bytes", 65_536)),
        // Every byte escaped to six: still within what is read.
        (expecting(json!("\u{1}".repeat(65_536))), None),
        (expecting(nested(120)), too_large("levels", 32)),
        (expecting(nested(130)), malformed(Fault::Syntax)),
    ]);
}

#[test]
fn the_deadline_is_a_time_and_a_signature_has_128_digits() {
    let signature = |text: String| with(request("type_text"), "/authority/signature", json!(text));
    let form = |characters| Some(InvalidRequest::SignatureForm { characters });
    hold(vec![
        (with(request("type_text"), "/deadline_at_ms", json!(1)), None),
        (with(request("type_text"), "/deadline_at_ms", json!(i64::MAX)), None),
        (
            with(request("type_text"), "/deadline_at_ms", json!(0)),
            Some(InvalidRequest::Deadline { value: 0 }),
        ),
        (
            with(request("type_text"), "/deadline_at_ms", json!(i64::MIN)),
            Some(InvalidRequest::Deadline { value: i64::MIN }),
        ),
        (with(request("type_text"), "/deadline_at_ms", json!(1.0)), malformed(Fault::Type)),
        (with(request("type_text"), "/deadline_at_ms", json!(u64::MAX)), malformed(Fault::Type)),
        (signature("aB".repeat(64)), None),
        (signature("0".repeat(127)), form(127)),
        (signature("0".repeat(129)), form(129)),
        (signature("g".repeat(128)), form(128)),
        (signature("\u{e9}".repeat(64)), form(64)),
        (signature(String::new()), form(0)),
    ]);
}

#[test]
fn the_first_broken_rule_is_the_one_that_is_told() {
    // Each row mends the first fault of the row before it.
    let mut broken = request("set_value");
    let order: [(&str, Value); 10] = [
        ("/verification_version", json!(2)),
        ("/interaction_mode", json!("interactive")),
        ("/session_id", json!("s1")),
        ("/target", json!({"kind": "none"})),
        ("/action/value", json!("v")),
        ("/verification/sha256", json!("x")),
        ("/verification/sha256", json!(Sha256Hash::of(b"v"))),
        ("/deadline_at_ms", json!(1)),
        ("/authority/signature", json!("0".repeat(128))),
        ("/target/target/generation", json!(1)),
    ];
    for (pointer, bad) in [
        ("/verification_version", json!(1)),
        ("/interaction_mode", json!("unknown")),
        ("/session_id", json!("s.1")),
        ("/target", json!({"kind": "none"})),
        ("/action/value", json!("v".repeat(16_385))),
        ("/verification/sha256", json!("x")),
        ("/deadline_at_ms", json!(0)),
        ("/authority/signature", json!("")),
    ] {
        broken = with(broken, pointer, bad);
    }
    let element = with(request("set_value"), "/target/target/generation", json!(0))["target"].clone();
    let mut told = Vec::new();
    for (pointer, mended) in order {
        let error = judge(&broken.to_string()).unwrap_err();
        told.push(format!("{error:?}").split([' ', '{']).next().unwrap().to_owned());
        let mended = if pointer == "/target" { element.clone() } else { mended };
        let again = pointer == "/verification/sha256" && matches!(error, InvalidRequest::Hash { .. });
        let mended = if again { json!("0".repeat(64)) } else { mended };
        broken = with(broken, pointer, mended);
    }
    assert!(judge(&broken.to_string()).is_ok());
    assert_eq!(
        told,
        [
            "Version",
            "InteractionMode",
            "IdentifierCharacter",
            "Target",
            "Bound",
            "Hash",
            "ValueHashDiffers",
            "Deadline",
            "SignatureForm",
            "Generation"
        ]
    );
}
