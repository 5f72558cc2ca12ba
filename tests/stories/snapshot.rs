//! The registry of yesterday beside that of today, and one application in full.

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use serde_json::{Value, json};

use crate::support::pseudo_terminal::on_a_terminal;
use crate::support::{Answer, Device, Plan, uids};

fn entry(device: &Device, id: &str, categories: &str) {
    let text =
        format!("[Desktop Entry]\nType=Application\nName=Post\nExec=mail %U\nCategories={categories}\n");
    device.write(&format!("share/applications/{id}.desktop"), text);
}

/// A device with a mail program and a signed application, its daemon not running.
fn device() -> Device {
    let mut device = Device::new(&Plan::default());
    fs::create_dir_all(device.path("share/applications")).unwrap();
    fs::create_dir_all(device.path("bin")).unwrap();
    let program = "#!/usr/bin/env python3\nimport gi\ngi.require_version(\"Gtk\", \"3.0\")\n";
    let path = device.write("bin/mail", program);
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    entry(&device, "org.example.mail", "Network;Email;");
    device.install(&FakeManifest::standard(AppId::parse(pcp_fakeapp::APP_ID).unwrap()), None);
    device
}

#[test]
fn what_changed_after_an_upgrade_is_told_field_by_field() {
    let mut device = device();
    device.start();
    let before = device.cli(&["snapshot", "--json"]);
    let old = device.write("before.json", &before.out);
    let old = old.to_str().unwrap();
    let same = device.cli(&["snapshot", "diff", old]).data();
    assert_eq!(same["same"], true, "{same}");
    device.stop();

    // The upgrade: one application comes, one goes, one changes, and so do capabilities.
    entry(&device, "org.example.text", "TextEditor;");
    fs::remove_file(device.path("share/applications/org.example.mail.desktop")).unwrap();
    let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let mut manifest = FakeManifest { version: "2.0.0".into(), ..FakeManifest::standard(id) };
    manifest.capabilities.retain(|capability| capability.action() != "frobnicate");
    manifest.capabilities.push(FakeCapability::new("app.org.example.fake.archive"));
    let signer = pcp_trust::Signer::from_secret_bytes(&[1; 32]);
    let places = pcp_fakeapp::Places::under(&device.path(""));
    places.install(&manifest, &signer, device.uids.app, None).unwrap();
    device.start();

    let live = device.cli(&["snapshot", "diff", old]).data();
    assert_eq!(live["same"], false);
    assert_eq!(
        (&live["apps"]["added"], &live["apps"]["removed"]),
        (&json!(["org.example.text"]), &json!(["org.example.mail"]))
    );
    let version = json!({"field": "version", "old": "1.0.0", "new": "2.0.0"});
    assert_eq!(live["apps"]["changed"], json!([{"id": "org.example.fake", "fields": [version]}]));
    let capabilities = &live["capabilities"];
    let has = |list: &str, id: &str| capabilities[list].as_array().unwrap().contains(&json!(id));
    assert!(has("added", "app.org.example.fake.archive"), "{live}");
    assert!(has("removed", "app.org.example.fake.frobnicate"), "{live}");
    assert!(has("removed", "app.org.example.mail.search"), "{live}");
    let create = json!({"id": "app.org.example.fake.create", "fields": [version]});
    assert!(capabilities["changed"].as_array().unwrap().contains(&create), "{live}");

    let after = device.cli(&["snapshot", "--json"]).out;
    let new = device.write("after.json", &after);
    assert_eq!(device.cli(&["snapshot", "diff", old, new.to_str().unwrap()]).data(), live);
    assert_eq!(by_input(&device, &["snapshot", "diff", old, "-"], &after).data(), live);
    let (code, page, err) =
        on_a_terminal(&mut device.cli_command(uids::own(), &["snapshot", "diff", old, "--color", "never"]));
    assert_eq!((code, err.as_str()), (0, ""));
    for line in [
        "+ application org.example.text\n",
        "- application org.example.mail\n",
        "~ application org.example.fake\n    version: \"1.0.0\" -> \"2.0.0\"\n",
        "+ capability app.org.example.fake.archive\n",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    device.cli(&["snapshot", "diff", "/nonexistent"]).refused(4, "not_found");
    let bad = device.write("bad.json", "{}");
    device.cli(&["snapshot", "diff", bad.to_str().unwrap()]).refused(2, "usage");
}

fn by_input(device: &Device, arguments: &[&str], input: &str) -> Answer {
    let mut command = device.cli_command(uids::own(), arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    Answer::of(&child.wait_with_output().unwrap())
}

#[test]
fn an_application_is_shown_with_its_categories_and_its_signature() {
    let mut device = device();
    device.start();
    let ids = |arguments: &[&str]| -> Vec<String> {
        let rows = device.cli(arguments).data();
        rows.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };

    let mail = device.cli(&["app", "show", "org.example.mail"]).data();
    assert_eq!(
        (&mail["declared"]["categories"], &mail["declared"]["toolkit"], &mail["signature"]),
        (&json!(["Network", "Email"]), &json!("gtk3"), &json!("unsigned")),
        "{mail}"
    );
    let fake = device.cli(&["app", "show", "org.example.fake"]).data();
    assert_eq!((&fake["signature"], &fake["declared"]), (&json!("verified"), &Value::Null));
    assert_eq!(fake["capabilities"].as_array().unwrap().len(), 7);
    let (code, page, _) =
        on_a_terminal(&mut device.cli_command(uids::own(), &["app", "show", "org.example.mail"]));
    assert_eq!(code, 0);
    for line in ["Categories: Network, Email\n", "Toolkit: gtk3\n", "app.org.example.mail.search\n"] {
        assert!(page.contains(line), "{page}");
    }
    device.cli(&["app", "show", "org.example.none"]).refused(4, "not_found");
    device.cli(&["show", "org.example.mail"]).refused(2, "usage");

    assert_eq!(ids(&["apps"]), ids(&["app", "list"]));
    for (arguments, found) in [
        (&["apps", "--toolkit", "gtk3"][..], &["org.example.mail"][..]),
        (&["apps", "--toolkit", "qt6"], &[]),
        (&["apps", "--category", "email"], &["org.example.mail"]),
        (&["apps", "--category", "Game"], &[]),
        (&["apps", "org.example.f*", "--category", "Email"], &[]),
    ] {
        assert_eq!(ids(arguments), found, "{arguments:?}");
    }
}

#[test]
fn a_parameter_that_is_nearly_right_is_named() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let hint = |words: &[&str]| device.cli(words).envelope()["error"]["hint"].as_str().unwrap().to_owned();
    let set = "app.org.example.fake.set_value";
    assert!(hint(&["exec", set, "valeu=1"]).contains("\"value\" may be meant"));
    assert!(hint(&["exec", set, "weather=1"]).contains("pcp-cli show"));
    assert!(hint(&["exec", set, "--value", "1"]).contains("value=TEXT"));
    assert_eq!(fake.effect_count(), 0);
}
