//! Every way through the pipeline: what is done, what is refused, and that each leaves its record.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[allow(missing_docs, reason = "a test's own furniture")]
mod support;

use std::time::Duration;

use pcp_core::*;
use pcp_execution::PipelineConfig;
use support::{Behave, Device, MAX_AHEAD_MS, NOW_MS, caller, envelope};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}

type Row = (
    &'static str,
    Behave,
    &'static str,
    &'static str,
    Terminal,
    Option<ErrorCode>,
    u32,
    &'static [RecordKind],
);

#[test]
fn every_intent_that_enters_leaves_exactly_one_end_in_the_trail() {
    use RecordKind::{Intent as Claim, Read, Refusal, Terminal as End};
    let ok = || Behave::Answer("{}");
    let claimed: &[RecordKind] = &[Claim, End];
    let rows: Vec<Row> = vec![
        ("read", ok(), "app.fake.read", "{}", Terminal::Succeeded, None, 1, &[Read]),
        ("effect", ok(), "app.fake.set_value", "{}", Terminal::Succeeded, None, 1, claimed),
        (
            "not there",
            ok(),
            "app.fake.create",
            "{}",
            Terminal::Rejected,
            Some(ErrorCode::TargetNotFound),
            0,
            &[Refusal],
        ),
        (
            "malformed",
            ok(),
            "app..read",
            "{}",
            Terminal::Rejected,
            Some(ErrorCode::InvalidRequest),
            0,
            &[Refusal],
        ),
        (
            "gated delete",
            ok(),
            "app.fake.delete",
            "{}",
            Terminal::Rejected,
            Some(ErrorCode::ConfirmationUnavailable),
            0,
            &[Refusal],
        ),
        (
            "gated send",
            ok(),
            "app.fake.export",
            "{}",
            Terminal::Rejected,
            Some(ErrorCode::ConfirmationUnavailable),
            0,
            &[Refusal],
        ),
        (
            "unknown word",
            ok(),
            "app.fake.frobnicate",
            "{}",
            Terminal::Rejected,
            Some(ErrorCode::ConfirmationUnavailable),
            0,
            &[Refusal],
        ),
        (
            "bad parameters",
            ok(),
            "app.fake.set_value",
            r#"{"n":"x"}"#,
            Terminal::Rejected,
            Some(ErrorCode::InvalidParameters),
            0,
            &[Refusal],
        ),
        (
            "certain failure",
            Behave::Fail { no_effect: true },
            "app.fake.set_value",
            "{}",
            Terminal::Failed,
            Some(ErrorCode::ExecutionFailed),
            1,
            claimed,
        ),
        (
            "doubtful failure",
            Behave::Fail { no_effect: false },
            "app.fake.set_value",
            "{}",
            Terminal::OutcomeUnknown,
            Some(ErrorCode::OutcomeUnknown),
            1,
            claimed,
        ),
        (
            "unknown and certain at once",
            Behave::Unsure,
            "app.fake.set_value",
            "{}",
            Terminal::OutcomeUnknown,
            Some(ErrorCode::OutcomeUnknown),
            1,
            claimed,
        ),
        (
            "vanished before",
            Behave::Vanish { no_effect: true },
            "app.fake.set_value",
            "{}",
            Terminal::Failed,
            Some(ErrorCode::Unavailable),
            1,
            claimed,
        ),
        (
            "vanished after",
            Behave::Vanish { no_effect: false },
            "app.fake.set_value",
            "{}",
            Terminal::OutcomeUnknown,
            Some(ErrorCode::OutcomeUnknown),
            1,
            claimed,
        ),
        (
            "hung effect",
            Behave::Hang,
            "app.fake.set_value",
            "{}",
            Terminal::OutcomeUnknown,
            Some(ErrorCode::OutcomeUnknown),
            1,
            claimed,
        ),
        (
            "hung read",
            Behave::Hang,
            "app.fake.read",
            "{}",
            Terminal::Failed,
            Some(ErrorCode::Timeout),
            1,
            &[Refusal],
        ),
        (
            "wrong result",
            Behave::Answer("[]"),
            "app.fake.set_value",
            "{}",
            Terminal::OutcomeUnknown,
            Some(ErrorCode::VerificationFailed),
            1,
            claimed,
        ),
    ];
    for (name, behave, id, parameters, terminal, code, invoked, kinds) in rows {
        let mut device = Device::new(behave);
        let result = block_on(device.run(&caller(Domain::System, 3), id, parameters));
        assert_eq!(result.terminal, terminal, "{name}: {:?}", result.error);
        assert_eq!(result.error.as_ref().map(|error| error.code), code, "{name}");
        assert_eq!(device.invoked(), invoked, "{name}");
        let kept = device.kept();
        assert_eq!(kept.iter().map(|one| one.kind).collect::<Vec<_>>(), kinds, "{name}");
        assert_eq!(kept.iter().filter(|one| one.end.is_some()).count(), 1, "{name}");
        assert_eq!(kept.last().unwrap().end.unwrap().terminal, terminal, "{name}");
        assert!(result.audit_hash.is_some(), "{name}");
    }
}

