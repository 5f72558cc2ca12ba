//! Kills and full disks: nothing runs twice, nothing that was acknowledged is lost (R-163, R-183, RELIABILITY T-25).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use pcp_core::{
    ActionClass, ActionHash, AuditEnd, AuditEntry, AuthPrincipal, CapabilityId, Domain, Durability,
    ErrorCode, Modality, OperationId, PermissionRecord, RecordKind, Stage, Terminal, Tier, Trail, TrustLevel,
};
use pcp_durable::{AuditLog, Limits, status_in_directory};
use pcp_ipc::Client;

use crate::support::device::Seat;
use crate::support::{Device, Plan, new_operation, python, records, request, uids};

/// How often the daemon is killed.
const KILLS: usize = 20;
/// Clients that execute while it is.
const CLIENTS: usize = 8;
/// Latest moment of a kill after the clients were let go, in milliseconds.
const LATEST_KILL_MS: u64 = 20;
/// Operations without an answer that are asked again after a restart.
const ASKED_AGAIN: usize = 16;
const CREATE: &str = "app.org.example.fake.create";

/// A small generator with its seed in the log: a failure is repeated with `PCP_SEED`.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let seed = std::env::var("PCP_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(20_240_817);
        println!("seed: {seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// What a client was told; `None`: the connection was lost first.
type Told = BTreeMap<OperationId, Option<Terminal>>;

/// Executes until the daemon is gone.
fn execute_until_it_is_gone(mut client: Client) -> Told {
    let id = CapabilityId::parse(CREATE).unwrap();
    let mut told = Told::new();
    loop {
        let operation = new_operation();
        match client.execute(&request(operation, &id, "{}"), |_| {}) {
            Ok(result) => {
                told.insert(operation, Some(result.terminal));
            }
            Err(_) => {
                told.insert(operation, None);
                return told;
            }
        }
    }
}

fn counts(seat: &Seat) -> BTreeMap<OperationId, usize> {
    let mut counts = BTreeMap::new();
    for effect in pcp_fakeapp::effects(&seat.effects()).unwrap() {
        *counts.entry(effect.operation).or_insert(0) += 1;
    }
    counts
}

/// Asks for operations again, as a client does that lost its answer: what was claimed is not run again.
fn ask_again(device: &Device, seat: &Seat, unanswered: &[OperationId], told: &mut Told) {
    let id = CapabilityId::parse(CREATE).unwrap();
    let claimed: BTreeSet<String> = records::lines(&device.audit())
        .iter()
        .filter(|line| line.word("kind") == "intent")
        .map(|line| line.word("operation_id").to_owned())
        .collect();
    let before = counts(seat);
    let mut client = device.client();
    for operation in unanswered {
        let result = client.execute(&request(*operation, &id, "{}"), |_| {}).unwrap();
        if claimed.contains(&operation.to_string()) {
            assert!(result.replayed, "{operation} was claimed and is not dispatched again");
            assert!(matches!(result.terminal, Terminal::OutcomeUnknown | Terminal::Succeeded), "{operation}");
        } else {
            assert_eq!((result.replayed, before.get(operation)), (false, None), "{operation} never ran");
        }
        told.insert(*operation, Some(result.terminal));
    }
}

#[test]
fn a_daemon_that_is_killed_under_load_loses_no_acknowledged_end_and_repeats_no_effect() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::default());
    let mut dice = Dice::new();
    let mut told = Told::new();
    let mut unanswered: Vec<OperationId> = Vec::new();

    for _ in 0..KILLS {
        ask_again(&device, &fake, &unanswered, &mut told);
        let clients: Vec<Client> = (0..CLIENTS).map(|_| device.client()).collect();
        let wait = Duration::from_millis(dice.below(LATEST_KILL_MS + 1));
        let round: Told = std::thread::scope(|scope| {
            let running: Vec<_> =
                clients.into_iter().map(|client| scope.spawn(|| execute_until_it_is_gone(client))).collect();
            std::thread::sleep(wait);
            device.kill();
            running.into_iter().flat_map(|client| client.join().unwrap()).collect()
        });
        unanswered =
            round.iter().filter(|(_, end)| end.is_none()).map(|(id, _)| *id).take(ASKED_AGAIN).collect();
        told.extend(round);
        device.start();
        device.trails_are_whole();
    }
    device.stop();

    let (acknowledged, lost): (Vec<_>, Vec<_>) = told.iter().partition(|(_, end)| end.is_some());
    println!("{} acknowledged, {} never answered in {KILLS} kills", acknowledged.len(), lost.len());
    assert!(!acknowledged.is_empty());
    for (operation, count) in counts(&fake) {
        assert_eq!(count, 1, "{operation}");
    }
    for (operation, end) in &acknowledged {
        let status =
            status_in_directory(&device.audit(), **operation).unwrap().expect("an acknowledged end is kept");
        assert_eq!(status.terminal, **end, "{operation}");
    }
    every_claim_has_one_end(&device, &fake);
}

