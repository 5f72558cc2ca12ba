//! Nouns and laws of the Portal Capability Protocol.
//!
//! What things are called ([`Domain`], [`CapabilityId`], [`Intent`], [`ActionClass`]) and what is allowed,
//! computed from arguments alone. It performs no I/O, reads no clock, spawns nothing and needs no async
//! runtime; the floors above do. Start with [`Intent`], then [`IntentClassifier`] and [`PermissionEngine`];
//! protocol v2 of S3 has its own nouns in [`v2`].

mod id_text;
mod words;

pub mod action;
pub mod adapter;
pub mod audit;
pub mod capability;
pub mod diff;
pub mod domain;
pub mod error;
pub mod event;
pub mod gate;
pub mod glob;
pub mod id;
pub mod intent;
pub mod manifest;
pub mod outcome;
pub mod overflow;
pub mod permission;
pub mod ports;
pub mod principal;
pub mod server;
pub mod v2;

pub use action::{ActionClass, Classification, IntentClassifier, SafetyClass, Severity};
pub use adapter::{Adapter, AdapterHealth, AdapterState, DetectionResult};
pub use audit::{AuditEnd, AuditEntry, AuditTicket, PermissionRecord, RecordKind, Trail};
pub use capability::{
    CapabilityDescriptor, CapabilityFailure, CapabilityResult, DetectionMethod, SignatureStatus,
    StabilityLevel, StateSource, Tier,
};
pub use diff::{CapabilityChange, CapabilityDiff, ChangedField, FieldChange, FieldValue};
pub use domain::Domain;
pub use error::{ErrorCode, OutcomeKind, PcpError};
pub use event::{Event, EventFilter, EventTopic, FilterError, Subscribe, Subscriber};
pub use gate::{ConfirmationConfig, Gate};
pub use id::{ActionHash, AppId, CapabilityId, IdError, OperationId};
pub use intent::{Envelope, Intent};
pub use manifest::{CapabilityManifest, ManifestCapability, ManifestError};
pub use outcome::{Effect, Stage, Terminal};
pub use overflow::{Content, Delivery, EventQueue, Offered, OverflowStrategy};
pub use permission::{
    Denial, PermissionEngine, PermissionQuestion, PermissionRule, PermissionStore, RuleEffect, Verdict,
};
pub use ports::{
    AppEntry, AuditError, AuditLogger, CapabilityRegistry, ClaimState, Clock, DeclaredApp, DispatchFailure,
    Dispatcher, Durability, EventBus, EventStream, Invocation, OperationClaims, PermissionChecker,
    RegistryError, RegistryFilter, Reply, ReplyFailure, StoredEnd,
};
pub use principal::{AuthPrincipal, InvocationContext, Modality, TrustLevel};
pub use server::{BoxFuture, EventSink, InvalidParams, PcpServer};
