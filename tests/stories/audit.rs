//! The trails: what stands in them, what must never, and what tampering looks like (R-157..R-164, R-199).

use std::fs;
use std::path::{Path, PathBuf};

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use pcp_ipc::Client;
use pcp_ipc::payloads::ExecuteRequest;
use serde_json::{Value, json};

use crate::support::{Device, Line, Plan, Process, new_operation, records, uids};

const CREATE: &str = "app.org.example.fake.create";
const SET: &str = "app.org.example.fake.set_value";
/// A text that a person typed: it may be nowhere.
const CANARY: &str = "kanarienvogel-4711";

/// What every record has, in the order of FORMAT.md.
const MEMBERS: [&str; 17] = [
    "seq",
    "prev",
    "synced",
    "kind",
    "time_ms",
    "operation_id",
    "caller",
    "capability",
    "target",
    "class",
    "tier",
    "best_effort",
    "permission",
    "params",
    "params_sha256",
    "action_hash",
    "crc",
];
/// What every record but an intent has besides.
const ENDS: [&str; 8] =
    ["claim_hash", "stage", "terminal", "error", "effect", "verification", "timed_out", "duration_us"];

#[test]
fn every_kind_of_record_has_every_member_that_its_document_names() {
    let (mut device, _fake, _app) = Device::with_fake(&Plan::default());
    device.cli(&["exec", CREATE]).data();
    device.cli(&["exec", "app.org.example.fake.get_value"]).data();
    device.cli(&["exec", "app.org.example.fake.delete", "id:=1"]).refused(6, "confirmation_unavailable");
    device.cli(&["exec", "app.org.example.ghost.create"]).refused(4, "target_not_found");

    let lines = device.stop_and_read();

    let kinds: Vec<&str> = lines.iter().map(|line| line.word("kind")).collect();
    assert_eq!(kinds, ["intent", "terminal", "read", "refusal", "refusal"]);
    for line in &lines {
        let found: Vec<&str> = line.record.as_object().unwrap().keys().map(String::as_str).collect();
        let mut wanted: Vec<&str> = MEMBERS.into();
        if line.word("kind") != "intent" {
            wanted.extend(ENDS);
        }
        wanted.sort_unstable();
        let mut sorted = found;
        sorted.sort_unstable();
        assert_eq!(sorted, wanted, "{}", line.text);
        let permission = &line.record["permission"];
        assert!(
            permission["verdict"].is_string()
                && permission["rule"].is_string()
                && permission["gate"].is_string()
        );
        assert!(line.record["target"]["app"].is_string() && line.record["caller"]["uid"] == uids::own());
        assert!(line.record["time_ms"].as_u64().unwrap() > 1_577_836_800_000);
    }
    let [intent, terminal, read, ..] = lines.as_slice() else { panic!("five records") };
    assert_eq!(terminal.word("claim_hash"), intent.hash(), "the end names its claim");
    assert_eq!(
        (terminal.word("verification"), terminal.word("tier"), read.word("effect")),
        ("result", "1", "")
    );
    assert!(terminal.record["duration_us"].as_u64().unwrap() > 0);
}

/// Sends an intent whose words are the caller's own, as no command line would.
fn say(client: &mut Client, target_app: &str, action: &str, parameters: &str) {
    let id = pcp_core::CapabilityId::parse(CREATE).unwrap();
    let mut request: ExecuteRequest<'_> = crate::support::request(new_operation(), &id, parameters);
    request.intent.action = action.into();
    request.intent.target_app = target_app.into();
    // What it answers is not what this is about.
    let _ = client.execute(&request, |_| {});
}

#[test]
fn whatever_a_request_contains_its_record_is_one_harmless_line() {
    let (mut device, _fake, _app) = Device::with_fake(&Plan::default());
    let mut client = device.client();
    let evil = [
        "line\nbreak",
        "carriage\rreturn",
        "\u{2028}",
        "\u{2029}",
        "\u{1b}[2Jansi",
        "\u{202e}bidi",
        "\u{2066}isolate",
        "\u{7f}\u{85}\u{9b}",
        "\"},\"crc\":\"00000000\"}",
        "\\",
        "nul\0",
    ];
    for text in evil {
        say(&mut client, text, "create", "{}");
        say(&mut client, "org.example.fake", text, "{}");
        let parameters = json!({"value": text, text: "name", "nested": {text: [text]}}).to_string();
        say(&mut client, "org.example.fake", "set_value", &parameters);
        say(&mut client, "org.example.ghost", "set_value", &parameters);
    }
    drop(client);

    let lines = device.stop_and_read();

    assert_eq!(lines.len(), evil.len() * 4, "one record a request, one line a record");
    for line in &lines {
        let harmless = |c: char| {
            !c.is_control()
                && !matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}' | '\u{200e}' | '\u{200f}')
        };
        assert!(line.text.chars().all(harmless), "{:?}", line.text);
        assert!(matches!(line.word("kind"), "refusal" | "intent" | "terminal" | "read"));
    }
    device.trails_are_whole();
    let shown = device.cli(&["audit", "show", "--dir", device.audit().to_str().unwrap()]);
    assert_eq!(shown.data().as_array().unwrap().len(), lines.len());
}

