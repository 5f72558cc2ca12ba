//! Many lives of one log: power cuts, kills and failing calls one after the other, over segments that close all the
//! time (TH-19, T-02, T-05, T-25; R-181..R-183).
//!
//! Whatever happens: what was acknowledged stays, an operation whose effect may have happened is never fresh again,
//! nothing is acknowledged after a failed sync, and an index that cannot be kept changes nothing of that.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use std::collections::BTreeMap;

use pcp_core::{AuditEntry, ClaimState, Durability, OperationClaims, RecordKind, Terminal, Trail};
use pcp_durable::disk::{Disk, Fault, FaultyDisk};
use pcp_durable::{AuditLog, Error, Limits, verify_trail};
use support::{TIME_MS, action, entry, op, open_with};

/// Three operations a segment.
fn limits() -> Limits {
    Limits { segment_bytes: 4_000, ..Limits::default() }
}

/// What the world knows of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Its claim was asked for, and no answer came.
    Asked,
    /// Its claim is durable: the effect happens now.
    Dispatched,
    /// Its end is durable.
    Ended,
}

/// Everything the world was told over all lives.
#[derive(Clone, Debug, Default)]
struct World {
    operations: BTreeMap<u64, Known>,
    next: u64,
    /// Effects of each operation.
    effects: BTreeMap<u64, u32>,
}

impl World {
    /// Operations of one trail each, until the disk fails for good; `count` is how many.
    fn live(&mut self, log: &AuditLog, count: u64) {
        for _ in 0..count {
            let n = self.next;
            self.next += 1;
            if self.run(log, n).is_err() && log.fence().is_some() {
                return;
            }
        }
    }

    fn run(&mut self, log: &AuditLog, n: u64) -> Result<(), Error> {
        match log.ledger().begin(op(n), action(1), TIME_MS) {
            ClaimState::Fresh => {}
            _ => return Ok(()),
        }
        let trail = Trail::ALL[usize::try_from(n % 2).unwrap()];
        let record = |kind| AuditEntry { trail, ..entry(kind, n) };
        self.operations.insert(n, Known::Asked);
        let claim = log.append(&record(RecordKind::Intent), Durability::Durable).inspect_err(|_| {
            log.ledger().forget(op(n));
        })?;
        let durable = log.wait(&claim);
        assert!(durable.is_err() || log.fence().is_none(), "nothing is durable after a failed sync");
        if durable.is_err() {
            log.ledger().end(op(n), Terminal::Rejected);
        }
        durable?;
        self.operations.insert(n, Known::Dispatched);
        *self.effects.entry(n).or_default() += 1;
        let end = log.append(&record(RecordKind::Terminal), Durability::Durable);
        let ended = end.and_then(|ticket| log.wait(&ticket));
        if ended.is_err() {
            log.ledger().end(op(n), Terminal::OutcomeUnknown);
        }
        ended?;
        self.operations.insert(n, Known::Ended);
        Ok(())
    }

    /// The disk comes back: the log opens and agrees with what the world was told. Every old operation is asked
    /// for again, and what is fresh runs.
    fn wake(&mut self, disk: &FaultyDisk, what: &str) {
        let (log, _) = open_with(disk, limits()).unwrap_or_else(|error| panic!("{what}: {error}"));
        for n in 0..self.next {
            let state = log.ledger().begin(op(n), action(1), TIME_MS);
            let known = self.operations.get(&n).copied();
            let right = match (known, state) {
                (Some(Known::Ended), ClaimState::Ended(terminal)) => terminal == Terminal::Succeeded,
                (
                    Some(Known::Dispatched),
                    ClaimState::Ended(Terminal::OutcomeUnknown | Terminal::Succeeded),
                ) => true,
                (Some(Known::Asked), ClaimState::Fresh | ClaimState::Ended(Terminal::OutcomeUnknown)) => true,
                (None, ClaimState::Fresh) => true,
                _ => false,
            };
            assert!(right, "{what}: operation {n} is {known:?} to the world and {state:?} to the log");
            if state == ClaimState::Fresh {
                log.ledger().forget(op(n));
                self.run(&log, n).unwrap();
            }
            assert_eq!(log.ledger().begin(op(n), action(2), TIME_MS), ClaimState::Conflict, "{what}: {n}");
        }
        log.close().unwrap_or_else(|error| panic!("{what}: {error}"));
        for trail in Trail::ALL {
            let report = verify_trail(disk, trail.as_str());
            assert!(report.is_whole(), "{what}: {report:?}");
        }
        assert!(self.effects.values().all(|count| *count == 1), "{what}: {:?}", self.effects);
    }

    /// One life on a disk on which a call fails.
    fn life(&mut self, disk: &FaultyDisk, call: u64, fault: Fault, count: u64) {
        disk.fail(call, fault);
        if let Ok((log, _)) = open_with(disk, limits()) {
            self.live(&log, count);
        }
    }
}

