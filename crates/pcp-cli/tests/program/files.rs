//! The verbs that read files: every case of the project's test data, and trails as the daemon writes them.

use std::path::Path;

use pcp_core::{
    ActionClass, ActionHash, AuditEnd, AuditEntry, AuthPrincipal, CapabilityId, Domain, Durability, Effect,
    Modality, OperationId, PermissionRecord, RecordKind, Stage, Terminal, Tier, Trail, TrustLevel,
};
use pcp_durable::AuditLog;
use serde_json::{Value, json};

use super::{data, envelope, run};

fn cases(folder: &str) -> Vec<Value> {
    let expected = std::fs::read(data(folder).join("expected.json")).unwrap();
    serde_json::from_slice::<Value>(&expected).unwrap()["cases"].as_array().unwrap().clone()
}

#[test]
fn every_manifest_case_is_inspected_with_its_outcome_and_reason() {
    let cases = cases("manifest");
    assert_eq!(cases.len(), 21);
    let folder = data("manifest").canonicalize().unwrap();
    for case in cases {
        let path = |member: &str| folder.join(case[member].as_str().unwrap()).display().to_string();
        let (file, key) = (path("file"), path("key"));
        let mut args = vec!["inspect", "manifest", &file, "--key", &key];
        if let Some(expected) = case["expected_app_id"].as_str() {
            args.extend(["--expect", expected]);
        }
        let (code, told) = envelope(&args);
        let name = &case["case"];
        assert_eq!(code, 0, "{name}: {told}");
        assert_eq!(told["data"][0]["outcome"], case["outcome"], "{name}: {told}");
        assert_eq!(told["data"][0]["reason"], case["reason"], "{name}: {told}");
        let verified = case["outcome"] == "verified";
        assert_eq!(run(&["manifest", "verify", &file, "--key", &key]).0 == 0, verified, "{name}");
    }
}

#[test]
fn every_frame_case_is_inspected_with_its_frames_and_outcome() {
    let cases = cases("frames");
    assert_eq!(cases.len(), 15);
    let folder = data("frames").canonicalize().unwrap();
    for case in cases {
        let file = folder.join(case["file"].as_str().unwrap()).display().to_string();
        let (code, told) = envelope(&["inspect", "frame", &file]);
        let (name, found) = (&case["case"], &told["data"][0]);
        assert_eq!(code, 0, "{name}");
        for member in ["bytes", "frames", "outcome"] {
            assert_eq!(found[member], case[member], "{name}: {told}");
        }
        if case["after"] != "either" {
            assert_eq!(found["after"], case["after"], "{name}: {told}");
        }
    }
}

fn operation(number: u64) -> OperationId {
    OperationId::from_parts(1_700_000_000_000 + number, [7; 10])
}

/// Writes an operation's two records, or only the first.
fn write(log: &AuditLog, number: u64, end: Option<Terminal>) {
    let caller = AuthPrincipal {
        uid: 1000,
        pid: Some(7),
        domain: Domain::App,
        trust: TrustLevel::USER,
        admin: false,
        confirmer: false,
        modality: Modality::Remote,
        rate_per_second: None,
    };
    let id = CapabilityId::parse("app.org.portal.notes.create").unwrap();
    let entry = |kind, end| AuditEntry {
        trail: Trail::Application,
        kind,
        time_ms: 1_700_000_000_000 + number,
        operation_id: operation(number),
        caller: &caller,
        capability: id.as_str(),
        target_app: "org.portal.notes",
        class: ActionClass::Activate,
        tier: Some(Tier::One),
        permission: PermissionRecord { verdict: "allowed", rule: "app.*.*", gate: "allow" },
        params: r#"{"title":"\u202e"}"#,
        params_sha256: &[1; 32],
        action_hash: ActionHash::of_intent(1000, &id, "{}"),
        end,
    };
    let _ticket = log.append(&entry(RecordKind::Intent, None), Durability::Durable).unwrap();
    if let Some(terminal) = end {
        let end = AuditEnd {
            stage: Stage::Audit,
            terminal,
            error: None,
            effect: Some(Effect::ExecutedUnverified),
            verification: "none",
            timed_out: false,
            duration_us: 830,
        };
        let _ticket = log.append(&entry(RecordKind::Terminal, Some(end)), Durability::Durable).unwrap();
    }
}

/// An audit directory with three operations, the last without an end.
fn trails() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("audit");
    let (log, _) = AuditLog::open(&dir, 1_700_000_000_000).unwrap();
    write(&log, 1, Some(Terminal::Succeeded));
    write(&log, 2, Some(Terminal::OutcomeUnknown));
    write(&log, 3, None);
    log.close().unwrap();
    let dir = dir.display().to_string();
    (folder, dir)
}

