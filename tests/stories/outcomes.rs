//! What an operation can come to: done, refused, failed, unknown; each certain of what it says (R-055, R-181..R-183, R-194).

use std::time::Duration;

use pcp_core::AppId;
use pcp_fakeapp::FakeManifest;
use serde_json::{Value, json};

use crate::support::device::Seat;
use crate::support::{Device, Plan, Process, new_operation, uids};

const CREATE: &str = "app.org.example.fake.create";
const OTHER: &str = "app.org.example.other.create";
const SET: &str = "app.org.example.fake.set_value";
/// A budget that a hanging application overruns at once; a healthy one never needs it.
const SHORT: &str = "[pipeline]\napp_ms = 400\n";

#[test]
fn an_application_that_acts_and_then_hangs_leaves_an_unknown_outcome_when_the_budget_is_over() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::config(SHORT));
    let operation = new_operation().to_string();
    let hang = ["exec", CREATE, "behave=hang_after", "--op", &operation];

    let first = device.cli(&hang);
    let message = first.refused(9, "outcome_unknown");
    assert!(
        message.contains("stage execute overran its budget of 400 ms") && message.contains("not repeated"),
        "{message}"
    );
    let data = &first.envelope()["data"];
    assert_eq!(
        (&data["terminal"], &data["effect"], &data["retry_safe"]),
        (&json!("outcome_unknown"), &json!("unknown"), &json!(false))
    );
    assert_eq!(fake.effect_count(), 1);

    let again = device.cli(&hang);
    again.refused(9, "outcome_unknown");
    assert_eq!(again.envelope()["data"]["replayed"], true);
    assert_eq!(fake.effect_count(), 1, "it is not run again");

    let lines = device.stop_and_read();
    let end = lines.iter().find(|line| line.word("kind") == "terminal").unwrap();
    assert_eq!(
        (end.word("terminal"), &end.record["timed_out"], end.word("stage")),
        ("outcome_unknown", &json!(true), "execute")
    );
}

#[test]
fn the_budget_of_the_app_domain_is_five_seconds_unless_root_says_otherwise() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());

    let answer = device.cli(&["exec", CREATE, "behave=hang_after"]);

    let message = answer.refused(9, "outcome_unknown");
    assert!(message.contains("stage execute overran its budget of 5000 ms"), "{message}");
    let took = Duration::from_micros(answer.envelope()["data"]["duration_us"].as_u64().unwrap());
    assert!((Duration::from_secs(5)..Duration::from_millis(5_750)).contains(&took), "{took:?}");
    assert_eq!(fake.effect_count(), 1);
}

#[test]
fn a_total_that_is_shorter_than_the_execute_stage_is_a_pipeline_timeout() {
    let (device, fake, _app) =
        Device::with_fake(&Plan::config("[pipeline]\napp_ms = 300\nexecute_ms = 60000\n"));
    let message = device.cli(&["exec", CREATE, "behave=hang_after"]).refused(9, "outcome_unknown");
    assert!(message.contains("pipeline timeout after 300 ms"), "{message}");
    assert_eq!(fake.effect_count(), 1);
}

/// The standard fake application, and a second one where it can have a user of its own.
fn device_with_two_where_it_can(plan: &Plan) -> (Device, Seat, Vec<Process>) {
    let mut device = Device::new(plan);
    let first = device.install(&FakeManifest::standard(AppId::parse(pcp_fakeapp::APP_ID).unwrap()), None);
    let mut running = vec![device.start_fake(&first, &[])];
    if uids::are_several() {
        let second =
            device.install(&FakeManifest::standard(AppId::parse("org.example.other").unwrap()), None);
        running.push(device.start_fake(&second, &[]));
    }
    device.start();
    (device, first, running)
}

