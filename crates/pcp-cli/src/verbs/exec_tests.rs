//! What `exec` sends, and what it makes of every way an operation can end.

use super::*;
use crate::cli::{Cli, Verb};
use clap::Parser;
use pcp_ipc::payloads::OperationFailure;
use pcp_ipc::{Json, read_payload};

fn exec(line: &[&str]) -> Exec {
    let words = ["pcp-cli", "exec", "app.x.create"].iter().chain(line);
    match Cli::try_parse_from(words).unwrap().verb {
        Verb::Exec(exec) => exec,
        other => panic!("{other:?}"),
    }
}

fn result(terminal: Terminal, error: Option<ErrorCode>) -> OperationResult<'static> {
    OperationResult {
        tag: pcp_ipc::Tag,
        success: terminal == Terminal::Succeeded,
        operation_id: OperationId::from_parts(1_700_000_000_000, [7; 10]),
        terminal,
        effect: None,
        error: error.map(|code| OperationFailure {
            code,
            message: "said so".into(),
            hint: None,
            stage: None,
        }),
        audit_hash: Some("5f".into()),
        state_source: StateSource::Rust,
        tier: Some(Tier::One),
        duration_us: 830,
        replayed: false,
        retry_safe: terminal.retry_safe(),
        plan: None,
        data_json: Some(Json::EMPTY_OBJECT),
    }
}

#[test]
fn the_exit_code_follows_from_the_error_and_otherwise_from_the_terminal() {
    let table = [
        (Terminal::Succeeded, None, None),
        (Terminal::Rejected, Some(ErrorCode::PermissionDenied), Some(5)),
        (Terminal::Rejected, Some(ErrorCode::ConfirmationUnavailable), Some(6)),
        (Terminal::Rejected, Some(ErrorCode::TargetNotFound), Some(4)),
        (Terminal::Failed, Some(ErrorCode::ExecutionFailed), Some(10)),
        (Terminal::OutcomeUnknown, Some(ErrorCode::Timeout), Some(9)),
        (Terminal::OutcomeUnknown, None, Some(9)),
        (Terminal::ExpiredBeforeEffect, None, Some(7)),
        (Terminal::CancelledBeforeEffect, None, Some(10)),
        (Terminal::Failed, None, Some(10)),
        (Terminal::Rejected, None, Some(10)),
    ];
    for (terminal, error, exit) in table {
        let problem = problem(&result(terminal, error));
        assert_eq!(problem.map(|problem| problem.code.exit_code()), exit, "{terminal} {error:?}");
    }
}

#[test]
fn an_unknown_outcome_says_not_to_repeat_it() {
    let problem = problem(&result(Terminal::OutcomeUnknown, None)).unwrap();
    assert!(problem.hint.unwrap().starts_with("do not repeat"));
    assert_eq!(problem.audit_hash.as_deref(), Some("5f"));
}

#[test]
fn a_lost_answer_is_unknown_unless_the_request_was_certainly_not_sent() {
    let operation = OperationId::from_parts(1, [0; 10]);
    let broken = |kind| pcp_ipc::Error::Protocol(ProtocolError::Io(std::io::Error::from(kind)));
    let table = [
        (pcp_ipc::Error::Protocol(ProtocolError::Timeout { limit_ms: 1 }), 9, 7),
        (pcp_ipc::Error::Protocol(ProtocolError::Closed), 9, 3),
        (broken(std::io::ErrorKind::ConnectionReset), 9, 3),
        (broken(std::io::ErrorKind::BrokenPipe), 3, 3),
        (pcp_ipc::Error::Protocol(ProtocolError::WriteStall { limit_ms: 1 }), 3, 3),
    ];
    for (error, real, dry) in table {
        let text = error.to_string();
        let again = match &error {
            pcp_ipc::Error::Protocol(ProtocolError::Timeout { .. }) => {
                pcp_ipc::Error::Protocol(ProtocolError::Timeout { limit_ms: 1 })
            }
            pcp_ipc::Error::Protocol(ProtocolError::Io(io)) => broken(io.kind()),
            pcp_ipc::Error::Protocol(ProtocolError::WriteStall { .. }) => {
                pcp_ipc::Error::Protocol(ProtocolError::WriteStall { limit_ms: 1 })
            }
            _ => pcp_ipc::Error::Protocol(ProtocolError::Closed),
        };
        assert_eq!(exec(&[]).explain(error, operation).code().exit_code(), real, "{text}");
        assert_eq!(exec(&["--dry-run"]).explain(again, operation).code().exit_code(), dry, "{text}");
    }
}

