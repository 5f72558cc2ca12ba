//! Who is answered at which socket, for every kind of message, and what an application's own user cannot do (T-06).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use pcp_probe::Cell;
use pcp_stream::StreamMessageType;
use serde_json::{Value, json};

use crate::support::{Answer, Device, Plan, uids};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pcp-stream/WIRE.md");
    fs::read_to_string(path).unwrap()
}

/// Names of the types that the document lets travel as `direction`, such as `c→d`.
fn travelling(direction: &str) -> Vec<&'static str> {
    let document = document();
    let names = StreamMessageType::ALL.map(StreamMessageType::name);
    let row = |name: &&'static str| {
        let cell = format!("| `{name}` | ");
        let (_, rest) = document.split_once(&cell).unwrap_or_else(|| panic!("{name} has no row"));
        rest.split(" | ").next().unwrap().split(", ").any(|way| way == direction)
    };
    names.into_iter().filter(row).collect()
}

/// The document's frames, where everybody may read them; what ends an application comes last.
fn vectors(device: &Device) -> PathBuf {
    let document = document();
    let (ending, others): (Vec<&str>, Vec<&str>) =
        document.lines().partition(|line| line.starts_with("app_shutdown "));
    device.write("frames", [others, ending].concat().join("\n"))
}

/// Asks `socket` once for each type, as `uid`; the answer by the name of the type.
fn answers(device: &Device, socket: &Path, uid: u32, groups: &[u32]) -> BTreeMap<String, Cell> {
    let mut command = device.program("pcp-probe", uid, groups);
    command.arg("--socket").arg(socket).arg("each").arg("--vectors").arg(vectors(device));
    let answer = Answer::of(&command.output().unwrap());
    assert_eq!(answer.code, 0, "{answer:?}");
    let cells = answer.out.lines().map(|line| serde_json::from_str::<Cell>(line).unwrap());
    let cells: BTreeMap<String, Cell> = cells.map(|cell| (cell.sent.clone(), cell)).collect();
    assert_eq!(cells.len(), 27);
    cells
}

/// What everybody gets who may ask the daemon: the answer and, for a refusal, its word. The frames are the document's,
/// whose application, subscriptions and events are not there, so that several are understood and find nothing.
const SERVED: [(&str, &str, &str); 10] = [
    ("ping", "pong", ""),
    ("detect_request", "detect_response", ""),
    ("execute_request", "capability_result_msg", ""),
    ("registry_query", "registry_response", ""),
    ("subscribe_events", "error_response", "unsupported"),
    ("unsubscribe_events", "error_response", "not_found"),
    ("event_ack", "error_response", "not_found"),
    ("get_manifest", "error_response", "invalid_request"),
    ("query_state", "error_response", "not_found"),
    ("cancel_request", "error_response", "not_found"),
];

#[test]
fn the_daemon_answers_each_of_its_principals_in_the_direction_of_the_document_and_no_other() {
    let mut device = Device::new(&Plan::default());
    device.start();
    let served: Vec<&str> = SERVED.iter().map(|row| row.0).collect();
    assert_eq!(travelling("c→d"), served, "the table holds what the document lets a client send");

    let mut principals = vec![uids::own()];
    if uids::are_several() {
        principals.extend(device.uids.callers);
    }
    for uid in principals {
        let groups = [device.uids.clients_group, device.uids.apps_group];
        for (sent, cell) in answers(&device, &device.socket(), uid, &groups) {
            let wanted = SERVED.iter().find(|row| row.0 == sent).map(|row| (row.1, row.2));
            let wanted = wanted.unwrap_or(("error_response", "unsupported_message"));
            assert_eq!((cell.answer.as_str(), cell.code.as_str()), wanted, "{sent} of uid {uid}");
        }
    }
}

#[test]
fn whoever_is_no_principal_gets_the_same_refusal_for_each_of_27_types_or_no_connection() {
    if !uids::can_tell("whoever is no principal gets the same refusal for each of 27 types or no connection")
    {
        return;
    }
    let mut device = Device::new(&Plan::default());
    device.start();
    let stranger = device.uids.stranger;
    let all = |groups: &[u32]| answers(&device, &device.socket(), stranger, groups).into_values();

    for cell in all(&[device.uids.clients_group]) {
        assert_eq!((&*cell.answer, &*cell.code), ("error_response", "unknown_principal"), "{cell:?}");
    }
    for cell in all(&[device.uids.apps_group]).chain(all(&[])) {
        assert_eq!(cell.answer, "no connection", "{cell:?}");
    }
}

#[test]
fn an_application_answers_the_daemons_user_in_the_direction_of_the_document_and_nobody_else() {
    if !uids::can_tell(
        "an application answers the daemon's user in the direction of the document and nobody else",
    ) {
        return;
    }
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let socket = device.path("run/org.example.fake.sock");
    let (apps, clients) = (device.uids.apps_group, device.uids.clients_group);
    let [app, compositor, system] = device.uids.callers;

    for uid in [app, compositor, system, device.uids.stranger, fake.uid + 7] {
        for cell in answers(&device, &socket, uid, &[apps, clients]).into_values() {
            assert_eq!(
                (&*cell.answer, &*cell.code),
                ("error_response", "permission_denied"),
                "{uid} {cell:?}"
            );
        }
        for cell in answers(&device, &socket, uid, &[clients]).into_values() {
            assert_eq!(cell.answer, "no connection", "{uid} {cell:?}");
        }
    }
    assert_eq!(fake.invocation_count(), 0);

    let served = travelling("d→a");
    for (sent, cell) in answers(&device, &socket, device.uids.daemon, &[apps]) {
        let is_refused = cell.code == "unsupported_message";
        assert_eq!(is_refused, !served.contains(&sent.as_str()), "{cell:?}");
        assert!(is_refused || (cell.answer != "none" && cell.answer != "no connection"), "{cell:?}");
    }
}

