//! Why a request is invalid: the member, its size, the limit. Never its text.

use thiserror::Error;

use super::PROTOCOL_VERSION;
use super::action::ActionName;
use super::identifier::MAX_IDENTIFIER_BYTES;
use super::read::ReadError;

/// The rule that a request breaks. Nothing was done, nothing was written, no authority was used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidRequest {
    /// It is not the protocol's JSON.
    #[error("request {0}")]
    Unreadable(#[from] ReadError),
    /// Another version than this one.
    #[error("{field} is {value}, not {PROTOCOL_VERSION}")]
    Version {
        /// The member.
        field: &'static str,
        /// Its value.
        value: u16,
    },
    /// The word that only old receipts use.
    #[error("interaction_mode unknown is no request: say interactive or background_only")]
    InteractionMode,
    /// An identifier that is empty or too long.
    #[error("{field} of {bytes} bytes is outside 1 to {MAX_IDENTIFIER_BYTES} bytes")]
    IdentifierLength {
        /// The member.
        field: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// An identifier with a byte that none may have.
    #[error("{field} has a byte at {at} that is none of A-Z a-z 0-9 - _ :")]
    IdentifierCharacter {
        /// The member.
        field: &'static str,
        /// Where.
        at: usize,
    },
    /// A target that is no observed element.
    #[error("target {kind} is no element of an observation: observe, and take the target of a tag")]
    Target {
        /// Its kind.
        kind: &'static str,
    },
    /// A size or count outside its bounds.
    #[error("{field} is {value} {unit}, outside {least} to {most}")]
    Bound {
        /// The member.
        field: &'static str,
        /// Its size.
        value: u64,
        /// What is counted.
        unit: &'static str,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// An expected state that is too large.
    #[error("verification.expected has more than {limit} {unit}")]
    ExpectedTooLarge {
        /// Values, levels or bytes.
        unit: &'static str,
        /// The limit.
        limit: usize,
    },
    /// A value is set and its hash is not asked for.
    #[error("set_value needs the verification target_value_hash")]
    ValueHashMissing,
    /// The hash is not that of the value.
    #[error("verification.sha256 is not the SHA-256 of action.value")]
    ValueHashDiffers,
    /// A value hash is asked of an action that sets none.
    #[error("the verification target_value_hash belongs to set_value, not to {action}")]
    ValueHashOfOther {
        /// The action.
        action: ActionName,
    },
    /// A deadline that is no time.
    #[error("deadline_at_ms is {value}, not a positive time in Unix milliseconds")]
    Deadline {
        /// Its value.
        value: i64,
    },
    /// A signature of another form.
    #[error("authority.signature of {characters} characters is not 128 hexadecimal digits")]
    SignatureForm {
        /// Its length.
        characters: usize,
    },
    /// A hash of another form.
    #[error("{field} of {characters} characters is not 64 lower-case hexadecimal digits")]
    Hash {
        /// The member.
        field: &'static str,
        /// Its length.
        characters: usize,
    },
    /// A generation of zero.
    #[error("target.target.generation is 0, and generations begin with 1")]
    Generation,
}
