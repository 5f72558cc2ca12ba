//! The machine's clocks and entropy behind the seams of core.

use std::time::{SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};
use pcp_core::Clock;

/// `CLOCK_BOOTTIME` for durations, so that suspend counts, and the wall clock for records.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn monotonic_us(&self) -> u64 {
        // The call cannot fail for a clock that every supported kernel has; 0 would only shorten durations.
        clock_gettime(ClockId::CLOCK_BOOTTIME).map_or(0, |now| {
            let seconds = u64::try_from(now.tv_sec()).unwrap_or(0);
            let micros = u64::try_from(now.tv_nsec()).unwrap_or(0) / 1_000;
            seconds * 1_000_000 + micros
        })
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monotonic_clock_does_not_go_back_and_the_wall_clock_is_this_century() {
        let before = SystemClock.monotonic_us();
        assert!(SystemClock.monotonic_us() >= before && before > 0);
        assert!(SystemClock.wall_ms() > 1_577_836_800_000);
    }
}
