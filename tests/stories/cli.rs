//! The command line as people and programs meet it: two modes, one closed table of exit codes.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::pseudo_terminal::on_a_terminal;
use crate::support::{Answer, Device, Plan, new_operation, process, uids};

const CREATE: &str = "app.org.example.fake.create";

/// How a verb prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Prints {
    /// An envelope for programs, a page for people.
    Both,
    /// Always an envelope (S3's verbs).
    Envelope,
    /// A document for other programs, the same everywhere.
    Document,
}

/// Every verb with arguments that work on the device of this story.
fn every_verb(device: &Device) -> Vec<(Vec<String>, Prints)> {
    use Prints::{Both, Document, Envelope};
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let audit = device.audit().display().to_string();
    let file = device.audit().join("application.000001.jsonl").display().to_string();
    let key = device.path("key").display().to_string();
    let unsigned = format!("{data}/manifest/files/minimal.json");
    let public = format!("{data}/manifest/keys/minimal.pub");
    let signed = device.path("signed.json").display().to_string();
    let snapshot = device.write("before.json", device.cli(&["snapshot", "--json"]).out).display().to_string();
    let sealed = device.folder("sealed", uids::own(), 0o700).join("audit").display().to_string();
    let operation = new_operation().to_string();
    let line = |words: &[&str], prints| (words.iter().map(ToString::to_string).collect(), prints);
    vec![
        line(&["ping"], Both),
        line(&["doctor"], Both),
        line(&["list"], Both),
        line(&["show", CREATE], Both),
        line(&["apps"], Both),
        line(&["app", "list"], Both),
        line(&["app", "show", "org.example.fake"], Both),
        line(&["adapters"], Both),
        line(&["snapshot"], Both),
        line(&["snapshot", "diff", &snapshot], Both),
        line(&["exec", CREATE], Both),
        line(&["exec", CREATE, "--dry-run"], Both),
        line(&["status", "--ledger", &audit, &operation], Envelope),
        line(&["audit", "verify", "--dir", &audit], Both),
        line(&["audit", "show", "--dir", &audit], Both),
        line(&["audit", "head", "--dir", &audit], Document),
        line(&["audit", "export", "--dir", &audit, "--trail", "application"], Document),
        line(&["audit", "setup-keys", "--dir", &sealed, "--replace", "a story"], Both),
        line(&["audit", "show", "--file", &file, "--last", "1"], Both),
        line(&["explain", CREATE], Both),
        line(&["capabilities"], Envelope),
        line(&["policy", "list"], Both),
        line(&["policy", "matrix"], Both),
        line(&["policy", "test", "me", CREATE], Both),
        line(&["classify", CREATE], Both),
        line(&["capability", "parse", CREATE], Both),
        line(&["inspect", "manifest", &unsigned, "--key", &public], Both),
        line(&["inspect", "frame", &format!("{data}/frames/files/ping-empty.bin")], Both),
        line(&["inspect", "desktop", &format!("{data}/desktop/files/bom.desktop")], Both),
        line(&["inspect", "tree", "--data", &format!("{data}/desktop/trees/precedence/data1")], Both),
        line(&["inspect", "elf", "/bin/true"], Both),
        line(&["key", "gen", "--out", &key], Both),
        line(&["manifest", "verify", &unsigned, "--key", &public], Both),
        line(&["manifest", "canon", &unsigned], Document),
        line(&["manifest", "sign", "--key", &key, &unsigned, "--out", &signed], Both),
        line(&["wire", "--list"], Document),
        line(&["completion", "bash"], Document),
        line(&["version"], Both),
        line(&["help"], Document),
    ]
}

#[test]
fn every_verb_prints_one_envelope_into_a_pipe_and_a_page_on_a_terminal() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    // Something that the trails can show.
    device.cli(&["exec", CREATE]).data();
    let table = every_verb(&device);
    for (words, prints) in &table {
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let piped = device.cli(&arguments);
        assert_eq!((piped.code, piped.err.as_str()), (0, ""), "{words:?}: {piped:?}");
        let envelope: Option<Value> =
            serde_json::from_str(&piped.out).ok().filter(|json: &Value| json["ok"] == true);
        assert_eq!(envelope.is_some(), *prints != Prints::Document, "{words:?}: {}", piped.out);
        if words[0] == "key" {
            fs::remove_file(device.path("key")).unwrap();
            fs::remove_file(device.path("key.pub")).unwrap();
        }

        let (code, page, err) = on_a_terminal(&mut device.cli_command(uids::own(), &arguments));
        assert_eq!((code, err.as_str()), (0, ""), "{words:?}: {page}");
        assert!(!page.trim().is_empty(), "{words:?}");
        let is_envelope = serde_json::from_str::<Value>(&page).is_ok_and(|json| json["ok"] == true);
        assert_eq!(is_envelope, *prints == Prints::Envelope, "{words:?}: {page}");

        let json = device.cli(&[&arguments[..], &["--json"]].concat());
        if *prints == Prints::Both && words[0] != "key" {
            assert_eq!(json.envelope()["ok"], true, "{words:?}");
        }
    }
    every_verb_is_in(&table, &device);
}

