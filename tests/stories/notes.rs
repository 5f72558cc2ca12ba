//! The reference application through the command line: what a person sees on the first evening.

use std::fs;

use pcp_trust::{CanonicalJson, Signer};
use serde_json::{Value, json};

use crate::support::{Device, Plan, Process, records};

const APP: &str = "org.portal.notes";

fn device_with_notes() -> (Device, Process) {
    let mut device = Device::new(&Plan::default());
    let uid = device.uids.notes;
    let text = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../apps/notes/manifest.json")).unwrap();
    let signer = Signer::from_secret_bytes(&[5; 32]);
    let signed = CanonicalJson::parse(&text).unwrap().signed_with(&signer);
    let root = crate::support::uids::own();
    device.folder(&format!("usr/share/portal/apps/{APP}"), root, 0o755);
    let manifest = device.write(&format!("usr/share/portal/apps/{APP}/manifest.json"), signed);
    device.write(&format!("etc/portal/keys/trusted/{APP}.pub"), signer.verifier().to_bytes());
    device.write(
        &format!("etc/portal/pcp/apps.d/{APP}.toml"),
        format!("uid = {uid}\nmanifest = {:?}\n", manifest.display().to_string()),
    );
    let data = device.folder("app/notes", uid, 0o700);
    let mut command = device.program("pcp-notes", uid, &[device.uids.apps_group]);
    command.arg("--data").arg(data).arg("--manifest").arg(manifest);
    command
        .arg("--socket-dir")
        .arg(device.path("run"))
        .arg("--daemon-uid")
        .arg(device.uids.daemon.to_string());
    let app = Process::start_until_it_says("pcp-notes", &mut command, "ready on");
    device.start();
    (device, app)
}

fn exec(device: &Device, action: &str, words: &[&str]) -> Value {
    let id = format!("app.{APP}.{action}");
    let answer = device.cli(&[&["exec", &id], words].concat());
    let data = answer.data();
    assert_eq!(
        (&data["terminal"], &data["tier"], &data["state_source"]),
        (&json!("succeeded"), &json!("1"), &json!("rust"))
    );
    data
}

#[test]
fn notes_are_created_listed_searched_read_and_edited_and_every_result_is_in_the_trail() {
    let (mut device, _app) = device_with_notes();

    let created = exec(&device, "create", &["title=Milch", "body=two litres"]);
    exec(&device, "create", &["title=Brot"]);
    assert_eq!(
        (&created["data"], &created["effect"]),
        (&json!({"id": 1, "revision": 1}), &json!("verified"))
    );
    let edited = exec(&device, "edit", &["id:=1", "body=three litres", "expected_revision:=1"]);
    let listed = exec(&device, "list", &[]);
    let found = exec(&device, "search", &["query=three"]);
    let read = exec(&device, "read", &["id:=1"]);

    assert_eq!(listed["data"]["notes"].as_array().unwrap().len(), 2);
    assert_eq!(found["data"]["matches"][0]["title"], "Milch");
    assert_eq!((&read["data"]["body"], &read["data"]["revision"]), (&json!("three litres"), &json!(2)));
    assert_eq!(read["effect"], Value::Null, "a read has no effect");

    let lines = device.stop_and_read();
    for result in [created, edited, listed, found, read] {
        let hash = result["audit_hash"].as_str().unwrap();
        let line = lines.iter().find(|line| line.hash() == hash).expect("the audit hash is a line's hash");
        assert_eq!(
            (line.trail, line.word("operation_id")),
            ("application", result["operation_id"].as_str().unwrap())
        );
    }
    device.trails_are_whole();
}

#[test]
fn what_a_person_has_to_confirm_is_refused_without_a_confirmer_and_nothing_changes() {
    let (mut device, _app) = device_with_notes();
    exec(&device, "create", &["title=Milch"]);

    for (action, words) in [("delete", &["id:=1"][..]), ("export", &["id:=1", "format=text"])] {
        let id = format!("app.{APP}.{action}");
        let message = device.cli(&[&["exec", &id], words].concat()).refused(6, "confirmation_unavailable");
        assert!(message.contains(&id), "{message}");
    }

    assert_eq!(exec(&device, "read", &["id:=1"])["data"]["revision"], 1);
    let lines = device.stop_and_read();
    let refusals: Vec<_> = lines.iter().filter(|line| line.word("kind") == "refusal").collect();
    assert_eq!(refusals.len(), 2);
    for line in refusals {
        assert_eq!((line.word("error"), line.word("terminal")), ("confirmation_unavailable", "rejected"));
        assert_eq!(line.record["permission"]["gate"], "confirm");
    }
    assert_eq!(records::TRAILS.len(), 3);
}