/// R-045, R-047: what cannot have an effect goes on without a descriptor, and says so; everything else stops.
#[test]
fn a_read_that_nobody_registered_goes_on_as_a_fallback_and_an_effect_does_not() {
    let caller = caller(Domain::System, 3);
    for (id, terminal, code, fallback) in [
        ("app.ghost.describe", Terminal::Succeeded, None, true),
        ("app.ghost.delete", Terminal::Rejected, Some(ErrorCode::TargetNotFound), false),
        ("app.ghost.create", Terminal::Rejected, Some(ErrorCode::TargetNotFound), false),
        ("app.ghost.frobnicate", Terminal::Rejected, Some(ErrorCode::TargetNotFound), false),
    ] {
        let mut device = Device::new(Behave::Answer("{}"));
        let result = block_on(device.run(&caller, id, "{}"));
        assert_eq!((result.terminal, result.error.map(|error| error.code)), (terminal, code), "{id}");
        assert_eq!(device.pipeline.trace(result.operation_id).unwrap().fallback, fallback, "{id}");
        assert_eq!(device.invoked(), u32::from(fallback), "{id}");
    }
}

/// R-042, R-058: the stages in order, each beginning where the one before ended, down to the one that failed.
#[test]
fn the_trace_of_an_operation_has_its_stages_in_order_and_ends_where_it_failed() {
    use Stage::*;
    let caller = caller(Domain::App, 3);
    let whole: &[Stage] = &[Classify, ResolveTarget, CheckPermissions, ResolveAction, Execute, Verify, Audit];
    let rows: [(&str, Behave, &str, &[Stage]); 6] = [
        ("done", Behave::Answer("{}"), "app.fake.set_value", whole),
        ("read", Behave::Answer("{}"), "app.fake.read", whole),
        (
            "denied",
            Behave::Answer("{}"),
            "system.fake.get",
            &[Classify, ResolveTarget, CheckPermissions, Audit],
        ),
        (
            "gated",
            Behave::Answer("{}"),
            "app.fake.delete",
            &[Classify, ResolveTarget, CheckPermissions, Audit],
        ),
        (
            "failed",
            Behave::Fail { no_effect: true },
            "app.fake.set_value",
            &[Classify, ResolveTarget, CheckPermissions, ResolveAction, Execute, Audit],
        ),
        ("wrong result", Behave::Answer("[]"), "app.fake.set_value", whole),
    ];
    for (name, behave, id, stages) in rows {
        let mut device = Device::new(behave);
        let result = block_on(device.run(&caller, id, "{}"));
        let trace = device.pipeline.trace(result.operation_id).unwrap();
        let seen: Vec<Stage> = trace.spans.iter().map(|span| span.stage).collect();
        assert_eq!(seen, stages, "{name}");
        assert_eq!(
            (trace.capability.as_str(), trace.terminal, trace.uid),
            (id, result.terminal, 1000),
            "{name}"
        );
        assert_eq!(trace.error, result.error.map(|error| error.code), "{name}");
        for pair in trace.spans.windows(2) {
            assert_eq!(pair[0].start_us + pair[0].duration_us, pair[1].start_us, "{name}");
        }
    }
}

