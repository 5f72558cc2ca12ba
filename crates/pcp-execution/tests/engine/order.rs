//! What is checked before the claim, and what a refusal leaves behind: nothing but its record.

use std::time::Duration;

use pcp_core::v2::*;
use pcp_execution::engine::*;

use crate::device::*;

fn kinds(report: &ExecuteReport) -> Vec<(u32, bool)> {
    report.acknowledgements.iter().map(|ack| (ack.sequence, ack.replayed)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_fresh_request_is_accepted_executed_and_verified_once() {
    let device = Device::new();
    let report = device.execute(set_value()).await.unwrap();

    assert_eq!(kinds(&report), [(0, false), (1, false), (2, false)]);
    let Some(Terminal::Succeeded { receipt }) = report.terminal() else { panic!("{report:?}") };
    assert_eq!((receipt.effect, receipt.backend.as_str()), (Effect::Verified, "scripted"));
    assert_eq!(receipt.action_hash, set_value().action_hash());
    assert_eq!(receipt.before, Some(seen(value_is("old")).evidence()));
    assert_eq!(receipt.after, Some(seen(value_is(VALUE)).evidence()));
    assert_eq!(receipt.context_preservation, ContextPreservation::NotApplicable);
    assert_eq!((device.dispatched(), device.claims()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_same_request_again_is_answered_with_its_stored_end() {
    let device = Device::new();
    let first = device.execute(set_value()).await.unwrap();
    // Nothing but the store is needed for it.
    let device = device.with(|script| script.capabilities = Err(fault(ExecutorFault::Failed)));
    device.token.cancel();
    device.clock.set_wall(5_000_000_000_000);
    let again = device.execute(set_value()).await.unwrap();

    assert_eq!(kinds(&again), [(2, true)]);
    assert_eq!(again.terminal(), first.terminal());
    assert_eq!(device.dispatched(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_id_with_another_action_is_a_conflict_that_changes_nothing() {
    let device = Device::new();
    let _ = device.end(set_value()).await;
    for other in [
        invoke(VerificationPolicy::None {}),
        request(0, |request| request.deadline_at_ms -= 1),
        request(0, |request| request.subject = "bob".into()),
    ] {
        assert!(matches!(device.execute(other).await, Err(ProtocolError::Conflict)));
    }
    assert_eq!((device.dispatched(), device.claims()), (1, 1));
    assert!(device.memory.refusals.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_invalid_or_denied_request_leaves_no_trace() {
    let device = Device::new();
    let mut bad_id = set_value();
    bad_id.operation_id = "a.b".into();
    let mut forged = set_value();
    let flipped = if forged.authority.signature.starts_with('9') { "8" } else { "9" };
    forged.authority.signature.replace_range(0..1, flipped);
    let mut changed = set_value();
    changed.subject = "bob".into();
    assert!(matches!(device.execute(bad_id).await, Err(ProtocolError::InvalidRequest(_))));
    for denied in [forged, changed] {
        let error = device.execute(denied).await.unwrap_err();
        assert_eq!(error.to_string(), "authority denied");
    }
    assert_eq!((device.dispatched(), device.claims()), (0, 0));
    assert!(device.memory.refusals.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_expired_grant_costs_no_id_and_a_new_one_for_the_same_request_runs() {
    let device = Device::new();
    let mut expired = set_value();
    expired.authority.grant.expires_at_ms = NOW_MS;
    sign(&mut expired);
    for _ in 0..2 {
        let report = device.execute(expired.clone()).await.unwrap();
        assert_eq!(kinds(&report), [(0, false), (2, false)]);
        assert_eq!(report.terminal(), Some(&Terminal::ExpiredBeforeEffect));
    }
    assert_eq!((device.claims(), device.memory.refusals.lock().unwrap().len()), (0, 2));

    assert!(matches!(device.end(set_value()).await, Terminal::Succeeded { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_is_cancelled_even_when_it_is_late_too() {
    for deadline_at_ms in [NOW_MS + 60_000, NOW_MS - 1] {
        let device = Device::new();
        device.token.cancel();
        let late = request(0, |request| request.deadline_at_ms = deadline_at_ms);
        assert_eq!(device.end(late).await, Terminal::CancelledBeforeEffect);
        assert_eq!((device.claims(), device.dispatched()), (0, 0));
    }
}

type Change = fn(&mut Script);

#[tokio::test(start_paused = true)]
async fn whatever_can_be_checked_without_an_effect_costs_no_id() {
    use FailureCode::*;
    let table: Vec<(Change, Option<FailureCode>)> = vec![
        (|s| s.isolation = SessionIsolation::Unknown, Some(Unsupported)),
        (|s| s.isolation = SessionIsolation::HostIsolated, Some(Unsupported)),
        (|s| s.capabilities = Err(fault(ExecutorFault::Failed)), None),
        (|s| s.capabilities = Err(fault(ExecutorFault::PermissionDenied)), Some(PermissionDenied)),
        (|s| s.capabilities.as_mut().unwrap().supported_actions.clear(), Some(Unsupported)),
        (
            |s| s.capabilities.as_mut().unwrap().supported_actions.push(ActionName::SetValue),
            Some(Unsupported),
        ),
        (|s| s.capabilities.as_mut().unwrap().action_capabilities.truncate(1), Some(Unsupported)),
        (
            |s| {
                let facts = &mut s.capabilities.as_mut().unwrap().action_capabilities;
                facts[2].delivery_route = DeliveryRoute::TargetAddressed;
            },
            Some(Unsupported),
        ),
        (
            |s| {
                s.capabilities.as_mut().unwrap().action_capabilities[1].background_support =
                    BackgroundSupport::HostIsolatedOnly
            },
            Some(Unsupported),
        ),
        (|s| s.observations = [Err(fault(ExecutorFault::Stale))].into(), Some(StaleTarget)),
        (|s| s.observations = [Err(fault(ExecutorFault::NotFound))].into(), Some(TargetNotFound)),
        (|s| s.observations = [Err(fault(ExecutorFault::Invalid))].into(), Some(InvalidRequest)),
        (|s| s.observations = [Err(fault(ExecutorFault::Failed))].into(), None),
        (
            |s| {
                let mut moved = seen(value_is("old"));
                moved.fingerprint_hash = Sha256Hash::ZERO;
                s.observations = [Ok(moved)].into();
            },
            Some(StaleTarget),
        ),
        (|s| s.resolve = Err(fault(ExecutorFault::Stale)), Some(StaleTarget)),
        (|s| s.resolve = Err(fault(ExecutorFault::Failed)), None),
        (|s| s.contexts = [None].into(), Some(Unsupported)),
    ];
    let background = || request(0, |request| request.interaction_mode = InteractionMode::BackgroundOnly);
    for (at, (change, code)) in table.into_iter().enumerate() {
        let device = Device::new().with(change);
        let report = device.execute(background()).await.unwrap();
        assert_eq!(kinds(&report), [(0, false), (2, false)], "row {at}");
        match (report.terminal().unwrap(), code) {
            (Terminal::Rejected { code, .. }, Some(expected)) => assert_eq!(*code, expected, "row {at}"),
            (Terminal::Failed { code: DispatchFailed, .. }, None) => {}
            (other, _) => panic!("row {at}: {other:?}"),
        }
        assert_eq!((device.claims(), device.dispatched()), (0, 0), "row {at}");
        assert_eq!(device.memory.refusals.lock().unwrap().len(), 1, "row {at}");
        // The same request, on the same store, once it works again.
        let device = device.with(|script| *script = Script::working());
        assert!(matches!(device.end(background()).await, Terminal::Succeeded { .. }), "row {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_in_a_slow_step_costs_no_id() {
    let device = Device::new().with(|script| script.slow = Duration::from_secs(10));
    let short = request(0, |request| request.deadline_at_ms = NOW_MS + 1_000);
    assert_eq!(device.end(short).await, Terminal::ExpiredBeforeEffect);
    assert_eq!((device.claims(), device.dispatched()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_step_of_the_wall_clock_extends_and_revives_nothing() {
    let device = Device::new().with(|script| {
        script.slow = Duration::from_millis(900);
        script.act = Act::SpendThen(Duration::from_millis(200), Box::new(Act::Do));
    });
    let request = || request(0, |request| request.deadline_at_ms = NOW_MS + 1_000);
    let running = device.execute(request());
    let step = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        device.clock.set_wall(NOW_MS - 10 * 365 * 24 * 3_600_000);
    };
    let (report, ()) = tokio::join!(running, step);
    // The effect began in time, and ended after the deadline.
    assert!(matches!(report.unwrap().terminal(), Some(Terminal::OutcomeUnknown { .. })));

    let mut late = request();
    late.operation_id = "op-late".into();
    late.authority.grant.operation_id = "op-late".into();
    sign(&mut late);
    assert_eq!(device.end(late).await, Terminal::ExpiredBeforeEffect, "the time that was seen still counts");
}

#[tokio::test(start_paused = true)]
async fn an_id_older_than_what_is_remembered_is_expired_and_not_run() {
    let device = Device::new();
    *device.memory.forgets.lock().unwrap() = true;
    assert_eq!(device.end(set_value()).await, Terminal::ExpiredBeforeEffect);
    assert_eq!((device.claims(), device.dispatched()), (0, 0));
}
