//! How it shall be shown that an action had its effect, and how large an expectation may be.

use core::fmt;
use std::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::{Action, REDACTED};
use super::identifier::{Sha256Hash, check_hash};
use super::invalid::InvalidRequest;
use super::read::strict_value;

/// Most values in an expected state, the containers among them.
pub const MAX_EXPECTED_NODES: usize = 4_096;
/// Most arrays and objects inside each other.
pub const MAX_EXPECTED_DEPTH: usize = 32;
/// Most bytes of names, strings and numbers together.
pub const MAX_EXPECTED_BYTES: usize = 65_536;

/// What proves the effect. Its `Debug` keeps expectations to itself: they say what a person typed.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum VerificationPolicy {
    /// Nothing is asked; the effect is never called verified.
    None {},
    /// Something about the window changed. That proves no particular effect.
    SnapshotChanged {},
    /// The element's state is exactly this.
    TargetState {
        /// The state.
        #[serde(deserialize_with = "strict_value")]
        expected: Value,
    },
    /// The element's value has this SHA-256.
    TargetValueHash {
        /// 64 lower-case hexadecimal digits.
        sha256: String,
    },
}

impl VerificationPolicy {
    /// The word of its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::None {} => "none",
            Self::SnapshotChanged {} => "snapshot_changed",
            Self::TargetState { .. } => "target_state",
            Self::TargetValueHash { .. } => "target_value_hash",
        }
    }

    pub(super) fn validate(&self) -> Result<(), InvalidRequest> {
        match self {
            Self::None {} | Self::SnapshotChanged {} => Ok(()),
            Self::TargetState { expected } => Room::new().take(expected, 0),
            Self::TargetValueHash { sha256 } => check_hash("verification.sha256", sha256),
        }
    }

    /// Setting a value and asking for its hash go together, and the hash is that of the value.
    pub(super) fn fits(&self, action: &Action) -> Result<(), InvalidRequest> {
        match (action, self) {
            (Action::SetValue { value }, Self::TargetValueHash { sha256 }) => {
                let differs = Sha256Hash::parse(sha256) != Some(Sha256Hash::of(value.as_bytes()));
                if differs { Err(InvalidRequest::ValueHashDiffers) } else { Ok(()) }
            }
            (Action::SetValue { .. }, _) => Err(InvalidRequest::ValueHashMissing),
            (_, Self::TargetValueHash { .. }) => {
                Err(InvalidRequest::ValueHashOfOther { action: action.name() })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for VerificationPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct(self.kind());
        match self {
            Self::None {} | Self::SnapshotChanged {} => {}
            Self::TargetState { .. } => {
                out.field("expected", &REDACTED);
            }
            Self::TargetValueHash { .. } => {
                out.field("sha256", &REDACTED);
            }
        }
        out.finish()
    }
}

/// What is left of the three limits while an expected state is walked.
struct Room {
    nodes: usize,
    bytes: usize,
}

impl Room {
    const fn new() -> Self {
        Self { nodes: MAX_EXPECTED_NODES, bytes: MAX_EXPECTED_BYTES }
    }

    /// `depth` is how many arrays and objects are around `value`. Stops at the limit, so that it never goes deeper.
    fn take(&mut self, value: &Value, depth: usize) -> Result<(), InvalidRequest> {
        let too_large = |unit, limit| InvalidRequest::ExpectedTooLarge { unit, limit };
        self.nodes = self.nodes.checked_sub(1).ok_or(too_large("values", MAX_EXPECTED_NODES))?;
        let container = value.is_array() || value.is_object();
        if container && depth == MAX_EXPECTED_DEPTH {
            return Err(too_large("levels", MAX_EXPECTED_DEPTH));
        }
        match value {
            Value::Null | Value::Bool(_) => Ok(()),
            Value::Number(number) => self.take_bytes(std::string::ToString::to_string(number).len()),
            Value::String(text) => self.take_bytes(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.take(item, depth + 1)),
            Value::Object(members) => members.iter().try_for_each(|(name, member)| {
                self.take_bytes(name.len())?;
                self.take(member, depth + 1)
            }),
        }
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<(), InvalidRequest> {
        let error = InvalidRequest::ExpectedTooLarge { unit: "bytes", limit: MAX_EXPECTED_BYTES };
        self.bytes = self.bytes.checked_sub(bytes).ok_or(error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(expected: Value) -> Result<(), InvalidRequest> {
        VerificationPolicy::TargetState { expected }.validate()
    }

    fn nested(levels: usize, leaf: Value) -> Value {
        (0..levels).fold(leaf, |inner, _| json!([inner]))
    }

    #[test]
    fn an_expected_state_is_bounded_in_values_levels_and_bytes() {
        let error = |unit, limit| Err(InvalidRequest::ExpectedTooLarge { unit, limit });
        let half = "x".repeat(MAX_EXPECTED_BYTES / 2);
        let table = [
            (json!(vec![Value::Null; MAX_EXPECTED_NODES - 1]), Ok(())),
            (json!(vec![Value::Null; MAX_EXPECTED_NODES]), error("values", 4_096)),
            (nested(MAX_EXPECTED_DEPTH, json!(1)), Ok(())),
            (nested(MAX_EXPECTED_DEPTH + 1, json!(1)), error("levels", 32)),
            (nested(MAX_EXPECTED_DEPTH + 1, json!({})), error("levels", 32)),
            (json!("x".repeat(MAX_EXPECTED_BYTES)), Ok(())),
            (json!("x".repeat(MAX_EXPECTED_BYTES + 1)), error("bytes", 65_536)),
            (json!({ half.clone(): half.clone() }), Ok(())),
            (json!({ half.clone(): half.clone(), "": 1 }), error("bytes", 65_536)),
            (json!([half.clone(), half.clone(), null, true, ""]), Ok(())),
            (json!([half.clone(), half, 0]), error("bytes", 65_536)),
        ];
        for (at, (expected, result)) in table.into_iter().enumerate() {
            assert_eq!(check(expected), result, "row {at}");
        }
    }
}
