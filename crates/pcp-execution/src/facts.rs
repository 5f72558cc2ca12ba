//! What has been established of one operation so far: what its record will say, wherever it ends.

use pcp_core::id::MAX_CAPABILITY_ID_BYTES;
use pcp_core::{ActionClass, ActionHash, AuthPrincipal, Clock, Intent, Tier, Trail};
use sha2::{Digest, Sha256};

use crate::trace::Stopwatch;

type Text<const N: usize> = heapless::String<N>;

/// Longest rule pattern that stands in a record.
pub(crate) const RULE_BYTES: usize = pcp_core::glob::MAX_GLOB_BYTES;

/// Collected by the stages, read by the record.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) caller: &'a AuthPrincipal,
    pub(crate) trail: Trail,
    pub(crate) capability: Text<MAX_CAPABILITY_ID_BYTES>,
    pub(crate) target_app: &'a str,
    pub(crate) class: ActionClass,
    pub(crate) tier: Option<Tier>,
    pub(crate) verdict: &'static str,
    pub(crate) rule: Text<RULE_BYTES>,
    pub(crate) gate: &'static str,
    pub(crate) params_sha256: [u8; 32],
    pub(crate) action_hash: ActionHash,
    pub(crate) claimed: bool,
    pub(crate) is_read: bool,
    /// Nothing is registered under the id, and a read goes on all the same.
    pub(crate) fallback: bool,
    pub(crate) watch: Stopwatch<'a>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(caller: &'a AuthPrincipal, intent: &Intent<'a>, clock: &'a dyn Clock) -> Self {
        Self {
            caller,
            trail: Trail::from(intent.domain),
            capability: words_of(intent),
            target_app: cut(intent.target_app, MAX_CAPABILITY_ID_BYTES),
            class: ActionClass::Unknown,
            tier: None,
            verdict: "unchecked",
            rule: Text::new(),
            gate: "",
            params_sha256: Sha256::digest(intent.parameters.as_bytes()).into(),
            action_hash: ActionHash::from_bytes([0; 32]),
            claimed: false,
            is_read: false,
            fallback: false,
            watch: Stopwatch::start(clock),
        }
    }

    pub(crate) fn set_rule(&mut self, rule: &str) {
        self.rule.clear();
        let _ = self.rule.push_str(cut(rule, RULE_BYTES));
    }
}

/// The request's own words, for the record of a request whose words make no capability id.
fn words_of(intent: &Intent<'_>) -> Text<MAX_CAPABILITY_ID_BYTES> {
    let mut text = Text::new();
    for part in [intent.domain.as_str(), ".", intent.target_app, ".", intent.action] {
        let room = MAX_CAPABILITY_ID_BYTES - text.len();
        let _ = text.push_str(cut(part, room));
    }
    text
}

fn cut(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}
