//! Detection of five hundred applications with their programs, beside reading the same bytes (PERFORMANCE 8).

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use pcp_benches::detection::{Detection, Kind};

/// Applications.
const APPS: usize = 500;
/// Rounds of the ratio; in each all sides are measured, so that a slow moment is slow for all.
const ROUNDS: usize = 31;

fn detection(c: &mut Criterion) {
    let mut system = Detection::new(APPS, Kind::Host).unwrap();
    // A file that was changed a moment before it is read is read again by the next pass.
    while system.is_fresh() {
        std::hint::spin_loop();
    }
    let bytes = system.read().unwrap();
    system.cold();
    let mut group = c.benchmark_group("detection of 500");
    group.bench_function("open, fstat, read", |b| b.iter(|| assert_eq!(system.read().unwrap(), bytes)));
    group.bench_function("pass, cold cache", |b| b.iter(|| black_box(system.cold())));
    group.bench_function("pass, warm cache", |b| b.iter(|| black_box(system.warm())));
    group.finish();
    ratios(&mut system, bytes);
}

/// Says how the sides relate, round by round.
fn ratios(system: &mut Detection, bytes: usize) {
    let mut found: Vec<[f64; 3]> = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let limit = time(|| assert_eq!(black_box(system.read().unwrap()), bytes));
        let (cold, warm) = (time(|| drop(black_box(system.cold()))), time(|| drop(black_box(system.warm()))));
        let ratio = |side: Duration| side.as_secs_f64() / limit.as_secs_f64();
        found.push([ratio(cold), ratio(warm), limit.as_secs_f64() * 1e3]);
    }
    let median = |side: usize| {
        let mut values: Vec<f64> = found.iter().map(|round| round[side]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "detection of {APPS}: cold {:.2} and warm {:.2} times reading the same bytes ({:.2} ms), medians of {ROUNDS} rounds",
        median(0),
        median(1),
        median(2)
    );
}

fn time(side: impl FnOnce()) -> Duration {
    let began = Instant::now();
    side();
    began.elapsed()
}

criterion_group!(benches, detection);
criterion_main!(benches);
