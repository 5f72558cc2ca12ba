//! The bytes of `FORMAT.md`, and a reader in another language that agrees about them.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use std::path::Path;
use std::process::Command;

use pcp_core::{Durability, RecordKind, Trail};
use pcp_durable::disk::FaultyDisk;
use pcp_durable::{AuditLog, Verdict, verify_directory, verify_lone_file};
use support::{entry, open};

const FORMAT: &str = include_str!("../FORMAT.md");

/// The example of the document: an intent, its terminal, a read, each known to be durable before the next.
fn example(log: &AuditLog) {
    for kind in [RecordKind::Intent, RecordKind::Terminal, RecordKind::Read] {
        let n = if kind == RecordKind::Read { 2 } else { 1 };
        let ticket = log.append(&entry(kind, n), Durability::Durable).unwrap();
        log.wait(&ticket).unwrap();
    }
}

#[test]
fn the_document_shows_the_bytes_that_are_written() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    example(&log);
    log.close().unwrap();
    let written = String::from_utf8(disk.content("application.000001.jsonl").unwrap()).unwrap();

    let is_record = |line: &&str| line.starts_with("{\"seq\":") && line.as_bytes()[7].is_ascii_digit();
    let shown: String = FORMAT.lines().filter(is_record).map(|line| format!("{line}\n")).collect();

    assert_eq!(shown, written);
}

fn python(target: &Path) -> (Option<i32>, Vec<serde_json::Value>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/python/trail.py");
    let output = Command::new("python3").arg(script).arg(target).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// A directory with records in each trail, rotated in one.
fn directory(root: &Path) -> std::path::PathBuf {
    let directory = root.join("audit");
    let (log, _) = AuditLog::open(&directory, support::TIME_MS).unwrap();
    example(&log);
    for trail in Trail::ALL {
        for n in 0..5 {
            let record = pcp_core::AuditEntry { trail: *trail, ..entry(RecordKind::Read, n) };
            let _ = log.append(&record, Durability::Lazy).unwrap();
        }
    }
    log.close().unwrap();
    directory
}

#[test]
fn the_other_reader_agrees_about_whole_trails() {
    let root = tempfile::tempdir().unwrap();
    let directory = directory(root.path());

    let (code, theirs) = python(&directory);
    let ours = verify_directory(&directory).unwrap();

    assert_eq!((code, theirs.len()), (Some(0), 3));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let head: String = ours.head.hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(ours.is_whole());
        assert_eq!(theirs["trail"], ours.name);
        assert_eq!(theirs["lines"], ours.lines);
        assert_eq!(theirs["head"], head);
    }
}

#[test]
fn the_other_reader_names_the_same_first_bad_line() {
    let root = tempfile::tempdir().unwrap();
    let directory = directory(root.path());
    let file = directory.join("application.000001.jsonl");
    let good = std::fs::read(&file).unwrap();
    let half = good.len() / 2;
    let lines: Vec<&[u8]> = good.split_inclusive(|byte| *byte == b'\n').collect();
    let mut flipped = good.clone();
    flipped[half] ^= 1;
    let swapped = [lines[0], lines[2], lines[1]].concat();
    let doubled = [lines[0], lines[1], lines[1]].concat();
    for (what, content) in
        [("flipped", &flipped[..]), ("cut", &good[..half]), ("swapped", &swapped), ("doubled", &doubled)]
    {
        std::fs::write(&file, content).unwrap();

        let (code, theirs) = python(&directory);
        let alone = python(&file);

        assert_eq!((code, alone.0), (Some(11), Some(11)), "{what}");
        for report in [verify_directory(&directory).unwrap().remove(0), verify_lone_file(&file)] {
            let Verdict::Broken(pcp_durable::Error::Damaged { line, offset, .. }) = report.verdict else {
                panic!("{what}: {report:?}");
            };
            assert_eq!((&theirs[0]["line"], &theirs[0]["offset"]), (&line.into(), &offset.into()), "{what}");
            assert_eq!(alone.1[0]["line"], line, "{what}");
        }
    }
}

#[test]
fn a_trail_that_is_gone_is_broken_and_one_that_cannot_be_read_is_unchecked() {
    let root = tempfile::tempdir().unwrap();
    let directory = directory(root.path());
    std::fs::remove_file(directory.join("compositor.000001.jsonl")).unwrap();
    std::fs::remove_file(directory.join("system.000001.jsonl")).unwrap();
    std::fs::create_dir(directory.join("system.000001.jsonl")).unwrap();

    let reports = verify_directory(&directory).unwrap();

    assert!(reports[0].is_whole());
    assert!(matches!(reports[1].verdict, Verdict::Broken(_)), "{reports:?}");
    assert!(matches!(reports[2].verdict, Verdict::Unchecked(_)), "{reports:?}");
    assert_eq!(python(&directory).0, Some(11));
}

#[test]
fn the_other_reader_makes_the_same_indexes_from_the_segments() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("audit");
    let limits = pcp_durable::Limits { segment_bytes: 300_000, ..Default::default() };
    let (log, _) = AuditLog::open_with(&path, limits, support::TIME_MS).unwrap();
    for n in 0..800 {
        for kind in [RecordKind::Intent, RecordKind::Read, RecordKind::Terminal] {
            // Every third operation ends behind the next one's begin, so that some end in the next segment.
            let n = if kind == RecordKind::Terminal && n % 3 == 0 { n + 1 } else { n };
            let _ = log.append(&entry(kind, n), Durability::Lazy).unwrap();
        }
        if n % 40 == 0 {
            log.flush().unwrap();
        }
    }
    log.close().unwrap();

    let (code, said) = python(&path);

    assert_eq!(code, Some(0), "{said:?}");
    assert!(said[0]["indexes"].as_u64().unwrap() >= 4, "{said:?}");
    assert_eq!(said[0]["misfits"], 0);
    let name = path.join("application.000002.index");
    let mut index = std::fs::read(&name).unwrap();
    *index.last_mut().unwrap() ^= 1;
    std::fs::write(&name, &index).unwrap();
    let (code, said) = python(&path);
    assert_eq!((code, &said[0]["misfits"]), (Some(0), &1.into()), "a cache breaks nothing");
}