#[test]
fn the_nine_cells_of_the_domain_matrix_hold_and_each_refusal_is_recorded() {
    let capabilities = [
        (Domain::App, "app.fake.read"),
        (Domain::Compositor, "compositor.fake.list"),
        (Domain::System, "system.fake.get"),
    ];
    for holds in Domain::ALL {
        for (needs, id) in capabilities {
            let mut device = Device::new(Behave::Answer("{}"));
            let result = block_on(device.run(&caller(*holds, 3), id, "{}"));
            let allowed = holds.reaches(needs);
            assert_eq!(result.terminal == Terminal::Succeeded, allowed, "{holds} {id}");
            assert_eq!(device.invoked(), u32::from(allowed));
            let kept = device.kept();
            assert_eq!(kept.len(), 1);
            assert_eq!(kept[0].trail, Trail::from(needs));
            if !allowed {
                assert_eq!(result.error.unwrap().code, ErrorCode::PermissionDenied);
                assert_eq!((kept[0].verdict.as_str(), kept[0].rule.as_str()), ("denied", "domain-wall"));
            }
        }
    }
}

#[test]
fn a_wall_answers_the_same_for_what_exists_and_what_does_not() {
    let mut device = Device::new(Behave::Answer("{}"));
    let there = block_on(device.run(&caller(Domain::App, 3), "system.fake.get", "{}")).error.unwrap();
    let absent = block_on(device.run(&caller(Domain::App, 3), "system.fake.get_more", "{}")).error.unwrap();
    assert_eq!(there.code, absent.code);
    assert_eq!(
        there.message.replace("system.fake.get ", ""),
        absent.message.replace("system.fake.get_more ", "")
    );
}

#[test]
fn the_budget_of_each_domain_ends_a_hung_application_exactly() {
    for (id, budget) in [("app.fake.set_value", 5_000), ("compositor.fake.move", 10_000)] {
        let mut device = Device::new(Behave::Hang);
        let (result, passed) = block_on(async {
            let started = tokio::time::Instant::now();
            let result = device.run(&caller(Domain::System, 3), id, "{}").await;
            (result, started.elapsed().as_millis())
        });
        assert_eq!(passed, budget, "{id}");
        assert_eq!(result.terminal, Terminal::OutcomeUnknown);
        assert!(!result.terminal.retry_safe());
        let message = result.error.unwrap().message;
        assert!(message.contains(&format!("stage execute overran its budget of {budget} ms")), "{message}");
        assert!(device.kept().last().unwrap().end.unwrap().timed_out);
    }
    let mut device = Device::new(Behave::Hang);
    let passed = block_on(async {
        let started = tokio::time::Instant::now();
        let _ = device.run(&caller(Domain::System, 3), "system.fake.get", "{}").await;
        started.elapsed().as_millis()
    });
    assert_eq!(passed, 15_000);
}

#[test]
fn a_total_shorter_than_its_stage_fires_as_the_pipeline_and_a_shorter_stage_as_itself() {
    let caller = caller(Domain::App, 3);
    let total = PipelineConfig { total_ms: [300, 1, 1], execute_ms: Some(400), ..PipelineConfig::default() };
    let mut device = Device::with(Behave::Hang, total, PermissionStore::with_defaults(), |_| {});
    let message = block_on(device.run(&caller, "app.fake.read", "{}")).error.unwrap().message;
    assert!(message.contains("pipeline timeout after 300 ms"), "{message}");
    let stage = PipelineConfig { execute_ms: Some(200), ..PipelineConfig::default() };
    let mut device = Device::with(Behave::Hang, stage, PermissionStore::with_defaults(), |_| {});
    let message = block_on(device.run(&caller, "app.fake.read", "{}")).error.unwrap().message;
    assert!(message.contains("stage execute overran its budget of 200 ms"), "{message}");
}

