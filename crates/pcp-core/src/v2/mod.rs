//! Protocol v2 of S3: one action on one observed element, its authority, and how it ended.
//!
//! These types *are* the format: their members, in the order of their declaration, are what stands in JSON. Every
//! object refuses a member it does not know and a member that comes twice; an absent `Option` is written as null.
//! They share words with the intents of S0 ([`crate::Intent`]) and nothing else: here a target is always an element of
//! one observation, and a host signs for each operation. Nothing here verifies a signature (`pcp-trust` does) or acts
//! (`pcp-execution` does). Start with [`ActionRequest::parse`] and [`ValidRequest`].

mod acknowledgement;
mod action;
mod authority;
mod canonical;
mod capabilities;
mod claim;
mod identifier;
mod invalid;
mod observation;
mod read;
mod receipt;
mod request;
mod target;
mod time;
mod validate;
mod verification;
mod wire;

pub use acknowledgement::{
    AckState, ActionAck, ExecuteReport, FailureCode, MAX_ACK_BYTES, SEQUENCE_ACCEPTED, SEQUENCE_EXECUTING,
    SEQUENCE_TERMINAL, Terminal,
};
pub use action::{
    Action, ActionName, MAX_AMOUNT, MAX_CLICKS, MAX_DELAY_MS, MAX_HOTKEY_KEYS, MAX_KEY_BYTES, MAX_PRESSES,
    MAX_TEXT_BYTES, MouseButton, ScrollDirection,
};
pub use authority::{
    AuthorityDenied, AuthorityGrant, AuthorityVerifier, Authorized, Binding, DenialReason, SIGNATURE_DIGITS,
    SignedAuthority,
};
pub use canonical::{canonical_bytes, canonical_hash};
pub use capabilities::{ActionCapability, Capabilities, CapabilitiesFault};
pub use claim::{ClaimRecord, Door, KeptOperation};
pub use identifier::{MAX_IDENTIFIER_BYTES, Sha256Hash, is_identifier};
pub use invalid::InvalidRequest;
pub use observation::{
    Actionability, Bounds, InvalidObservation, MAX_ELEMENTS, MAX_OBSERVATION_BYTES, MAX_OBSERVATION_MS,
    NotActionable, ObservationBackend, SemanticElement, SemanticObservation, SemanticProvenance,
    SurfaceDescriptor, SurfaceRef,
};
pub use read::{Fault, ReadError, read};
pub use receipt::{
    BackgroundSupport, ContextPreservation, DeliveryRoute, Evidence, InteractionMode, Receipt,
    SessionIsolation,
};
pub use request::{ActionRequest, MAX_REQUEST_BYTES, ValidRequest};
pub use target::{SemanticTargetRef, TargetRef};
pub use time::{Deadline, SteadyTime};
pub use verification::{MAX_EXPECTED_BYTES, MAX_EXPECTED_DEPTH, MAX_EXPECTED_NODES, VerificationPolicy};
pub use wire::Wire;

pub use crate::action::SafetyClass;
pub use crate::outcome::Effect;

/// The one value of the four version members of a request.
pub const PROTOCOL_VERSION: u16 = 2;
