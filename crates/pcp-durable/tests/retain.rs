//! Old segments are deleted, a record says so, and nothing that was forgotten runs again.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use std::sync::Arc;

use pcp_core::{ClaimState, Durability, OperationClaims, OperationId, RecordKind, Terminal, Trail};
use pcp_durable::disk::{Disk as _, Fault};
use pcp_durable::{AuditLog, Error, Filter, Limits, Pin, Proofs, Show, Verdict, set_up_keys, verify_log};
use support::attack::{Files, reanchor, rechain};
use support::sealed::{Place, SECRET, is_intact, is_tampered, limits, lines};
use support::{TIME_MS, action, entry, op};

/// A day and more behind the records of these tests.
const LATER_MS: u64 = TIME_MS + 48 * 3_600_000;

fn keeping(kept_segments: u32) -> Limits {
    Limits { kept_segments, ..limits(4_000, 10) }
}

/// So many operations, each with its claim and its end.
fn operate(log: &AuditLog, from: u64, count: u64) {
    for n in from..from + count {
        for kind in [RecordKind::Intent, RecordKind::Terminal] {
            let ticket = log.append(&entry(kind, n), Durability::Durable).unwrap();
            log.wait(&ticket).unwrap();
        }
    }
}

/// A log of which the oldest segments are deleted.
fn shortened() -> Place {
    let place = Place::new(keeping(3));
    let (log, _) = place.open().unwrap();
    operate(&log, 0, 30);
    assert!(log.retain(LATER_MS).unwrap() > 5);
    operate(&log, 30, 3);
    log.close().unwrap();
    place
}

#[test]
fn what_is_kept_says_where_it_begins_and_is_intact_and_goes_on() {
    let place = shortened();
    let report = place.verify();
    let segments = place.segments(Trail::Application);

    assert!(is_intact(&report) && is_intact(&place.verify_with(&[])), "{report:?}");
    assert!(
        segments.len() <= 6 && !segments.contains(&"application.000001.jsonl".to_owned()),
        "{segments:?}"
    );
    assert!(pcp_durable::verify_trail(&place.trails, "application").is_whole());
    let mut show = Show::of_disk(&place.trails, Filter::default()).unwrap();
    let mut shown = 0;
    while show.next().unwrap().is_some() {
        shown += 1;
    }
    assert!(shown > 5);
    for n in 0..4 {
        let (log, _) = place.open().unwrap();
        operate(&log, 40 + 10 * n, 10);
        assert!(log.retain(LATER_MS).unwrap() > 0);
        log.close().unwrap();
        assert!(is_intact(&place.verify()));
    }
}

#[test]
fn nothing_is_deleted_that_is_young_wanted_or_without_a_time() {
    let place = Place::new(keeping(3));
    let (log, _) = place.open().unwrap();
    operate(&log, 0, 20);
    let before = place.files();

    assert_eq!(log.retain(TIME_MS + 3_600_000).unwrap(), 0, "young");
    assert_eq!(place.files(), before);
    log.close().unwrap();
    let all = Place { limits: keeping(0), ..place.clone() };
    let (log, _) = all.open().unwrap();
    assert_eq!(log.retain(LATER_MS).unwrap(), 0, "no limit");
    log.close().unwrap();

    let place = Place::new(keeping(2));
    let (log, _) = place.open().unwrap();
    for kind in [RecordKind::Intent, RecordKind::Terminal] {
        let operation_id = OperationId::from_parts(0, [7; 10]);
        let record = pcp_core::AuditEntry { operation_id, ..entry(kind, 1) };
        let ticket = log.append(&record, Durability::Durable).unwrap();
        log.wait(&ticket).unwrap();
    }
    operate(&log, 0, 20);
    assert_eq!(log.retain(LATER_MS).unwrap(), 0, "an id without a time is never too old");
    log.close().unwrap();
}

#[test]
fn what_was_forgotten_is_expired_and_never_runs_whatever_the_clock_says() {
    let place = shortened();
    for _ in 0..2 {
        let (log, _) = place.open().unwrap();
        let ledger = log.ledger();
        for wall_ms in [0, TIME_MS, LATER_MS, LATER_MS * 2] {
            let state = ledger.begin(op(0), action(1), wall_ms);
            assert_eq!(state, ClaimState::Ended(Terminal::ExpiredBeforeEffect), "at {wall_ms}");
        }
        assert_eq!(ledger.begin(op(32), action(1), TIME_MS), ClaimState::Ended(Terminal::Succeeded));
        assert_eq!(ledger.begin(op(1_000), action(1), TIME_MS), ClaimState::Fresh);
        log.close().unwrap();
    }
}

#[test]
fn a_beginning_that_no_record_names_is_tampering() {
    let place = shortened();
    let names = place.segments(Trail::Application);
    let mut shorter = place.files();
    shorter.remove(&names[0]);
    let robbed = place.with(&shorter);

    assert!(is_tampered(&robbed.verify()) && is_tampered(&robbed.verify_with(&[])));
    assert!(matches!(robbed.open(), Err(Error::SegmentMissing { .. })));
    assert!(!pcp_durable::verify_trail(&robbed.trails, "application").is_whole());

    let never = Place::new(limits(4_000, 10));
    never.live(0, 40);
    let mut files = never.files();
    files.remove("application.000001.jsonl");
    let robbed = never.with(&files);
    assert!(is_tampered(&robbed.verify()));
    assert!(matches!(robbed.open(), Err(Error::SegmentMissing { .. })));
}