#[test]
fn nothing_is_dispatched_before_the_intent_record_is_durable() {
    let caller = caller(Domain::App, 3);
    // The record cannot even be appended.
    let mut device = Device::new(Behave::Answer("{}"));
    *device.log.full_from.lock().unwrap() = Some(0);
    let result = block_on(device.run(&caller, "app.fake.set_value", "{}"));
    assert_eq!(
        (result.terminal, result.error.unwrap().code),
        (Terminal::Rejected, ErrorCode::AuditUnavailable)
    );
    assert_eq!(device.invoked(), 0);
    // It is appended and cannot be synced.
    let mut device = Device::new(Behave::Answer("{}"));
    *device.log.broken_from.lock().unwrap() = Some(0);
    let result = block_on(device.run(&caller, "app.fake.set_value", "{}"));
    assert_eq!(device.invoked(), 0);
    assert!(result.error.is_some());
    // Its sync never ends: the budget does.
    let mut device = Device::new(Behave::Answer("{}"));
    *device.log.stuck_from.lock().unwrap() = Some(0);
    let stuck = block_on(async {
        tokio::time::timeout(Duration::from_secs(6), device.run(&caller, "app.fake.set_value", "{}")).await
    });
    assert!(stuck.is_err(), "the terminal record has no deadline and is waited for");
    assert_eq!(device.invoked(), 0);
    // A read needs no durable record and goes on.
    let mut device = Device::new(Behave::Answer("{}"));
    *device.log.full_from.lock().unwrap() = Some(0);
    let result = block_on(device.run(&caller, "app.fake.read", "{}"));
    assert_eq!((result.terminal, result.audit_hash), (Terminal::Succeeded, None));
}

#[test]
fn an_effect_whose_end_cannot_be_recorded_is_unknown() {
    let mut device = Device::new(Behave::Answer("{}"));
    *device.log.broken_from.lock().unwrap() = Some(1);
    let result = block_on(device.run(&caller(Domain::App, 3), "app.fake.set_value", "{}"));
    assert_eq!((device.invoked(), result.terminal), (1, Terminal::OutcomeUnknown));
    assert_eq!(result.error.unwrap().stage, Some(Stage::Audit));
}