#[test]
fn the_envelope_is_made_of_the_options() {
    let made = exec(&["--no-wait", "--dry-run", "--deadline", "5000"]).envelope().unwrap();
    assert!(!made.wait && made.dry_run);
    let ahead = made.deadline_ms.unwrap() - made.operation_id.unix_ms();
    assert_eq!(ahead, 5000);
    let named = exec(&["--op", "0191E7A0-0000-7000-8000-000000000001"]).envelope().unwrap();
    assert_eq!(named.operation_id.to_string(), "0191e7a0-0000-7000-8000-000000000001");
    assert!(named.wait && !named.dry_run && named.deadline_ms.is_none());
    let bad = exec(&["--op", "0191e7a0-0000-4000-8000-000000000001"]).envelope().unwrap_err();
    assert_eq!(bad.code(), ErrorCode::Usage);
}

#[test]
fn parameters_come_from_one_place() {
    assert_eq!(exec(&["a=b", "c:=1"]).parameters().unwrap(), r#"{"a":"b","c":1}"#);
    assert_eq!(exec(&["--params-json", r#"{"x" : 1}"#]).parameters().unwrap(), r#"{"x" : 1}"#);
    for both in [
        &["a=b", "--params", "f"][..],
        &["a=b", "--params-json", "{}"],
        &["--params", "f", "--params-json", "{}"],
    ] {
        let words = ["pcp-cli", "exec", "app.x.create"].iter().chain(both);
        assert!(Cli::try_parse_from(words).is_err(), "{both:?}");
    }
}

#[test]
fn a_deadline_is_at_most_a_day_ahead() {
    for (ms, good) in [("1", true), ("86400000", true), ("0", false), ("86400001", false)] {
        let line = ["pcp-cli", "exec", "app.x.create", "--deadline", ms];
        assert_eq!(Cli::try_parse_from(line).is_ok(), good, "{ms}");
    }
}

#[test]
fn without_randomness_no_operation_is_named() {
    assert!(entropy(Path::new("/nonexistent/random")).is_err());
    assert_ne!(entropy(Path::new(RANDOM_SOURCE)).unwrap(), entropy(Path::new(RANDOM_SOURCE)).unwrap());
}

#[test]
fn a_dry_run_prints_exactly_the_four_fields_of_the_intent_and_the_plan() {
    let intent = Intent {
        domain: pcp_core::Domain::App,
        action: "create",
        target_app: "x",
        parameters: r#"{"a": 1}"#,
    };
    let plan = Some(RawValue::from_string("{\"method\":\"desktop\"}".into()).unwrap());
    let dry = DryRun { intent: FourFields::of(&intent).unwrap(), plan };
    assert_eq!(
        serde_json::to_string(&dry).unwrap(),
        r#"{"intent":{"domain":"app","action":"create","target_app":"x","parameters":{"a": 1}},"plan":{"method":"desktop"}}"#
    );
}

#[test]
fn a_result_is_told_with_everything_the_daemon_said() {
    let id = CapabilityId::parse("app.x.create").unwrap();
    let payload = br#"{"type":"capability_result_msg","success":true,"operation_id":"0191e7a0-0000-7000-8000-000000000001","terminal":"succeeded","effect":"executed_unverified","audit_hash":"5f","state_source":"rust","tier":"1","duration_us":830,"replayed":false,"retry_safe":false,"data_json":{"id":1}}"#;
    let result: OperationResult<'_> = read_payload(payload).unwrap();
    let executed = Executed::read(&id, &result).unwrap();
    assert_eq!(
        serde_json::to_string(&executed).unwrap(),
        r#"{"operation_id":"0191e7a0-0000-7000-8000-000000000001","capability":"app.x.create","terminal":"succeeded","effect":"executed_unverified","tier":"1","state_source":"rust","duration_us":830,"audit_hash":"5f","replayed":false,"retry_safe":false,"data":{"id":1}}"#
    );
    let mut page = Page::default();
    executed.show(&mut page);
    let text = page.finish(false);
    assert!(text.contains("    Terminal: succeeded\n"), "{text}");
}
