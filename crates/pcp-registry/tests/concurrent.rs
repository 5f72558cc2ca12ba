//! Eight threads at once: no update is lost and nobody sees half an application.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::collections::BTreeMap;

use pcp_core::{CapabilityRegistry, DetectionMethod, RegistryFilter};
use pcp_registry::{Change, InMemoryRegistry, Snapshot};
use support::{app, app_id, capability, id};

const THREADS: usize = 8;
/// Operations of each thread.
const OPERATIONS: u32 = 100_000;
/// Applications that each thread alone changes, and all threads read.
const OWN_APPS: u32 = 4;
/// One in so many operations writes.
const WRITE_EVERY: u32 = 16;

/// How many capabilities an application has at a version: so that a mixture of two versions shows.
fn width(version: u32) -> u32 {
    1 + version % 4
}

fn name(thread: usize, n: u32) -> String {
    format!("org.thread{thread}.app{n}")
}

fn at_version(name: &str, version: u32) -> Change {
    let one = |n: u32| {
        let mut one = capability(&format!("app.{name}.read_{n}"), name, DetectionMethod::Desktop);
        one.version = version.to_string().into();
        one
    };
    let mut change = app(name, &(0..width(version)).map(one).collect::<Vec<_>>());
    if let Change::App { entry, .. } = &mut change {
        entry.version = version.to_string().into();
    }
    change
}

fn assert_whole(snapshot: &Snapshot, name: &str) {
    let all: Vec<_> = snapshot.capabilities_of(&app_id(name)).collect();
    let Some(held) = snapshot.app(&app_id(name)) else {
        assert!(all.is_empty(), "{name} is gone and {} of its capabilities are not", all.len());
        return;
    };
    let version: u32 = held.entry.version.parse().unwrap();
    assert_eq!(all.len(), width(version) as usize, "{name} at {version}");
    assert!(all.iter().all(|one| one.version == held.entry.version), "{name} at {version}: {all:?}");
}

/// A small generator of its own: the same numbers on every run.
fn next(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

/// Mixed operations of one thread; gives the versions that its applications have at the end.
fn work(registry: &InMemoryRegistry, thread: usize) -> BTreeMap<String, u32> {
    let mut model = BTreeMap::new();
    let mut state = u32::try_from(thread).unwrap() * 7_919 + 1;
    for operation in 0..OPERATIONS {
        let choice = next(&mut state);
        let other = name(choice as usize % THREADS, (choice >> 8) % OWN_APPS);
        if operation % WRITE_EVERY == 0 {
            let own = name(thread, (choice >> 8) % OWN_APPS);
            if choice >> 29 == 0 {
                assert_eq!(registry.unregister_app(&app_id(&own)).is_ok(), model.remove(&own).is_some());
            } else {
                let applied = registry.apply([at_version(&own, operation)]);
                assert!(applied.refused.is_empty());
                model.insert(own, operation);
            }
            continue;
        }
        match choice >> 16 & 7 {
            0 => assert_whole(&registry.snapshot(), &other),
            1 => {
                let filter = RegistryFilter { app: Some(&other), ..RegistryFilter::default() };
                let found = registry.query(&filter);
                let version = found.first().map(|one| one.version.clone());
                assert!(found.iter().all(|one| Some(&one.version) == version.as_ref()), "{found:?}");
                let want = version.map_or(0, |version| width(version.parse().unwrap()));
                assert_eq!(found.len(), want as usize, "{found:?}");
            }
            _ => {
                let own = name(thread, (choice >> 8) % OWN_APPS);
                let found = registry.get(&id(&format!("app.{own}.read_0")));
                let version = found.map(|one| one.version.parse::<u32>().unwrap());
                assert_eq!(version.as_ref(), model.get(&own), "{own}: a thread sees its own last write");
            }
        }
    }
    model
}

#[test]
fn eight_threads_lose_no_update_and_see_no_half_application() {
    let registry = InMemoryRegistry::new();
    let mut models = BTreeMap::new();
    std::thread::scope(|scope| {
        let registry = &registry;
        let threads: Vec<_> = (0..THREADS).map(|n| scope.spawn(move || work(registry, n))).collect();
        threads.into_iter().for_each(|thread| models.extend(thread.join().unwrap()));
    });
    let held: BTreeMap<String, u32> =
        registry.apps().iter().map(|held| (held.id.to_string(), held.version.parse().unwrap())).collect();
    assert_eq!(held, models);
    let snapshot = registry.snapshot();
    models.keys().for_each(|name| assert_whole(&snapshot, name));
}