/// The table above is complete: the program itself says which verbs it has.
fn every_verb_is_in(table: &[(Vec<String>, Prints)], device: &Device) {
    let tree: Value = serde_json::from_str(&device.cli(&["help", "--json"]).out).unwrap();
    let mut told: BTreeSet<String> = table.iter().map(|(words, _)| words[0].clone()).collect();
    // A follower prints no envelope; the stories of its own tell what it prints.
    told.insert("events".to_owned());
    // Nothing can be observed yet, and that is what these say; their transcript has every word of it.
    told.extend(["surfaces", "observe", "observe-surface"].map(str::to_owned));
    let named = |tree: &Value| -> Vec<String> {
        tree["verbs"]
            .as_array()
            .map(|verbs| verbs.iter().map(|verb| verb["name"].as_str().unwrap().to_owned()).collect())
            .unwrap_or_default()
    };
    let verbs: BTreeSet<String> = named(&tree).into_iter().collect();
    assert_eq!(verbs, told, "add the new verb to the table of this story");
    for verb in tree["verbs"].as_array().unwrap() {
        let second: BTreeSet<String> = named(verb).into_iter().collect();
        let name = verb["name"].as_str().unwrap();
        let told = table.iter().filter(|(words, _)| words[0] == name);
        let told: BTreeSet<String> =
            told.filter(|_| !second.is_empty()).filter_map(|(words, _)| words.get(1).cloned()).collect();
        assert_eq!(told, second, "{name}");
    }
    assert!(tree["errors"].as_array().unwrap().len() > 30);
}

#[test]
fn a_refusal_on_a_terminal_is_lines_for_a_person_on_standard_error() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let (code, page, err) =
        on_a_terminal(&mut device.cli_command(uids::own(), &["show", "app.org.example.fake.none"]));
    assert_eq!((code, page.as_str()), (4, ""));
    assert!(err.starts_with("error: ") && err.contains("\nhint: "), "{err}");
}

#[test]
fn each_way_to_fail_has_its_exit_code() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::config("[pipeline]\napp_ms = 400\n"));
    let mut table = vec![
        (vec!["ping"], 0, ""),
        (vec!["ping", "--count", "none"], 2, "usage"),
        (vec!["no-such-verb"], 2, "usage"),
        (vec!["exec", "two.parts"], 2, "usage"),
        (vec!["exec", CREATE, "--params-json", "[1]"], 2, "usage"),
        (vec!["show", "app.org.example.fake.none"], 4, "not_found"),
        (vec!["exec", "app.org.example.ghost.create"], 4, "target_not_found"),
        (vec!["exec", "app.org.example.fake.delete", "id:=1"], 6, "confirmation_unavailable"),
        (vec!["exec", CREATE, "behave=hang_after"], 9, "outcome_unknown"),
        (vec!["exec", CREATE, "behave=fail:execution_failed:no_effect"], 10, "execution_failed"),
        (vec!["exec", CREATE, "behave=7", "extra=1"], 10, "invalid_parameters"),
    ];
    if !uids::are_several() {
        uids::skipped("exit code 5", "needs root for several uids; the device story \"walls\" covers it");
    }
    for (words, exit, code) in table.drain(..) {
        let answer = device.cli(&words);
        if code.is_empty() {
            assert_eq!((answer.code, &answer.envelope()["ok"]), (exit, &Value::Bool(true)), "{words:?}");
        } else {
            answer.refused(exit, code);
        }
    }
    if uids::are_several() {
        device
            .cli_as(device.uids.callers[0], &["exec", "system.power.get_state"])
            .refused(5, "permission_denied");
    }
    let effects = fake.effect_count();

    device.stop();

    device.cli(&["ping"]).refused(3, "daemon_unreachable");
    device.cli(&["list"]).refused(3, "daemon_unreachable");
    device.cli(&["doctor"]).refused(13, "problem_found");
    let before = fs::read(device.audit().join("application.000001.jsonl")).unwrap();
    device.cli(&["exec", CREATE]).refused(3, "daemon_unreachable");
    assert_eq!(fake.effect_count(), effects, "without a daemon nothing is executed (R-198)");
    assert_eq!(fs::read(device.audit().join("application.000001.jsonl")).unwrap(), before);
}