/// A history of several closed segments, and what the world knows of it.
fn history() -> (FaultyDisk, World) {
    let (disk, mut world) = (FaultyDisk::new(), World::default());
    world.life(&disk, u64::MAX, Fault::Io, 14);
    assert!(disk.list().unwrap().iter().filter(|name| name.ends_with(".index")).count() >= 4);
    (disk.after_kill(), world)
}

/// Calls of opening a copy of the disk and running `count` operations.
fn calls_of(disk: &FaultyDisk, world: &World, count: u64) -> u64 {
    let copy = disk.after_kill();
    world.clone().life(&copy, u64::MAX, Fault::Io, count);
    copy.calls()
}

#[test]
fn a_power_cut_at_every_call_of_a_life_behind_closed_segments_repeats_and_loses_nothing() {
    let (disk, world) = history();
    let calls = calls_of(&disk, &world, 6);
    assert!(calls > 60, "{calls}");
    for call in 1..=calls {
        for seed in 0..6 {
            let (disk, mut world) = (disk.after_kill(), world.clone());
            world.life(&disk, call, Fault::PowerCut, 6);
            let image = disk.after_power_loss(call * 100 + seed);
            world.wake(&image, &format!("call {call} seed {seed}"));
        }
    }
}

#[test]
fn whichever_call_fails_nothing_is_acknowledged_after_a_failed_sync_and_nothing_is_repeated() {
    let (disk, world) = history();
    for call in 1..=calls_of(&disk, &world, 6) {
        for fault in [Fault::Io, Fault::NoSpace, Fault::Interrupted, Fault::Short] {
            let (disk, mut world) = (disk.after_kill(), world.clone());
            world.life(&disk, call, fault, 6);
            let image = if call % 2 == 0 { disk.after_kill() } else { disk.after_power_loss(call) };
            world.wake(&image, &format!("call {call} {fault:?}"));
        }
    }
}

#[test]
fn any_two_power_cuts_one_after_the_other_repeat_and_lose_nothing() {
    let (disk, world) = (FaultyDisk::new(), World::default());
    let calls = calls_of(&disk, &world, 3);
    for first in 1..=calls {
        for second in 1..=calls {
            let (disk, mut world) = (FaultyDisk::new(), world.clone());
            world.life(&disk, first, Fault::PowerCut, 3);
            let disk = disk.after_power_loss(first);
            world.life(&disk, second, Fault::PowerCut, 3);
            let disk = disk.after_power_loss(second);
            world.wake(&disk, &format!("calls {first} and {second}"));
        }
    }
}

#[test]
fn ever_more_distant_power_cuts_over_many_lives_repeat_and_lose_nothing() {
    for seed in 0..24 {
        let (mut disk, mut world) = (FaultyDisk::new(), World::default());
        for life in 0..9 {
            let call = (1 << life) + seed % 7;
            world.life(&disk, call, Fault::PowerCut, 8);
            disk = match (seed + life) % 3 {
                0 => disk.after_kill(),
                _ => disk.after_power_loss(seed * 10 + life),
            };
        }
        world.wake(&disk, &format!("seed {seed}"));
        let again = disk.after_kill();
        world.wake(&again, &format!("seed {seed}, once more"));
    }
}

#[test]
fn no_fault_of_an_index_reaches_the_trail() {
    for errno in [nix::errno::Errno::ENOSPC, nix::errno::Errno::EIO, nix::errno::Errno::EACCES] {
        let (disk, mut world) = history();
        disk.break_files(".index", errno);
        let (log, _) = open_with(&disk, limits()).unwrap();
        let (segments, without_index) = log.ledger().segments();
        assert!(segments >= 4 && without_index == segments, "{errno}: all were read");

        world.live(&log, 20);

        assert!(log.fence().is_none());
        assert!(world.operations.values().all(|known| *known == Known::Ended), "{errno}: {world:?}");
        for n in 0..world.next {
            let state = log.ledger().begin(op(n), action(1), TIME_MS);
            assert_eq!(state, ClaimState::Ended(Terminal::Succeeded), "{errno}: {n}");
        }
        log.close().unwrap();
        world.wake(&disk.after_kill(), &format!("{errno}"));
    }
}

#[test]
fn a_disk_that_fills_up_at_any_byte_repeats_and_loses_nothing() {
    let (disk, world) = history();
    let used = disk.after_kill().used();
    let (mut refused, mut ended) = (0, 0);
    // The reserves of the three trails stand already; closing a segment asks for one more for a moment.
    for spare in (0..100_000).step_by(5_777).chain((100_000..900_000).step_by(101_777)) {
        let (disk, mut world) = (disk.after_kill(), world.clone());
        disk.set_capacity(Some(used + spare));
        world.life(&disk, u64::MAX, Fault::Io, 150);
        let count = |wanted| world.operations.values().filter(|known| **known == wanted).count();
        (refused, ended) = (refused + count(Known::Asked), ended + count(Known::Ended));
        let image = disk.after_kill();
        world.wake(&image, &format!("{spare} spare bytes"));
    }
    assert!(refused > 100 && ended > 100, "{refused} were refused, {ended} ended");
}
