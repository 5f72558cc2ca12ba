//! A health check that hangs delays nobody and leaks no threads, however long it hangs.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "support/adapters.rs"]
mod adapters;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use adapters::{Scripted, StillClock, row, scripted, settle};
use pcp_core::{AdapterHealth, AdapterState, Clock, DetectionMethod};
use pcp_registry::{AdapterManager, HEALTH_DEADLINE, MAX_ABANDONED, Seat, SeatFactory};

const SECOND: Duration = Duration::from_secs(1);
/// Ten minutes of virtual time.
const SECONDS: usize = 600;

/// Where the health checks hang: each until its time has come.
#[derive(Default)]
struct Pit {
    /// When each of those that hang is let out, in virtual seconds.
    until: Mutex<Vec<u64>>,
    now: Mutex<u64>,
    changed: Condvar,
    inside: AtomicUsize,
}

impl Pit {
    fn hang(&self, seconds: u64) {
        let mut now = self.now.lock().unwrap();
        let until = now.saturating_add(seconds);
        self.until.lock().unwrap().push(until);
        self.inside.fetch_add(1, Ordering::SeqCst);
        while *now < until {
            now = self.changed.wait(now).unwrap();
        }
    }

    fn advance(&self) {
        *self.now.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    fn let_all_out(&self) {
        *self.now.lock().unwrap() = u64::MAX;
        self.changed.notify_all();
    }

    /// How many must be hanging now, by virtual time alone.
    fn should_hang(&self) -> usize {
        let now = *self.now.lock().unwrap();
        self.until.lock().unwrap().iter().filter(|until| **until > now).count()
    }
}

/// An adapter whose every health check hangs; dropped when its thread ends.
fn hanging(pit: &Arc<Pit>, seconds: u64) -> SeatFactory {
    let pit = pit.clone();
    Arc::new(move || {
        let inside = pit.clone();
        let step = move || {
            inside.hang(seconds);
            AdapterHealth::Healthy
        };
        Ok(Seat::parking(Scripted(Arc::new(Mutex::new([Box::new(step) as Box<_>].into())))))
    })
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Waits, without virtual time going by, until as many threads are left as there should be: one that was let out
/// needs a moment of real time to end.
fn wait_for_threads(want: usize) {
    while threads() > want {
        std::thread::yield_now();
    }
}

fn start(pit: &Arc<Pit>, seconds: u64) -> (Arc<StillClock>, AdapterManager) {
    let clock = Arc::new(StillClock::default());
    let mut manager = AdapterManager::new(clock.clone());
    manager.add("hanging", DetectionMethod::Atspi2, hanging(pit, seconds)).unwrap();
    manager.add("working", DetectionMethod::Wine, scripted([])).unwrap();
    (clock, manager)
}

/// One second of virtual time: the working adapter answers whatever the other does. Gives the number of threads.
fn second(clock: &StillClock, manager: &mut AdapterManager, pit: &Pit, base: usize) -> usize {
    clock.advance(SECOND);
    pit.advance();
    settle(manager, "working");
    assert_eq!(row(manager, "working").state, AdapterState::Ready);
    let generation = usize::try_from(row(manager, "hanging").generation).unwrap();
    // Each instance is asked as soon as it is there, and hangs.
    while pit.inside.load(Ordering::SeqCst) < generation {
        std::thread::yield_now();
    }
    let own = 1 + pit.should_hang();
    let idle = usize::from(row(manager, "hanging").retry_at_us.is_none() && pit.should_hang() == 0);
    wait_for_threads(base + own + idle);
    threads() - base
}

/// One test, because the number of threads is the whole process's.
#[test]
fn a_check_of_sixty_seconds_and_one_without_end_delay_nobody_and_the_thread_count_stays_flat() {
    let base = threads();
    let pit = Arc::new(Pit::default());
    let (clock, mut manager) = start(&pit, 60);
    let mut most = 0;
    for at in 1..=SECONDS {
        most = most.max(second(&clock, &mut manager, &pit, base));
        let state = row(&manager, "hanging").state;
        assert!(matches!(state, AdapterState::Initializing | AdapterState::Failed), "{state} at {at} s");
    }
    // One working, one hanging, and one former that has not come back yet.
    assert!(most <= 3, "{most} threads");
    let tries = row(&manager, "hanging").generation;
    assert_eq!(tries, 5, "at 1, 36, 101, 226 and 471 s: each deadline and the wait after it");
    assert_eq!(manager.health(), AdapterHealth::Healthy);
    pit.let_all_out();
    manager.shutdown();
    wait_for_threads(base);

    let pit = Arc::new(Pit::default());
    let (clock, mut manager) = start(&pit, u64::MAX);
    let mut counts = Vec::new();
    for _ in 0..3 * SECONDS {
        counts.push(second(&clock, &mut manager, &pit, base));
    }
    // One working, one hanging, and as many former ones as are borne; not one more in the last twenty minutes.
    assert_eq!(counts.iter().max(), Some(&(2 + MAX_ABANDONED)));
    assert!(counts[SECONDS..].iter().all(|count| *count == 2 + MAX_ABANDONED), "{counts:?}");
    let stuck = row(&manager, "hanging");
    assert!(stuck.is_held_back && stuck.state == AdapterState::Failed, "{stuck:?}");
    assert_eq!((stuck.generation, stuck.abandoned), (4, 1 + MAX_ABANDONED));
    assert_eq!(
        &*stuck.reason,
        format!("its health check did not answer within {} s", HEALTH_DEADLINE.as_secs())
    );
    assert_eq!(manager.health(), AdapterHealth::Degraded);
    assert!(manager.next_due_us().is_some_and(|due| due > clock.monotonic_us()), "nobody spins");

    pit.let_all_out();
    wait_for_threads(base + 1);
    clock.advance(SECOND * 5);
    manager.tick();
    assert_eq!(row(&manager, "hanging").generation, 5, "one came back, so there is room for the next");
    settle(&mut manager, "hanging");
    assert_eq!(row(&manager, "hanging").state, AdapterState::Ready);
    assert_eq!(manager.health(), AdapterHealth::Healthy);
    manager.shutdown();
}