#[test]
fn while_one_application_hangs_others_are_served() {
    let (device, _fake, _app) = device_with_two_where_it_can(&Plan::config("[pipeline]\napp_ms = 3000\n"));
    let mut hanging = device.cli_command(uids::own(), &["exec", CREATE, "behave=hang_before"]);
    let mut hanging = hanging.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let others: &[&str] = if uids::are_several() { &[CREATE, OTHER] } else { &[CREATE] };
    for id in others.iter().cycle().take(20) {
        assert_eq!(device.cli(&["exec", id]).data()["terminal"], "succeeded", "{id}");
    }
    assert!(hanging.try_wait().unwrap().is_none(), "it is still waiting");
    assert_eq!(hanging.wait().unwrap().code(), Some(9));
}

#[test]
fn every_way_to_fail_has_its_terminal_and_only_certainty_is_called_failed() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::config(SHORT));
    let table = [
        ("succeed", 0, "succeeded", Value::Null, json!("verified"), 1),
        ("fail:execution_failed:no_effect", 10, "failed", json!("execution_failed"), Value::Null, 0),
        ("fail:unavailable:no_effect", 10, "failed", json!("unavailable"), Value::Null, 0),
        ("fail:execution_failed", 9, "outcome_unknown", json!("outcome_unknown"), json!("unknown"), 1),
        ("wrong_result", 9, "outcome_unknown", json!("verification_failed"), json!("unknown"), 1),
        ("hang_before", 9, "outcome_unknown", json!("outcome_unknown"), json!("unknown"), 0),
    ];
    for (behave, exit, terminal, _, effect, effects) in &table {
        let before = fake.effect_count();
        let answer = device.cli(&["exec", CREATE, &format!("behave={behave}")]);
        let data = &answer.envelope()["data"];
        assert_eq!(
            (answer.code, data["terminal"].as_str()),
            (*exit, Some(*terminal)),
            "{behave}: {answer:?}"
        );
        assert_eq!(&data["effect"], effect, "{behave}");
        assert_eq!(fake.effect_count() - before, *effects, "{behave}");
        assert_eq!(data["retry_safe"], json!(*terminal == "failed"), "{behave}");
    }

    let lines = device.stop_and_read();
    let ends: Vec<(&str, &Value)> = lines
        .iter()
        .filter(|line| line.word("kind") == "terminal")
        .map(|line| (line.word("terminal"), &line.record["error"]))
        .collect();
    let expected: Vec<(&str, &Value)> = table.iter().map(|row| (row.2, &row.3)).collect();
    assert_eq!(ends, expected, "N intents, N terminal records");
    device.trails_are_whole();
}

#[test]
fn an_application_that_dies_after_the_effect_is_unknown_and_one_that_is_gone_is_unavailable() {
    let (device, fake, app) = Device::with_fake(&Plan::default());

    device.cli(&["exec", CREATE, "behave=die_after_effect"]).refused(9, "outcome_unknown");
    assert_eq!(fake.effect_count(), 1);
    drop(app);

    // Its socket is still there, and nobody answers at it.
    let gone = device.cli(&["exec", CREATE]);
    gone.refused(10, "unavailable");
    assert_eq!(fake.effect_count(), 1);
    let _again = device.start_fake(&fake, &[]);
    assert_eq!(device.cli(&["exec", CREATE]).data()["terminal"], "succeeded", "it is found again");
}

#[test]
fn an_application_that_was_never_started_is_unavailable_and_costs_no_claim() {
    let (mut device, fake, app) = Device::with_fake(&Plan::default());
    app.end_cleanly();
    let operation = new_operation().to_string();

    let message = device.cli(&["exec", CREATE, "--op", &operation]).refused(10, "unavailable");
    assert!(message.contains("is not running"), "{message}");

    let _app = device.start_fake(&fake, &[]);
    let answer = device.cli(&["exec", CREATE, "--op", &operation]).data();
    assert_eq!(
        (&answer["terminal"], &answer["replayed"]),
        (&json!("succeeded"), &json!(false)),
        "the id was free"
    );
    let lines = device.stop_and_read();
    let kinds: Vec<&str> = lines.iter().map(|line| line.word("kind")).collect();
    assert_eq!(kinds, ["refusal", "intent", "terminal"]);
}