fn every_claim_has_one_end(device: &Device, fake: &Seat) {
    let mut ends: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let lines = records::lines(&device.audit());
    for line in &lines {
        let entry = ends.entry(line.word("operation_id").to_owned()).or_default();
        if line.word("kind") == "terminal" {
            entry.push(line.word("terminal").to_owned());
        }
    }
    let mut unknown = 0;
    for (operation, ends) in &ends {
        assert_eq!(ends.len(), 1, "{operation}: {ends:?}");
        unknown += usize::from(ends[0] == "outcome_unknown");
    }
    for operation in counts(fake).keys() {
        assert!(
            ends.contains_key(&operation.to_string()),
            "{operation} had an effect without a record before it"
        );
    }
    println!("{} operations claimed, {unknown} of unknown outcome", ends.len());
    for line in lines.iter().filter(|line| line.word("reason") == "recovered") {
        assert_eq!((line.word("terminal"), line.word("effect")), ("outcome_unknown", "unknown"));
    }
}

#[test]
fn a_kill_between_the_claim_and_its_end_is_an_unknown_outcome_that_is_never_repeated() {
    let (mut device, fake, app) = Device::with_fake(&Plan::default());
    let operation = new_operation().to_string();
    let hang = ["exec", CREATE, "behave=hang_after", "--op", &operation];
    let mut waiting = device.cli_command(uids::own(), &hang);
    let mut waiting = waiting.stdout(std::process::Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while fake.effect_count() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(4), "the effect comes first");
        std::thread::sleep(Duration::from_millis(2));
    }

    device.kill();

    assert_eq!(waiting.wait().unwrap().code(), Some(9), "the client does not know");
    drop(app);
    let _app = device.start_fake(&fake, &[]);
    device.start();
    assert!(device.log().contains("their outcome is unknown"), "{}", device.log());
    let again = device.cli(&hang);
    again.refused(9, "outcome_unknown");
    assert_eq!(again.envelope()["data"]["replayed"], true);
    assert_eq!(fake.effect_count(), 1);
    device.trails_are_whole();
}

/// Operations that are run before their segment is closed.
const BEFORE_CLOSING: usize = 8;
/// Operations that fill a segment, with some to spare.
const FILLING: u64 = 7_000;

/// Executes; whether the end was replayed, the end, and why.
fn told(device: &Device, operation: OperationId, parameters: &str) -> (bool, Terminal, Option<ErrorCode>) {
    let id = CapabilityId::parse(CREATE).unwrap();
    let mut client = device.client();
    let result = client.execute(&request(operation, &id, parameters), |_| {}).unwrap();
    (result.replayed, result.terminal, result.error.map(|error| error.code))
}

