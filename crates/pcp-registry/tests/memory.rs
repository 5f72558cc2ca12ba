//! What a capability costs in memory, and that a lookup costs none.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "a global allocator that counts is the only way to see every allocation")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicU64, Ordering};

use pcp_core::{CapabilityRegistry, DetectionMethod};
use pcp_registry::{Change, InMemoryRegistry};
use support::{app, capability, id};

/// What one capability may cost on the heap, in bytes, everything counted.
const BYTES_PER_CAPABILITY: isize = 500;
/// What glibc's allocator adds to a block, at most, on a 64-bit machine: its header, and rounding up to 16 bytes.
const BLOCK_OVERHEAD: usize = 8;
const BLOCK_STEP: usize = 16;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

/// What a block of this size really takes.
fn block(size: usize) -> isize {
    isize::try_from((size + BLOCK_OVERHEAD).next_multiple_of(BLOCK_STEP)).unwrap_or(isize::MAX)
}

// SAFETY: every call is handed on to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(block(layout.size()), Ordering::SeqCst);
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller upholds `alloc`'s contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(block(layout.size()), Ordering::SeqCst);
        // SAFETY: the pointer came from the system allocator, by way of this one.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A device full of applications. One in `native` is native, with sentences and two schemas of its own; the others have
/// what the table gives to all of their category. One capability in three has a parameter that records may show.
fn device(native: usize) -> impl Iterator<Item = Change> {
    (0..1_250_usize).map(move |n| {
        let name = format!("org.vendor{}.Application{n}", n % 40);
        let one = |k: usize| {
            let mut one = capability(&format!("app.{name}.read_{k}"), &name, DetectionMethod::Desktop);
            if !n.is_multiple_of(native) {
                one.description = format!("What read_{k} does for people, in one sentence").into();
            } else if k == 0 {
                let own = format!(r#"{{"type":"object","properties":{{"p{n}":{{"type":"string"}}}}}}"#);
                one.input_schema = own.into();
                one.output_schema = format!(r#"{{"type":"object","title":"{n}"}}"#).into();
            }
            if k.is_multiple_of(3) {
                one.clear_parameters = ["mode".into()].into();
            }
            one
        };
        app(&name, &(0..8).map(one).collect::<Vec<_>>())
    })
}

/// Ten thousand capabilities, and what each takes on the heap.
fn filled(native: usize) -> (InMemoryRegistry, isize) {
    let before = LIVE.load(Ordering::SeqCst);
    let registry = InMemoryRegistry::new();
    assert!(registry.apply(device(native)).refused.is_empty());
    assert_eq!(registry.len(), (10_000, 1_250));
    let each = (LIVE.load(Ordering::SeqCst) - before) / 10_000;
    let estimated = isize::try_from(registry.stats().estimated_bytes).unwrap() / 10_000;
    println!("one in {native} native: {each} bytes per capability on the heap, {estimated} by estimate");
    assert!(each <= BYTES_PER_CAPABILITY, "{each} bytes per capability");
    assert!((each - estimated).abs() * 100 <= each * 20, "{each} bytes measured, {estimated} estimated");
    (registry, each)
}

/// One test, because the count is the whole process's.
#[test]
fn ten_thousand_capabilities_take_at_most_five_hundred_bytes_each_and_a_lookup_takes_none() {
    drop(filled(1));
    let before = LIVE.load(Ordering::SeqCst);
    let (registry, each) = filled(4);

    for _ in 0..3 {
        assert!(registry.apply(device(4)).diffs.is_empty());
        for change in device(2).take(10).chain(device(4).take(10)) {
            assert!(registry.apply([change]).refused.is_empty());
        }
    }
    let again = (LIVE.load(Ordering::SeqCst) - before) / 10_000;
    assert!(again <= each + 1, "{again} bytes per capability after the same again, {each} before");

    let wanted = id("app.org.vendor7.Application47.read_3");
    assert!(registry.get(&wanted).is_some());
    let count = ALLOCATIONS.load(Ordering::SeqCst);
    for _ in 0..10_000 {
        assert!(std::hint::black_box(registry.get(&wanted)).is_some());
    }
    assert_eq!(ALLOCATIONS.load(Ordering::SeqCst), count, "a lookup allocated");
}