/// A beginning of one's own making needs the key, like every other record.
#[test]
fn a_made_up_beginning_is_noticed() {
    let place = Place::new(limits(4_000, 10));
    place.live(0, 60);
    let names = place.segments(Trail::Application);
    let all = place.lines(Trail::Application);
    let gone = lines(&place.files()[&names[0]]).len();
    let hash = String::from_utf8(all[gone].clone()).unwrap();
    let hash = &hash[hash.find("\"prev\":\"").unwrap() + 8..][..64];
    let begin = format!(
        "{{\"seq\":1,\"prev\":\"\",\"synced\":0,\"kind\":\"begin\",\"segment\":2,\"after\":{gone},\"hash\":\"{hash}\",\
         \"ids_to\":\"{}\",\"crc\":\"\"}}\n",
        "0".repeat(32)
    );
    let mut with = all.clone();
    with.push(begin.into_bytes());
    let mut files: Files = place.files();
    names.iter().for_each(|name| drop(files.remove(name)));
    let made = rechain(Trail::Application, &with, None);
    files.insert("application.000002.jsonl".into(), made[gone..].concat());
    let forged = place.with(&files);

    assert!(
        pcp_durable::verify_trail(&forged.trails, "application").is_whole(),
        "the chain alone cannot tell"
    );
    assert!(is_tampered(&forged.verify()) && is_tampered(&forged.verify_with(&[])));
    assert!(forged.open().is_err(), "nor is it sealed as if it were so");
}

#[test]
fn the_other_reader_agrees_about_a_trail_that_begins_later() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("audit");
    let (log, _) = AuditLog::open_with(&path, keeping(3), TIME_MS).unwrap();
    operate(&log, 0, 20);
    assert!(log.retain(LATER_MS).unwrap() > 3, "without keys as well");
    operate(&log, 20, 2);
    log.close().unwrap();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/python/trail.py");
    let read = || {
        let output = std::process::Command::new("python3").arg(&script).arg(&path).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };

    let (code, said) = read();
    let ours = pcp_durable::verify_directory(&path).unwrap();

    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("\"misfits\": 0") && ours[0].is_whole(), "{said}");
    let first = std::fs::read_dir(&path).unwrap().map(|file| file.unwrap().path());
    let first = first.filter(|file| file.extension().unwrap() == "jsonl").min().unwrap();
    std::fs::remove_file(first).unwrap();
    assert_eq!(read().0, Some(11));
    assert!(!pcp_durable::verify_directory(&path).unwrap()[0].is_whole());
}

#[test]
fn a_pinned_head_from_before_the_beginning_cannot_be_checked_and_is_no_tampering() {
    let place = shortened();
    let pins = [Pin { trail: Trail::Application, seq: 3, hash: [1; 32] }];
    let proofs = Proofs { seals: Some(&place.seals), pins: &pins, ..Proofs::default() };

    let report = verify_log(&place.trails, &proofs);

    assert!(matches!(report.trails[0].verdict, Verdict::Unchecked(_)), "{report:?}");
}

#[test]
fn a_power_cut_at_any_call_of_the_deletion_leaves_an_intact_log_that_forgot_nothing() {
    let prepare = || {
        let disk = pcp_durable::disk::FaultyDisk::new();
        let key = set_up_keys(Some(&disk), Arc::new(disk.clone()), SECRET, None).unwrap();
        let place = Place { trails: disk.clone(), seals: disk.clone(), key, limits: keeping(3) };
        let (log, _) = place.open().unwrap();
        operate(&log, 0, 14);
        (place, disk, log)
    };
    let calls = {
        let (_place, disk, log) = prepare();
        let before = disk.calls();
        assert!(log.retain(LATER_MS).unwrap() > 1);
        disk.calls() - before
    };
    for call in 1..=calls {
        for fault in [Fault::PowerCut, Fault::Io, Fault::NoSpace] {
            let (place, disk, log) = prepare();
            disk.fail(call, fault);
            drop(log.retain(LATER_MS));
            drop(log.close());
            for seed in 0..3 {
                let left =
                    if fault == Fault::PowerCut { disk.after_power_loss(seed) } else { disk.after_kill() };
                let place = Place { trails: left.clone(), seals: left, ..place.clone() };
                let said = format!("call {call}, {fault:?}, seed {seed}");
                let (log, _) = place.open().unwrap_or_else(|error| panic!("{said}: {error}"));
                for n in 0..14 {
                    let state = log.ledger().begin(op(n), action(1), TIME_MS);
                    assert!(matches!(state, ClaimState::Ended(_)), "{said}: {n} {state:?}");
                }
                log.retain(LATER_MS).unwrap();
                log.close().unwrap();
                let report = place.verify();
                assert!(is_intact(&report), "{said}: {report:?}");
            }
        }
    }
    let (_place, disk, _log) = prepare();
    assert!(disk.list().unwrap().len() > 5);
}

#[test]
fn whoever_has_the_present_key_still_cannot_cut_off_the_beginning_of_sealed_epochs() {
    let place = Place::new(limits(4_000, 10));
    place.live(0, 60);
    let (_, key) = support::attack::present_key(&place);
    let names = place.segments(Trail::Application);
    let all = place.lines(Trail::Application);
    let gone = lines(&place.files()[&names[0]]).len();
    let mut files: Files = place.files();
    files.remove(&names[0]);
    let renumbered = rechain(Trail::Application, &all[gone..], Some(&key));
    names.iter().for_each(|name| drop(files.remove(name)));
    files.insert("application.000001.jsonl".into(), renumbered.concat());
    let forged = Place { seals: place.seals.after_kill(), ..place.with(&files) };
    reanchor(&forged);

    assert!(is_tampered(&forged.verify()));
}
