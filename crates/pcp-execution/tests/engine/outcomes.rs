//! What a dispatch can end with, and what is left when an end is not stored.

use std::time::Duration;

use pcp_core::v2::*;
use pcp_execution::engine::*;

use crate::device::*;

#[tokio::test(start_paused = true)]
async fn each_way_a_dispatch_can_end_has_its_terminal() {
    use DispatchEffect::{CancelledBeforeEffect, ExpiredBeforeEffect, NoEffect, Unknown};
    let fail = |effect| Act::Fail(failure(effect));
    let cancel = |act| Act::CancelThen(Box::new(act));
    let late = |act| Act::SpendThen(Duration::from_secs(2), Box::new(act));
    let table = [
        (Act::Do, "succeeded", None),
        (fail(NoEffect), "rejected", Some(FailureCode::TargetNotFound)),
        (fail(Unknown), "outcome_unknown", None),
        (cancel(Act::Do), "outcome_unknown", None),
        (cancel(fail(NoEffect)), "cancelled_before_effect", None),
        (cancel(fail(CancelledBeforeEffect)), "cancelled_before_effect", None),
        (cancel(fail(Unknown)), "outcome_unknown", None),
        (cancel(Act::Hang), "outcome_unknown", None),
        (late(Act::Do), "outcome_unknown", None),
        // Later than the moment that a dispatch is given: nothing it says is heard any more.
        (late(fail(NoEffect)), "outcome_unknown", None),
        (
            Act::SpendThen(Duration::from_millis(1_100), Box::new(fail(NoEffect))),
            "expired_before_effect",
            None,
        ),
        (
            Act::SpendThen(Duration::from_millis(1_100), Box::new(fail(ExpiredBeforeEffect))),
            "expired_before_effect",
            None,
        ),
        // A time limit of the executor's own is not the request's, and nobody has cancelled.
        (fail(ExpiredBeforeEffect), "failed", Some(FailureCode::DispatchFailed)),
        (fail(CancelledBeforeEffect), "failed", Some(FailureCode::DispatchFailed)),
        (Act::Hang, "outcome_unknown", None),
        (Act::Chunks { cancel_after: 99 }, "succeeded", None),
        (Act::Chunks { cancel_after: 0 }, "cancelled_before_effect", None),
        (Act::Chunks { cancel_after: 4 }, "outcome_unknown", None),
    ];
    for (at, (act, kind, code)) in table.into_iter().enumerate() {
        let device = Device::new().with(|script| script.act = act);
        let request = || request(0, |request| request.deadline_at_ms = NOW_MS + 1_000);
        let end = device.end(request()).await;
        assert_eq!(end.kind().as_str(), kind, "row {at}");
        match &end {
            Terminal::Rejected { code: said, .. } | Terminal::Failed { code: said, .. } => {
                assert_eq!(Some(*said), code, "row {at}");
            }
            Terminal::OutcomeUnknown { receipt, .. } => {
                assert_eq!((receipt.effect, &receipt.after), (Effect::Unknown, &None), "row {at}");
            }
            _ => {}
        }
        assert_eq!((device.dispatched(), device.claims()), (1, 1), "row {at}");
        // Whatever the end was, it is the end.
        let effects = device.effects();
        let again = device.execute(request()).await.unwrap();
        assert_eq!((again.terminal(), again.acknowledgements[0].replayed), (Some(&end), true), "row {at}");
        assert_eq!((device.dispatched(), device.effects()), (1, effects), "row {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn chunks_stop_at_the_cancellation() {
    for (cancel_after, effects) in [(0, 0), (4, 4), (99, 10)] {
        let device = Device::new().with(|script| script.act = Act::Chunks { cancel_after });
        let _ = device.end(set_value()).await;
        assert_eq!(device.effects(), effects);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_at_the_claim_stops_the_action_and_leaves_the_id() {
    let device = Device::new();
    *device.memory.claim_fails.lock().unwrap() = true;
    let error = device.execute(set_value()).await.unwrap_err();
    assert!(error.to_string().ends_with("no space left on device; nothing was done"), "{error}");
    assert_eq!(device.dispatched(), 0);

    *device.memory.claim_fails.lock().unwrap() = false;
    assert!(matches!(device.end(set_value()).await, Terminal::Succeeded { .. }));
}

#[tokio::test(start_paused = true)]
async fn an_effect_whose_end_cannot_be_stored_is_unknown_and_stays_so() {
    let device = Device::new();
    *device.memory.finish_fails.lock().unwrap() = true;
    let Terminal::OutcomeUnknown { receipt, .. } = device.end(set_value()).await else { panic!("no doubt") };
    assert_eq!(receipt.effect, Effect::Unknown);
    // As long as nothing can be stored, nothing is answered either.
    assert!(matches!(device.execute(set_value()).await, Err(ProtocolError::Store(_))));

    *device.memory.finish_fails.lock().unwrap() = false;
    let report = device.execute(set_value()).await.unwrap();
    assert!(matches!(report.terminal(), Some(Terminal::OutcomeUnknown { .. })));
    assert!(!report.acknowledgements[0].replayed, "the first time that this end is told");
    let again = device.execute(set_value()).await.unwrap();
    assert!(again.acknowledgements[0].replayed);
    assert_eq!(again.terminal(), report.terminal());
    assert_eq!(device.dispatched(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_end_without_effect_that_cannot_be_stored_is_an_error() {
    let device = Device::new().with(|script| script.act = Act::Fail(failure(DispatchEffect::NoEffect)));
    *device.memory.finish_fails.lock().unwrap() = true;
    assert!(matches!(device.execute(set_value()).await, Err(ProtocolError::Store(_))));
}

#[tokio::test(start_paused = true)]
async fn what_was_typed_stands_in_no_report() {
    const CANARY: &str = "canary-7f3a";
    let secret = || {
        request(0, |request| {
            request.action = Action::SetValue { value: CANARY.into() };
            let sha256 = Sha256Hash::of(CANARY.as_bytes()).to_string();
            request.verification = VerificationPolicy::TargetValueHash { sha256 };
            request.subject = "canary-subject".into();
        })
    };
    for act in
        [Act::Do, Act::Fail(failure(DispatchEffect::NoEffect)), Act::Fail(failure(DispatchEffect::Unknown))]
    {
        let device = Device::new().with(|script| script.act = act);
        let report = device.execute(secret()).await.unwrap();
        let text = format!("{} {report:?}", serde_json::to_string(&report).unwrap());
        assert!(!text.contains("canary"), "{text}");
    }
}
