//! The audit log and the ledger that is read off it (R-157, R-159, R-163..R-165, R-181..R-183, R-197).

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

mod support;

use std::sync::Arc;

use pcp_core::{ClaimState, Durability, OperationClaims, RecordKind, Terminal, Tier, Trail};
use pcp_durable::disk::FaultyDisk;
use pcp_durable::{AuditLog, Filter, Record, Show, status_in_directory, status_in_file, verify_directory};
use support::{action, end, entry, op, open};

fn lines(disk: &FaultyDisk, trail: Trail) -> Vec<String> {
    let content = disk.content(&format!("{trail}.000001.jsonl")).unwrap();
    String::from_utf8(content).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn an_operation_is_two_records_and_the_second_names_the_first() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    let ledger = log.ledger().clone();

    assert_eq!(ledger.begin(op(1), action(1), support::TIME_MS), ClaimState::Fresh);
    let claim = log.append(&entry(RecordKind::Intent, 1), Durability::Durable).unwrap();
    log.wait(&claim).unwrap();
    let terminal = log.append(&entry(RecordKind::Terminal, 1), Durability::Durable).unwrap();
    log.wait(&terminal).unwrap();
    ledger.end(op(1), Terminal::Succeeded);

    let lines = lines(&disk, Trail::Application);
    assert_eq!(lines.len(), 2);
    let last: serde_json::Value = serde_json::from_str(&lines[1]).unwrap();
    let hash: String = claim.hash.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(last["claim_hash"], hash);
    let status = ledger.status(op(1)).unwrap();
    assert_eq!((status.terminal, status.audit_hash), (Some(Terminal::Succeeded), terminal.hash));
    assert_eq!(status.duration_us, 1234);
}

#[test]
fn the_three_trails_are_three_chains_in_three_files() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    for (trail, count) in [(Trail::Application, 1), (Trail::Compositor, 2), (Trail::System, 3)] {
        for n in 0..count {
            let record = pcp_core::AuditEntry { trail, ..entry(RecordKind::Read, n) };
            let _ = log.append(&record, Durability::Lazy).unwrap();
        }
    }
    log.close().unwrap();

    for (trail, count) in [(Trail::Application, 1), (Trail::Compositor, 2), (Trail::System, 3)] {
        let report = pcp_durable::verify_trail(&disk, trail.as_str());
        assert!(report.is_whole());
        assert_eq!(report.lines, count);
    }
}

#[test]
fn a_claim_without_a_terminal_becomes_unknown_after_a_crash_and_is_never_fresh_again() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    for n in 1..=3 {
        let _ = log.ledger().begin(op(n), action(1), support::TIME_MS);
        let ticket = log.append(&entry(RecordKind::Intent, n), Durability::Durable).unwrap();
        log.wait(&ticket).unwrap();
    }
    let ticket = log.append(&entry(RecordKind::Terminal, 2), Durability::Durable).unwrap();
    log.wait(&ticket).unwrap();
    let crashed = disk.after_power_loss(1);

    let (recovered, found) = open(&crashed).unwrap();

    assert_eq!(found.unknown, [op(1), op(3)]);
    assert_eq!(found.latest_ms, support::TIME_MS + 3);
    for (n, terminal) in
        [(1, Terminal::OutcomeUnknown), (2, Terminal::Succeeded), (3, Terminal::OutcomeUnknown)]
    {
        assert_eq!(recovered.ledger().begin(op(n), action(1), support::TIME_MS), ClaimState::Ended(terminal));
        assert_eq!(recovered.ledger().begin(op(n), action(2), support::TIME_MS), ClaimState::Conflict);
    }
    recovered.close().unwrap();
    let lines = lines(&crashed, Trail::Application);
    let last: serde_json::Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!(last["operation_id"], op(3).to_string());
    assert_eq!(last["reason"], "recovered");
    assert_eq!(last["capability"], "app.org.example.notes.create");
    assert_eq!(last["terminal"], "outcome_unknown");
    let (_, again) = open(&crashed).unwrap();
    assert!(again.unknown.is_empty(), "{again:?}");
}

#[test]
fn reads_and_refusals_bind_no_id() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    let _ = log.append(&entry(RecordKind::Read, 1), Durability::Lazy).unwrap();
    let _ = log.append(&entry(RecordKind::Refusal, 2), Durability::Lazy).unwrap();
    log.close().unwrap();

    let (log, found) = open(&disk).unwrap();

    assert_eq!(found.records, 2);
    assert!(log.ledger().is_empty());
}

#[test]
fn one_record_is_one_line_whatever_its_words_hold() {
    let hostile = "a\nb\r\u{2028}\u{2029}\u{85}\u{9b}31m\u{1b}[31m\u{202e}\u{2066}\"\\\0";
    let params = format!("{{\n \"x\" : {} }}", serde_json::to_string("\u{2028}\u{202e}\n\u{7f}").unwrap());
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    let record = pcp_core::AuditEntry {
        capability: hostile,
        target_app: hostile,
        params: &params,
        permission: pcp_core::PermissionRecord { verdict: "denied", rule: hostile, gate: hostile },
        ..entry(RecordKind::Refusal, 1)
    };
    let _ = log.append(&record, Durability::Lazy).unwrap();
    log.close().unwrap();

    let content = String::from_utf8(disk.content("application.000001.jsonl").unwrap()).unwrap();

    assert_eq!(content.matches('\n').count(), 1);
    assert!(content.trim_end_matches('\n').chars().all(|c| (' '..='~').contains(&c)), "{content}");
    let read = Record::read(content.trim_end().as_bytes()).unwrap();
    assert_eq!((&*read.capability, &*read.target.app), (hostile, hostile));
}

