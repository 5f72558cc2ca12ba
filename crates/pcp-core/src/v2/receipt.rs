//! What is left of an execution: how it travelled, what was seen before and after. Hashes and names, no content.

use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};

use super::identifier::Sha256Hash;
use crate::outcome::Effect;
use crate::words::words;

words! {
    /// Whether the person's own foreground, focus and pointer may change.
    InteractionMode: "interaction mode" {
        /// They may.
        Interactive = "interactive",
        /// They may not.
        BackgroundOnly = "background_only",
        /// An old claim that does not say; no request.
        Unknown = "unknown",
    }
}

words! {
    /// Whose desktop the executor acts on. Configured by whoever built it, never asked for.
    SessionIsolation: "session isolation" {
        /// The person's own.
        SharedDesktop = "shared_desktop",
        /// One of the host's, where nobody works.
        HostIsolated = "host_isolated",
        /// Not known; nothing is executed.
        Unknown = "unknown",
    }
}

words! {
    /// How an action reaches its element.
    DeliveryRoute: "delivery route" {
        /// Addressed to the element.
        TargetAddressed = "target_addressed",
        /// By the pointer or the keyboard, to whatever is there.
        Pointer = "pointer",
        /// An old claim that does not say.
        Unknown = "unknown",
    }
}

words! {
    /// Whether an action can run while the person works on.
    BackgroundSupport: "background support" {
        /// On a shared desktop too, with its context compared before and after.
        Guarded = "guarded",
        /// Only where nobody works.
        HostIsolatedOnly = "host_isolated_only",
        /// No.
        Unavailable = "unavailable",
    }
}

words! {
    /// What is known of the person's foreground, focus and pointer.
    ContextPreservation: "context preservation" {
        /// Nobody asked for it.
        NotApplicable = "not_applicable",
        /// Equal at two moments; nothing is claimed of the time between.
        UnchangedAtBoundaries = "unchanged_at_boundaries",
        /// They changed.
        Changed = "changed",
        /// They could not be read.
        Unavailable = "unavailable",
        /// Nobody works there.
        HostIsolated = "host_isolated",
    }
}

/// What was executed, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// 2.
    pub protocol_version: u16,
    /// The kind of action.
    pub action_name: String,
    /// The request, by its hash.
    pub action_hash: Sha256Hash,
    /// When it began, in Unix milliseconds.
    pub started_at_ms: i64,
    /// When it ended, in Unix milliseconds.
    pub finished_at_ms: i64,
    /// Who acted.
    pub backend: String,
    /// What was tried before it.
    pub fallback_chain: Vec<String>,
    /// How it travelled.
    pub delivery_route: DeliveryRoute,
    /// Whose desktop it was.
    pub session_isolation: SessionIsolation,
    /// What the request asked for.
    pub interaction_mode: InteractionMode,
    /// What is known of the person's context.
    pub context_preservation: ContextPreservation,
    /// What was proven.
    pub effect: Effect,
    /// What was seen before.
    pub before: Option<Evidence>,
    /// What was seen after.
    pub after: Option<Evidence>,
    /// Fixed sentences, no content.
    pub warnings: Vec<String>,
}

/// What was seen at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// What was observed.
    pub observation_hash: Sha256Hash,
    /// What the element looked like.
    pub target_fingerprint_hash: Option<Sha256Hash>,
    /// The displays' arrangement.
    pub display_geometry_hash: Sha256Hash,
    /// When, in Unix milliseconds.
    pub observed_at_ms: i64,
}
