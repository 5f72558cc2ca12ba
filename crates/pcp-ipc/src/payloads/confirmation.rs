//! ConfirmationRequest: a person has to decide. Daemon to confirmer, and what the person decided.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::payload::{Payload, Tag, wire_words};
use crate::text::Text;

/// Longest prompt id in bytes: a UUID and some room.
pub const MAX_PROMPT_ID_BYTES: usize = 64;
/// Length of an intent's hash in bytes: SHA-256 in hexadecimal.
pub const INTENT_HASH_BYTES: usize = 64;
/// Longest nonce in bytes: 32 random bytes in hexadecimal.
pub const MAX_NONCE_BYTES: usize = 64;
/// Longest text that a person is shown, in bytes: a screen, not a scroll.
pub const MAX_PROMPT_TEXT_BYTES: usize = 4096;
/// Choices of one prompt: more is no question that a person answers.
pub const MAX_CHOICES: usize = 16;
/// Longest choice in bytes: one line.
pub const MAX_CHOICE_BYTES: usize = 256;

wire_words! {
    /// What a person is asked.
    PromptKind {
        /// Whether it shall happen.
        Confirm = "confirm",
        /// Which of several is meant.
        Choice = "choice",
    }
}

wire_words! {
    /// What a person decided.
    Decision {
        /// It shall happen.
        Confirm = "confirm",
        /// It shall not.
        Refuse = "refuse",
    }
}

/// The content of a ConfirmationRequest. The token itself stays with the daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmationRequest<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ConfirmationRequest.discriminant() }>,
    /// Which prompt.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_PROMPT_ID_BYTES>")]
    pub prompt_id: Text<'a>,
    /// What is asked.
    pub kind: PromptKind,
    /// What would happen, as the hash that a decision is bound to.
    #[serde(borrow, deserialize_with = "bounded::text::<_, INTENT_HASH_BYTES>")]
    pub intent_hash: Text<'a>,
    /// Comes back with the decision.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_NONCE_BYTES>")]
    pub nonce: Text<'a>,
    /// What the person reads; made by the daemon, never by the requester.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_PROMPT_TEXT_BYTES>")]
    pub text: Text<'a>,
    /// What there is to choose from.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::texts::<_, MAX_CHOICES, MAX_CHOICE_BYTES>"
    )]
    pub choices: Vec<Text<'a>>,
    /// Unix milliseconds after which it is void.
    pub expires_ms: u64,
}

impl Payload for ConfirmationRequest<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ConfirmationRequest;
}

/// The content of a ConfirmationResponse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfirmationResponse<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::ConfirmationResponse.discriminant() }>,
    /// Which prompt.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_PROMPT_ID_BYTES>")]
    pub prompt_id: Text<'a>,
    /// The hash that the request carried.
    #[serde(borrow, deserialize_with = "bounded::text::<_, INTENT_HASH_BYTES>")]
    pub intent_hash: Text<'a>,
    /// The nonce that the request carried.
    #[serde(borrow, deserialize_with = "bounded::text::<_, MAX_NONCE_BYTES>")]
    pub nonce: Text<'a>,
    /// What the person decided.
    pub decision: Decision,
    /// Which choice, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<u32>,
}

impl Payload for ConfirmationResponse<'_> {
    const TYPE: StreamMessageType = StreamMessageType::ConfirmationResponse;
}
