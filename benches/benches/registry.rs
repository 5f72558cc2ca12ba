//! Lookups and queries of ten thousand capabilities, beside what no registry could beat (PERFORMANCE 4).

#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use pcp_benches::registry::{GLOB, LOOKUPS, PREFIX, Registries, device};
use pcp_registry::InMemoryRegistry;

fn registry(c: &mut Criterion) {
    let held = Registries::new().unwrap();
    let mut group = c.benchmark_group("registry");
    for (name, get) in [
        ("get 64: plain map", &(|| held.get_map()) as &dyn Fn() -> usize),
        ("get 64: snapshot", &|| held.get_registry()),
        ("get 64: RwLock<BTreeMap>", &|| held.get_tree()),
    ] {
        group.bench_function(name, |b| b.iter(|| assert_eq!(black_box(get()), LOOKUPS)));
    }
    for (what, pattern) in [("glob", GLOB), ("prefix", PREFIX), ("all", "*")] {
        let want = held.query_list(pattern);
        assert!(!want.is_empty());
        assert_eq!(held.query_registry(pattern), want);
        assert_eq!(held.query_tree(pattern), want);
        let count = want.len();
        group.bench_function(format!("query {what}: plain scan"), |b| {
            b.iter(|| assert_eq!(black_box(held.query_list(pattern)).len(), count));
        });
        group.bench_function(format!("query {what}: snapshot"), |b| {
            b.iter(|| assert_eq!(black_box(held.query_registry(pattern)).len(), count));
        });
        group.bench_function(format!("query {what}: RwLock<BTreeMap>"), |b| {
            b.iter(|| assert_eq!(black_box(held.query_tree(pattern)).len(), count));
        });
    }
    let mut version = 1_u64;
    group.bench_function("replace one application among 1250", |b| {
        b.iter(|| {
            version += 1;
            assert_eq!(held.replace(7, &version.to_string()).unwrap(), 1);
        });
    });
    group.bench_function("first detection of 1250 applications", |b| {
        b.iter_batched(
            || device().unwrap(),
            |changes| {
                let registry = InMemoryRegistry::new();
                assert_eq!(registry.apply(changes).diffs.len(), 1250);
                registry
            },
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(benches, registry);
criterion_main!(benches);
