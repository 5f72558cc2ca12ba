//! The daemon is killed while hosts execute: no operation has its effect twice, whatever state the kill met.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pcp_core::v2::*;
use pcp_durable::OperationKey;
use pcp_ipc::{Client, Json};
use serde_json::Value;

use super::hosts::{Daemon, Host, end, manifest};
use super::signed::{request, text};
use crate::support::new_operation;

/// Kills of the quick form, and of the full one (`PCP_FULL=1`).
const KILLS: usize = 24;
const FULL_KILLS: usize = 1_000;
/// Of so many kills one has to meet each state; otherwise nothing is shown.
const SHARE: usize = 20;
/// Hosts that execute at once.
const HOSTS: usize = 8;
/// Longest wait for the state that a kill is aimed at; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at whether it is there.
const LOOK: Duration = Duration::from_micros(100);
/// How long the application takes before its effect, so that a kill meets it there.
const APP_DELAY_MS: &str = "12";

/// Where a kill met an operation without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Met {
    BeforeClaim,
    Claimed,
    Dispatched,
    EffectDoneNoTerminal,
    Ended,
}

/// What the kills are aimed at, in turn.
const AIMS: [Met; 4] = [Met::BeforeClaim, Met::Claimed, Met::Dispatched, Met::EffectDoneNoTerminal];

/// Executes until the daemon is gone; gives what it asked last, which was never answered.
fn execute_until_it_is_gone(mut client: Client, target: &SemanticTargetRef) -> (String, String) {
    loop {
        // Half of the ids carry their time, half are any text.
        let id = new_operation().to_string();
        let id = if id.as_bytes()[35] & 1 == 0 { id } else { format!("op:{id}") };
        let sent = text(&request(&id, target, Action::Invoke {}));
        match client.execute_action(Json::parse(&sent).unwrap()) {
            Ok(report) => {
                let report: ExecuteReport = serde_json::from_str(report.report.as_str()).unwrap();
                assert!(report.terminal().is_some(), "{report:?}");
            }
            Err(_) => return (id, sent),
        }
    }
}

/// What the files say right after a kill. The application lives on and goes on with what it was asked.
struct Left {
    records: Vec<Value>,
    invoked: Vec<pcp_fakeapp::Effect>,
    effects: Vec<pcp_fakeapp::Effect>,
}

impl Left {
    fn of(host: &Daemon) -> Self {
        let file = host.seat.effects();
        let effects = pcp_fakeapp::effects(&file).unwrap();
        let invoked = pcp_fakeapp::effects(&pcp_fakeapp::invocations_file(&file)).unwrap();
        Self { records: records(host), invoked, effects }
    }

    fn met(&self, id: &str) -> Met {
        let key = OperationKey::of(id).id();
        let text = key.to_string();
        let has = |kind: &str| {
            self.records
                .iter()
                .any(|record| record["kind"] == kind && record["operation_id"] == text.as_str())
        };
        let counts = |log: &[pcp_fakeapp::Effect]| {
            log.iter().any(|one| one.operation == key && one.capability.action() == "invoke")
        };
        match (has("intent"), has("terminal"), counts(&self.invoked), counts(&self.effects)) {
            (_, true, ..) => Met::Ended,
            (_, _, _, true) => Met::EffectDoneNoTerminal,
            (_, _, true, _) => Met::Dispatched,
            (true, ..) => Met::Claimed,
            _ => Met::BeforeClaim,
        }
    }
}

/// What shows that some operation is in the state that a kill is aimed at.
fn signs(host: &Daemon, aim: Met) -> usize {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |facts| facts.len() as usize);
    let file = host.seat.effects();
    match aim {
        Met::Claimed => (1..).map(|n| length(&segment(host, n))).take_while(|bytes| *bytes > 0).sum(),
        Met::Dispatched => {
            let invoked = std::fs::read_to_string(pcp_fakeapp::invocations_file(&file)).unwrap_or_default();
            invoked.matches(".invoke\n").count()
        }
        Met::EffectDoneNoTerminal => length(&file),
        Met::BeforeClaim | Met::Ended => 0,
    }
}

/// Waits until the state is there that is aimed at; `jitter` may let it pass.
fn wait_for(host: &Daemon, aim: Met, before: usize, jitter: Duration) {
    let begun = Instant::now();
    while !matches!(aim, Met::BeforeClaim | Met::Ended) && signs(host, aim) <= before {
        assert!(begun.elapsed() < PATIENCE, "no operation came to {aim:?}");
        std::thread::sleep(LOOK);
    }
    std::thread::sleep(jitter);
}

fn segment(host: &Daemon, number: u32) -> PathBuf {
    host.device.audit().join(format!("application.{number:06}.jsonl"))
}

/// The whole records that a killed daemon has left; its last line may be torn.
fn records(host: &Daemon) -> Vec<Value> {
    let mut found = Vec::new();
    for number in 1.. {
        let Ok(bytes) = std::fs::read(segment(host, number)) else { return found };
        found.extend(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
    }
    found
}

#[test]
fn a_daemon_that_is_killed_while_hosts_execute_repeats_no_effect_in_any_state() {
    let kills = if std::env::var_os("PCP_FULL").is_some() { FULL_KILLS } else { KILLS };
    let mut host = Daemon::of(&manifest(), &["--delay-ms", APP_DELAY_MS]);
    let mut seen: BTreeMap<Met, usize> = BTreeMap::new();
    let mut dice = 20_240_817_u64;
    for kill in 0..kills {
        let aim = AIMS[kill % AIMS.len()];
        let target = host.target();
        let before = signs(&host, aim);
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Every other round is exact, the others come up to two milliseconds late.
        let jitter = Duration::from_micros(if (kill / AIMS.len()).is_multiple_of(2) {
            0
        } else {
            (dice >> 33) % 2_000
        });
        let clients: Vec<Client> = (0..HOSTS).map(|_| host.device.client()).collect();
        let (left, unanswered): (Left, Vec<(String, String)>) = std::thread::scope(|scope| {
            let target = &target;
            let running: Vec<_> = clients
                .into_iter()
                .map(|client| scope.spawn(move || execute_until_it_is_gone(client, target)))
                .collect();
            wait_for(&host, aim, before, jitter);
            host.device.kill();
            let left = Left::of(&host);
            (left, running.into_iter().map(|one| one.join().unwrap()).collect())
        });
        let states: Vec<Met> = unanswered.iter().map(|(id, _)| left.met(id)).collect();
        for state in states.iter().collect::<BTreeSet<_>>() {
            *seen.entry(*state).or_default() += 1;
        }
        host.device.start();
        for ((id, sent), state) in unanswered.iter().zip(states) {
            let answer = end(&host.execute(sent));
            match state {
                Met::BeforeClaim => {
                    assert_eq!(answer, "rejected", "{id}: it was never claimed, and its target is stale")
                }
                Met::Ended => assert_eq!(answer, "succeeded", "{id}"),
                _ => assert_eq!(answer, "outcome_unknown", "{id} {state:?}"),
            }
        }
    }
    println!("{kills} kills met: {seen:?}");
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for effect in pcp_fakeapp::effects(&host.seat.effects()).unwrap() {
        *counts.entry(effect.operation.to_string()).or_default() += 1;
    }
    assert!(counts.values().all(|count| *count == 1), "an effect twice");
    println!("{} effects, none twice", counts.len());
    for state in AIMS {
        let count = seen.get(&state).copied().unwrap_or(0);
        assert!(count >= kills / SHARE, "void: only {count} of {kills} kills met {state:?}: {seen:?}");
    }
    host.device.trails_are_whole();
}
