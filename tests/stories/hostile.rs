//! Hostile clients beside honest ones, at the socket of the real daemon (R-136, T-08, T-09).
//!
//! How fast the honest ones were served is printed and not asserted: it depends on who else uses the machine.
//! `PCP_FULL=1` tells the long form. Every seed is printed; `PCP_SEED` sets it.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pcp_core::AppId;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use pcp_probe::{
    Asks, Attack, AttackReport, Behaviour, Latencies, Load, LoadReport, Percentiles, attack, read_vectors,
    run_load,
};

use crate::support::device::Seat;
use crate::support::{Device, Gauge, Plan, Process, uids};

/// Capabilities of the device's application: enough that a page of the registry fills its 64 KiB.
const CAPABILITIES: usize = 250;
/// Most that hostile clients may make the daemon's memory grow by, in KiB (T-08).
const GROWTH_KIB: u64 = 8 * 1024;
/// Most memory the daemon may ever have used under load, in KiB (T-11).
const PEAK_KIB: u64 = 96 * 1024;
/// When a listener may close a slow or silent client at the earliest; both limits are 5 s.
const NOT_BEFORE_MS: u64 = 4_500;
/// Longest run of a program of the long form.
const PATIENCE: Duration = Duration::from_secs(600);

fn is_full() -> bool {
    std::env::var_os("PCP_FULL").is_some()
}

