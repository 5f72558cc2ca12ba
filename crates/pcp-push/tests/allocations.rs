//! Publishing to a subscriber and reading it allocates nothing beyond the event itself.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(unsafe_code, reason = "a global allocator that counts is the only way to see every allocation")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use pcp_core::{Domain, Event, EventFilter, EventStream, OverflowStrategy, Subscribe, Subscriber};
use pcp_push::PushEventBus;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is handed on to the system allocator unchanged; counting touches no memory of its own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds `alloc`'s contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above and so from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.with(Cell::get);
    work();
    ALLOCATIONS.with(Cell::get) - before
}

const EVENTS: usize = 1_000;

fn completed() -> Event {
    Event::DetectionCompleted { apps: 1, capabilities: 2, duration_ms: 3 }
}

fn wanted(connection: u64, queue: usize, overflow: OverflowStrategy) -> Subscribe {
    let filter = EventFilter::reached_by(Domain::App);
    Subscribe { subscriber: Subscriber { connection, uid: 0 }, filter, queue: Some(queue), overflow }
}

#[test]
fn an_event_to_one_subscriber_costs_the_one_allocation_that_holds_it() {
    let bus = PushEventBus::new();
    let mut subscription = bus.subscribe(wanted(0, 8, OverflowStrategy::DropOldest)).unwrap();
    let cx = &mut Context::from_waker(Waker::noop());

    let count = allocations(|| {
        for _ in 0..EVENTS {
            bus.publish(Arc::new(completed()));
            assert!(matches!(subscription.poll_next(cx), Poll::Ready(_)));
            assert!(subscription.poll_next(cx).is_pending());
        }
    });

    assert_eq!(count, EVENTS);
}

#[test]
fn an_event_that_is_there_already_reaches_all_subscribers_without_an_allocation() {
    let bus = PushEventBus::new();
    let strategies = [OverflowStrategy::Block, OverflowStrategy::DropNewest, OverflowStrategy::DropOldest];
    let mut subscriptions: Vec<_> = (0..32)
        .zip(strategies.into_iter().cycle())
        .map(|(n, strategy)| bus.subscribe(wanted(n, 4, strategy)).unwrap())
        .collect();
    let event = Arc::new(completed());

    let count = allocations(|| {
        for _ in 0..EVENTS {
            // Full queues and their gaps included.
            for _ in 0..6 {
                bus.publish(Arc::clone(&event));
            }
            for subscription in &mut subscriptions {
                while subscription.try_next().is_some() {}
            }
        }
    });

    assert_eq!(count, 0);
}
