//! What proves an effect, how long it may take, and what happens to the person's own desktop.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pcp_core::v2::*;
use pcp_execution::engine::*;
use serde_json::json;

use crate::device::*;

fn checked(checked: bool) -> TargetObservation {
    seen(json!({"checked": checked}))
}

#[tokio::test(start_paused = true)]
async fn each_policy_has_its_proof() {
    type Look = Result<TargetObservation, ExecutorError>;
    let state = || VerificationPolicy::TargetState { expected: json!({"checked": true}) };
    let (none, changed) = (VerificationPolicy::None {}, VerificationPolicy::SnapshotChanged {});
    let other = |change: fn(&mut TargetObservation)| {
        let mut seen = checked(true);
        change(&mut seen);
        Ok(seen)
    };
    let lost: Look = Err(fault(ExecutorFault::NotFound));
    let (verified, unverified) = (Effect::Verified, Effect::ExecutedUnverified);
    let table: Vec<(VerificationPolicy, Look, bool, Effect)> = vec![
        (none.clone(), Ok(checked(true)), true, unverified),
        (none.clone(), Ok(checked(false)), true, unverified),
        (none, lost.clone(), true, unverified),
        (changed.clone(), Ok(checked(true)), true, unverified),
        (changed.clone(), Ok(checked(false)), false, unverified),
        (changed, lost.clone(), false, unverified),
        (state(), Ok(checked(true)), true, verified),
        (state(), Ok(checked(false)), false, unverified),
        (state(), Ok(seen(json!({"checked": true, "more": 1}))), false, unverified),
        (state(), other(|seen| seen.fingerprint_hash = Sha256Hash::ZERO), false, unverified),
        (state(), other(|seen| seen.display_geometry_hash = Sha256Hash::of(b"")), false, unverified),
        (state(), lost, false, unverified),
    ];
    for (at, (policy, after, proven, effect)) in table.into_iter().enumerate() {
        let has_after = after.is_ok();
        let not_asked = matches!(policy, VerificationPolicy::None {});
        let device = Device::new().with(|script| script.observations = [Ok(checked(false)), after].into());
        let end = device.end(invoke(policy)).await;
        let receipt = end.receipt().unwrap();
        assert_eq!(matches!(end, Terminal::Succeeded { .. }), proven, "row {at}");
        assert_eq!((receipt.effect, receipt.after.is_some()), (effect, has_after), "row {at}");
        assert_eq!(receipt.warnings.len(), usize::from(not_asked), "row {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_is_proven_by_its_hash_on_the_same_element_alone() {
    let mut moved = seen(value_is(VALUE));
    moved.fingerprint_hash = Sha256Hash::ZERO;
    let table = [
        (seen(value_is(VALUE)), true),
        (seen(value_is("old")), false),
        (seen(json!({})), false),
        (seen(json!({"value_hash": 1})), false),
        (moved, false),
    ];
    for (at, (after, proven)) in table.into_iter().enumerate() {
        let device =
            Device::new().with(|script| script.observations = [Ok(seen(value_is("old"))), Ok(after)].into());
        let end = device.end(set_value()).await;
        assert_eq!(matches!(end, Terminal::Succeeded { .. }), proven, "row {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_application_that_takes_its_time_is_looked_at_again() {
    let old = || Ok(seen(value_is("old")));
    let device = Device::new().with(|script| {
        script.observations = [old(), old(), old(), Ok(seen(value_is(VALUE)))].into();
        script.changes = Some(Duration::from_millis(40));
    });
    assert!(matches!(device.end(set_value()).await, Terminal::Succeeded { .. }));
}

#[tokio::test(start_paused = true)]
async fn an_application_that_never_shows_the_effect_is_given_a_second_and_sixteen_looks() {
    for (every, looks) in [(Duration::from_millis(400), 3), (Duration::from_millis(1), MAX_SETTLE_SAMPLES)] {
        let device = Device::new().with(|script| {
            script.observations = [Ok(seen(value_is("old")))].into();
            script.changes = Some(every);
        });
        let started = tokio::time::Instant::now();
        assert!(matches!(device.end(set_value()).await, Terminal::OutcomeUnknown { .. }));
        assert!(started.elapsed() <= SETTLE + Duration::from_millis(1));
        assert_eq!(device.hands.observed.load(Ordering::Relaxed) as usize, 1 + looks);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_looks_after_an_effect_leaves_doubt() {
    let device = Device::new().with(|script| {
        script.observations = [Ok(seen(value_is("old")))].into();
        script.changes = Some(Duration::from_millis(90));
    });
    let short = request(0, |request| request.deadline_at_ms = NOW_MS + 200);
    let Terminal::OutcomeUnknown { receipt, .. } = device.end(short).await else { panic!("no doubt") };
    assert_eq!(receipt.effect, Effect::Unknown);
}

#[tokio::test(start_paused = true)]
async fn in_the_background_the_persons_context_is_compared() {
    use ContextPreservation as Kept;
    let (a, b) = (Some(Sha256Hash::ZERO), Some(Sha256Hash::of(b"")));
    // The context is read three times: before the claim, before the effect, and after the proof.
    let table = [
        ([a, a, a], Some(Kept::UnchangedAtBoundaries), true, 1),
        ([a, b, b], Some(Kept::UnchangedAtBoundaries), true, 1),
        ([a, a, b], Some(Kept::Changed), false, 1),
        ([a, a, None], Some(Kept::Unavailable), false, 1),
        ([a, None, a], None, false, 0),
    ];
    for (at, (contexts, kept, succeeded, dispatched)) in table.into_iter().enumerate() {
        let device = Device::new().with(|script| script.contexts = contexts.into());
        let background = request(0, |request| request.interaction_mode = InteractionMode::BackgroundOnly);
        let end = device.end(background).await;
        assert_eq!(matches!(end, Terminal::Succeeded { .. }), succeeded, "row {at}");
        assert_eq!(end.receipt().map(|receipt| receipt.context_preservation), kept, "row {at}");
        if let Terminal::OutcomeUnknown { receipt, .. } = &end {
            assert_eq!(receipt.effect, Effect::Unknown, "verified or not, row {at}");
        }
        assert_eq!(device.dispatched(), dispatched, "row {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn where_nobody_works_the_context_is_not_read() {
    let table = [
        (InteractionMode::BackgroundOnly, ContextPreservation::HostIsolated),
        (InteractionMode::Interactive, ContextPreservation::NotApplicable),
    ];
    for (mode, expected) in table {
        let device = Device::new().with(|script| {
            script.isolation = SessionIsolation::HostIsolated;
            script.capabilities.as_mut().unwrap().session_isolation = SessionIsolation::HostIsolated;
            script.contexts = [None].into();
        });
        let end = device.end(request(0, |request| request.interaction_mode = mode)).await;
        let receipt = end.receipt().unwrap();
        assert_eq!(
            (receipt.context_preservation, receipt.session_isolation, receipt.interaction_mode),
            (expected, SessionIsolation::HostIsolated, mode)
        );
    }
}