/// A shell of the application's user, in the group of applications: what a program runs that got hold of it.
fn shell(device: &Device, uid: u32, script: &str) -> bool {
    let groups = format!("{},{}", device.uids.apps_group, device.uids.clients_group);
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={uid}"), format!("--regid={uid}"), format!("--groups={groups}")]);
    command.args(["--", "sh", "-c", script]).current_dir(device.path("")).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// A device with an application, and another one behind the wall.
fn device_with_a_vault() -> (Device, [crate::support::device::Seat; 2], [crate::support::Process; 2]) {
    let mut device = Device::new(&Plan::default());
    let vault = FakeManifest::new(
        AppId::parse("org.example.vault").unwrap(),
        vec![
            FakeCapability::read("system.vault.get_value").gives(json!({"value": {"type": "string"}})),
            FakeCapability::new("system.vault.create").gives(json!({"id": {"type": "integer"}})),
        ],
    );
    let mine = device.install(&FakeManifest::standard(AppId::parse(pcp_fakeapp::APP_ID).unwrap()), None);
    let vault = device.install(&vault, Some("system.vault"));
    let running = [device.start_fake(&mine, &[]), device.start_fake(&vault, &[])];
    device.start();
    (device, [mine, vault], running)
}

#[test]
fn a_program_of_an_applications_own_user_reaches_nothing_beyond_that_application_over_the_socket() {
    if !uids::can_tell(
        "a program of an application's own user reaches nothing beyond that application over the socket",
    ) {
        return;
    }
    let (mut device, [mine, vault], _running) = device_with_a_vault();
    let table = [
        (&["exec", "system.vault.create"][..], 5, "permission_denied"),
        (&["exec", "system.vault.get_value"], 5, "permission_denied"),
        (&["exec", "system.power.shutdown"], 5, "permission_denied"),
        (&["exec", "--dry-run", "system.vault.create"], 5, "permission_denied"),
        (&["exec", "compositor.surfaces.create"], 5, "permission_denied"),
        (&["show", "system.vault.get_value"], 4, "not_found"),
    ];
    for (arguments, exit, code) in table {
        device.cli_as(mine.uid, arguments).refused(exit, code);
    }
    let doctor = device.cli_as(mine.uid, &["doctor"]);
    doctor.refused(13, "problem_found");
    assert!(doctor.out.contains("the doctor's report needs the system domain"), "{doctor:?}");
    let listed = device.cli_as(mine.uid, &["list"]).data().to_string();
    let apps = device.cli_as(mine.uid, &["apps"]).data().to_string();
    assert!(!listed.contains("vault") && !apps.contains("vault"), "{listed} {apps}");
    assert_eq!((mine.invocation_count(), vault.invocation_count()), (0, 0));

    let denied = device.stop_and_read();
    let refusals = denied.iter().filter(|line| line.word("kind") == "refusal");
    let callers: Vec<Value> = refusals.map(|line| line.record["caller"]["uid"].clone()).collect();
    assert_eq!(callers, vec![json!(mine.uid); 5], "every attempt to execute is on record");
}

#[test]
fn a_program_of_an_applications_own_user_changes_no_file_that_the_daemon_goes_by() {
    if !uids::can_tell("a program of an application's own user changes no file that the daemon goes by") {
        return;
    }
    let (mut device, [mine, _], _running) = device_with_a_vault();
    device.cli(&["exec", "app.org.example.fake.create"]);
    let inode = |name: &str| fs::symlink_metadata(device.path(name)).unwrap().ino();
    let sockets = ["run/pcpd.sock", "run/org.example.vault.sock"];
    let before = sockets.map(inode);
    let manifest = fs::read(&mine.manifest).unwrap();

    for script in [
        "cat state/audit/*",
        "ls state",
        "rm -r state/audit",
        "mv state elsewhere",
        "rm -f state/audit/application.000001.jsonl && test ! -e state",
        "rm -f run/pcpd.sock",
        "mv run/pcpd.sock run/away.sock",
        "ln -sf /nonexistent run/pcpd.sock",
        "mv run/org.example.vault.sock run/away.sock",
        "rm -f run/org.example.vault.sock",
        "mv run elsewhere",
        "chmod 666 run/pcpd.sock",
        "echo uid = $(id -u) >etc/portal/pcp/principals.d/me.toml",
        "echo prefix = \\\"system.vault\\\" >>etc/portal/pcp/apps.d/org.example.fake.toml",
        "cp /dev/null etc/portal/keys/trusted/org.example.fake.pub",
        "echo {} >usr/share/portal/apps/org.example.fake/manifest.json",
        "echo >>pcpd.toml",
        "kill $(cat /proc/[0-9]*/stat 2>/dev/null | awk '/portal-pcpd/{print $1}') 2>/dev/null",
    ] {
        assert!(!shell(&device, mine.uid, script), "it could: {script}");
    }

    assert!(shell(&device, mine.uid, "true"), "the shell itself runs");
    assert_eq!(sockets.map(inode), before);
    assert_eq!(fs::read(&mine.manifest).unwrap(), manifest);
    assert_eq!(device.cli(&["ping"]).data()["count"], 1);
    device.stop();
    device.trails_are_whole();
    device.start();
    device.cli_as(mine.uid, &["exec", "system.vault.create"]).refused(5, "permission_denied");
}