/// Gives the directory of the trails and what is in it to a user.
fn give_trails_to(device: &Device, uid: u32) {
    let files = fs::read_dir(device.audit()).unwrap().map(|file| file.unwrap().path());
    for path in files.chain([device.audit()]) {
        std::os::unix::fs::chown(path, Some(uid), None).unwrap();
    }
}

/// Fills the application trail until its first segment is closed, as a busy day does.
fn close_a_segment(device: &Device) {
    give_trails_to(device, uids::own());
    let limits = Limits { pending_bytes: 4 << 20, waiting: 1 << 16, ..Limits::default() };
    let now = new_operation().unix_ms();
    let (log, _) = AuditLog::open_with(&device.audit(), limits, now).unwrap();
    for n in 0..FILLING {
        for kind in [RecordKind::Intent, RecordKind::Terminal] {
            let filler = filler(kind, now - 1_000, n);
            while log.append(&filler, Durability::Lazy).is_err() {
                log.flush().unwrap();
            }
        }
    }
    log.close().unwrap();
    give_trails_to(device, device.uids.daemon);
    assert!(device.audit().join("application.000001.index").exists(), "the segment has its index");
}

/// A record of another operation in the application trail.
fn filler(kind: RecordKind, time_ms: u64, n: u64) -> AuditEntry<'static> {
    static CALLER: AuthPrincipal = AuthPrincipal {
        uid: 1,
        pid: None,
        domain: Domain::App,
        trust: TrustLevel::USER,
        admin: false,
        confirmer: false,
        modality: Modality::Remote,
        rate_per_second: None,
    };
    let mut entropy = [3; 10];
    entropy[2..].copy_from_slice(&n.to_be_bytes());
    AuditEntry {
        trail: Trail::Application,
        kind,
        time_ms,
        operation_id: OperationId::from_parts(time_ms, entropy),
        caller: &CALLER,
        capability: CREATE,
        target_app: "org.example.fake",
        class: ActionClass::Activate,
        tier: Some(Tier::One),
        permission: PermissionRecord { verdict: "allowed", rule: "app.*", gate: "none" },
        params: "{}",
        params_sha256: &[1; 32],
        action_hash: ActionHash::from_bytes([2; 32]),
        end: (kind == RecordKind::Terminal).then_some(AuditEnd {
            stage: Stage::Audit,
            terminal: Terminal::Succeeded,
            error: None,
            effect: None,
            verification: "none",
            timed_out: false,
            duration_us: 1,
        }),
    }
}

#[test]
fn an_operation_of_a_closed_segment_is_replayed_and_told_and_never_repeated() {
    let (mut device, fake, _app) = Device::with_fake(&Plan::default());
    let operations: Vec<OperationId> = (0..BEFORE_CLOSING).map(|_| new_operation()).collect();
    for operation in &operations {
        assert_eq!(told(&device, *operation, "{}"), (false, Terminal::Succeeded, None));
    }
    device.stop();
    close_a_segment(&device);

    device.start();

    for operation in &operations {
        assert_eq!(told(&device, *operation, "{}"), (true, Terminal::Succeeded, None), "{operation}");
        let other = told(&device, *operation, r#"{"behave":"hang_after"}"#);
        assert_eq!(other, (false, Terminal::Rejected, Some(ErrorCode::Conflict)), "{operation}");
        let ledger = device.audit().display().to_string();
        let status = device.cli(&["status", "--ledger", &ledger, &operation.to_string()]);
        assert_eq!(status.envelope()["data"]["terminal"], "succeeded", "{operation}");
    }
    assert_eq!(fake.effect_count(), BEFORE_CLOSING);
    device.trails_are_whole();
}

/// Half a minute less than a day is not too old, and five minutes are not too far ahead.
#[test]
fn an_operation_of_yesterday_is_expired_and_one_of_tomorrow_is_skewed_and_neither_runs() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let now = new_operation().unix_ms();
    let (minute, day) = (60_000, 86_400_000);
    let rows = [
        (now - day - minute, Terminal::ExpiredBeforeEffect, None),
        (now - day + minute, Terminal::Succeeded, None),
        (now + 4 * minute, Terminal::Succeeded, None),
        (now + 6 * minute, Terminal::Rejected, Some(ErrorCode::ClockSkew)),
    ];
    for (dated, terminal, code) in rows {
        let operation = OperationId::from_parts(dated, [9; 10]);
        let (_, ended, why) = told(&device, operation, "{}");
        assert_eq!((ended, why), (terminal, code), "{dated}");
    }
    assert_eq!(fake.effect_count(), 2);
}