fn seed() -> u64 {
    let seed = std::env::var("PCP_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_260_509);
    println!("PCP_SEED={seed}");
    seed
}

/// A device with a large registry and a caller who may ask as often as it likes; gives the caller's uid.
fn device(config: &str) -> (Device, Seat, u32) {
    let mut device = Device::new(&Plan::config(config));
    let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let mut manifest = FakeManifest::standard(id);
    let more = |n| FakeCapability::new(format!("app.org.example.fake.action{n}"));
    manifest.capabilities.extend((0..CAPABILITIES).map(more));
    let seat = device.install(&manifest, None);
    let caller = device.uids.callers[0];
    if uids::are_several() {
        let text = format!(
            "uid = {caller}\ndomain = \"app\"\ntrust = 1\nmodality = \"remote\"\nrate_per_second = 100000\n"
        );
        device.write_principal("app", &text);
    }
    device.start();
    (device, seat, caller)
}

/// A copy of the wire's document that every user may read.
fn vectors(device: &Device) -> PathBuf {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/pcp-stream/WIRE.md");
    device.write("frames", std::fs::read(document).unwrap())
}

/// Hostile clients under `uid`, in a process of their own.
struct Hostile {
    process: Process,
    out: PathBuf,
}

impl Hostile {
    fn start(device: &Device, uid: u32, arguments: &[&str]) -> Self {
        let mut command = device.program("pcp-probe", uid, &[device.uids.clients_group]);
        command.arg("--socket").arg(device.socket()).arg("hostile");
        command.arg("--vectors").arg(vectors(device)).args(arguments);
        let out = device.write("hostile.out", "");
        command.stdout(Stdio::from(std::fs::OpenOptions::new().append(true).open(&out).unwrap()));
        Self { process: Process::start("pcp-probe", &mut command), out }
    }

    /// What became of each kind.
    fn end(self) -> Vec<AttackReport> {
        assert_eq!(self.process.end_within(PATIENCE).code(), Some(0));
        let out = std::fs::read_to_string(self.out).unwrap();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// Pings one after the other until `over`, every one of which is answered.
fn honest(device: &Device, over: &AtomicBool) -> Percentiles {
    let mut client = device.client();
    let mut latencies = Latencies::default();
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        client.ping().expect("an honest request is answered");
        latencies.note(begun.elapsed());
    }
    latencies.percentiles()
}

fn all_served(report: &LoadReport) {
    assert_eq!((report.served, report.errors, report.limited), (report.asked, 0, 0), "{report:?}");
}

#[test]
fn a_client_that_never_reads_is_cut_and_ten_others_do_not_notice() {
    let (mut device, _seat, _) = device("");
    let pid = device.daemon().pid();
    let socket = &device.socket();
    let right = read_vectors(&vectors(&device)).unwrap();
    let crowd = |seconds| Load {
        connections: 10,
        per_second: 20,
        time: Duration::from_secs(seconds),
        asks: Asks::Mixed,
    };
    all_served(&run_load(socket, &crowd(1)).unwrap());
    let before = Gauge::of(pid);

    let (silent, others) = std::thread::scope(|scope| {
        let one = Attack {
            behaviour: Behaviour::Unread,
            clients: 1,
            time: Duration::from_secs(11),
            frames: u64::MAX,
            seed: 0,
            vectors: &right,
        };
        let silent = scope.spawn(move || attack(socket, one).unwrap());
        let others = run_load(socket, &crowd(9)).unwrap();
        (silent.join().unwrap(), others)
    });
    let after = Gauge::of(pid);

    println!("beside a client that never reads: {:?}; it: {silent:?}", others.latency);
    println!(
        "memory: {} KiB, then {} KiB, at most {}",
        before.resident_kib, after.resident_kib, after.peak_kib
    );
    all_served(&others);
    assert!(
        silent.closed >= 1 && silent.shortest_ms >= NOT_BEFORE_MS,
        "cut when its time is over: {silent:?}"
    );
    assert!(after.peak_kib < before.peak_kib + GROWTH_KIB, "{before:?} {after:?}");
    device.stop();
}

#[test]
fn frames_of_no_honest_client_have_no_effect_and_hold_nobody_up() {
    let (mut device, seat, caller) = device("[limits]\nuid_requests_per_second = 1000000\n");
    let _app = device.start_fake(&seat, &[]);
    let pid = device.daemon().pid();
    let frames = if is_full() { "2000000" } else { "50000" };
    let seed = seed().to_string();
    let all = ["--kind", "garbage=8", "--seconds", "600", "--frames"];
    let warm = Hostile::start(&device, caller, &[&all[..], &["2000", "--seed", "1"]].concat()).end();
    let before = Gauge::of(pid);

    let over = AtomicBool::new(false);
    let (latency, hostile) = std::thread::scope(|scope| {
        let honest = scope.spawn(|| honest(&device, &over));
        let hostile = Hostile::start(&device, caller, &[&all[..], &[frames, "--seed", &seed]].concat()).end();
        over.store(true, Ordering::Relaxed);
        (honest.join().unwrap(), hostile)
    });

    let after = Gauge::of(pid);
    println!("honest beside hostile frames: {latency:?}; {hostile:?} after {warm:?}");
    println!(
        "memory: {} KiB, then {} KiB, at most {}",
        before.resident_kib, after.resident_kib, after.peak_kib
    );
    assert_eq!(hostile[0].sent, frames.parse::<u64>().unwrap());
    assert!(latency.count > 0);
    assert_eq!((seat.effect_count(), seat.invocation_count()), (0, 0));
    assert!(after.resident_kib < before.resident_kib + GROWTH_KIB, "{before:?} {after:?}");
    assert_eq!(device.daemon().pid(), pid);
    device.stop();
    device.trails_are_whole();
}

#[test]
fn slow_silent_and_restless_clients_are_closed_and_honest_ones_are_all_answered() {
    let limits = "[limits]\nconnections_per_uid = 512\nuid_requests_per_second = 1000000\n";
    let (mut device, _seat, caller) = device(limits);
    let pid = device.daemon().pid();
    let (kinds, seconds, honest) = if is_full() {
        (["slow=100", "unread=100", "reconnect=50"], 120, 50)
    } else {
        (["slow=20", "unread=20", "reconnect=5"], 12, 10)
    };
    let time = seconds.to_string();
    let mut arguments = vec!["--seconds", &time];
    kinds.iter().for_each(|kind| arguments.extend(["--kind", kind]));

    let hostile = Hostile::start(&device, caller, &arguments);
    let load = Load {
        connections: honest,
        per_second: 10,
        time: Duration::from_secs(seconds - 2),
        asks: Asks::Mixed,
    };
    let report = run_load(&device.socket(), &load).unwrap();
    let hostile = hostile.end();

    let after = Gauge::of(pid);
    println!("honest beside {kinds:?}: {:?}; memory at most {} KiB", report.latency, after.peak_kib);
    hostile.iter().for_each(|one| println!("{one:?}"));
    all_served(&report);
    for (one, kind) in hostile.iter().zip(&kinds).take(2) {
        let clients: u64 = kind.split_once('=').unwrap().1.parse().unwrap();
        assert!(one.closed >= clients && one.shortest_ms >= NOT_BEFORE_MS, "{one:?}");
    }
    assert!(hostile[2].connections > 100, "{:?}", hostile[2]);
    assert!(after.peak_kib < PEAK_KIB, "{after:?}");
    device.stop();
}
