//! How long answers took: percentiles of everything that was measured, none left out.

use std::time::Duration;

use serde::Serialize;

/// Measured times in microseconds.
#[derive(Clone, Debug, Default)]
pub struct Latencies(Vec<u32>);

/// What they come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    /// How many were measured.
    pub count: usize,
    /// Half of them were this fast.
    pub p50_us: u32,
    /// 99 of 100 were this fast.
    pub p99_us: u32,
    /// 999 of 1 000 were this fast.
    pub p999_us: u32,
    /// The slowest.
    pub max_us: u32,
}

impl Latencies {
    /// Adds one.
    pub fn note(&mut self, took: Duration) {
        self.0.push(u32::try_from(took.as_micros()).unwrap_or(u32::MAX));
    }

    /// What they come to.
    #[must_use]
    pub fn percentiles(mut self) -> Percentiles {
        self.0.sort_unstable();
        // The smallest value that this many of a thousand do not exceed.
        let at = |of_1000: usize| {
            let rank = (self.0.len() * of_1000).div_ceil(1000);
            self.0.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Percentiles {
            count: self.0.len(),
            p50_us: at(500),
            p99_us: at(990),
            p999_us: at(999),
            max_us: at(1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_value_that_was_measured() {
        let mut latencies = Latencies::default();
        (1..=200).rev().for_each(|us| latencies.note(Duration::from_micros(us)));
        let found = latencies.percentiles();
        let wanted = Percentiles { count: 200, p50_us: 100, p99_us: 198, p999_us: 200, max_us: 200 };
        assert_eq!(found, wanted);
        assert_eq!(Latencies::default().percentiles(), Percentiles::default());
    }
}
