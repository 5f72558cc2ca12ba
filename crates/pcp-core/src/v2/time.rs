//! Time that only goes forward: a step of the wall clock extends nothing and revives nothing (TH-13).

use core::sync::atomic::{AtomicI64, Ordering};

use crate::ports::Clock;

/// What time it is, for expiries that are written as wall time. Between two looks it runs with the monotonic clock; a
/// wall clock that was set forward is believed, one that was set back is not.
#[derive(Debug)]
pub struct SteadyTime {
    /// Wall time less monotonic time in milliseconds, the greatest ever seen.
    offset_ms: AtomicI64,
}

impl Default for SteadyTime {
    fn default() -> Self {
        Self { offset_ms: AtomicI64::new(i64::MIN) }
    }
}

impl SteadyTime {
    /// Begins at `high_water_ms`, the latest time that an earlier run has seen, where one is known.
    #[must_use]
    pub fn since(high_water_ms: i64, clock: &dyn Clock) -> Self {
        Self { offset_ms: AtomicI64::new(high_water_ms.saturating_sub(monotonic_ms(clock))) }
    }

    /// Now, in Unix milliseconds. Never less than an earlier answer.
    pub fn now_ms(&self, clock: &dyn Clock) -> i64 {
        let monotonic = monotonic_ms(clock);
        let wall = i64::try_from(clock.wall_ms()).unwrap_or(i64::MAX);
        let seen = wall.saturating_sub(monotonic);
        let offset = self.offset_ms.fetch_max(seen, Ordering::AcqRel).max(seen);
        monotonic.saturating_add(offset)
    }

    /// The moment of the monotonic clock at which `at_ms` is reached; fixed from now on, whatever the wall clock does.
    pub fn deadline(&self, at_ms: i64, clock: &dyn Clock) -> Deadline {
        let now_us = clock.monotonic_us();
        let left_ms = u64::try_from(at_ms.saturating_sub(self.now_ms(clock))).unwrap_or(0);
        Deadline { at_us: now_us.saturating_add(left_ms.saturating_mul(1_000)) }
    }
}

fn monotonic_ms(clock: &dyn Clock) -> i64 {
    i64::try_from(clock.monotonic_us() / 1_000).unwrap_or(i64::MAX)
}

/// A moment of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    at_us: u64,
}

impl Deadline {
    /// What is left, in microseconds; 0 when it is over.
    #[must_use]
    pub fn left_us(self, clock: &dyn Clock) -> u64 {
        self.at_us.saturating_sub(clock.monotonic_us())
    }

    /// Whether it is over.
    #[must_use]
    pub fn is_over(self, clock: &dyn Clock) -> bool {
        self.left_us(clock) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    const YEAR_MS: u64 = 365 * 24 * 3_600_000;

    struct Hands {
        monotonic_us: AtomicU64,
        wall_ms: AtomicU64,
    }

    impl Hands {
        fn at(wall_ms: u64) -> Self {
            Self { monotonic_us: AtomicU64::new(5_000_000), wall_ms: AtomicU64::new(wall_ms) }
        }
        fn pass(&self, ms: u64) {
            self.monotonic_us.fetch_add(ms * 1_000, Ordering::Relaxed);
            self.wall_ms.fetch_add(ms, Ordering::Relaxed);
        }
        fn set_wall(&self, ms: u64) {
            self.wall_ms.store(ms, Ordering::Relaxed);
        }
    }

    impl Clock for Hands {
        fn monotonic_us(&self) -> u64 {
            self.monotonic_us.load(Ordering::Relaxed)
        }
        fn wall_ms(&self) -> u64 {
            self.wall_ms.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_wall_clock_set_back_extends_nothing_and_revives_nothing() {
        let now = 50 * YEAR_MS;
        let clock = Hands::at(now);
        let time = SteadyTime::default();
        let expiry = i64::try_from(now + 1_000).unwrap();
        let deadline = time.deadline(expiry, &clock);

        for back in [0, now - 10 * YEAR_MS, now - 1] {
            clock.set_wall(back);
            assert_eq!(time.now_ms(&clock), i64::try_from(now).unwrap());
            assert_eq!(deadline.left_us(&clock), 1_000_000);
            assert_eq!(time.deadline(expiry, &clock), deadline);
        }
        clock.pass(1_000);

        assert!(deadline.is_over(&clock));
        assert!(time.deadline(expiry, &clock).is_over(&clock));
        assert_eq!(time.now_ms(&clock), expiry);
    }

    #[test]
    fn a_wall_clock_set_forward_is_believed_and_shortens_no_deadline_that_runs() {
        let clock = Hands::at(0);
        let time = SteadyTime::default();
        let running = time.deadline(60_000, &clock);
        clock.set_wall(50 * YEAR_MS);

        assert!(time.deadline(60_000, &clock).is_over(&clock), "a new one is over");
        assert_eq!(running.left_us(&clock), 60_000_000, "the running one goes on");
    }

    #[test]
    fn what_an_earlier_run_has_seen_counts_from_the_start() {
        let clock = Hands::at(1_000);
        let time = SteadyTime::since(90_000, &clock);
        assert_eq!(time.now_ms(&clock), 90_000);
        clock.pass(5);
        assert_eq!(time.now_ms(&clock), 90_005);
    }

    #[test]
    fn the_ends_of_the_integers_are_times_like_others() {
        for wall_ms in [0, u64::MAX / 2, u64::MAX] {
            let clock = Hands::at(wall_ms);
            assert!(SteadyTime::default().deadline(i64::MIN, &clock).is_over(&clock), "{wall_ms}");
        }
        let clock = Hands::at(1);
        assert!(!SteadyTime::default().deadline(i64::MAX, &clock).is_over(&clock));
    }
}
