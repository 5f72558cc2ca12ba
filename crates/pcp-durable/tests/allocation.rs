//! An unsynced record takes no memory, neither where it is made nor where it is written.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.
#![allow(unsafe_code)] // A global allocator is an unsafe trait; this one counts and passes on.

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use pcp_core::{Durability, RecordKind};
use pcp_durable::AuditLog;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the caller's obligations are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_thousand_reads_in_steady_state_allocate_nothing_on_any_thread() {
    let root = tempfile::tempdir().unwrap();
    let (log, _) = AuditLog::open(&root.path().join("audit"), support::TIME_MS).unwrap();
    let record = support::entry(RecordKind::Read, 1);
    let ten = || {
        for _ in 0..10 {
            let _ = log.append(&record, Durability::Lazy).unwrap();
        }
        let last = log.append(&record, Durability::Lazy).unwrap();
        log.wait(&last).unwrap();
    };
    ten();

    let before = ALLOCATIONS.load(Ordering::SeqCst);
    for _ in 0..100 {
        ten();
    }

    assert_eq!(ALLOCATIONS.load(Ordering::SeqCst) - before, 0);
}
