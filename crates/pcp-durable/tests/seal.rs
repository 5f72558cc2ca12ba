//! Epochs, anchors and keys in the life of a log.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use std::sync::Arc;

use pcp_core::Trail;
use pcp_durable::disk::{Disk, Fault, FaultyDisk};
use pcp_durable::{AuditLog, Error, Proofs, Verdict, set_up_keys, verify_log};
use support::sealed::{Place, SECRET, is_intact, is_tampered, limits};
use support::{TIME_MS, open};

#[test]
fn every_epoch_ends_with_a_seal_in_every_trail_and_all_of_them_are_checked() {
    let place = Place::new(limits(1 << 20, 10));
    place.live(0, 45);
    place.live(45, 3);

    let report = place.verify();

    assert!(is_intact(&report), "{report:?}");
    let sealed = report.trails[0].sealed.unwrap();
    assert!(sealed.epoch >= 5, "{sealed:?}");
    for trail in &report.trails {
        let trail = trail.sealed.unwrap();
        assert_eq!((trail.epoch, trail.checked, trail.unchecked), (sealed.epoch, sealed.epoch, 0));
    }
    assert_eq!(report.seals.epoch, Some(sealed.epoch + 1));
    let without = place.verify_with(&[]);
    assert!(is_intact(&without));
    assert_eq!(without.trails[0].sealed.unwrap().unchecked, sealed.epoch);
}

#[test]
fn an_idle_log_writes_no_seal_and_a_stopped_one_has_nothing_unsealed() {
    let place = Place::new(limits(1 << 20, 1000));
    place.live(0, 5);
    let before = place.files();

    place.live(5, 0);
    place.live(5, 0);

    assert_eq!(place.files(), before, "nothing happened, nothing is sealed");
    for trail in Trail::ALL {
        let last = place.lines(*trail).pop().unwrap();
        assert!(String::from_utf8(last).unwrap().contains("\"kind\":\"seal\",\"epoch\":1,"));
    }
}

#[test]
fn a_log_without_keys_goes_on_as_ever_and_says_that_it_is_not_sealed() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    log.close().unwrap();

    let report = verify_log(&disk, &Proofs::default());

    assert!(is_intact(&report) && !report.seals.is_sealed);
}

#[test]
fn keys_for_a_log_that_has_records_already_seal_those_too() {
    let trails = FaultyDisk::new();
    let place = {
        let (log, _) = open(&trails).unwrap();
        let place = Place { trails: trails.clone(), ..Place::new(limits(1 << 20, 1000)) };
        place.append(&log, 0, 9);
        log.close().unwrap();
        let seals = FaultyDisk::new();
        let key = set_up_keys(Some(&trails), Arc::new(seals.clone()), SECRET, None).unwrap();
        Place { seals, key, ..place }
    };
    assert!(is_intact(&place.verify()), "before the first epoch ends");

    place.live(9, 1);

    assert!(is_intact(&place.verify()));
    assert_eq!(place.verify().trails[1].sealed.unwrap().checked, 1);
}

#[test]
fn keys_are_not_made_twice_without_a_reason_and_the_reason_stands_in_the_next_seals() {
    let place = Place::new(limits(1 << 20, 1000));
    place.live(0, 4);
    let again = |reason| set_up_keys(Some(&place.trails), Arc::new(place.seals.clone()), [0x52; 32], reason);

    assert!(matches!(again(None), Err(Error::KeysExist { epoch: 2 })));
    assert!(matches!(again(Some("")), Err(Error::Reason { bytes: 0, .. })));
    let new = again(Some("the note was lost")).unwrap();
    place.live(4, 4);

    assert_eq!(new.first_epoch(), 2);
    let both = [place.key.clone(), new.clone()];
    assert!(is_intact(&place.verify_with(&both)));
    assert_eq!(place.verify_with(&both).trails[0].sealed.unwrap().checked, 2);
    let old = place.verify();
    assert!(!is_tampered(&old));
    assert_eq!(old.trails[0].sealed.unwrap().unchecked, 1, "the new keys are not the old ones");
    let text = String::from_utf8(place.lines(Trail::System).pop().unwrap()).unwrap();
    assert!(text.contains("\"replaced\":\"the note was lost\""), "{text}");
}

