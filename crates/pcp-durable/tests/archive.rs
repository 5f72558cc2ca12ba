//! Operations in closed segments: found by the index, by reading where there is none, and never run again
//! (R-181..R-183, R-201).

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use pcp_core::{AuditEntry, ClaimState, Durability, OperationClaims, RecordKind, Terminal, Trail};
use pcp_durable::disk::{Disk, FaultyDisk};
use pcp_durable::{AuditLog, Limits, verify_trail};
use support::{TIME_MS, action, entry, op, open_with};

/// A handful of operations a segment.
fn limits() -> Limits {
    Limits { segment_bytes: 8_000, ..Limits::default() }
}

fn record(n: u64, kind: RecordKind) -> AuditEntry<'static> {
    let trail = Trail::ALL[usize::try_from(n).unwrap() % 3];
    AuditEntry { trail, ..entry(kind, n) }
}

fn put(log: &AuditLog, n: u64, kind: RecordKind) {
    let ticket = log.append(&record(n, kind), Durability::Durable).unwrap();
    log.wait(&ticket).unwrap();
}

fn run(log: &AuditLog, n: u64) {
    assert_eq!(log.ledger().begin(op(n), action(1), TIME_MS), ClaimState::Fresh, "{n}");
    put(log, n, RecordKind::Intent);
    put(log, n, RecordKind::Terminal);
}

/// Operations 0, 2, 4, … below twice `count`.
fn history(count: u64) -> FaultyDisk {
    let disk = FaultyDisk::new();
    let (log, _) = open_with(&disk, limits()).unwrap();
    (0..count).for_each(|n| run(&log, 2 * n));
    log.close().unwrap();
    disk
}

fn indexes(disk: &FaultyDisk) -> Vec<String> {
    disk.list().unwrap().into_iter().filter(|name| name.ends_with(".index")).collect()
}

