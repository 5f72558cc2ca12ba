//! The three walls, told by three real users over the socket of the shipped binary (R-002..R-004, R-070, R-221).

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use serde_json::{Value, json};

use crate::support::device::Seat;
use crate::support::{Device, Plan, Process, uids};

/// Domain, application, and the name that stands in its ids.
const TARGETS: [(&str, &str, &str); 3] = [
    ("app", "org.example.fake", "org.example.fake"),
    ("compositor", "org.example.surfaces", "surfaces"),
    ("system", "org.example.vault", "vault"),
];

fn device_with_three_targets() -> (Device, Vec<(Seat, Process)>) {
    let mut device = Device::new(&Plan::default());
    let apps = TARGETS.map(|(domain, app, name)| {
        let read = FakeCapability::read(format!("{domain}.{name}.get_value"))
            .gives(json!({"value": {"type": "string"}}));
        let effect =
            FakeCapability::new(format!("{domain}.{name}.create")).gives(json!({"id": {"type": "integer"}}));
        let manifest = FakeManifest::new(AppId::parse(app).unwrap(), vec![read, effect]);
        let prefix = format!("{domain}.{name}");
        let seat = device.install(&manifest, (domain != "app").then_some(prefix.as_str()));
        let process = device.start_fake(&seat, &[]);
        (seat, process)
    });
    device.start();
    (device, apps.into())
}

#[test]
fn each_of_three_users_reaches_its_own_floor_and_those_below_and_none_above() {
    if !uids::can_tell("each of three users reaches its own floor and those below and none above") {
        return;
    }
    let (mut device, apps) = device_with_three_targets();

    for (caller, uid) in device.uids.callers.into_iter().enumerate() {
        for (target, (domain, _, name)) in TARGETS.into_iter().enumerate() {
            let before = apps[target].0.invocation_count();
            let answer = device.cli_as(uid, &["exec", &format!("{domain}.{name}.get_value")]);
            if caller >= target {
                assert_eq!(answer.data()["terminal"], "succeeded");
                assert_eq!(apps[target].0.invocation_count(), before + 1);
            } else {
                let message = answer.refused(5, "permission_denied");
                assert!(message.contains(&format!("it needs the {domain} domain")), "{message}");
                assert_eq!(apps[target].0.invocation_count(), before, "nothing was dispatched");
            }
        }
    }

    let lines = device.stop_and_read();
    let denied: Vec<(&str, u64, &str)> = lines
        .iter()
        .filter(|line| line.word("kind") == "refusal")
        .map(|line| {
            (
                line.trail,
                line.record["caller"]["uid"].as_u64().unwrap(),
                line.record["permission"]["rule"].as_str().unwrap(),
            )
        })
        .collect();
    let [app, compositor, _] = device.uids.callers.map(u64::from);
    assert_eq!(
        denied,
        [
            ("compositor", app, "domain-wall"),
            ("system", app, "domain-wall"),
            ("system", compositor, "domain-wall")
        ]
    );
    assert_eq!(lines.iter().filter(|line| line.word("kind") == "read").count(), 6);
    device.trails_are_whole();
}

#[test]
fn effects_below_the_wall_happen_and_a_system_effect_still_waits_for_a_person() {
    if !uids::can_tell("effects below the wall happen and a system effect still waits for a person") {
        return;
    }
    let (mut device, apps) = device_with_three_targets();
    let [app, compositor, system] = device.uids.callers;

    assert_eq!(device.cli_as(app, &["exec", "app.org.example.fake.create"]).data()["effect"], "verified");
    assert_eq!(
        device.cli_as(compositor, &["exec", "compositor.surfaces.create"]).data()["effect"],
        "verified"
    );
    device.cli_as(system, &["exec", "system.vault.create"]).refused(6, "confirmation_unavailable");

    let effects: Vec<usize> = apps.iter().map(|(seat, _)| seat.effect_count()).collect();
    assert_eq!(effects, [1, 1, 0]);
    let lines = device.stop_and_read();
    for (trail, count) in [("application", 1), ("compositor", 1), ("system", 0)] {
        let terminals = lines.iter().filter(|line| line.trail == trail && line.word("kind") == "terminal");
        assert_eq!(terminals.count(), count, "{trail}");
    }
}

#[test]
fn what_lies_behind_a_wall_and_what_does_not_exist_are_told_in_the_same_words() {
    if !uids::can_tell("what lies behind a wall and what does not exist are told in the same words") {
        return;
    }
    let (device, _apps) = device_with_three_targets();
    let [app, ..] = device.uids.callers;
    let told = |verb: &str, name: &str| {
        let answer = device.cli_as(app, &[verb, &format!("system.{name}.get_value")]);
        let mut error = answer.envelope()["error"].clone();
        error["audit_hash"] = Value::Null;
        (answer.code, error.to_string().replace(name, "NAME"))
    };

    for verb in ["exec", "show"] {
        assert_eq!(told(verb, "vault"), told(verb, "ghost"), "{verb}");
    }
    let listed = device.cli_as(app, &["list"]).data();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["app.org.example.fake.create", "app.org.example.fake.get_value"]);
}

#[test]
fn a_user_in_no_principal_file_is_refused_by_name_and_one_outside_the_group_does_not_connect() {
    if !uids::can_tell(
        "a user in no principal file is refused by name and one outside the group does not connect",
    ) {
        return;
    }
    let (device, apps) = device_with_three_targets();
    let stranger = device.uids.stranger;

    for verb in [&["ping"][..], &["list"], &["exec", "app.org.example.fake.create"]] {
        let message = device.cli_as(stranger, verb).refused(5, "unknown_principal");
        assert!(message.contains(&stranger.to_string()), "{message}");
    }
    let mut command = device.program("pcp-cli", stranger, &[]);
    command
        .arg("--socket")
        .arg(device.socket())
        .arg("--expect-uid")
        .arg(device.uids.daemon.to_string())
        .arg("ping");
    crate::support::Answer::of(&command.output().unwrap()).refused(3, "daemon_unreachable");
    assert_eq!(apps[0].0.invocation_count(), 0);
}

#[test]
fn an_applications_own_user_is_an_ordinary_principal_of_the_app_domain() {
    if !uids::can_tell("an application's own user is an ordinary principal of the app domain") {
        return;
    }
    let (device, apps) = device_with_three_targets();
    let uid = apps[0].0.uid;
    let mut command = device.cli_command(uid, &["exec", "app.org.example.fake.get_value"]);
    assert_eq!(crate::support::Answer::of(&command.output().unwrap()).data()["terminal"], "succeeded");
    device.cli_as(uid, &["exec", "system.vault.get_value"]).refused(5, "permission_denied");
}