#[test]
fn a_lost_key_or_anchor_is_said_to_be_lost_and_nothing_is_opened_over_it() {
    let place = Place::new(limits(1 << 20, 1000));
    place.live(0, 4);
    for name in ["key", "anchor"] {
        let seals = place.seals.after_kill();
        seals.remove(name).unwrap();
        let robbed = Place { seals, ..place.clone() };

        let report = robbed.verify();

        assert!(matches!(report.seals.verdict, Verdict::Unchecked(_)), "{name}: {report:?}");
        assert!(matches!(robbed.open(), Err(Error::SealKey { .. } | Error::NoAnchor)), "{name}");
    }
    let copy = Place { seals: FaultyDisk::new(), ..place };
    let keys = [copy.key.clone()];
    let proofs = Proofs { keys: &keys, ..Proofs::default() };
    let report = verify_log(&copy.trails, &proofs);
    assert!(matches!(report.seals.verdict, Verdict::Unchecked(_)), "{report:?}");
    let report = verify_log(&copy.trails, &Proofs { is_copy: true, ..proofs });
    assert!(is_intact(&report), "{report:?}");
}

#[test]
fn a_log_that_is_shorter_than_its_anchor_is_not_opened() {
    let place = Place::new(limits(1 << 20, 1000));
    place.live(0, 9);
    let mut files = place.files();
    let lines = place.lines(Trail::Compositor);
    files.insert("compositor.000001.jsonl".into(), lines[..lines.len() - 2].concat());
    let cut = place.with(&files);

    let refused = cut.open().unwrap_err();

    assert!(refused.to_string().starts_with("compositor.000001.jsonl ends at byte"), "{refused}");
    assert_eq!(cut.files(), files, "not a byte was changed");
    set_up_keys(Some(&cut.trails), Arc::new(cut.seals.clone()), SECRET, Some("accepted")).unwrap();
    assert!(cut.open().is_ok(), "until somebody says why that is accepted");
}

#[test]
fn no_old_key_is_left_and_the_present_one_does_not_make_an_old_seal() {
    let place = Place::new(limits(1 << 20, 4));
    place.live(0, 30);

    let files: Vec<Vec<u8>> =
        place.seals.list().unwrap().iter().map(|name| place.seals.content(name).unwrap()).collect();

    assert_eq!(place.seals.list().unwrap(), ["anchor", "key"]);
    for file in files {
        assert!(!file.windows(32).any(|window| window == SECRET));
    }
    assert!(place.verify().trails[0].sealed.unwrap().epoch > 4);
}

/// Both directories on one disk, so that one power cut is one moment for both.
fn on_one_disk() -> (Place, FaultyDisk) {
    let disk = FaultyDisk::new();
    let key = set_up_keys(Some(&disk), Arc::new(disk.clone()), SECRET, None).unwrap();
    let place = Place { trails: disk.clone(), seals: disk.clone(), key, limits: limits(4000, 5) };
    (place, disk)
}

fn live_until_it_fails(place: &Place, from: u64) {
    let Ok((log, _)) = place.open() else { return };
    for n in from..from + 14 {
        let trail = Trail::ALL[usize::try_from(n).unwrap() % 3];
        let record = pcp_core::AuditEntry { trail, ..support::entry(pcp_core::RecordKind::Refusal, n) };
        let Ok(ticket) = log.append(&record, pcp_core::Durability::Durable) else { return };
        if log.wait(&ticket).is_err() {
            return;
        }
    }
    drop(log.close());
}