/// What is done to an index, and how.
type Damage = (&'static str, fn(&mut Vec<u8>));

/// Every operation of the history is known, and the ones between are not.
fn check(log: &AuditLog, count: u64, what: &str) {
    for n in 0..count {
        let ledger = log.ledger();
        let ended = ClaimState::Ended(Terminal::Succeeded);
        assert_eq!(ledger.begin(op(2 * n), action(1), TIME_MS), ended, "{what}: {n}");
        assert_eq!(ledger.begin(op(2 * n), action(2), TIME_MS), ClaimState::Conflict, "{what}: {n}");
        let status = ledger.look_up(op(2 * n)).unwrap().unwrap();
        assert_eq!((status.terminal, status.duration_us), (Some(Terminal::Succeeded), 1234), "{what}");
        assert_ne!(ledger.stored(op(2 * n)).audit_hash, None, "{what}");
        assert_eq!(ledger.begin(op(2 * n + 1), action(1), TIME_MS), ClaimState::Fresh, "{what}: {n}");
        ledger.forget(op(2 * n + 1));
    }
}

#[test]
fn an_operation_in_a_closed_segment_keeps_its_end_and_its_action_over_a_restart() {
    let disk = history(60);
    assert!(indexes(&disk).len() >= 9, "{:?}", indexes(&disk));

    let (log, found) = open_with(&disk, limits()).unwrap();

    assert_eq!((found.records, found.latest_ms), (120, TIME_MS + 118));
    let (segments, without_index) = log.ledger().segments();
    assert_eq!((segments, without_index), (indexes(&disk).len(), 0));
    assert!(log.ledger().len() < 20, "only what is in the last segments is in memory");
    check(&log, 60, "indexed");
}

#[test]
fn opening_does_not_read_a_closed_segment_and_damage_in_it_is_never_a_licence() {
    let disk = history(60);
    let name = "application.000001.jsonl";
    let mut content = disk.content(name).unwrap();
    let first_end = content.iter().position(|byte| *byte == b'\n').unwrap();
    // The terminal of operation 0 is the second line.
    content[first_end + 200] ^= 0x01;
    disk.put(name, &content);

    let (log, _) = open_with(&disk, limits()).unwrap();

    assert_eq!(log.ledger().begin(op(0), action(1), TIME_MS), ClaimState::Unreadable);
    let why = log.ledger().look_up(op(0)).unwrap_err().to_string();
    assert!(why.starts_with("application.000001.jsonl line 2 "), "{why}");
    log.close().unwrap();
    assert!(!verify_trail(&disk, "application").is_whole(), "checking reads everything");
    assert!(open_with(&disk, limits()).unwrap_err().is_damage(), "the index was given up, so all is read");
}

#[test]
fn an_index_that_is_missing_or_wrong_is_made_again_from_its_segment() {
    let whole = history(60);
    let names = indexes(&whole);
    let damages: [Damage; 5] = [
        ("empty", Vec::clear),
        ("half", |bytes| bytes.truncate(bytes.len() / 2)),
        ("head changed", |bytes| bytes[20] ^= 1),
        ("rows changed", |bytes| *bytes.last_mut().unwrap() ^= 1),
        ("zeros", |bytes| bytes.fill(0)),
    ];
    for (what, damage) in damages {
        for name in &names {
            let disk = whole.after_kill();
            let mut bytes = disk.content(name).unwrap();
            damage(&mut bytes);
            disk.put(name, &bytes);

            let (log, _) = open_with(&disk, limits()).unwrap();

            check(&log, 60, &format!("{what} {name}"));
            log.close().unwrap();
            let (again, _) = open_with(&disk, limits()).unwrap();
            assert_eq!(again.ledger().segments().1, 0);
            assert_eq!(disk.content(name), whole.content(name), "{what} {name}");
        }
    }
    let bare = whole.after_kill();
    names.iter().for_each(|name| bare.remove(name).unwrap());
    let (log, _) = open_with(&bare, limits()).unwrap();
    check(&log, 60, "without any index");
    assert_eq!(indexes(&bare), names);
}

#[test]
fn the_index_of_another_directory_is_not_believed() {
    let (disk, other) = (history(60), FaultyDisk::new());
    let (log, _) = open_with(&other, limits()).unwrap();
    (200..260).for_each(|n| run(&log, n));
    log.close().unwrap();
    for name in indexes(&other) {
        disk.put(&name, &other.content(&name).unwrap());
    }

    let (log, _) = open_with(&disk, limits()).unwrap();

    check(&log, 60, "foreign");
}

#[test]
fn an_operation_that_ends_in_another_segment_than_it_began_in_is_found_with_its_end() {
    let disk = FaultyDisk::new();
    let (log, _) = open_with(&disk, limits()).unwrap();
    let (spanning, hung) = (1001, 1004);
    for n in [spanning, hung] {
        assert_eq!(log.ledger().begin(op(n), action(1), TIME_MS), ClaimState::Fresh);
        put(&log, n, RecordKind::Intent);
    }
    (0..30).for_each(|n| run(&log, n));
    assert_eq!(log.ledger().begin(op(spanning), action(1), TIME_MS), ClaimState::Running);
    put(&log, spanning, RecordKind::Terminal);
    (30..60).for_each(|n| run(&log, n));
    let crashed = disk.after_power_loss(3);
    drop(log);

    let (log, found) = open_with(&crashed, limits()).unwrap();

    assert_eq!(found.unknown, [op(hung)], "its claim is in a segment that was not read");
    let state = |log: &AuditLog, n| log.ledger().begin(op(n), action(1), TIME_MS);
    assert_eq!(state(&log, spanning), ClaimState::Ended(Terminal::Succeeded));
    assert_eq!(state(&log, hung), ClaimState::Ended(Terminal::OutcomeUnknown));
    (100..160).for_each(|n| run(&log, n));
    log.close().unwrap();
    let (log, found) = open_with(&crashed, limits()).unwrap();
    assert!(found.unknown.is_empty());
    assert_eq!(state(&log, hung), ClaimState::Ended(Terminal::OutcomeUnknown));
    assert_eq!(log.ledger().begin(op(hung), action(2), TIME_MS), ClaimState::Conflict);
}

#[test]
fn what_is_let_go_from_memory_is_found_while_the_process_runs() {
    let disk = FaultyDisk::new();
    let (log, _) = open_with(&disk, Limits { segment_bytes: 256 * 1024, ..Limits::default() }).unwrap();
    let count = pcp_durable::MAX_OPERATIONS as u64 + 2_000;
    for n in 0..count {
        assert_eq!(log.ledger().begin(op(n), action(1), TIME_MS), ClaimState::Fresh);
        for kind in [RecordKind::Intent, RecordKind::Terminal] {
            while log.append(&record(n, kind), Durability::Lazy).is_err() {
                log.flush().unwrap();
            }
        }
        if n % 50 == 0 {
            log.flush().unwrap();
        }
    }

    assert!(log.ledger().len() <= pcp_durable::MAX_OPERATIONS);
    for n in (0..2_000).chain(count - 10..count) {
        let state = log.ledger().begin(op(n), action(1), TIME_MS);
        assert_eq!(state, ClaimState::Ended(Terminal::Succeeded), "{n}");
    }
}

#[test]
fn whoever_fills_the_ledger_with_ids_of_the_future_shuts_nobody_out() {
    let disk = FaultyDisk::new();
    let (log, _) = open_with(&disk, limits()).unwrap();
    (100_000..100_030).for_each(|n| run(&log, n));
    log.close().unwrap();
    let (log, _) = open_with(&disk, limits()).unwrap();

    for n in 0..30 {
        run(&log, n);
        let state = log.ledger().begin(op(n), action(1), TIME_MS);
        assert_eq!(state, ClaimState::Ended(Terminal::Succeeded), "{n}");
    }
}

#[test]
fn the_latest_time_known_survives_a_restart_and_a_clock_that_is_set_back() {
    let disk = history(60);
    let (log, found) = open_with(&disk, limits()).unwrap();
    let minutes = 60_000;

    assert_eq!(log.ledger().high_water_ms(), found.latest_ms);
    let begin = |ahead: u64, wall: u64| {
        let id = pcp_core::OperationId::from_parts(found.latest_ms + ahead, [1; 10]);
        log.ledger().begin(id, action(1), wall)
    };
    assert_eq!(begin(5 * minutes, 0), ClaimState::Fresh, "in 1970 the trails still know the year");
    let skewed = ClaimState::Skewed { ahead_ms: 6 * minutes, limit_ms: 5 * minutes };
    assert_eq!(begin(6 * minutes, 0), skewed);
    assert_eq!(begin(6 * minutes, found.latest_ms + minutes), ClaimState::Fresh);
}
