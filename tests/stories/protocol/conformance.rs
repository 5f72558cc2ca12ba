//! The cases that every host has to pass, written once (PRAEFECTUS 7; R-181..R-186, R-189, R-190, R-193, R-194).

use std::collections::BTreeMap;

use pcp_core::ErrorCode;
use pcp_core::v2::*;
use serde_json::{Value, json};

use super::hosts::{Daemon, Host, Library, end};
use super::signed::{now_ms, request, set_value, signed, text, with};

fn in_both_hosts(case: impl Fn(&mut dyn Host)) {
    case(&mut Library::new());
    case(&mut Daemon::new());
}

fn sequences(report: &ExecuteReport) -> Vec<(u32, bool)> {
    report.acknowledgements.iter().map(|ack| (ack.sequence, ack.replayed)).collect()
}

#[test]
fn a_signed_value_is_set_once_and_told_again_also_after_a_restart() {
    in_both_hosts(|host| {
        let sent = text(&set_value("op-1", &host.target(), "h\u{e9}llo\n"));
        let first = host.execute(&sent).unwrap();
        assert_eq!(sequences(&first), [(0, false), (1, false), (2, false)]);
        let Some(Terminal::Succeeded { receipt }) = first.terminal() else { panic!("{first:?}") };
        assert_eq!(receipt.effect, Effect::Verified);
        assert!(receipt.before.is_some() && receipt.after.is_some());

        for _ in 0..3 {
            let again = host.execute(&sent).unwrap();
            assert_eq!(sequences(&again), [(2, true)]);
            assert_eq!(again.terminal(), first.terminal(), "the receipt is equal");
            host.restart();
        }

        assert_eq!(host.status("op-1").unwrap().state, first.acknowledgements[2].state);
        assert_eq!(host.status("op-2"), None);
        assert_eq!((host.effects("op-1"), host.all_effects()), (1, 1));
        assert_eq!(host.records("op-1"), ["intent", "terminal"], "a claim and an end, each written once");
    });
}

#[test]
fn another_action_under_the_same_id_is_a_conflict_whenever_it_comes() {
    in_both_hosts(|host| {
        let target = host.target();
        assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "a")))), "succeeded");
        for _ in 0..2 {
            let target = host.target();
            assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "b")))), "conflict");
            host.restart();
        }
        assert_eq!(host.all_effects(), 1);
    });
}

#[test]
fn what_has_ended_is_told_also_when_nothing_can_act_any_more() {
    in_both_hosts(|host| {
        let target = host.target();
        let sent = text(&set_value("op-1", &target, "a"));
        let first = host.execute(&sent).unwrap();
        host.lose_backend();
        let again = host.execute(&sent).unwrap();
        assert_eq!((sequences(&again), again.terminal()), (vec![(2, true)], first.terminal()));
        assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "b")))), "conflict");
        let other = host.execute(&text(&set_value("op-2", &target, "b"))).unwrap();
        assert!(
            matches!(other.terminal(), Some(Terminal::Rejected { .. } | Terminal::Failed { .. })),
            "{other:?}"
        );
        assert_eq!((host.all_effects(), host.status("op-2")), (1, None), "and costs no id");
    });
}

#[test]
fn an_expired_grant_or_deadline_ends_before_the_claim_and_leaves_the_id_free() {
    in_both_hosts(|host| {
        let target = host.target();
        let fresh = || set_value("op-1", &target, "a");
        let mut of_grant = fresh();
        of_grant.authority.grant.expires_at_ms = now_ms() - 1;
        let mut of_request = fresh();
        of_request.deadline_at_ms = now_ms() - 1;
        for late in [signed(of_grant), signed(of_request)] {
            for _ in 0..2 {
                let ended = host.execute(&text(&late)).unwrap();
                assert_eq!(ended.terminal(), Some(&Terminal::ExpiredBeforeEffect));
                assert_eq!(sequences(&ended), [(0, false), (2, false)]);
            }
        }
        assert_eq!(host.all_effects(), 0);
        assert_eq!(host.status("op-1"), None, "nothing is claimed");

        let target = host.target();
        assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "a")))), "succeeded");
        let records = host.records("op-1");
        assert_eq!(records, ["refusal", "refusal", "refusal", "refusal", "intent", "terminal"]);
    });
}

