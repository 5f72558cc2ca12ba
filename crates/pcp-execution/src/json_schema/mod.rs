//! JSON Schema, draft 2020-12, for the parameters of a capability.
//!
//! [`JsonSchema::compile`] refuses what it does not implement, by JSON pointer: an unknown keyword, a malformed
//! value, a `$ref` that leaves the document, a pattern that cannot be matched in linear time. So a schema that
//! compiles is enforced whole. [`JsonSchema::validate`] names the first value that does not fit and never repeats
//! it. Both are bounded, because schemas and parameters come from applications (TH-05).
//!
//! Annotations constrain nothing: `title`, `description`, `default`, `examples`, `deprecated`, `readOnly`,
//! `writeOnly`, `$comment`, `format`, `contentMediaType`, `contentEncoding`, `x-*`, and `$id` and `$schema` at the
//! root. `format` is one of them by the draft's own default; a schema that needs the check says it as a `pattern`.
//!
//! Stricter than the draft, because it ignores these and a schema here has no dead letters: `then` or `else` without
//! `if`, `if` alone, and `minContains` or `maxContains` without `contains` are refused.

mod budget;
mod compile;
mod ecma;
mod equality;
mod keywords;
mod node;
mod number;
mod pattern;
mod place;
mod references;
mod validate;

#[cfg(test)]
mod cases;

use std::fmt;

use serde_json::Value;

pub use budget::{MAX_APPLIED_DEPTH, MAX_STEPS};
pub use compile::{MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS};
pub use pattern::{MAX_PATTERN_BYTES, MAX_PATTERNS_BYTES};
pub use references::MAX_IN_PLACE_DEPTH;

/// A compiled schema: shared between threads, read only, a few bytes for each keyword.
#[derive(Debug)]
pub struct JsonSchema {
    arena: node::Arena,
}

impl JsonSchema {
    /// Compiles `schema`, or says what of it is not enforced here.
    ///
    /// # Errors
    /// [`SchemaError`] points to the keyword that is unknown, malformed or over a limit.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        Ok(Self { arena: compile::compile(schema)? })
    }

    /// Checks `instance`; what cannot be checked within [`MAX_STEPS`] does not fit.
    ///
    /// # Errors
    /// [`Violation`] points to the first value that does not fit, without repeating it.
    pub fn validate(&self, instance: &Value) -> Result<(), Violation> {
        validate::validate(&self.arena, instance)
    }
}

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// JSON pointer (RFC 6901) into the schema; empty for its root.
    pub pointer: String,
    /// What is wrong there, and the limit if there is one.
    pub message: String,
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.pointer.is_empty() { "" } else { " " };
        write!(f, "schema{space}{}: {}", self.pointer, self.message)
    }
}

impl std::error::Error for SchemaError {}

/// Why a value does not fit its schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer (RFC 6901) into the instance; empty for the whole of it.
    pub pointer: String,
    /// The rule and its limit; never a value of the instance, which may be a secret.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.pointer.is_empty() { "" } else { " " };
        write!(f, "value{space}{}: {}", self.pointer, self.message)
    }
}

impl std::error::Error for Violation {}

/// Appends one reference token, escaped as RFC 6901 says.
fn push_token(pointer: &mut String, token: &str) {
    pointer.push('/');
    for char in token.chars() {
        match char {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            char => pointer.push(char),
        }
    }
}
