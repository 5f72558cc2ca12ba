//! What breaks the format in a file that is read all the same.

use std::fmt;

use thiserror::Error;

use super::key::Key;

/// Most diagnostics of one file that are kept: enough to mend it, no flood. The rest is counted.
pub const MAX_DIAGNOSTICS: usize = 16;

/// A departure from the format that does not make the file unreadable, with what was made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the sentences name")]
pub enum Fault {
    /// The file begins with U+FEFF.
    #[error("a byte-order mark stands before the first group; it was skipped")]
    ByteOrderMark,
    /// Lines end in CR LF. Said once a file.
    #[error("lines end in CR LF; the CR was dropped")]
    CarriageReturn,
    /// Neither a group, a comment nor a key.
    #[error("this is no group, comment or key=value; it was skipped")]
    NotAPair,
    /// A group header that is not closed, or has brackets in it.
    #[error("this is no group header; it was skipped")]
    BadGroup,
    /// A key with other characters than `A-Za-z0-9-`.
    #[error("the key has characters other than A-Z, a-z, 0-9 and '-'; it was skipped")]
    BadKey,
    /// A line longer than any that is meant.
    #[error("a line of {bytes} bytes exceeds the {limit}-byte limit; it was skipped")]
    LineTooLong { bytes: usize, limit: usize },
    /// A key that stands twice in the main group.
    #[error("key {0} stands twice; the last one counts")]
    Duplicate(Key),
    /// Bytes that are no UTF-8.
    #[error("the value of {0} is not UTF-8; what cannot be read was replaced")]
    NotUtf8(Key),
    /// A zero byte, which no name or argument can hold.
    #[error("the value of {0} has a zero byte; it was dropped")]
    Nul(Key),
    /// A backslash before a character that needs none.
    #[error("the value of {0} has a backslash that begins no escape; it was kept")]
    UnknownEscape(Key),
    /// Neither true nor false.
    #[error("the value of {0} is not true or false; it counts as false")]
    NotABoolean(Key),
    /// More elements than any list needs.
    #[error("the list of {key} has more than {limit} elements; the rest was dropped")]
    ListTooLong { key: Key, limit: usize },
    /// A character that has to be inside double quotes.
    #[error("the command line has {0:?} outside double quotes; it was taken as it is")]
    Reserved(char),
    /// Single quotes are no quotes in this format, though many files use them so.
    #[error("the command line quotes with single quotes; they were taken as double ones")]
    SingleQuotes,
    /// A backslash outside double quotes.
    #[error("the command line has a backslash outside double quotes; it protected the next character")]
    BareBackslash,
    /// A character that needs a backslash inside double quotes.
    #[error("the command line has {0:?} without a backslash inside double quotes; it was taken as it is")]
    Unescaped(char),
    /// A field code inside quotes, where it is undefined.
    #[error("the command line has the field code %{0} inside quotes; it was treated as outside of them")]
    QuotedCode(char),
    /// A field code that once meant something.
    #[error("the command line has the deprecated field code %{0}; it was removed")]
    DeprecatedCode(char),
    /// `%i` as a part of an argument.
    #[error("the command line has %i inside an argument; it was removed")]
    IconInside,
    /// A percent sign that begins no field code.
    #[error("the command line ends an argument with a single '%'; write %%")]
    LonePercent,
    /// An action without a usable group.
    #[error("an action that Actions names has no group with Name and a usable Exec; it was dropped")]
    ActionUndefined,
    /// More actions than any menu shows.
    #[error("Actions names more than {limit} actions; the rest was dropped")]
    TooManyActions { limit: usize },
}

/// A fault and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Diagnostic {
    /// The line, counted from one.
    pub line: u32,
    /// What is wrong there.
    pub fault: Fault,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.fault)
    }
}

/// The diagnostics of one file: the first [`MAX_DIAGNOSTICS`], and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    left_off: usize,
}

impl Diagnostics {
    pub(super) fn note(&mut self, line: u32, fault: Fault) {
        if self.kept.len() < MAX_DIAGNOSTICS {
            self.kept.push(Diagnostic { line, fault });
        } else {
            self.left_off += 1;
        }
    }

    /// Whether the file keeps to the format as far as it was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// The first ones, in the order they were found.
    #[must_use]
    pub fn kept(&self) -> &[Diagnostic] {
        &self.kept
    }

    /// How many were counted only.
    #[must_use]
    pub const fn left_off(&self) -> usize {
        self.left_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_diagnostics_of_a_file_are_bounded_and_the_rest_is_counted() {
        let mut diagnostics = Diagnostics::default();
        for line in 0..MAX_DIAGNOSTICS + 3 {
            diagnostics.note(u32::try_from(line).unwrap(), Fault::NotAPair);
        }
        assert_eq!((diagnostics.kept().len(), diagnostics.left_off()), (MAX_DIAGNOSTICS, 3));
        assert!(diagnostics.kept()[1].to_string().starts_with("line 1: this is no group"));
    }
}