#[test]
fn the_ledger_tells_without_the_daemon_how_an_operation_ended() {
    let (mut device, _fake, _app) = Device::with_fake(&Plan::default());
    let done = device.cli(&["exec", CREATE]).data();
    let operation = done["operation_id"].as_str().unwrap();
    device.stop();
    let audit = device.audit();
    for ledger in [audit.clone(), audit.join("application.000001.jsonl")] {
        let known = device.cli(&["status", "--ledger", ledger.to_str().unwrap(), operation]).data();
        assert_eq!((&known["state"], &known["terminal"]), (&"ended".into(), &"succeeded".into()));
        assert_eq!(known["audit_hash"], done["audit_hash"]);
    }
    let other = new_operation().to_string();
    assert_eq!(device.cli(&["status", "--ledger", audit.to_str().unwrap(), &other]).data(), Value::Null);
    device.cli(&["status", "--ledger", "/nonexistent", operation]).refused(3, "protocol_error");
}

/// Runs the program by a shell line that may do things to its output.
fn by_shell(device: &Device, line: &str) -> Answer {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env_clear().env("PATH", "/usr/bin:/bin");
    command.env("CLI", format!("{} pcp-cli", device.exe.display())).env("PCP_SOCKET", device.socket());
    Answer::of(&command.output().unwrap())
}

#[test]
fn an_answer_that_cannot_be_written_is_1_and_nothing_was_done() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let expect = device.uids.daemon;
    let exec = format!("$CLI exec {CREATE} --expect-uid {expect} >&-");
    for line in [exec.as_str(), "$CLI version >&-", "$CLI version >/dev/full"] {
        let answer = by_shell(&device, line);
        assert_eq!(answer.code, 1, "{line}: {answer:?}");
        assert!(!answer.err.is_empty(), "{line}: only then standard error says why");
    }
    assert_eq!(fake.invocation_count(), 0, "an effect whose result nobody can read does not begin");
    let gone = by_shell(&device, "{ $CLI help --json; echo $? >&2; } | true");
    assert!(matches!(gone.err.trim(), "0" | "1"), "a reader that goes away is no crash: {gone:?}");
}

#[test]
fn a_hostile_environment_and_hostile_words_are_refused_without_a_panic() {
    use std::os::unix::ffi::OsStrExt as _;
    let device = Device::new(&Plan::default());
    let long = "x".repeat(100_000);
    let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe\x80");
    let hostile: [(&str, &std::ffi::OsStr); 8] = [
        ("PCP_SOCKET", bytes),
        ("PCP_SOCKET", long.as_ref()),
        ("PCP_FORMAT", bytes),
        ("PCP_FORMAT", "nonsense".as_ref()),
        ("PCP_TIMEOUT", "-1".as_ref()),
        ("COLUMNS", "999999999999999999999".as_ref()),
        ("TZ", ":/nonexistent\u{1b}".as_ref()),
        ("LANG", bytes),
    ];
    for (name, value) in hostile {
        for words in [&["ping"][..], &["version"], &["audit", "show", "--dir", "/nonexistent"]] {
            let mut command = device.program("pcp-cli", uids::own(), &[]);
            let output = command.args(words).env(name, value).output().unwrap();
            let code = output.status.code().expect("no signal ends it");
            assert!(matches!(code, 0 | 2 | 3 | 12), "{name}: {words:?}: {output:?}");
            assert!(!String::from_utf8_lossy(&output.stderr).contains("panicked"), "{output:?}");
        }
    }
    let mut command = device.program("pcp-cli", uids::own(), &[]);
    let output = command.arg("exec").arg(bytes).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn no_words_at_all_print_the_help_even_without_a_program_name() {
    let device = Device::new(&Plan::default());
    let output = device.program("pcp-cli", uids::own(), &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("Usage: pcp-cli"));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams =
        pcp_cli::Streams { out: &mut out, err: &mut err, out_is_terminal: false, err_is_terminal: false };
    assert_eq!(pcp_cli::run(std::iter::empty(), streams), 0);
    assert!(String::from_utf8_lossy(&out).contains("Usage: pcp-cli"));
}

#[test]
fn every_program_says_what_it_wants_when_it_gets_nonsense() {
    let device = Device::new(&Plan::default());
    for name in ["portal-pcpd", "pcp-cli", "pcp-notes", "pcp-fakeapp", "pcp-probe"] {
        let mut command = process::command(&device.exe, name, uids::own(), &[]);
        let output =
            command.arg("--nonsense").stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {output:?}");
        let said = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8_lossy(&said).contains("nonsense"), "{name}");
    }
}

#[test]
fn show_has_everything_about_a_capability_and_list_its_domain() {
    let (device, _fake, _app) = Device::with_fake(&Plan::default());
    let shown = device.cli(&["show", CREATE]).data();
    for key in ["id", "domain", "input_schema", "output_schema", "method", "stability", "version"] {
        assert!(!shown[key].is_null(), "{key}: {shown}");
    }
    let listed = device.cli(&["list"]).data();
    let rows = listed.as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(["app", "compositor", "system"].contains(&row["domain"].as_str().unwrap()), "{row}");
    }
}