#[test]
fn synthetic_input_is_marked_as_best_effort() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    for tier in [Tier::One, Tier::Three] {
        let record = pcp_core::AuditEntry { tier: Some(tier), ..entry(RecordKind::Refusal, 1) };
        let _ = log.append(&record, Durability::Lazy).unwrap();
    }
    log.close().unwrap();

    let lines = lines(&disk, Trail::Application);

    assert!(lines[0].contains("\"tier\":\"1\",\"best_effort\":false"));
    assert!(lines[1].contains("\"tier\":\"3\",\"best_effort\":true"));
}

#[test]
fn a_record_has_every_fact_that_was_asked_for() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    for kind in [RecordKind::Intent, RecordKind::Terminal, RecordKind::Read, RecordKind::Refusal] {
        let _ = log.append(&entry(kind, 1), Durability::Durable).unwrap();
    }
    log.close().unwrap();

    for line in lines(&disk, Trail::Application) {
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        let mut wanted = vec![
            "/seq",
            "/prev",
            "/synced",
            "/kind",
            "/time_ms",
            "/operation_id",
            "/caller/uid",
            "/caller/pid",
            "/caller/domain",
            "/caller/trust",
            "/caller/modality",
            "/capability",
            "/target/app",
            "/class",
            "/tier",
            "/best_effort",
            "/permission/verdict",
            "/permission/rule",
            "/permission/gate",
            "/params",
            "/params_sha256",
            "/action_hash",
            "/crc",
        ];
        if line["kind"] != "intent" {
            wanted.extend([
                "/claim_hash",
                "/stage",
                "/terminal",
                "/error",
                "/effect",
                "/verification",
                "/timed_out",
                "/duration_us",
            ]);
        }
        for pointer in wanted {
            assert!(line.pointer(pointer).is_some(), "{pointer} is missing in {line}");
        }
    }
}

#[test]
fn trails_are_shown_in_the_order_of_time_and_filtered() {
    let disk = FaultyDisk::new();
    let (log, _) = open(&disk).unwrap();
    for n in 0..30 {
        let trail = Trail::ALL[usize::try_from(n).unwrap() % 3];
        let terminal = if n < 20 { Terminal::Succeeded } else { Terminal::Failed };
        let record = pcp_core::AuditEntry { trail, end: Some(end(terminal)), ..entry(RecordKind::Read, n) };
        let _ = log.append(&record, Durability::Lazy).unwrap();
    }
    log.close().unwrap();
    let times = |filter: Filter| {
        let mut show = Show::of_disk(&disk, filter).unwrap();
        let mut times = Vec::new();
        while let Some(shown) = show.next().unwrap() {
            times.push(Record::read(shown.line).unwrap().time_ms - support::TIME_MS);
        }
        times
    };

    assert_eq!(times(Filter::default()), (0..30).collect::<Vec<u64>>());
    assert_eq!(times(Filter { trail: Some(Trail::System), ..Filter::default() }).len(), 10);
    assert_eq!(times(Filter { terminal: Some(Terminal::Failed), ..Filter::default() }).len(), 10);
    assert_eq!(times(Filter { operation_id: Some(op(7)), ..Filter::default() }), [7]);
    assert_eq!(times(Filter { since_ms: Some(support::TIME_MS + 28), ..Filter::default() }), [28, 29]);
    assert_eq!(times(Filter { until_ms: Some(support::TIME_MS), ..Filter::default() }), [0]);
    assert!(times(Filter { uid: Some(1), ..Filter::default() }).is_empty());
    assert!(times(Filter { app: Some("x".into()), ..Filter::default() }).is_empty());
    assert!(times(Filter { kind: Some(RecordKind::Intent), ..Filter::default() }).is_empty());
}

#[test]
fn status_is_answered_offline_from_a_directory_or_a_file_and_nothing_is_written() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("audit");
    let (log, _) = AuditLog::open(&directory, support::TIME_MS).unwrap();
    for n in 1..=2 {
        let _ = log.append(&entry(RecordKind::Intent, n), Durability::Durable).unwrap();
    }
    let ticket = log.append(&entry(RecordKind::Terminal, 1), Durability::Durable).unwrap();
    log.wait(&ticket).unwrap();
    let file = directory.join("application.000001.jsonl");
    let before = std::fs::read(&file).unwrap();

    // The log is still open: reading does not mind.
    let ended = status_in_directory(&directory, op(1)).unwrap().unwrap();
    let claimed = status_in_file(&file, op(2)).unwrap().unwrap();

    assert_eq!((ended.terminal, ended.action_hash), (Some(Terminal::Succeeded), action(1)));
    assert_eq!(claimed.terminal, None);
    assert_eq!(status_in_directory(&directory, op(9)).unwrap(), None);
    assert!(verify_directory(&directory).unwrap().iter().all(pcp_durable::TrailReport::is_whole));
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_log_opens_again_on_a_real_disk_with_what_it_had() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("audit");
    for round in 0..3 {
        let (log, found) = AuditLog::open(&directory, support::TIME_MS).unwrap();
        assert_eq!(found.records, round * 2);
        assert!(found.unknown.is_empty() && found.cuts.is_empty());
        let _ = log.append(&entry(RecordKind::Intent, round), Durability::Durable).unwrap();
        let _ = log.append(&entry(RecordKind::Terminal, round), Durability::Durable).unwrap();
        log.close().unwrap();
    }
    let log: Arc<AuditLog> = Arc::new(AuditLog::open(&directory, support::TIME_MS).unwrap().0);
    assert_eq!(log.ledger().len(), 3);
}