#[test]
fn an_operation_id_runs_once_and_belongs_to_one_action() {
    let caller = caller(Domain::App, 3);
    let mut device = Device::new(Behave::Answer("{}"));
    let first = block_on(device.run(&caller, "app.fake.set_value", r#"{"n":1}"#));
    let again = block_on(device.run(&caller, "app.fake.set_value", r#"{"n":1}"#));
    let other = block_on(device.run(&caller, "app.fake.set_value", r#"{"n":2}"#));
    assert_eq!((first.replayed, again.replayed), (false, true));
    assert_eq!((again.terminal, device.scratch.data()), (first.terminal, ""));
    assert_eq!(other.error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(device.invoked(), 1);
    assert_eq!(block_on(device.run(&caller, "app.fake.read", "{}")).terminal, Terminal::Succeeded);
    assert_eq!(block_on(device.run(&caller, "app.fake.read", "{}")).terminal, Terminal::Succeeded);
    assert_eq!(device.invoked(), 3, "reads are not claimed and run again");
}

#[test]
fn an_id_of_the_future_is_not_claimed_and_one_that_ended_keeps_its_end() {
    let caller = caller(Domain::App, 3);
    let mut device = Device::new(Behave::Answer("{}"));
    let dated = |ahead_ms: u64| Envelope {
        operation_id: OperationId::from_parts(NOW_MS + ahead_ms, [1; 10]),
        ..envelope(1)
    };
    let at_limit = block_on(device.run_in(&caller, "app.fake.set_value", "{}", dated(MAX_AHEAD_MS)));
    let beyond = block_on(device.run_in(&caller, "app.fake.set_value", "{}", dated(MAX_AHEAD_MS + 1)));
    let refused = beyond.error.unwrap();
    assert_eq!((at_limit.terminal, refused.code), (Terminal::Succeeded, ErrorCode::ClockSkew));
    assert!(refused.message.contains("is dated 300001 ms ahead"), "{}", refused.message);
    assert_eq!((beyond.terminal, device.invoked()), (Terminal::Rejected, 1));

    device.set_clock(NOW_MS - 3_600_000);
    let again = block_on(device.run_in(&caller, "app.fake.set_value", "{}", dated(MAX_AHEAD_MS)));
    assert_eq!((again.terminal, again.replayed, device.invoked()), (Terminal::Succeeded, true, 1));
}

#[test]
fn a_dry_run_tells_the_plan_and_does_nothing() {
    let caller = caller(Domain::App, 3);
    for (id, gate, claims) in [
        ("app.fake.read", Gate::Allow, false),
        ("app.fake.set_value", Gate::Allow, true),
        ("app.fake.delete", Gate::Confirm, true),
    ] {
        let mut device = Device::new(Behave::Answer("{}"));
        let result = block_on(device.run_in(&caller, id, "{}", Envelope { dry_run: true, ..envelope(1) }));
        let plan = result.plan.unwrap();
        assert_eq!((plan.capability.as_str(), plan.gate, plan.claims), (id, gate, claims));
        assert_eq!(plan.budget_ms, 5_000);
        assert_eq!((device.invoked(), device.kept().len()), (0, 0), "{id}");
    }
    let mut device = Device::new(Behave::Answer("{}"));
    let denied =
        block_on(device.run_in(&caller, "system.fake.get", "{}", Envelope { dry_run: true, ..envelope(1) }));
    assert_eq!(denied.error.unwrap().code, ErrorCode::PermissionDenied);
}

#[test]
fn what_can_be_refused_without_an_effect_leaves_the_operation_id_free() {
    let caller = caller(Domain::App, 3);
    let mut device = Device::new(Behave::Answer("{}"));
    let late = Envelope { deadline_ms: Some(NOW_MS), ..envelope(1) };
    let result = block_on(device.run_in(&caller, "app.fake.set_value", "{}", late));
    assert_eq!((result.terminal, device.invoked()), (Terminal::ExpiredBeforeEffect, 0));
    *device.app.refuses.lock().unwrap() = Some("no such note");
    let result = block_on(device.run(&caller, "app.fake.set_value", r#"{"n":"x"}"#));
    assert_eq!(result.error.unwrap().message, "parameter /n: is not of type integer".to_owned());
    let result = block_on(device.run(&caller, "app.fake.set_value", "{}"));
    assert_eq!(
        (result.terminal, result.replayed),
        (Terminal::Succeeded, false),
        "only a capability that says so asks its application"
    );
}

#[test]
fn an_application_that_validates_is_asked_before_the_claim() {
    let mut device = Device::with(
        Behave::Answer("{}"),
        PipelineConfig::default(),
        PermissionStore::with_defaults(),
        |one| {
            one.validates_params = true;
        },
    );
    *device.app.refuses.lock().unwrap() = Some("/n: no such note");
    let result = block_on(device.run(&caller(Domain::App, 3), "app.fake.set_value", "{}"));
    assert_eq!(result.error.unwrap().code, ErrorCode::InvalidParameters);
    assert_eq!(device.kept().iter().map(|one| one.kind).collect::<Vec<_>>(), [RecordKind::Refusal]);
    *device.app.refuses.lock().unwrap() = None;
    let result = block_on(device.run(&caller(Domain::App, 3), "app.fake.set_value", "{}"));
    assert_eq!((result.terminal, device.invoked()), (Terminal::Succeeded, 1));
}

#[test]
fn an_absent_application_and_a_predicted_capability_cost_no_claim() {
    let absent = support::FakeApp {
        running: false,
        behave: Behave::Answer("{}").into(),
        invoked: 0.into(),
        refuses: None.into(),
    };
    let mut device =
        Device::over(absent, PipelineConfig::default(), PermissionStore::with_defaults(), |_| {});
    let result = block_on(device.run(&caller(Domain::App, 3), "app.fake.set_value", "{}"));
    assert_eq!((result.terminal, result.error.unwrap().code), (Terminal::Failed, ErrorCode::Unavailable));
    let mut device = Device::with(
        Behave::Answer("{}"),
        PipelineConfig::default(),
        PermissionStore::with_defaults(),
        |one| {
            one.executable = false;
        },
    );
    let predicted = block_on(device.run(&caller(Domain::App, 3), "app.fake.set_value", "{}"));
    assert_eq!(predicted.error.unwrap().code, ErrorCode::NotValidated);
    assert_eq!(device.kept().len(), 1);
}

#[test]
fn an_empty_policy_denies_all_and_low_trust_opens_reads_alone() {
    let mut device =
        Device::with(Behave::Answer("{}"), PipelineConfig::default(), PermissionStore::empty(), |_| {});
    let result = block_on(device.run(&caller(Domain::System, 3), "app.fake.read", "{}"));
    assert_eq!((result.error.unwrap().code, device.invoked()), (ErrorCode::PermissionDenied, 0));
    let mut device = Device::new(Behave::Answer("{}"));
    assert_eq!(
        block_on(device.run(&caller(Domain::App, 0), "app.fake.read", "{}")).terminal,
        Terminal::Succeeded
    );
    assert_eq!(
        block_on(device.run(&caller(Domain::App, 0), "app.fake.set_value", "{}")).terminal,
        Terminal::Rejected
    );
}

#[test]
fn a_manifest_cannot_talk_a_deletion_into_a_read() {
    let mut device = Device::with(
        Behave::Answer("{}"),
        PipelineConfig::default(),
        PermissionStore::with_defaults(),
        |one| {
            one.side_effects = false;
            one.confirmation_required = false;
        },
    );
    let deletion = block_on(device.run(&caller(Domain::App, 3), "app.fake.delete", "{}"));
    assert_eq!(deletion.error.unwrap().code, ErrorCode::ConfirmationUnavailable);
    let unknown = block_on(device.run(&caller(Domain::App, 1), "app.fake.frobnicate", "{}"));
    assert_eq!(
        unknown.terminal,
        Terminal::Succeeded,
        "an unknown word of a verified manifest without effects is a read"
    );
    let mut device = Device::with(
        Behave::Answer("{}"),
        PipelineConfig::default(),
        PermissionStore::with_defaults(),
        |one| {
            one.side_effects = false;
            one.signature = SignatureStatus::Unsigned;
        },
    );
    let unsigned = block_on(device.run(&caller(Domain::App, 3), "app.fake.frobnicate", "{}"));
    assert_eq!(unsigned.error.unwrap().code, ErrorCode::ConfirmationUnavailable);
}

#[test]
fn a_read_by_name_that_declares_side_effects_is_claimed() {
    let mut device = Device::with(
        Behave::Answer("{}"),
        PipelineConfig::default(),
        PermissionStore::with_defaults(),
        |one| {
            one.side_effects = true;
        },
    );
    let result = block_on(device.run(&caller(Domain::App, 3), "app.fake.read", "{}"));
    assert_eq!(result.effect, Some(Effect::Verified));
    assert_eq!(
        device.kept().iter().map(|one| (one.kind, one.durable)).collect::<Vec<_>>(),
        [(RecordKind::Intent, true), (RecordKind::Terminal, true)]
    );
}

#[test]
fn only_tier_one_can_call_an_effect_verified() {
    for (method, effect) in [
        (DetectionMethod::Desktop, Effect::Verified),
        (DetectionMethod::Atspi2, Effect::ExecutedUnverified),
        (DetectionMethod::Simulated, Effect::ExecutedUnverified),
    ] {
        let mut device = Device::with(
            Behave::Answer("{}"),
            PipelineConfig::default(),
            PermissionStore::with_defaults(),
            |one| {
                one.method = method;
            },
        );
        let result = block_on(device.run(&caller(Domain::App, 3), "app.fake.set_value", "{}"));
        assert_eq!((result.effect, result.tier), (Some(effect), Some(method.tier())));
    }
}

#[test]
fn texts_of_parameters_stand_in_no_record() {
    for id in ["app.fake.set_value", "app.fake.delete", "app..x", "app.fake.nothing", "system.fake.write"] {
        let mut device = Device::new(Behave::Fail { no_effect: false });
        let _ =
            block_on(device.run(&caller(Domain::App, 3), id, r#"{"text":"CANARY","n":1,"CANARY key":2}"#));
        assert!(!format!("{:?}", device.kept()).contains("CANARY"), "{id}");
    }
}

#[test]
fn nobody_learns_or_replays_the_end_of_anothers_operation() {
    let mut device = Device::new(Behave::Answer("{}"));
    let mine = caller(Domain::App, 3);
    let theirs = AuthPrincipal { uid: 1001, ..mine };
    assert_eq!(block_on(device.run(&mine, "app.fake.set_value", "{}")).terminal, Terminal::Succeeded);
    let other = block_on(device.run(&theirs, "app.fake.set_value", "{}"));
    assert_eq!((other.terminal, other.replayed), (Terminal::Rejected, false));
    assert_eq!(other.error.unwrap().code, ErrorCode::Conflict);
    assert_eq!(device.invoked(), 1);
}

#[test]
fn a_hung_application_holds_up_neither_other_callers_nor_other_applications() {
    let device = Device::new(Behave::Hang);
    block_on(async {
        let local = tokio::task::LocalSet::new();
        let device = std::rc::Rc::new(device);
        let run = |uid: u32, n: u8| {
            let device = device.clone();
            async move {
                let caller = AuthPrincipal { uid, ..caller(Domain::App, 3) };
                let intent =
                    Intent { domain: Domain::App, action: "set_value", target_app: "fake", parameters: "{}" };
                let mut entropy = [n; 10];
                entropy[9] = u8::try_from(uid % 256).unwrap();
                let envelope =
                    Envelope { operation_id: OperationId::from_parts(NOW_MS, entropy), ..envelope(1) };
                let request = pcp_execution::Request { envelope, intent, names_element: false };
                device.pipeline.execute(&caller, &request, &mut pcp_execution::Scratch::default()).await
            }
        };
        local
            .run_until(async {
                for n in 0..32 {
                    tokio::task::spawn_local(run(1000, n));
                }
                tokio::task::yield_now().await;
                let more = run(1000, 99).await.error.unwrap();
                assert!(more.message.starts_with("32 effects of uid 1000 are under way"), "{more}");
                let app = run(1001, 1).await.error.unwrap();
                assert!(app.message.starts_with("32 effects of application fake are under way"), "{app}");
            })
            .await;
    });
}

/// R-121: what a hung invocation holds is its own turn, and nothing of the registry.
#[test]
fn while_an_application_hangs_another_is_registered_and_answers() {
    let device = Device::new(Behave::Hang);
    let caller = caller(Domain::App, 3);
    let run = async |n: u8, app: &'static str| {
        let intent = Intent { domain: Domain::App, action: "set_value", target_app: app, parameters: "{}" };
        let request = pcp_execution::Request { envelope: envelope(n), intent, names_element: false };
        device.pipeline.execute(&caller, &request, &mut pcp_execution::Scratch::default()).await
    };
    block_on(async {
        let mut hung = std::pin::pin!(run(1, "fake"));
        let answered = tokio::time::timeout(Duration::from_millis(1), hung.as_mut()).await;
        assert!(answered.is_err() && device.invoked() == 1, "it hangs in the application");

        *device.app.behave.lock().unwrap() = Behave::Answer("{}");
        device.registry.register(support::capability("app.other.set_value")).unwrap();
        assert_eq!(run(2, "other").await.terminal, Terminal::Succeeded);

        assert_eq!(hung.await.terminal, Terminal::OutcomeUnknown, "it ends at its own budget");
    });
}

#[test]
fn an_intent_that_names_an_element_is_refused_and_recorded_where_there_are_none() {
    let mut device = Device::new(Behave::Answer("{}"));
    let caller = caller(Domain::App, 3);
    let intent = Intent { domain: Domain::App, action: "set_value", target_app: "fake", parameters: "{}" };
    let request = pcp_execution::Request { envelope: envelope(1), intent, names_element: true };
    let result = block_on(device.pipeline.execute(&caller, &request, &mut device.scratch));
    assert_eq!((result.terminal, result.error.unwrap().code), (Terminal::Rejected, ErrorCode::Unsupported));
    assert_eq!((device.invoked(), device.kept().len()), (0, 1));
}
