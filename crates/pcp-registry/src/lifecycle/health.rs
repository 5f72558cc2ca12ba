//! When an adapter is asked how it is, how long it may take, and when a failed one is tried again.

use std::time::Duration;

/// Between two health checks of one adapter: the documents' interval.
pub const HEALTH_INTERVAL: Duration = Duration::from_secs(5);
/// Longest wait for an answer: one interval, so that no two checks of an adapter are under way.
pub const HEALTH_DEADLINE: Duration = Duration::from_secs(5);
/// Until a failed adapter is tried again for the first time (C30): a bus that comes with the login is there by then.
pub const RETRY_FIRST: Duration = Duration::from_secs(30);
/// Longest time between two tries (C30): what is not there after an hour is looked for six times in the next.
pub const RETRY_LONGEST: Duration = Duration::from_secs(600);

/// How long to wait before the next try: twice as long each time, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Backoff(Duration);

impl Default for Backoff {
    fn default() -> Self {
        Self(RETRY_FIRST)
    }
}

impl Backoff {
    /// The wait before the next try; the one after it is longer.
    pub(crate) fn advance(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(RETRY_LONGEST);
        wait
    }
}

/// A duration as the clock counts it.
pub(crate) fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_from_half_a_minute_to_ten_minutes() {
        let mut backoff = Backoff::default();
        let waits: Vec<u64> = (0..7).map(|_| backoff.advance().as_secs()).collect();
        assert_eq!(waits, [30, 60, 120, 240, 480, 600, 600]);
    }
}
