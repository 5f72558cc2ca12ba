//! One pattern: matched in linear time, weighed before it is kept.

use regex_lite::{Regex, RegexBuilder};

use super::budget::{Budget, Stop};
use super::ecma;

/// Most memory of one compiled pattern: a class of five ranges repeated a thousand times. Long texts have `maxLength`.
pub const MAX_PATTERN_BYTES: usize = 128 * 1024;
/// Most memory of all patterns of one schema: the daemon keeps hundreds of schemas.
pub const MAX_PATTERNS_BYTES: usize = 256 * 1024;
/// Bytes of text per KiB of pattern that are one step: matching costs one times the other. The slowest pattern
/// measured, a thousand optional letters, then spends all steps in a quarter of a second.
const BYTES_PER_STEP: usize = 4;
/// A pattern that is worth repeating in a message.
const SHOWN_BYTES: usize = 64;

#[derive(Debug)]
pub(super) struct Pattern {
    regex: Regex,
    source: Box<str>,
    kib: usize,
}

impl Pattern {
    /// Compiles `source`, an unanchored pattern of ECMA-262.
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        let text = ecma::translate(source)?;
        let build = |bytes| RegexBuilder::new(&text).size_limit(bytes).build();
        let regex = build(MAX_PATTERN_BYTES).map_err(|error| {
            format!("{error} (limit {MAX_PATTERN_BYTES} bytes, no look-around, no references)")
        })?;
        // The engine does not tell its size, but it tells when a limit is too small.
        let mut kib = 1;
        while kib * 1024 < MAX_PATTERN_BYTES && build(kib * 1024).is_err() {
            kib *= 2;
        }
        Ok(Self { regex, source: source.into(), kib })
    }

    pub(super) fn bytes(&self) -> usize {
        self.kib * 1024
    }

    pub(super) fn matches(&self, text: &str, budget: &mut Budget) -> Result<bool, Stop> {
        budget.spend(1 + text.len().saturating_mul(self.kib) / BYTES_PER_STEP)?;
        Ok(self.regex.is_match(text))
    }

    /// The pattern for a message, if it is short and plain.
    pub(super) fn shown(&self) -> Option<&str> {
        let plain = self.source.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
        (plain && self.source.len() <= SHOWN_BYTES).then_some(&self.source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_pattern_is_limited() {
        assert!(Pattern::compile("^a{1000}$").is_ok());
        for pattern in ["a{100000}", "((a{1000}){1000}){1000}", "(?:){4000000000}", r"[^\s\S]{4000000000}"] {
            let error = Pattern::compile(pattern).unwrap_err();
            assert!(error.contains("131072 bytes"), "{pattern}: {error}");
        }
    }

    #[test]
    fn what_needs_backtracking_is_refused_with_the_reason() {
        for pattern in ["(?=a)", "(?!a)", "(?<=a)b", r"(a)\1", "(", "[b-a]", r"\p{L}", "*"] {
            assert!(!Pattern::compile(pattern).unwrap_err().is_empty(), "{pattern}");
        }
    }

    #[test]
    fn a_costly_match_ends_the_budget_before_it_begins() {
        let pattern = Pattern::compile("(a?){500}b").unwrap();
        assert!(pattern.matches("ab", &mut Budget::default()).unwrap());
        let refused = pattern.matches(&"a".repeat(1 << 20), &mut Budget::default());
        assert!(matches!(refused, Err(Stop::TooCostly)));
    }
}