#[test]
fn a_power_cut_at_any_call_is_never_taken_for_tampering() {
    let whole = {
        let (place, disk) = on_one_disk();
        let before = disk.calls();
        live_until_it_fails(&place, 0);
        disk.calls() - before
    };
    assert!(whole > 100, "{whole}");
    for call in 1..=whole {
        let (place, disk) = on_one_disk();
        disk.fail(call, Fault::PowerCut);
        live_until_it_fails(&place, 0);
        for seed in 0..4 {
            let left = disk.after_power_loss(seed);
            let place = Place { trails: left.clone(), seals: left, ..place.clone() };
            let (log, _) = place.open().unwrap_or_else(|error| panic!("call {call}, seed {seed}: {error}"));
            place.append(&log, 100, 3);
            log.close().unwrap();

            let report = place.verify();

            assert!(is_intact(&report), "call {call}, seed {seed}: {report:?}");
        }
    }
}

#[test]
fn a_failing_disk_of_keys_stops_no_record() {
    for fault in [Fault::Io, Fault::NoSpace, Fault::Interrupted, Fault::Short] {
        for call in 1..40 {
            let place = Place::new(limits(1 << 20, 5));
            let Ok((log, _)) = place.open() else { continue };
            place.seals.fail(call, fault);
            place.append(&log, 0, 20);
            log.close().unwrap();
            place.live(20, 5);

            let report = place.verify();

            assert!(is_intact(&report), "{fault:?} at call {call}: {report:?}");
        }
    }
}

#[test]
fn a_full_disk_puts_seals_off_and_they_come_back_with_the_space() {
    let place = Place::new(limits(1 << 20, 5));
    place.live(0, 7);
    let (log, _) = place.open().unwrap();
    place.trails.set_capacity(Some(place.trails.used()));
    for n in 7..60 {
        let record = support::entry(pcp_core::RecordKind::Refusal, n);
        if let Ok(ticket) = log.append(&record, pcp_core::Durability::Durable) {
            drop(log.wait(&ticket));
        }
    }
    drop(log.close());
    assert!(!is_tampered(&place.verify()), "{:?}", place.verify());
    place.trails.set_capacity(None);

    place.live(60, 9);

    let report = place.verify();
    assert!(is_intact(&report), "{report:?}");
}

#[test]
fn an_older_log_of_real_files_is_opened_with_and_without_a_directory_of_keys() {
    let root = tempfile::tempdir().unwrap();
    let (audit, seal) = (root.path().join("audit"), root.path().join("seal"));
    for _ in 0..2 {
        let (log, _) = AuditLog::open_sealed(&audit, &seal, limits(1 << 20, 5), TIME_MS).unwrap();
        log.close().unwrap();
    }
    let seals = Arc::new(pcp_durable::RealDisk::open(&seal).unwrap());
    let trails = pcp_durable::RealDisk::open(&audit).unwrap();
    let key = set_up_keys(Some(&trails), seals.clone(), SECRET, None).unwrap();
    assert!(matches!(
        AuditLog::open_sealed(&root.path().join("other"), &seal, limits(1 << 20, 5), TIME_MS),
        Err(Error::InUse { .. })
    ));
    drop((seals, trails));
    let place = Place::new(limits(1 << 20, 5));
    for n in 0..3 {
        let (log, _) = AuditLog::open_sealed(&audit, &seal, place.limits, TIME_MS).unwrap();
        place.append(&log, n * 20, 20);
        log.close().unwrap();
    }

    let trails = pcp_durable::RealDisk::open_read_only(&audit).unwrap();
    let seals = pcp_durable::RealDisk::open_read_only(&seal).unwrap();
    let keys = [key];
    let proofs = Proofs { seals: Some(&seals), keys: &keys, ..Proofs::default() };
    let report = verify_log(&trails, &proofs);

    assert!(is_intact(&report), "{report:?}");
    assert!(report.trails[0].sealed.unwrap().checked >= 9, "{report:?}");
}
