//! Limits at the socket of the real daemon: rates, numbers of connections, files (R-137, R-138, T-10, T-12).

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pcp_core::CapabilityId;
use pcp_daemon::config::Limits;
use pcp_probe::{Asks, Burst, Load, burst, run_load};
use pcp_stream::{ProtocolError, StreamClient, StreamMessageType};
use serde_json::Value;

use crate::support::{Device, Gauge, Plan, new_operation, request, uids};

/// Longest wait for an answer, and for what has to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// A burst as `uid`, from a process of its own.
fn burst_of(device: &Device, uid: u32, connections: usize, pings: usize) -> Burst {
    let mut command = device.program("pcp-probe", uid, &[device.uids.clients_group]);
    command.arg("--socket").arg(device.socket()).arg("burst");
    command.args(["--connections", &connections.to_string(), "--pings", &pings.to_string()]);
    let output = command.output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Exactly the burst is served, plus at most what was refilled until the last answer.
fn keeps_to(found: &Burst, at_once: usize, per_second: u64) {
    let refilled = usize::try_from((found.took_ms + 1) * per_second / 1_000).unwrap() + 1;
    println!("{found:?}: {at_once} at once and at most {refilled} refilled");
    assert_eq!(found.other, 0, "{found:?}");
    assert!((at_once..=at_once + refilled).contains(&found.served), "{found:?}, {at_once} + {refilled}");
}

fn principal(uid: u32, domain: &str, rest: &str) -> String {
    format!("uid = {uid}\ndomain = \"{domain}\"\ntrust = 1\nmodality = \"remote\"\n{rest}")
}

#[test]
fn the_wire_document_names_the_limits_that_are_in_force() {
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pcp-stream/WIRE.md");
    let document = std::fs::read_to_string(document).unwrap();
    let limits = Limits::default();
    let grouped = |number: u64| match number {
        1_000.. => format!("{} {:03}", number / 1_000, number % 1_000),
        _ => number.to_string(),
    };
    let (one, uid) = (u64::from(limits.requests_per_second), u64::from(limits.uid_requests_per_second));
    let rows = [
        ("requests of one connection", format!("{} per second, {} at once", grouped(one), grouped(one))),
        ("requests of one uid", format!("{} per second, {} at once", grouped(uid), grouped(2 * uid))),
        ("connections of one uid", grouped(limits.connections_per_uid as u64)),
        ("connections in all", grouped(limits.connections as u64)),
    ];
    for (name, value) in rows {
        assert!(document.contains(&format!("| {name} | {value}")), "{name}: {value}");
    }
}

#[test]
fn each_principal_is_held_by_the_rate_of_its_file_and_everybody_else_by_the_daemons() {
    if !uids::can_tell("each principal is held by the rate of its file and everybody else by the daemon's") {
        return;
    }
    let mut device = Device::new(&Plan::default());
    let [app, compositor, system] = device.uids.callers;
    device.write_principal("app", &principal(app, "app", "rate_per_second = 10\n"));
    device.write_principal("system", &principal(system, "system", "rate_per_second = 3000\n"));
    device.start();

    keeps_to(&burst_of(&device, app, 1, 300), 10, 10);
    keeps_to(&burst_of(&device, compositor, 1, 300), 100, 100);
    let fast = burst_of(&device, system, 1, 3_000);
    assert_eq!((fast.served, fast.limited, fast.other), (3_000, 0, 0), "more than a uid without a file has");
}

#[test]
fn fifty_connections_of_one_user_get_no_more_than_that_user_may_have() {
    let mut device = Device::new(&Plan { own_rate: None, ..Plan::default() });
    device.start();

    let found = burst(&device.socket(), 50, 100).unwrap();

    keeps_to(&found, 2_000, 1_000);
    assert_eq!(found.served + found.limited, 5_000);
    if uids::are_several() {
        keeps_to(&burst_of(&device, device.uids.callers[0], 1, 100), 100, 0);
    }
}

/// Connects and asks once; gives the connection or the error that it was told.
fn try_connect(device: &Device) -> Result<StreamClient, Value> {
    let mut client = StreamClient::connect(&device.socket(), device.uids.daemon).unwrap();
    // Whoever is refused may be told, and hung up on, before it has asked.
    let _ = client.send::<ProtocolError>(StreamMessageType::Ping, PATIENCE, |_| Ok(()));
    let frame = client.receive(PATIENCE).unwrap();
    match frame.message_type {
        StreamMessageType::Pong => Ok(client),
        _ => Err(serde_json::from_slice(frame.payload).unwrap()),
    }
}

/// Connects until there is a place: the daemon notices the end of a connection in its own time.
fn connect_when_free(device: &Device) -> StreamClient {
    let begun = Instant::now();
    loop {
        match try_connect(device) {
            Ok(client) => return client,
            Err(told) => assert!(begun.elapsed() < PATIENCE, "{told}"),
        }
    }
}

fn is_served(client: &mut StreamClient) {
    client.send::<ProtocolError>(StreamMessageType::Ping, PATIENCE, |_| Ok(())).unwrap();
    assert_eq!(client.receive(PATIENCE).unwrap().message_type, StreamMessageType::Pong);
}

#[test]
fn the_connection_after_the_last_is_told_why_and_a_freed_place_is_taken() {
    let table = [
        ("", 64, "uid UID has 64 connections open, the limit"),
        ("[limits]\nconnections_per_uid = 3\n", 3, "uid UID has 3 connections open, the limit"),
        ("[limits]\nconnections = 5\n", 5, "5 connections are open, the limit"),
    ];
    for (config, places, message) in table {
        let mut device = Device::new(&Plan::config(config));
        device.start();
        let mut held: Vec<StreamClient> = (0..places).map(|_| try_connect(&device).unwrap()).collect();

        let told = try_connect(&device).unwrap_err();

        let message = message.replace("UID", &uids::own().to_string());
        assert_eq!(
            (told["code"].as_str(), told["message"].as_str()),
            (Some("limit_reached"), Some(&*message))
        );
        held.iter_mut().for_each(is_served);
        held.pop();
        held.push(connect_when_free(&device));
        try_connect(&device).unwrap_err();
        held.iter_mut().for_each(is_served);
    }
}

#[test]
fn a_user_who_holds_every_place_it_may_have_takes_none_from_another() {
    if !uids::can_tell("a user who holds every place it may have takes none from another") {
        return;
    }
    let mut device = Device::new(&Plan::config("[limits]\nconnections_per_uid = 4\nconnections = 6\n"));
    device.start();
    let mut held: Vec<StreamClient> = (0..4).map(|_| try_connect(&device).unwrap()).collect();
    let [app, compositor, _] = device.uids.callers;

    assert_eq!(burst_of(&device, app, 2, 10).served, 20);
    // Five of another user: four places are its own, and of those only two are left of all six.
    let found = burst_of(&device, compositor, 5, 1);
    assert!(found.served >= 2 && found.other >= 1, "{found:?}");
    held.iter_mut().for_each(is_served);
}

/// The daemon with so many files at most.
fn with_files(device: &Device, files: u32) -> Command {
    let daemon = device.daemon_command();
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nofile={files}:{files}"))
        .arg("--")
        .arg(daemon.get_program())
        .args(daemon.get_args());
    command.env_clear().envs(daemon.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir("/").stdin(std::process::Stdio::null()).stderr(device.log_file());
    command
}

/// Connections that are made and held, as many as there is room for.
fn hold(device: &Device, count: usize) -> Vec<StreamClient> {
    (0..count).filter_map(|_| StreamClient::connect_anyone(&device.socket()).ok()).collect()
}

#[test]
fn a_daemon_that_is_out_of_files_serves_whom_it_has_and_everybody_once_there_are_some_again() {
    const FILES: u32 = 64;
    let (mut device, fake, _app) = Device::with_fake(&Plan::config("[limits]\nconnections_per_uid = 512\n"));
    device.stop();
    device.start_by(with_files(&device, FILES));
    let pid = device.daemon().pid();
    let mut first = device.client();
    first.ping().unwrap();
    let (lines, before, begun) = (device.log().lines().count(), Gauge::of(pid), Instant::now());

    let held = hold(&device, 200);
    let window = Duration::from_secs(if std::env::var_os("PCP_FULL").is_some() { 10 } else { 3 });
    while begun.elapsed() < window {
        first.ping().expect("who was there before is served");
        std::thread::sleep(Duration::from_millis(50));
    }

    let (after, passed) = (Gauge::of(pid), begun.elapsed());
    let processor = after.processor.saturating_sub(before.processor);
    let said = device.log().lines().count() - lines;
    println!("{} held, {} files, {processor:?} of {passed:?}, {said} lines", held.len(), after.files);
    assert!(processor < passed / 10, "{processor:?} of {passed:?}");
    assert!(said as u64 <= passed.as_secs(), "{said} lines in {passed:?}: {}", device.log());
    let id = CapabilityId::parse("app.org.example.fake.create").unwrap();
    let done = first.execute(&request(new_operation(), &id, "{}"), |_| {}).unwrap();
    assert!(done.success, "{}", device.log());
    assert_eq!(fake.effect_count(), 1, "it is carried out, and recorded before");

    drop(held);
    let freed = Instant::now();
    let mut new = connect_when_free(&device);
    println!("accepted again after {:?}", freed.elapsed());
    is_served(&mut new);
    drop((first, new));
    let recorded = device.stop_and_read();
    assert!(recorded.iter().any(|line| line.word("kind") == "terminal"), "{recorded:?}");
    device.trails_are_whole();
}

#[test]
fn processes_that_connect_and_are_gone_keep_nobody_waiting_and_are_not_logged() {
    const GONE: usize = 20;
    let mut device = Device::new(&Plan::default());
    device.start();
    // Once it serves, it has said all that it says of its start.
    assert_eq!(device.cli(&["ping"]).code, 0);
    let lines = device.log().lines().count();
    device.daemon().signal(Signal::SIGSTOP);
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1])";
    for _ in 0..GONE {
        // It ends and is reaped before the daemon can ask who it was.
        let status = Command::new("python3").args(["-c", script]).arg(device.socket()).status().unwrap();
        assert!(status.success());
    }
    let mut client = StreamClient::connect(&device.socket(), device.uids.daemon).unwrap();
    let begun = Instant::now();
    device.daemon().signal(Signal::SIGCONT);

    is_served(&mut client);

    println!("served {:?} after {GONE} that were gone", begun.elapsed());
    assert_eq!(device.log().lines().count(), lines, "{}", device.log());
}

#[test]
fn two_hundred_connections_of_ten_requests_a_second_are_all_served() {
    let limits = "[limits]\nconnections_per_uid = 1024\nuid_requests_per_second = 1000000\n";
    let mut device = Device::new(&Plan::config(limits));
    device.start();
    let before = Gauge::of(device.daemon().pid());

    let time = Duration::from_secs(3);
    let load = Load { connections: 200, per_second: 10, time, asks: Asks::Mixed };
    let report = run_load(&device.socket(), &load).unwrap();

    let after = Gauge::of(device.daemon().pid());
    println!("{:?}; memory {} then {} KiB", report.latency, before.resident_kib, after.resident_kib);
    assert_eq!((report.asked, report.served), (6_000, 6_000), "{report:?}");
}
