//! Why an operation ended as it did, and what would happen to another one.

use serde_json::{Value, json};

use crate::support::{Device, Plan, new_operation, uids};

const CREATE: &str = "app.org.example.fake.create";
const STAGES: [&str; 7] =
    ["classify", "resolve_target", "check_permissions", "resolve_action", "execute", "verify", "audit"];

fn column(data: &Value, name: &str) -> Vec<String> {
    data["stages"].as_array().unwrap().iter().map(|row| row[name].as_str().unwrap().to_owned()).collect()
}

#[test]
fn an_operation_is_told_in_seven_rows_and_the_failing_stage_is_named() {
    let (device, _fake, app) = Device::with_fake(&Plan::config("[pipeline]\napp_ms = 400\n"));
    let table = [
        (CREATE, "behave=succeed", ["ok"; 7]),
        (CREATE, "behave=hang_after", ["ok", "ok", "ok", "ok", "unknown", "not_reached", "ok"]),
        (CREATE, "behave=wrong_result", ["ok", "ok", "ok", "ok", "ok", "unknown", "ok"]),
        (CREATE, "behave:=7", ["ok", "ok", "ok", "refused", "not_reached", "not_reached", "ok"]),
        (
            "app.org.example.fake.delete",
            "behave=succeed",
            ["ok", "ok", "refused", "not_reached", "not_reached", "not_reached", "ok"],
        ),
    ];
    for (id, behave, outcomes) in table {
        let operation = new_operation().to_string();
        let done = device.cli(&["exec", id, behave, "--op", &operation]);
        let told = device.cli(&["explain", &operation]).data();
        assert_eq!(column(&told, "stage"), STAGES);
        assert_eq!(column(&told, "outcome"), outcomes, "{id} {behave}: {told}");
        let envelope = done.envelope();
        if let Some(terminal) = envelope["data"]["terminal"].as_str() {
            assert_eq!(told["terminal"], terminal);
        }
        let rows = told["stages"].as_array().unwrap();
        let sum: u64 = rows.iter().filter_map(|row| row["duration_us"].as_u64()).sum();
        assert!(
            sum >= told["duration_us"].as_u64().unwrap(),
            "the stages and the record fill the whole: {told}"
        );
    }
    drop(app);
}

#[test]
fn a_capability_is_told_with_the_rule_that_decides_and_what_would_allow_it() {
    let (device, fake, app) = Device::with_fake(&Plan::default());
    let told = |id: &str| device.cli(&["explain", id]).data();

    let create = told(CREATE);
    assert_eq!((&create["would"], &create["would_allow"]), (&json!("run"), &Value::Null), "{create}");
    assert_eq!(column(&create, "stage"), STAGES);
    assert!(column(&create, "detail")[2].contains("app.*.*"), "{create}");

    let delete = told("app.org.example.fake.delete");
    assert_eq!(delete["would"], "ask_a_person", "{delete}");
    assert!(delete["because"].as_str().unwrap().contains("class delete"), "{delete}");

    let unknown = told("app.org.example.fake.frobnicate");
    assert_eq!(column(&unknown, "says")[0], "unknown", "{unknown}");

    let ghost = told("app.ghost.delete");
    assert!(ghost["because"].as_str().unwrap().starts_with("target_not_found"), "{ghost}");

    app.end_cleanly();
    let stopped = told(CREATE);
    assert_eq!(stopped["would"], "refuse", "{stopped}");
    assert!(stopped["because"].as_str().unwrap().starts_with("unavailable"), "{stopped}");
    assert_eq!(fake.invocation_count(), 0, "asking why does nothing");
}

#[test]
fn an_operation_of_another_user_is_told_like_one_that_is_not_there() {
    if !uids::can_tell("an operation of another user is told like one that is not there") {
        return;
    }
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let [app, _, system] = device.uids.callers;
    let (mine, never) = (new_operation().to_string(), new_operation().to_string());
    device.cli(&["exec", CREATE, "--op", &mine]).data();

    let theirs = device.cli_as(app, &["explain", &mine]).refused(4, "not_found");
    let absent = device.cli_as(app, &["explain", &never]).refused(4, "not_found");

    assert_eq!(theirs.replace(&mine, "ID"), absent.replace(&never, "ID"));
    assert_eq!(device.cli_as(system, &["explain", &mine]).data()["operation_id"], mine);
    let denied = device.cli_as(app, &["explain", "system.power.shutdown"]).data();
    assert_eq!(denied["would"], "refuse");
    assert!(denied["would_allow"].as_str().unwrap().contains("system domain"), "{denied}");
    device.cli_as(app, &["explain", CREATE, "--as", "own"]).refused(5, "permission_denied");
}

#[test]
fn a_read_of_an_application_that_is_not_there_is_a_fallback_and_an_effect_is_not() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();

    let message =
        device.cli(&["exec", "app.ghost.describe", "--op", &operation]).refused(4, "capability_not_found");
    assert!(message.contains("ghost") && message.contains("fallback"), "{message}");
    let told = device.cli(&["explain", &operation]).data();
    assert_eq!(
        (&told["fallback"], column(&told, "outcome")[1].as_str()),
        (&json!(true), "fallback"),
        "{told}"
    );

    device.cli(&["exec", "app.ghost.delete"]).refused(4, "target_not_found");
}
