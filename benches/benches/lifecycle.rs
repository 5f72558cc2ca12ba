//! A whole intent at trust level 1, from classify to record: a read, and an effect with its two synced records.

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use criterion::{Criterion, criterion_group, criterion_main};
use pcp_benches::Lifecycle;

fn lifecycle(c: &mut Criterion) {
    let mut lifecycle = Lifecycle::new().unwrap();
    let mut group = c.benchmark_group("lifecycle");
    group.bench_function("read", |b| b.iter(|| lifecycle.read()));
    group.bench_function("effect, durable", |b| b.iter(|| lifecycle.effect()));
}

criterion_group!(benches, lifecycle);
criterion_main!(benches);
