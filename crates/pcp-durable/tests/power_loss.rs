//! Power cuts at every call of a workload, each with many images of what the medium may hold (TH-19, T-02).
//!
//! What was acknowledged as durable is there, the chains are whole, the log opens, and no operation that may
//! have had an effect is free to run again.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use std::collections::BTreeSet;

use pcp_core::{AuditEntry, ClaimState, Durability, OperationClaims, RecordKind, Terminal, Trail};
use pcp_durable::disk::{Disk, Fault, FaultyDisk};
use pcp_durable::{Error, Limits, TrailReport, verify_trail};
use support::{action, entry, op, open_with};

/// Small segments, so that the workload rotates several times.
fn limits() -> Limits {
    Limits { segment_bytes: 2500, ..Limits::default() }
}

/// What the workload was told.
#[derive(Debug, Default)]
struct Told {
    /// Hashes of the records that are durable.
    durable: Vec<(Trail, u64, [u8; 32])>,
    /// Operations whose effect may have happened: their claim was durable.
    dispatched: BTreeSet<u64>,
    /// Operations whose end was durable.
    ended: BTreeSet<u64>,
}

/// Claims, ends and reads over the three trails, until the disk fails.
fn work(disk: &FaultyDisk) -> Told {
    let mut told = Told::default();
    let _: Result<(), Error> = (|| {
        let (log, _) = open_with(disk, limits())?;
        for n in 0..10 {
            let trail = Trail::ALL[usize::try_from(n).unwrap() % 3];
            for kind in [RecordKind::Read, RecordKind::Intent, RecordKind::Read, RecordKind::Terminal] {
                let id = if kind == RecordKind::Read { 100 + n } else { n };
                let record = AuditEntry { trail, ..entry(kind, id) };
                if kind == RecordKind::Read {
                    let _ = log.append(&record, Durability::Lazy)?;
                    continue;
                }
                let ticket = log.append(&record, Durability::Durable)?;
                log.wait(&ticket)?;
                told.durable.push((trail, ticket.seq, ticket.hash));
                match kind {
                    RecordKind::Intent => told.dispatched.insert(n),
                    _ => told.ended.insert(n),
                };
            }
        }
        log.close()
    })();
    told
}

/// The hashes of a trail's lines.
fn hashes(disk: &FaultyDisk, trail: Trail) -> Vec<[u8; 32]> {
    let mut names: Vec<String> = disk.list().unwrap();
    names.retain(|name| name.starts_with(trail.as_str()) && name.ends_with(".jsonl"));
    names.sort();
    let content: Vec<u8> = names.iter().flat_map(|name| disk.content(name).unwrap()).collect();
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    lines.map(|line| <sha2::Sha256 as sha2::Digest>::digest(&line[..line.len() - 1]).into()).collect()
}

/// Everything that must hold when the machine comes back.
fn check(image: &FaultyDisk, told: &Told, what: &str) {
    let (log, _) = open_with(image, limits()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let ledger = log.ledger().clone();
    for n in &told.dispatched {
        let state = ledger.begin(op(*n), action(1), support::TIME_MS);
        let unknown = state == ClaimState::Ended(Terminal::OutcomeUnknown);
        let succeeded = state == ClaimState::Ended(Terminal::Succeeded);
        assert!(succeeded || (unknown && !told.ended.contains(n)), "{what}: operation {n} is {state:?}");
    }
    log.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    for trail in Trail::ALL {
        let hashes = hashes(image, *trail);
        for (_, seq, hash) in told.durable.iter().filter(|(its, ..)| its == trail) {
            let found = hashes.get(usize::try_from(*seq).unwrap() - 1);
            assert_eq!(found, Some(hash), "{what}: {trail} {seq} was acknowledged");
        }
        let report: TrailReport = verify_trail(image, trail.as_str());
        assert!(report.is_whole(), "{what}: {report:?}");
    }
}

#[test]
fn nothing_acknowledged_is_lost_whenever_the_power_goes() {
    let whole = FaultyDisk::new();
    let told = work(&whole);
    assert_eq!((told.dispatched.len(), told.ended.len()), (10, 10));
    let calls = whole.calls();
    assert!(calls > 80, "{calls} calls");
    let mut images = 0;
    for call in 1..=calls {
        let disk = FaultyDisk::new();
        disk.fail(call, Fault::PowerCut);
        let told = work(&disk);
        for seed in 0..16 {
            check(&disk.after_power_loss(call * 1000 + seed), &told, &format!("call {call} seed {seed}"));
            images += 1;
        }
    }
    assert!(images >= 2000, "{images} images");
}

#[test]
fn a_second_power_cut_during_recovery_loses_nothing_either() {
    for seed in 0..16 {
        let disk = FaultyDisk::new();
        disk.fail(40 + seed, Fault::PowerCut);
        let told = work(&disk);
        let image = disk.after_power_loss(seed);
        for call in 1..=40 {
            let again = image.after_kill();
            again.fail(call, Fault::PowerCut);
            drop(open_with(&again, limits()));
            check(&again.after_power_loss(seed), &told, &format!("seed {seed} call {call}"));
        }
    }
}

#[test]
fn a_killed_process_loses_nothing_that_was_acknowledged() {
    let whole = FaultyDisk::new();
    let calls = {
        work(&whole);
        whole.calls()
    };
    for call in 1..=calls {
        let disk = FaultyDisk::new();
        disk.fail(call, Fault::PowerCut);
        let told = work(&disk);
        check(&disk.after_kill(), &told, &format!("call {call}"));
    }
}

#[test]
fn what_a_restarted_log_has_answered_stays_true_after_a_power_cut() {
    let whole = FaultyDisk::new();
    work(&whole);
    for call in 1..=whole.calls() {
        let disk = FaultyDisk::new();
        disk.fail(call, Fault::PowerCut);
        work(&disk);
        let restarted = disk.after_kill();
        let answer = |disk: &FaultyDisk| {
            let (log, _) = open_with(disk, limits()).unwrap();
            (0..10).map(|n| log.ledger().status(op(n))).collect::<Vec<_>>()
        };

        let before = answer(&restarted);

        for seed in 0..4 {
            assert_eq!(answer(&restarted.after_power_loss(seed)), before, "call {call} seed {seed}");
        }
    }
}

#[test]
fn whichever_call_fails_in_whichever_way_no_acknowledged_record_is_lost() {
    let whole = FaultyDisk::new();
    work(&whole);
    let mut runs = 0;
    for call in 1..=whole.calls() {
        for fault in [Fault::NoSpace, Fault::Io, Fault::Interrupted, Fault::Short] {
            let disk = FaultyDisk::new();
            disk.fail(call, fault);

            let told = work(&disk);

            let what = format!("call {call} {fault:?}");
            check(&disk.after_kill(), &told, &what);
            check(&disk.after_power_loss(call), &told, &what);
            runs += 1;
        }
    }
    assert!(runs > 300, "{runs} runs");
}