#[test]
fn parameters_that_do_not_fit_are_refused_at_their_place_before_the_claim() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();
    let table = [
        ("{\"value\":5}", "/value"),
        ("{\"value\":\"a\",\"behave\":7}", "/behave"),
        ("{}", "value"),
        ("{\"value\":\"a\",\"other\":1}", "other"),
    ];
    for (parameters, pointer) in table {
        let answer = device.cli(&["exec", SET, "--params-json", parameters, "--op", &operation]);
        let message = answer.refused(10, "invalid_parameters");
        assert!(message.contains(pointer), "{parameters}: {message}");
    }
    assert_eq!(fake.invocation_count(), 0, "nothing was asked of the application");

    let answer = device.cli(&["exec", SET, "value=a", "--op", &operation]).data();
    assert_eq!(
        (&answer["terminal"], &answer["replayed"]),
        (&json!("succeeded"), &json!(false)),
        "the id was free"
    );
}

#[test]
fn an_application_that_validates_for_itself_is_asked_before_the_claim() {
    let mut device = Device::new(&Plan::default());
    let id = pcp_core::AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let manifest =
        pcp_fakeapp::FakeManifest::standard(id).changing("create", |create| create.validates_params = true);
    let fake = device.install(&manifest, None);
    let _app = device.start_fake(&fake, &[]);
    device.start();

    let message = device.cli(&["exec", CREATE, "behave=reject:/behave"]).refused(10, "invalid_parameters");

    assert!(message.contains("/behave"), "{message}");
    assert_eq!(fake.invocation_count(), 0);
    assert_eq!(device.cli(&["exec", CREATE]).data()["terminal"], "succeeded");
}

#[test]
fn the_same_operation_is_replayed_and_another_action_under_its_id_is_a_conflict() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();
    let first = device.cli(&["exec", SET, "value=a", "--op", &operation]).data();
    assert_eq!((&first["replayed"], &first["data"]), (&json!(false), &json!({"value": "a"})));

    for _ in 0..20 {
        let again = device.cli(&["exec", SET, "value=a", "--op", &operation]).data();
        assert_eq!(
            (&again["replayed"], &again["terminal"], &again["data"]),
            (&json!(true), &json!("succeeded"), &Value::Null)
        );
    }
    device.cli(&["exec", SET, "value=b", "--op", &operation]).refused(10, "conflict");
    device.cli(&["exec", CREATE, "--op", &operation]).refused(10, "conflict");
    assert_eq!(fake.effect_count(), 1);

    device.stop();
    device.start();
    let again = device.cli(&["exec", SET, "value=a", "--op", &operation]).data();
    assert_eq!(again["replayed"], true, "also after a restart");
    device.cli(&["exec", SET, "value=b", "--op", &operation]).refused(10, "conflict");
    assert_eq!(fake.invocation_count(), 1);
}

#[test]
fn a_dry_run_says_what_would_be_done_and_leaves_nothing() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();

    let data = device.cli(&["exec", SET, "value=a", "--dry-run", "--op", &operation]).data();

    assert_eq!(
        data["intent"],
        json!({"domain": "app", "action": "set_value", "target_app": "org.example.fake", "parameters": {"value": "a"}})
    );
    assert_eq!((&data["plan"]["claims"], &data["plan"]["tier"]), (&json!(true), &json!("1")));
    assert_eq!(fake.invocation_count(), 0);
    let executed = device.cli(&["exec", SET, "value=a", "--op", &operation]).data();
    assert_eq!(executed["replayed"], false, "the id was free");
    assert_eq!(device.stop_and_read().len(), 2, "an intent and its end, nothing of the dry run");
}

#[test]
fn a_request_whose_deadline_has_passed_is_not_begun() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let mut client = device.client();
    let id = pcp_core::CapabilityId::parse(CREATE).unwrap();
    let mut request = crate::support::request(new_operation(), &id, "{}");
    request.deadline_ms = Some(1);

    let result = client.execute(&request, |_| {}).unwrap();

    assert_eq!(result.terminal, pcp_core::Terminal::ExpiredBeforeEffect);
    assert_eq!(fake.invocation_count(), 0);
}