#[test]
fn a_grant_is_bound_to_all_that_it_names_and_to_every_bit_of_its_signature() {
    in_both_hosts(|host| {
        let good = set_value("op-1", &host.target(), "a");
        let grant = |member: &str, value: Value| with(&good, &format!("/authority/grant/{member}"), value);
        let mut rows: Vec<String> = [
            ("issuer", json!("other")),
            ("key_id", json!("k2")),
            ("operation_id", json!("op-2")),
            ("subject", json!("bob")),
            ("session_id", json!("s2")),
            ("risk", json!("destructive")),
            ("policy_generation", json!("gen2")),
            ("action_hash", json!("0".repeat(64))),
            ("expires_at_ms", json!(good.authority.grant.expires_at_ms + 1)),
            ("protocol_version", json!(3)),
        ]
        .map(|(member, value)| grant(member, value))
        .into();
        for at in [0, 64, 127] {
            let mut signature = good.authority.signature.clone().into_bytes();
            signature[at] = if signature[at] == b'0' { b'1' } else { b'0' };
            rows.push(with(&good, "/authority/signature", json!(String::from_utf8(signature).unwrap())));
        }
        for row in rows {
            assert_eq!(end(&host.execute(&row)), "permission_denied", "{row}");
        }
        for digits in [127, 129] {
            let row = with(&good, "/authority/signature", json!("0".repeat(digits)));
            assert_eq!(end(&host.execute(&row)), "invalid_request", "{digits}");
        }
        let upper = with(&good, "/authority/signature", json!(good.authority.signature.to_uppercase()));
        assert_eq!(end(&host.execute(&upper)), "succeeded", "either case");
        assert_eq!(host.all_effects(), 1);
    });
}

/// What a program may write wrongly, each with the reason; none of it leaves a claim.
fn malformed(good: &ActionRequest) -> BTreeMap<String, String> {
    let sent = text(good);
    let member = |name: &str, value: Value| with(good, &format!("/{name}"), value);
    let extra = |pointer: &str| {
        let mut value = json!(good);
        value.pointer_mut(pointer).unwrap()["zzz"] = json!(1);
        value.to_string()
    };
    let mut missing = json!(good);
    missing.as_object_mut().unwrap().remove("interaction_mode");
    let invoke = request("op-1", good.element(), Action::Invoke {});
    let mut rows = BTreeMap::from([
        ("an extra member at the top".into(), extra("")),
        ("an extra member of the grant".into(), extra("/authority/grant")),
        ("an extra member of the target".into(), extra("/target/target")),
        ("an extra member of a variant".into(), extra("/action")),
        (
            "an extra member of a unit variant".into(),
            with(&invoke, "/action", json!({"kind": "invoke", "zzz": 1})),
        ),
        (
            "session isolation in the request".into(),
            sent.replacen('{', "{\"session_isolation\":\"shared_desktop\",", 1),
        ),
        ("a member twice".into(), sent.replacen('{', "{\"subject\":\"alice\",", 1)),
        (
            "a member twice inside".into(),
            sent.replacen("\"kind\":\"set_value\"", "\"kind\":\"set_value\",\"value\":\"a\"", 1),
        ),
        ("no interaction mode".into(), missing.to_string()),
        ("an unknown interaction mode".into(), member("interaction_mode", json!("unknown"))),
        ("no target".into(), member("target", json!({"kind": "none"}))),
        (
            "coordinates".into(),
            member(
                "target",
                json!({"kind": "coordinates", "x": 1, "y": 1, "display_id": "d", "display_geometry_hash": "0".repeat(64),
                "snapshot_id": "s", "snapshot_content_hash": "0".repeat(64)}),
            ),
        ),
        ("a deadline of zero".into(), member("deadline_at_ms", json!(0))),
        ("a value of another hash".into(), with(good, "/action/value", json!("other"))),
        ("a value without its hash".into(), member("verification", json!({"kind": "none"}))),
        (
            "a delay of 1001".into(),
            with(&invoke, "/action", json!({"kind": "press", "key": "a", "count": 1, "delay_ms": 1001})),
        ),
        (
            "an empty text".into(),
            with(
                &invoke,
                "/action",
                json!({"kind": "type_text", "text": "", "clear": false, "press_return": false}),
            ),
        ),
    ]);
    for version in ["protocol_version", "action_version", "target_version", "verification_version"] {
        for value in [1, 3] {
            rows.insert(format!("{version} {value}"), member(version, json!(value)));
        }
    }
    for (name, id) in [
        ("257", "a".repeat(257)),
        ("empty", String::new()),
        ("dot", "a.b".into()),
        ("space", "a b".into()),
        ("umlaut", "\u{fc}".into()),
    ] {
        let mut changed = good.clone();
        changed.operation_id = id;
        rows.insert(format!("operation id: {name}"), text(&signed(changed)));
    }
    rows
}

trait OfElement {
    fn element(&self) -> &SemanticTargetRef;
}

impl OfElement for ActionRequest {
    fn element(&self) -> &SemanticTargetRef {
        let TargetRef::Element { target } = &self.target else { panic!("no element") };
        target
    }
}

