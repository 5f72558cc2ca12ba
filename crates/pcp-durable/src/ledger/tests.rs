use super::*;

/// Some moment; the ids below are of it.
const NOW_MS: u64 = 1_000_000;

fn op(n: u64) -> OperationId {
    OperationId::from_parts(NOW_MS + n, [7; 10])
}

fn action(n: u8) -> ActionHash {
    ActionHash::from_bytes([n; 32])
}

#[test]
fn an_id_is_fresh_once_then_running_then_ended_and_never_another_action() {
    let ledger = OperationLedger::new();

    assert_eq!(ledger.begin(op(1), action(1), NOW_MS), ClaimState::Fresh);
    assert_eq!(ledger.begin(op(1), action(1), NOW_MS), ClaimState::Running);
    assert_eq!(ledger.begin(op(1), action(2), NOW_MS), ClaimState::Conflict);
    ledger.end(op(1), Terminal::Succeeded);
    for _ in 0..100 {
        assert_eq!(ledger.begin(op(1), action(1), NOW_MS), ClaimState::Ended(Terminal::Succeeded));
        assert_eq!(ledger.begin(op(1), action(2), NOW_MS), ClaimState::Conflict);
    }
}

#[test]
fn a_forgotten_claim_leaves_the_id_free_and_an_ended_one_cannot_be_forgotten() {
    let ledger = OperationLedger::new();
    let _ = ledger.begin(op(1), action(1), NOW_MS);
    ledger.forget(op(1));
    assert_eq!(ledger.begin(op(1), action(2), NOW_MS), ClaimState::Fresh);

    ledger.end(op(1), Terminal::Failed);
    ledger.forget(op(1));

    assert_eq!(ledger.begin(op(1), action(2), NOW_MS), ClaimState::Ended(Terminal::Failed));
}

#[test]
fn only_so_many_operations_are_under_way_at_once() {
    let ledger = OperationLedger::new();
    for n in 0..MAX_RUNNING as u64 {
        assert_eq!(ledger.begin(op(n), action(1), NOW_MS), ClaimState::Fresh);
    }
    assert_eq!(ledger.begin(op(999), action(1), NOW_MS), ClaimState::Full { limit: MAX_RUNNING });
    ledger.end(op(5), Terminal::Succeeded);
    assert_eq!(ledger.begin(op(999), action(1), NOW_MS), ClaimState::Fresh);
}

#[test]
fn one_that_ended_is_let_go_only_when_a_closed_segment_has_it_and_one_under_way_never() {
    let ledger = OperationLedger { rows: Mutex::new(Rows::with_limit(10)), ..OperationLedger::new() };
    let _ = ledger.begin(op(0), action(1), NOW_MS);
    for n in 1..=20 {
        assert_eq!(ledger.begin(op(n), action(1), NOW_MS), ClaimState::Fresh);
        ledger.end(op(n), Terminal::Succeeded);
    }
    assert_eq!(ledger.len(), 21, "none of them is found elsewhere");

    ledger.settle((0..=15).map(|n| *op(n).as_bytes()));
    assert_eq!(ledger.begin(op(21), action(1), NOW_MS), ClaimState::Fresh);

    assert_eq!(ledger.len(), 10);
    assert_eq!(ledger.begin(op(0), action(1), NOW_MS), ClaimState::Running);
    for n in 16..=20 {
        assert_eq!(ledger.begin(op(n), action(1), NOW_MS), ClaimState::Ended(Terminal::Succeeded));
    }
}

#[test]
fn what_is_older_than_the_horizon_is_expired_and_what_is_known_keeps_its_end() {
    let ledger = OperationLedger::new();
    let _ = ledger.begin(op(1), action(1), NOW_MS);
    ledger.end(op(1), Terminal::Succeeded);
    let expired = ClaimState::Ended(Terminal::ExpiredBeforeEffect);
    let later = op(2).unix_ms() + millis(RETENTION);

    assert_eq!(ledger.begin(op(2), action(1), later + 1), expired);
    assert_eq!(ledger.begin(op(2), action(1), later), ClaimState::Fresh);
    assert_eq!(ledger.begin(op(1), action(1), later + 1), ClaimState::Ended(Terminal::Succeeded));
    assert_eq!(ledger.begin(op(1), action(2), u64::MAX), ClaimState::Conflict);
}

#[test]
fn an_id_may_be_five_minutes_ahead_of_the_latest_time_in_any_record() {
    let ahead = millis(MAX_AHEAD);
    let rows = [
        (0, NOW_MS, NOW_MS + ahead, true),
        (0, NOW_MS, NOW_MS + ahead + 1, false),
        // The clock was set back after a record was written.
        (NOW_MS, 0, NOW_MS + ahead, true),
        (NOW_MS, 0, NOW_MS + ahead + 1, false),
        // The device was off for a year.
        (NOW_MS, NOW_MS + 31_536_000_000, NOW_MS + 31_536_000_000 + ahead, true),
        (0, 0, ahead, true),
        (0, 0, (1 << 48) - 1, false),
    ];
    for (recorded, wall, dated, is_fresh) in rows {
        let ledger = OperationLedger::new();
        ledger.reached(recorded);
        let state = ledger.begin(OperationId::from_parts(dated, [7; 10]), action(1), wall);
        match state {
            ClaimState::Fresh => assert!(is_fresh, "{recorded} {wall} {dated}"),
            ClaimState::Skewed { limit_ms, .. } => assert!(!is_fresh && limit_ms == ahead, "{state:?}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_row_is_at_most_a_hundred_bytes() {
    let bytes = Rows::row_bytes();
    assert!(bytes <= 100, "{bytes}");
}

#[test]
fn a_claim_in_a_closed_segment_that_never_ended_is_unknown() {
    let hash = "ab".repeat(32);
    let caller = r#"{"uid":1000,"pid":1,"domain":"app","trust":1,"modality":"visual"}"#;
    let text = format!(
        r#"{{"seq":1,"kind":"intent","time_ms":1,"operation_id":"{}","caller":{caller},"capability":"app.a.b","target":{{"app":"a"}},"class":"activate","tier":"1","action_hash":"{hash}"}}"#,
        op(1)
    );
    let found = |is_end| Found { line: text.clone().into_bytes(), hash: [7; 32], is_end };

    let status = archived_status(&found(false)).unwrap();

    assert_eq!((status.terminal, status.effect), (Some(Terminal::OutcomeUnknown), Some(Effect::Unknown)));
    assert_eq!((status.action_hash, status.audit_hash), (ActionHash::from_bytes([0xab; 32]), [7; 32]));
}