fn first_segment(dir: &str) -> std::path::PathBuf {
    Path::new(dir).join("application.000001.jsonl")
}

#[test]
fn trails_are_verified_and_the_first_bad_line_is_named() {
    let (_folder, dir) = trails();
    let (code, told) = envelope(&["audit", "verify", "--dir", &dir]);
    assert_eq!(code, 0, "{told}");
    let found: Vec<_> = told["data"]["trails"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| (t["verdict"].clone(), t["records"].clone()))
        .collect();
    assert_eq!(found[0], (json!("whole"), json!(5)));
    assert_eq!(found.len(), 3);

    let path = first_segment(&dir);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let offset = lines[0].len() + lines[1].len() + 2;
    std::fs::write(&path, text.replacen("outcome_unknown", "succeeded______", 2).as_bytes()).unwrap();
    let damaged = std::fs::read_to_string(&path).unwrap();
    let bad = damaged.lines().zip(&lines).position(|(now, before)| now != *before).unwrap();
    assert_eq!(bad, 3);
    let offset = offset + lines[2].len() + 1;
    for args in [["audit", "verify", "--dir", &dir], ["audit", "verify", "--file", path.to_str().unwrap()]] {
        let (code, told) = envelope(&args);
        assert_eq!((code, told["error"]["code"].clone()), (11, json!("integrity_broken")));
        let trail = &told["data"]["trails"][0];
        assert_eq!((trail["verdict"].clone(), trail["records"].clone()), (json!("broken"), json!(3)));
        assert_eq!(
            (trail["first_bad"]["line"].clone(), trail["first_bad"]["offset"].clone()),
            (json!(4), json!(offset))
        );
    }
    let (code, _, err) = run(&["audit", "show", "--dir", &dir, "--format", "table"]);
    assert_eq!(code, 11);
    assert!(err.contains("line 4"), "{err}");
}

#[test]
fn a_directory_that_cannot_be_entered_is_unchecked() {
    let (code, told) = envelope(&["audit", "verify", "--dir", "/nonexistent/audit"]);
    assert_eq!((code, told["error"]["code"].clone()), (12, json!("integrity_unchecked")));
}

#[test]
fn records_are_shown_newest_last_as_they_stand_in_the_trail() {
    let (_folder, dir) = trails();
    let (code, told) = envelope(&["audit", "show", "--dir", &dir, "--last", "2"]);
    assert_eq!(code, 0);
    let records = told["data"].as_array().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((records[1]["seq"].clone(), records[1]["kind"].clone()), (json!(5), json!("intent")));
    assert_eq!(records[1]["trail"], "application");
    assert_eq!(records[1]["prev"], records[0]["audit_hash"]);

    let one = operation(1).to_string();
    let (_, told) = envelope(&["audit", "show", "--dir", &dir, "--op", &one, "--trail", "application"]);
    assert_eq!(told["data"].as_array().unwrap().len(), 2);
    let (_, told) = envelope(&["audit", "show", "--dir", &dir, "--trail", "system"]);
    assert_eq!(told["data"], json!([]));

    let (code, out, _) = run(&["audit", "show", "--dir", &dir, "--op", &one, "--format", "table"]);
    assert_eq!(code, 0);
    let second = out.lines().nth(2).unwrap();
    assert!(
        second.starts_with(
            "2023-11-14 22:13:20.001 +0000  2    terminal  1000  app.org.portal.notes.create  1"
        ),
        "{out}"
    );
}

#[test]
fn status_tells_how_an_operation_ended_from_a_directory_or_a_file() {
    let (_folder, dir) = trails();
    let file = first_segment(&dir).display().to_string();
    for ledger in [&dir, &file] {
        let status = |number| {
            let (code, told) = envelope(&["status", &operation(number).to_string(), "--ledger", ledger]);
            assert_eq!((code, told["ok"].clone()), (0, json!(true)));
            told["data"].clone()
        };
        let done = status(1);
        assert_eq!((done["state"].clone(), done["terminal"].clone()), (json!("ended"), json!("succeeded")));
        assert_eq!(
            (done["effect"].clone(), done["retry_safe"].clone()),
            (json!("executed_unverified"), json!(false))
        );
        assert_eq!(status(2)["terminal"], "outcome_unknown");
        let open = status(3);
        assert_eq!((open["state"].clone(), open["terminal"].clone()), (json!("claimed"), json!(null)));
        assert_eq!(status(4), json!(null));
    }
}
