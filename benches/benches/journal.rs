//! Audit records beside write and fdatasync, and a log with a million operations behind it (PERFORMANCE 5).
//!
//! `PCP_HISTORY` says how many operations, `PCP_BENCH_FOLDER` on which file system.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use criterion::Criterion;
use pcp_benches::journal::{Synced, action, chain_only, folder, make_history, open_once, operation};
use pcp_core::{ClaimState, OperationClaims, Terminal};

/// Operations of the history when this is measured, and when it is only tried.
const OPERATIONS: [u64; 2] = [1_000_000, 20_000];
/// What opening may take: the budget of work item 3.
const OPEN_LIMIT: Duration = Duration::from_millis(200);
/// What opening may take of memory, in KiB.
const MEMORY_LIMIT_KIB: u64 = 16 * 1024;
/// Openings, each by a process of its own.
const OPENINGS: usize = 9;
/// Names the directory to the process that opens it once.
const OPEN_ONCE: &str = "PCP_BENCH_OPEN_ONCE";

fn appends(c: &mut Criterion) {
    let mut group = c.benchmark_group("audit");
    let (folder, _) = folder().unwrap();
    let mut synced = Synced::new(folder.path(), false).unwrap();
    let mut sealed = Synced::new(folder.path(), true).unwrap();
    let seals = folder.path().join("seal");
    group.sample_size(50);
    group.bench_function("durable record: write and fdatasync", |b| b.iter(|| synced.raw()));
    group.bench_function("durable record: append and wait", |b| b.iter(|| synced.record()));
    group.bench_function("durable record: append and wait, sealed", |b| b.iter(|| sealed.record()));
    group
        .bench_function("record and chain only", |b| b.iter_custom(|count| chain_only(count, None).unwrap()));
    group.bench_function("record and chain only, sealed", |b| {
        b.iter_custom(|count| chain_only(count, Some(&seals)).unwrap());
    });
    group.finish();
}

fn history(c: &mut Criterion, is_measured: bool) {
    let count = std::env::var("PCP_HISTORY").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(OPERATIONS[usize::from(!is_measured)]);
    let (_folder, path) = folder().unwrap();
    let begun = Instant::now();
    make_history(&path, count).unwrap();
    println!("{count} operations written in {:?}", begun.elapsed());

    let mut openings: Vec<(u64, u64)> = (0..OPENINGS).map(|_| open_in_a_process(&path, 2 * count)).collect();
    openings.sort_unstable();
    let memory_kib = openings.iter().map(|(_, memory)| *memory).max().unwrap();
    let (median, slowest) = (openings[OPENINGS / 2].0, openings[OPENINGS - 1].0);
    println!("open {count} operations: median {median} us, slowest {slowest} us, {memory_kib} KiB");
    if is_measured {
        assert!(Duration::from_micros(median) < OPEN_LIMIT, "{median} us");
        assert!(memory_kib < MEMORY_LIMIT_KIB, "{memory_kib} KiB");
    }

    let (_, log) = open_once(&path).unwrap();
    let mut group = c.benchmark_group("ledger");
    for (what, from, to) in [("old", 0, count / 2), ("newest", count - 100, count)] {
        let mut n = from;
        group.bench_function(format!("look up an operation: {what}"), |b| {
            b.iter(|| {
                n = from + (n - from + 7919) % (to - from);
                let state = log.ledger().begin(operation(n), action(), 0);
                assert_eq!(state, ClaimState::Ended(Terminal::Succeeded));
            });
        });
    }
    group.finish();
}

/// Time in microseconds and memory in KiB of one opening.
fn open_in_a_process(path: &Path, records: u64) -> (u64, u64) {
    let output = Command::new(std::env::current_exe().unwrap()).env(OPEN_ONCE, path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let numbers: Vec<u64> = text.split_whitespace().map(|word| word.parse().unwrap()).collect();
    assert_eq!(numbers[2], records);
    (numbers[0], numbers[1])
}

fn main() {
    if let Some(path) = std::env::var_os(OPEN_ONCE) {
        let (opening, log) = open_once(Path::new(&path)).unwrap();
        println!("{} {} {}", opening.time.as_micros(), opening.memory_kib, opening.records);
        return log.close().unwrap();
    }
    let is_measured = std::env::args().any(|argument| argument == "--bench");
    let mut criterion = Criterion::default().configure_from_args();
    appends(&mut criterion);
    history(&mut criterion, is_measured);
    criterion.final_summary();
}