/// Bytes of the small disk: room for the three reserves and a few hundred records.
const DISK: &str = "2m";

/// The daemon with a disk of its own, which is gone with it.
fn daemon_on_a_small_disk(device: &Device) -> Command {
    let daemon = device.daemon_command();
    let mut command = Command::new("unshare");
    let mount = format!(
        "mount -t tmpfs -o size={DISK},mode=0700,uid={0},gid={0} none '{1}' && exec \"$@\"",
        device.uids.daemon,
        device.path("state").display()
    );
    command.args(["--mount", "--propagation", "private", "sh", "-c", &mount, "sh"]);
    command.arg(daemon.get_program()).args(daemon.get_args());
    command.env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").stderr(device.log_file());
    command
}

fn can_mount() -> bool {
    let words = ["--mount", "--propagation", "private", "mount", "-t", "tmpfs", "none", "/mnt"];
    uids::are_several() && Command::new("unshare").args(words).status().is_ok_and(|status| status.success())
}

#[test]
fn on_a_full_disk_no_effect_happens_without_a_record_and_space_brings_effects_back() {
    let story = "on a full disk no effect happens without a record and space brings effects back";
    if !can_mount() {
        uids::skipped(story, "needs root and a mount of its own");
        return;
    }
    let mut device = Device::new(&Plan::default());
    let id = pcp_core::AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let fake = device.install(&pcp_fakeapp::FakeManifest::standard(id), None);
    let _app = device.start_fake(&fake, &[]);
    device.start_by(daemon_on_a_small_disk(&device));
    let state = format!("/proc/{}/root{}", device.daemon().pid(), device.path("state").display());
    let state = Path::new(&state);
    let filler = state.join("filler");
    let mut client = device.client();
    let id = CapabilityId::parse(CREATE).unwrap();
    let mut execute = || {
        let operation = new_operation();
        let result = client.execute(&request(operation, &id, "{}"), |_| {}).unwrap();
        (operation, result.terminal, result.error.map(|error| error.code))
    };
    assert_eq!(execute().1, Terminal::Succeeded);

    fill(&filler);
    let refused = (0..3_000).map(|_| execute()).find(|(_, terminal, _)| *terminal != Terminal::Succeeded);

    let (operation, terminal, error) = refused.expect("a full disk refuses effects");
    assert_eq!((terminal, error), (Terminal::Rejected, Some(pcp_core::ErrorCode::AuditUnavailable)));
    assert_eq!(counts(&fake).get(&operation), None, "nothing was done");
    assert_eq!(execute().1, Terminal::Rejected);
    let claimed: BTreeSet<String> = records::lines(&state.join("audit"))
        .iter()
        .filter(|line| line.word("kind") == "intent")
        .map(|line| line.word("operation_id").to_owned())
        .collect();
    for (operation, count) in counts(&fake) {
        assert_eq!(count, 1);
        assert!(claimed.contains(&operation.to_string()), "{operation} had an effect without a record");
    }

    fs::remove_file(&filler).unwrap();
    let back = (0..100).any(|_| execute().1 == Terminal::Succeeded);
    assert!(back, "effects run again once there is space");
    python::trails_are_whole(&state.join("audit"));
}

/// Writes until the disk is full.
fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).unwrap();
    for size in [64 * 1024, 4096, 1] {
        let block = vec![0; size];
        while file.write_all(&block).is_ok() {}
    }
}