#[test]
fn what_a_person_typed_is_nowhere_in_the_daemons_state_or_its_log() {
    let (mut device, _fake, _app) = Device::with_fake(&Plan::config("[log]\nlevel = \"debug\"\n"));
    let value = format!("value={CANARY}");
    device.cli(&["exec", SET, &value]).data();
    device.cli(&["exec", "app.org.example.fake.get_value"]).data();
    for refused in [
        &["exec", SET, &value, "extra=1"][..],
        &["exec", "app.org.example.ghost.set_value", &value],
        &["exec", "app.org.example.fake.delete", &value],
        &["exec", "system.power.shutdown", &value],
        &["exec", SET, &value, "behave=fail:execution_failed"],
        &["exec", CREATE, &format!("{CANARY}=name")],
    ] {
        assert_ne!(device.cli(refused).code, 0, "{refused:?}");
    }
    device.cli(&["exec", SET, &value, "--dry-run"]).data();

    let lines = device.stop_and_read();

    assert_eq!(lines.len(), 2 + 1 + 5 + 2, "everything but the dry run is recorded");
    let leak = lines.iter().find(|line| line.text.contains(CANARY));
    assert!(leak.is_none(), "what was typed stands in {leak:?}");
    for file in files_below(&device.path("state")) {
        let bytes = fs::read(&file).unwrap();
        assert!(!contains(&bytes, CANARY), "{} has what was typed", file.display());
    }
    assert!(!device.log().contains(CANARY), "the log has what was typed");
    let hashed = lines.iter().find(|line| line.word("capability") == SET).unwrap();
    assert!(hashed.record["params"]["value"].as_str().unwrap().starts_with("sha256:"), "{}", hashed.text);
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// A stopped device that has records in all three trails.
fn device_with_three_trails() -> (Device, Vec<Line>) {
    let (mut device, _fake, _app): (Device, _, Process) = Device::with_fake(&Plan::default());
    for number in 0..4 {
        device.cli(&["exec", SET, &format!("value={number}")]).data();
    }
    for id in
        ["compositor.ghost.focus", "compositor.ghost.move", "system.ghost.edit", "system.ghost.set_value"]
    {
        device.cli(&["exec", id]).refused(4, "target_not_found");
    }
    let lines = device.stop_and_read();
    (device, lines)
}

#[test]
fn there_are_three_trails_and_each_verifies_alone() {
    let (device, lines) = device_with_three_trails();
    for (trail, count) in records::TRAILS.iter().zip([8, 2, 2]) {
        assert_eq!(lines.iter().filter(|line| line.trail == *trail).count(), count, "{trail}");
        let file = device.audit().join(format!("{trail}.000001.jsonl"));
        let file = file.to_str().unwrap();
        let report = device.cli(&["audit", "verify", "--file", file]).data();
        let head = lines.iter().rfind(|line| line.trail == *trail).unwrap().hash();
        assert_eq!(
            (
                &report["trails"][0]["verdict"],
                &report["trails"][0]["records"],
                &report["trails"][0]["head_hash"]
            ),
            (&json!("whole"), &json!(count), &json!(head))
        );
        let (code, said) = crate::support::python::python("trail.py", &[file], b"");
        let said: Value = serde_json::from_slice(&said).unwrap();
        assert_eq!((code, &said["lines"], &said["head"]), (0, &json!(count), &json!(head)));
    }
    device.trails_are_whole();
}

/// A copy of the trails that the test may change.
fn copy(device: &Device, name: &str) -> PathBuf {
    let folder = device.folder(name, uids::own(), 0o700);
    for file in fs::read_dir(device.audit()).unwrap() {
        let file = file.unwrap().path();
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    folder
}

#[test]
fn a_changed_byte_anywhere_is_found_with_file_and_line_by_both_readers() {
    let (device, lines) = device_with_three_trails();
    let application: Vec<&Line> = lines.iter().filter(|line| line.trail == "application").collect();
    for victim in [0, 3, application.len() - 1] {
        let folder = copy(&device, &format!("copy{victim}"));
        let file = folder.join("application.000001.jsonl");
        let mut bytes = fs::read(&file).unwrap();
        let start: usize = application[..victim].iter().map(|line| line.text.len() + 1).sum();
        bytes[start + application[victim].text.len() / 2] ^= 1;
        fs::write(&file, bytes).unwrap();

        let answer = device.cli(&["audit", "verify", "--dir", folder.to_str().unwrap()]);

        let message = answer.refused(11, "integrity_broken");
        assert!(message.contains("application"), "{message}");
        let bad = &answer.envelope()["data"]["trails"][0]["first_bad"];
        assert_eq!((&bad["file"], &bad["line"]), (&json!("application.000001.jsonl"), &json!(victim + 1)));
        let (code, said) = crate::support::python::python("trail.py", &[folder.to_str().unwrap()], b"");
        let first: Value = serde_json::from_slice(said.split(|byte| *byte == b'\n').next().unwrap()).unwrap();
        assert_eq!((code, &first["line"]), (11, &json!(victim + 1)));
    }
}

#[test]
fn a_line_that_is_removed_or_moved_is_found() {
    let (device, lines) = device_with_three_trails();
    let texts: Vec<&str> =
        lines.iter().filter(|line| line.trail == "application").map(|line| line.text.as_str()).collect();
    let mut removed = texts.clone();
    removed.remove(3);
    let mut moved = texts.clone();
    moved.swap(2, 3);
    let mut doubled = texts.clone();
    doubled.insert(4, texts[3]);
    for (name, changed, line) in [("removed", removed, 4), ("moved", moved, 3), ("doubled", doubled, 5)] {
        let folder = copy(&device, name);
        fs::write(folder.join("application.000001.jsonl"), changed.join("\n") + "\n").unwrap();
        let answer = device.cli(&["audit", "verify", "--dir", folder.to_str().unwrap()]);
        answer.refused(11, "integrity_broken");
        assert_eq!(answer.envelope()["data"]["trails"][0]["first_bad"]["line"], line, "{name}");
    }
}

#[test]
fn a_daemon_does_not_start_over_a_broken_trail_and_leaves_it_as_it_is() {
    let (device, _) = device_with_three_trails();
    let file = device.audit().join("application.000001.jsonl");
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();

    let (code, said) = device.start_in_vain();

    assert_eq!(code, 1, "{said}");
    assert!(said.contains("application.000001.jsonl"), "{said}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn trails_that_cannot_be_read_are_unchecked_and_not_called_whole_or_broken() {
    let (device, _) = device_with_three_trails();
    let audit = device.audit();
    let verify = ["audit", "verify", "--dir", audit.to_str().unwrap()];
    if uids::are_several() {
        device.cli_as(device.uids.callers[0], &verify).refused(12, "integrity_unchecked");
    }
    let none = device.path("none");
    device.cli(&["audit", "verify", "--dir", none.to_str().unwrap()]).refused(12, "integrity_unchecked");
}

#[test]
fn the_trails_belong_to_the_daemon_alone() {
    use std::os::unix::fs::MetadataExt as _;
    let (device, _) = device_with_three_trails();
    let facts = |path: &Path| {
        let facts = fs::symlink_metadata(path).unwrap();
        (facts.mode() & 0o7777, facts.uid())
    };
    assert_eq!(facts(&device.audit()), (0o700, device.uids.daemon));
    for file in files_below(&device.audit()) {
        assert_eq!(facts(&file), (0o600, device.uids.daemon), "{}", file.display());
    }
}

#[test]
fn parameters_that_a_manifest_calls_harmless_stand_in_the_record_as_they_are() {
    let mut device = Device::new(&Plan::default());
    let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let create = FakeCapability::new(CREATE)
        .takes("colour", json!({"type": "string", "x-pcp-sensitive": false}))
        .takes("text", json!({"type": "string"}));
    let fake = device.install(&FakeManifest::new(id, vec![create]), None);
    let _app = device.start_fake(&fake, &[]);
    device.start();
    device.cli(&["exec", CREATE, "colour=red", &format!("text={CANARY}")]);

    let lines = device.stop_and_read();

    let params = &lines[0].record["params"];
    assert_eq!(params["colour"], "red");
    assert!(params["text"].as_str().unwrap().starts_with("sha256:"), "{params}");
}