#[test]
fn what_breaks_a_rule_is_an_invalid_request_and_leaves_nothing() {
    in_both_hosts(|host| {
        let good = set_value("op-1", &host.target(), "a");
        for (why, sent) in malformed(&good) {
            assert_eq!(end(&host.execute(&sent)), "invalid_request", "{why}");
        }
        assert_eq!(host.all_effects(), 0);
        assert_eq!(host.records("op-1"), Vec::<String>::new());
        let target = host.target();
        assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "a")))), "succeeded");
    });
}

#[test]
fn each_limit_holds_on_both_sides() {
    in_both_hosts(|host| {
        let target = host.target();
        let longest = "A:b_c-9".to_owned() + &"x".repeat(MAX_IDENTIFIER_BYTES - 7);
        let empty = set_value("op-empty", &target, "");
        assert_eq!(
            end(&host.execute(&text(&set_value(&longest, &target, "a")))),
            "succeeded",
            "256 characters"
        );
        assert_eq!(end(&host.execute(&text(&empty))), "succeeded", "an empty value");
        for (bytes, told) in [(MAX_TEXT_BYTES, "not invalid"), (MAX_TEXT_BYTES + 1, "invalid_request")] {
            let sent = text(&set_value(&format!("op-{bytes}"), &target, &"v".repeat(bytes)));
            let answer = host.execute(&sent);
            assert_eq!(answer == Err(ErrorCode::InvalidRequest), told == "invalid_request", "{bytes}");
        }
        let expecting = |id: &str, expected: Value| {
            let mut asked = request(id, &target, Action::Invoke {});
            asked.verification = VerificationPolicy::TargetState { expected };
            text(&signed(asked))
        };
        let nested = |levels: usize| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        let half = "x".repeat(MAX_EXPECTED_BYTES / 2);
        let levels = host.levels();
        let rows = [
            ("values", json!(vec![Value::Null; MAX_EXPECTED_NODES - 1]), true),
            ("values+1", json!(vec![Value::Null; MAX_EXPECTED_NODES]), false),
            (
                "levels",
                nested(levels.min(MAX_EXPECTED_DEPTH) - if levels < MAX_EXPECTED_DEPTH { 3 } else { 0 }),
                true,
            ),
            ("bytes", json!([half, half]), true),
            ("bytes+1", json!([half, half, 1]), false),
        ];
        for (name, expected, fits) in rows {
            let answer = host.execute(&expecting(&name.replace('+', "-"), expected));
            assert_eq!(answer != Err(ErrorCode::InvalidRequest), fits, "{name}: {}", end(&answer));
        }
    });
}

#[test]
fn an_end_that_is_not_proven_is_unknown_and_never_tried_again() {
    in_both_hosts(|host| {
        let mut asked = request("op-1", &host.target(), Action::Invoke {});
        asked.verification = VerificationPolicy::TargetState { expected: json!({"checked": true}) };
        let sent = text(&signed(asked));
        for _ in 0..2 {
            let ended = host.execute(&sent).unwrap();
            let terminal = ended.terminal().unwrap();
            assert!(matches!(terminal, Terminal::OutcomeUnknown { .. }), "{terminal:?}");
            assert!(!terminal.retry_safe());
            assert_eq!(json!(terminal)["retry_safe"], false);
            host.restart();
        }
        assert_eq!(host.effects("op-1"), 1);
    });
}

#[test]
fn a_target_that_differs_in_any_of_its_hashes_is_stale_before_the_claim() {
    let mut host = Daemon::new();
    let target = host.target();
    let zeros = "0".repeat(64);
    let rows: [(&str, SemanticTargetRef); 5] = [
        ("observation", SemanticTargetRef { observation_id: zeros.clone(), ..target.clone() }),
        ("provenance", SemanticTargetRef { provenance_hash: zeros.clone(), ..target.clone() }),
        ("element", SemanticTargetRef { element_id: zeros.clone(), ..target.clone() }),
        ("fingerprint", SemanticTargetRef { fingerprint_hash: zeros, ..target.clone() }),
        ("generation", SemanticTargetRef { generation: target.generation + 1, ..target.clone() }),
    ];
    for (which, stale) in rows {
        let ended = host.execute(&text(&set_value("op-1", &stale, "a"))).unwrap();
        let Some(Terminal::Rejected { code, .. }) = ended.terminal() else { panic!("{which}: {ended:?}") };
        assert_eq!(*code, FailureCode::StaleTarget, "{which}");
    }
    assert_eq!(host.seat.invocation_count(), 0, "the application is not even asked");
    assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "a")))), "succeeded", "the id is free");
}
