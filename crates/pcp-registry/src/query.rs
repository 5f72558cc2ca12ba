//! Which capabilities fit a filter, in one pass over the rows or over those of the applications that fit.

use std::ops::Range;
use std::sync::Arc;

use pcp_core::glob::spans;
use pcp_core::{CapabilityDescriptor, CapabilityId, RegistryFilter};

use crate::snapshot::{Owner, Row, Snapshot};

/// Applications that hold less than this share of the rows are asked for their own rows, and those sorted; above it a
/// scan of all rows is less work than the sorting.
const SCAN_SHARE: usize = 8;

/// A glob over application ids, taken apart once per query. A star spans dots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AppPattern<'a> {
    /// No star: one application.
    Exact(&'a str),
    /// Stars at the end alone: the applications of a prefix, which stand side by side.
    Prefix(&'a str),
    /// Anything else: judged once per application that has the literal beginning.
    Glob { prefix: &'a str, pattern: &'a str },
}

impl<'a> AppPattern<'a> {
    fn compile(pattern: &'a str) -> Self {
        match pattern.split_once('*') {
            None => Self::Exact(pattern),
            Some((prefix, rest)) if rest.bytes().all(|byte| byte == b'*') => Self::Prefix(prefix),
            Some((prefix, _)) => Self::Glob { prefix, pattern },
        }
    }
}

/// The applications that a pattern chose.
#[derive(Debug)]
struct Chosen {
    range: Range<usize>,
    /// Of the range, which ones; absent when all.
    fits: Option<Box<[bool]>>,
    /// How many rows they have.
    rows: usize,
}

impl Chosen {
    fn of(owners: &[Owner], pattern: AppPattern<'_>) -> Self {
        let (range, fits) = match pattern {
            AppPattern::Exact(id) => match owners.binary_search_by(|owner| owner.id.as_str().cmp(id)) {
                Ok(at) => (at..at + 1, None),
                Err(at) => (at..at, None),
            },
            AppPattern::Prefix(prefix) => (with_prefix(owners, prefix), None),
            AppPattern::Glob { prefix, pattern } => {
                let range = with_prefix(owners, prefix);
                let judged = owners.get(range.clone()).unwrap_or_default();
                let fits = judged.iter().map(|owner| spans(pattern, owner.id.as_str())).collect();
                (range, Some(fits))
            }
        };
        let mut chosen = Self { range, fits, rows: 0 };
        chosen.rows = chosen.owners(owners).map(|owner| owner.count as usize).sum();
        chosen
    }

    #[inline]
    fn holds(&self, owner: u32) -> bool {
        let at = (owner as usize).wrapping_sub(self.range.start);
        match &self.fits {
            None => at < self.range.len(),
            Some(fits) => fits.get(at).is_some_and(|fits| *fits),
        }
    }

    fn owners<'a>(&'a self, owners: &'a [Owner]) -> impl Iterator<Item = &'a Owner> {
        let fits = |at: usize| self.fits.as_ref().is_none_or(|fits| fits.get(at).is_some_and(|fits| *fits));
        let range = owners.get(self.range.clone()).unwrap_or_default();
        range.iter().enumerate().filter(move |(at, _)| fits(*at)).map(|(_, owner)| owner)
    }
}

/// The owners whose id begins with `prefix`, by two binary searches.
fn with_prefix(owners: &[Owner], prefix: &str) -> Range<usize> {
    let from = owners.partition_point(|owner| owner.id.as_str() < prefix);
    let rest = owners.get(from..).unwrap_or_default();
    from..from + rest.partition_point(|owner| owner.id.as_str().starts_with(prefix))
}

impl Snapshot {
    /// Up to `limit` capabilities after `after` that fit, sorted by id.
    #[must_use]
    pub fn page(
        &self,
        filter: &RegistryFilter<'_>,
        after: Option<&CapabilityId>,
        limit: usize,
    ) -> Vec<Arc<CapabilityDescriptor>> {
        let from = after.map_or(0, |after| self.rows.partition_point(|row| row.capability.id <= *after));
        let rows = self.rows.get(from..).unwrap_or_default();
        let fits = |row: &&Row| {
            filter.domain.is_none_or(|domain| domain == row.domain)
                && filter.method.is_none_or(|method| method == row.method)
        };
        let chosen = filter.app.map(|pattern| Chosen::of(&self.owners, AppPattern::compile(pattern)));
        match chosen {
            None => take(rows.iter().filter(fits), limit),
            Some(chosen) if chosen.rows * SCAN_SHARE < rows.len() => {
                let numbers = self.numbers_after(&chosen, from);
                take(numbers.iter().filter_map(|number| self.row(*number)).filter(fits), limit)
            }
            Some(chosen) => take(rows.iter().filter(|row| chosen.holds(row.owner)).filter(fits), limit),
        }
    }

    /// The numbers, not before `from`, of the rows that the chosen applications have, ascending.
    fn numbers_after(&self, chosen: &Chosen, from: usize) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(chosen.rows);
        for owner in chosen.owners(&self.owners) {
            let own = self.numbers_of(Some(owner));
            numbers.extend_from_slice(
                own.get(own.partition_point(|number| (*number as usize) < from)..).unwrap_or_default(),
            );
        }
        if !numbers.is_sorted() {
            numbers.sort_unstable();
        }
        numbers
    }
}

fn take<'a>(rows: impl Iterator<Item = &'a Row>, limit: usize) -> Vec<Arc<CapabilityDescriptor>> {
    rows.take(limit).map(|row| row.capability.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_taken_apart_into_the_cheapest_question() {
        let table = [
            ("org.x.a", AppPattern::Exact("org.x.a")),
            ("", AppPattern::Exact("")),
            ("*", AppPattern::Prefix("")),
            ("org.*", AppPattern::Prefix("org.")),
            ("org.**", AppPattern::Prefix("org.")),
            ("org.*.a", AppPattern::Glob { prefix: "org.", pattern: "org.*.a" }),
            ("*.a", AppPattern::Glob { prefix: "", pattern: "*.a" }),
        ];
        for (text, want) in table {
            assert_eq!(AppPattern::compile(text), want, "{text:?}");
        }
    }
}
