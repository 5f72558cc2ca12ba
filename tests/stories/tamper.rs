//! Seals and anchors with the real programs: what is done to the files of a device, and who notices.

use std::fs;
use std::path::{Path, PathBuf};

use pcp_core::AppId;
use pcp_fakeapp::FakeManifest;
use serde_json::{Value, json};

use crate::support::{Device, Plan, Process, records, uids};

const SET: &str = "app.org.example.fake.set_value";

/// A device whose trails are sealed, and the file of its verification key, which is kept elsewhere.
fn sealed_device() -> (Device, Process, String) {
    let mut device = Device::new(&Plan::default());
    let fake = device.install(&FakeManifest::standard(AppId::parse(pcp_fakeapp::APP_ID).unwrap()), None);
    let keys =
        device.cli_as(device.uids.daemon, &["audit", "setup-keys", "--dir", &text(&device.audit())]).data();
    let key = device.write("key.txt", keys["verification_key"].as_str().unwrap());
    let app = device.start_fake(&fake, &[]);
    device.start();
    (device, app, text(&key))
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn act(device: &Device, count: usize) {
    for number in 0..count {
        device.cli(&["exec", SET, &format!("value={number}")]).data();
        device.cli(&["exec", "system.ghost.edit"]).refused(4, "target_not_found");
    }
}

fn verify(device: &Device, more: &[&str]) -> crate::support::Answer {
    let audit = text(&device.audit());
    device.cli(&[&["audit", "verify", "--dir", &audit][..], more].concat())
}

/// A copy of the state folder that belongs to the user who runs the test.
fn copy(device: &Device, name: &str) -> PathBuf {
    for folder in ["audit", "seal"] {
        let to = device.folder(&format!("{name}/{folder}"), uids::own(), 0o700);
        for file in fs::read_dir(device.path("state").join(folder)).unwrap() {
            let file = file.unwrap().path();
            fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
        }
    }
    device.path(name)
}

#[test]
fn a_stopped_device_is_sealed_to_the_last_record_and_its_first_key_is_nowhere_on_it() {
    let (mut device, _app, key) = sealed_device();
    act(&device, 3);
    device.stop();

    let checked = verify(&device, &["--key", &key]).data();

    assert_eq!((&checked["seals"]["sealed"], &checked["seals"]["verdict"]), (&json!(true), &json!("whole")));
    for (trail, lines) in records::TRAILS.iter().zip([7, 1, 4]) {
        let found = checked["trails"].as_array().unwrap().iter().find(|it| it["name"] == *trail).unwrap();
        assert_eq!((&found["records"], &found["seals"]["checked"]), (&json!(lines), &json!(1)), "{found}");
        assert_eq!(found["seals"]["unchecked"], 0);
    }
    device.trails_are_whole();
    let digits = fs::read_to_string(&key).unwrap();
    let digits = digits.rsplit(':').next().unwrap().to_owned();
    let secret: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap()).collect();
    for folder in ["audit", "seal"] {
        for file in fs::read_dir(device.path("state").join(folder)).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            assert!(!bytes.windows(32).any(|window| window == secret));
            assert!(!bytes.windows(64).any(|window| window == digits.as_bytes()));
        }
    }
}

#[test]
fn keys_are_made_once_and_not_under_a_running_daemon() {
    let (mut device, _app, _) = sealed_device();
    let audit = text(&device.audit());
    let again = ["audit", "setup-keys", "--dir", &audit];
    let replace = ["audit", "setup-keys", "--dir", &audit, "--replace", "the note was lost"];
    let daemon = device.uids.daemon;

    assert!(device.cli_as(daemon, &replace).refused(2, "usage").contains("in use"));
    act(&device, 1);
    device.stop();
    assert!(device.cli_as(daemon, &again).refused(2, "usage").contains("keys exist"));
    if uids::are_several() {
        let message = device.cli(&again).refused(2, "usage");
        assert!(message.contains(&format!("belongs to uid {daemon}")), "{message}");
    }
    let keys = device.cli_as(daemon, &replace).data();
    let new = device.write("new.txt", keys["verification_key"].as_str().unwrap());
    device.start();
    act(&device, 1);
    device.stop();

    let old = text(&device.path("key.txt"));
    let checked = verify(&device, &["--key", &old, "--key", &text(&new)]).data();
    assert_eq!(
        (&checked["trails"][0]["seals"]["checked"], &checked["trails"][0]["seals"]["unchecked"]),
        (&json!(2), &json!(0))
    );
    let seals = fs::read_to_string(device.audit().join("compositor.000001.jsonl")).unwrap();
    assert!(seals.contains("\"replaced\":\"the note was lost\""), "{seals}");
}

#[test]
fn a_device_without_keys_is_whole_and_is_not_called_sealed() {
    let (mut device, _fake, _app) = Device::with_fake(&Plan::default());
    act(&device, 1);
    device.stop();

    let answer = verify(&device, &[]);

    assert_eq!(answer.data()["seals"], json!({"verdict": "whole", "sealed": false}));
    assert!(!device.path("state/seal").exists());
}

