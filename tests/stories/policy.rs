//! What the policy says of itself, and that it is what happens.

use serde_json::{Value, json};

use crate::support::{Device, Plan, uids};

const READ: &str = "app.org.example.fake.get_value";
const CREATE: &str = "app.org.example.fake.create";

fn verdict(device: &Device, uid: u32, principal: &str, id: &str) -> Value {
    device.cli_as(uid, &["policy", "test", principal, id]).data()
}

#[test]
fn policy_test_gives_the_golden_table_for_each_principal_and_the_reason() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let table = [
        ("own", READ, "allow", "app.*.*"),
        ("own", CREATE, "allow", "app.*.*"),
        ("own", "app.org.example.fake.delete", "confirm", "app.*.*"),
        ("own", "compositor.output.reconfigure", "confirm", "compositor.*.*"),
        ("own", "system.power.shutdown", "confirm", "system.*.*"),
        ("own", "system.files.list", "allow", "system.*.*"),
        ("app", READ, "allow", "app.*.*"),
        ("app", CREATE, "allow", "app.*.*"),
        ("app", "app.org.example.fake.send", "deny", "trust-level"),
        ("app", "compositor.surface.move", "deny", "domain-wall"),
        ("app", "system.power.shutdown", "deny", "domain-wall"),
        ("compositor", "compositor.surface.move", "allow", "compositor.*.*"),
        ("compositor", "app.org.example.fake.send", "confirm", "app.*.*"),
        ("compositor", "system.power.shutdown", "deny", "domain-wall"),
        ("system", "system.power.shutdown", "confirm", "system.*.*"),
        ("system", "app.org.example.fake.frobnicate", "confirm", "app.*.*"),
    ];
    for (principal, id, word, rule) in table {
        if principal != "own" && !uids::are_several() {
            continue;
        }
        let said = verdict(&device, uids::own(), principal, id);
        assert_eq!(
            (&said["verdict"], &said["rule"]),
            (&json!(word), &json!(rule)),
            "{principal} {id}: {said}"
        );
        assert_eq!(said["reason"].is_null(), word == "allow", "{said}");
        assert_eq!(said["registered"].is_null(), word == "deny", "the wall hides what there is: {said}");
    }
}

#[test]
fn what_the_policy_says_is_what_happens() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    for (id, word, exit) in
        [(READ, "allow", 0), (CREATE, "allow", 0), ("app.org.example.fake.delete", "confirm", 6)]
    {
        assert_eq!(verdict(&device, uids::own(), "me", id)["verdict"], word, "{id}");
        let done = device.cli(&["exec", id]);
        assert_eq!(done.code, exit, "{id}: {done:?}");
    }
}

#[test]
fn others_principals_are_told_to_the_system_domain_alone() {
    if !uids::can_tell("others' principals are told to the system domain alone") {
        return;
    }
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let app = device.uids.callers[0];

    assert_eq!(verdict(&device, app, "me", CREATE)["principal"]["uid"], app);
    assert_eq!(verdict(&device, app, &app.to_string(), CREATE)["verdict"], "allow");
    for other in ["own", "nobody-of-that-name", "0"] {
        let message = device.cli_as(app, &["policy", "test", other, CREATE]).refused(5, "permission_denied");
        assert!(message.contains("system domain"), "{message}");
    }
    let message = device.cli(&["policy", "test", "nobody-of-that-name", CREATE]).refused(4, "not_found");
    assert!(message.contains("nobody-of-that-name"), "{message}");
}

#[test]
fn the_matrix_is_the_documents_table() {
    let mut device = Device::new(&Plan::default());
    device.start();
    let data = device.cli(&["policy", "matrix"]).data();
    let rows: Vec<(String, String, Value)> = data["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let word = |name: &str| row[name].as_str().unwrap().to_owned();
            (word("class"), word("gate"), row["undo_window_ms"].clone())
        })
        .collect();
    let table = [
        ("read", "allow", Value::Null),
        ("navigate", "allow", Value::Null),
        ("activate", "allow", Value::Null),
        ("input_text", "allow", json!(5_000)),
        ("delete", "confirm", json!(5_000)),
        ("send", "confirm", json!(15_000)),
        ("close_app", "confirm", json!(3_000)),
        ("system_settings", "confirm", Value::Null),
        ("hardware_control", "confirm", Value::Null),
        ("unknown", "confirm", Value::Null),
    ];
    for (class, gate, undo) in table {
        assert!(rows.contains(&(class.to_owned(), gate.to_owned(), undo)), "{class}: {rows:?}");
    }
    assert_eq!(rows.len(), 10);

    let list = device.cli(&["policy", "list"]).data();
    let patterns: Vec<&str> =
        list["rules"].as_array().unwrap().iter().map(|rule| rule["pattern"].as_str().unwrap()).collect();
    assert_eq!(
        patterns,
        ["app.*.*", "compositor.*.*", "system.*.*", "system.*.destroy*", "compositor.*.reconfigure*"]
    );
}