#[test]
fn what_is_cut_changed_or_set_back_has_an_exit_code_of_its_own_and_names_its_place() {
    let (mut device, _app, key) = sealed_device();
    act(&device, 4);
    device.stop();
    let earlier = copy(&device, "earlier");
    device.start();
    act(&device, 4);
    device.stop();
    type Attack = fn(&Path, &Path);
    const APPLICATION: &str = "audit/application.000001.jsonl";
    let attacks: [(&str, Attack, i32, &str); 7] = [
        (
            "tail",
            |now, _| edit(&now.join(APPLICATION), |lines| lines.truncate(lines.len() - 1)),
            11,
            "application.000001.jsonl ends at",
        ),
        (
            "removed",
            |now, _| edit(&now.join(APPLICATION), |lines| drop(lines.remove(2))),
            11,
            "application.000001.jsonl line 3 ",
        ),
        ("older", |now, old| set_back(APPLICATION, now, old), 11, "application.000001.jsonl"),
        ("anchor", |now, old| set_back("seal/anchor", now, old), 11, "anchor was not written with the key"),
        ("no-anchor", |now, _| fs::remove_file(now.join("seal/anchor")).unwrap(), 12, "no anchor"),
        ("no-key", |now, _| fs::remove_file(now.join("seal/key")).unwrap(), 12, "sealing key"),
        ("no-seals", |now, _| fs::remove_dir_all(now.join("seal")).unwrap(), 12, "anchor is not there"),
    ];
    for (name, attack, exit, said) in attacks {
        let now = copy(&device, name);
        attack(&now, &earlier);

        let audit = text(&now.join("audit"));
        let answer = device.cli(&["audit", "verify", "--dir", &audit, "--key", &key]);

        let word = if exit == 11 { "integrity_broken" } else { "integrity_unchecked" };
        let message = answer.refused(exit, word);
        assert!(message.contains(said), "{name}: {message}");
    }
    let cut = copy(&device, "bad");
    edit(&cut.join(APPLICATION), |lines| lines.truncate(lines.len() - 3));
    let answer = device.cli(&["audit", "verify", "--dir", &text(&cut.join("audit"))]);
    let bad = &answer.envelope()["data"]["trails"][0]["first_bad"];
    let size = fs::metadata(cut.join(APPLICATION)).unwrap().len();
    assert_eq!((&bad["file"], &bad["offset"]), (&json!("application.000001.jsonl"), &json!(size)));
    assert_eq!(bad["record"], fs::read_to_string(cut.join(APPLICATION)).unwrap().lines().count() + 1);
}

fn set_back(file: &str, now: &Path, old: &Path) {
    let _ = fs::copy(old.join(file), now.join(file)).unwrap();
}

fn edit(file: &Path, change: impl Fn(&mut Vec<String>)) {
    let mut lines: Vec<String> = fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect();
    change(&mut lines);
    fs::write(file, lines.join("\n") + "\n").unwrap();
}

#[test]
fn a_daemon_does_not_start_over_a_trail_that_lost_its_tail() {
    let (mut device, _app, _) = sealed_device();
    act(&device, 3);
    device.stop();
    let file = device.audit().join("system.000001.jsonl");
    let whole = fs::read(&file).unwrap();
    let mut cut = whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    cut.pop();
    cut.pop();
    fs::write(&file, cut.concat()).unwrap();

    let (code, said) = device.start_in_vain();

    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("system.000001.jsonl ends at byte") && said.contains("records are missing"),
        "{said}"
    );
    assert_eq!(fs::read(&file).unwrap(), cut.concat(), "it is left as it is");
    fs::write(&file, whole).unwrap();
    device.start();
    act(&device, 1);
    device.stop();
}

#[test]
fn a_killed_daemon_leaves_a_log_that_is_no_case_of_tampering() {
    let (mut device, _app, key) = sealed_device();
    for _ in 0..3 {
        act(&device, 2);
        device.kill();
        verify(&device, &["--key", &key]).data();
        device.start();
    }
    device.stop();

    let checked = verify(&device, &["--key", &key]).data();

    assert_eq!(checked["trails"][2]["seals"]["unchecked"], 0);
}

#[test]
fn a_whole_device_set_back_is_noticed_by_a_head_kept_elsewhere() {
    let (mut device, _app, key) = sealed_device();
    act(&device, 2);
    device.stop();
    let earlier = copy(&device, "earlier");
    device.start();
    act(&device, 2);
    device.stop();
    let head = device.cli(&["audit", "head", "--dir", &text(&device.audit())]);
    assert_eq!(head.out.lines().count(), 3, "{head:?}");
    let head = text(&device.write("head.txt", &head.out));
    device.start();
    act(&device, 1);
    device.stop();

    verify(&device, &["--key", &key, "--since-head", &head]).data();
    let audit = text(&earlier.join("audit"));
    device.cli(&["audit", "verify", "--dir", &audit, "--key", &key]).data();
    let back = device.cli(&["audit", "verify", "--dir", &audit, "--key", &key, "--since-head", &head]);

    assert!(back.refused(11, "integrity_broken").contains("the pinned head names record"), "{back:?}");
}

#[test]
fn an_exported_range_is_checked_elsewhere_by_its_seal() {
    let (mut device, _app, key) = sealed_device();
    act(&device, 3);
    device.stop();
    let audit = text(&device.audit());
    let range = ["audit", "export", "--dir", &audit, "--trail", "application", "--from", "3", "--to", "4"];
    let answer = device.cli(&range);
    assert_eq!(answer.code, 0, "{answer:?}");
    let exported = device.write("range.jsonl", &answer.out);
    let check = ["audit", "verify", "--file", &text(&exported), "--trail", "application", "--key", &key];

    let checked = device.cli(&check).data();

    let first: Value = serde_json::from_str(answer.out.lines().next().unwrap()).unwrap();
    let last: Value = serde_json::from_str(answer.out.lines().last().unwrap()).unwrap();
    assert_eq!((&first["seq"], &last["kind"]), (&json!(3), &json!("seal")));
    assert_eq!(checked["trails"][0]["seals"]["checked"], 1);
    fs::write(&exported, answer.out.replacen("\"uid\":", "\"uid\":1", 1)).unwrap();
    device.cli(&check).refused(11, "integrity_broken");
    let none = ["audit", "export", "--dir", &audit, "--trail", "application", "--from", "1000"];
    device.cli(&none).refused(4, "not_found");
}
