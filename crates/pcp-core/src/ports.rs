//! The replaceable ports of the pipeline: what stands behind each is the daemon's business.

use core::future::Future;
use core::task::{Context, Poll};
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

use thiserror::Error;

use crate::audit::{AuditEntry, AuditTicket, RecordKind, Trail};
use crate::capability::{CapabilityDescriptor, DetectionMethod, SignatureStatus, StateSource, Tier};
use crate::domain::Domain;
use crate::error::{ErrorCode, PcpError};
use crate::event::{Event, Subscribe};
use crate::id::{ActionHash, AppId, CapabilityId, OperationId};
use crate::outcome::{Effect, Terminal};
use crate::overflow::Delivery;
use crate::permission::{PermissionQuestion, Verdict};
use crate::principal::{AuthPrincipal, InvocationContext};

/// The two clocks of the machine. Durations come from the monotonic one alone (TH-13).
pub trait Clock: Send + Sync {
    /// Microseconds since an arbitrary start; never goes back, counts suspend.
    fn monotonic_us(&self) -> u64;
    /// Unix milliseconds of the wall clock; may jump.
    fn wall_ms(&self) -> u64;
}

/// One application as the registry holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppEntry {
    /// Its id.
    pub id: AppId,
    /// Its version.
    pub version: Arc<str>,
    /// How it was found.
    pub method: DetectionMethod,
    /// What is known of its manifest's signature.
    pub signature: SignatureStatus,
    /// Why it offers nothing, where that is so.
    pub problem: Option<Arc<str>>,
    /// What its desktop entry and its program say of it, where it has one.
    pub declared: Option<Arc<DeclaredApp>>,
    /// Its capabilities, sorted by id.
    pub capabilities: Arc<[Arc<CapabilityDescriptor>]>,
}

impl AppEntry {
    /// The ids of its capabilities, sorted.
    pub fn ids(&self) -> impl Iterator<Item = &CapabilityId> {
        self.capabilities.iter().map(|one| &one.id)
    }
}

/// What an application's own files say of it, read without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredApp {
    /// What menus call it.
    pub name: Arc<str>,
    /// Its categories, in its own order.
    pub categories: Box<[Arc<str>]>,
    /// The toolkit of its windows as a word; `unknown` where nothing tells.
    pub toolkit: &'static str,
    /// What tells the toolkit, or why nothing does.
    pub evidence: Option<Arc<str>>,
    /// The program that it starts, at the end of all links.
    pub program: Option<Arc<str>>,
    /// The class of its windows.
    pub window_class: Option<Arc<str>>,
    /// Its desktop file.
    pub file: Arc<str>,
    /// How sure the detection is, in percent.
    pub confidence_percent: u8,
    /// Whether menus leave it out.
    pub no_display: bool,
}

/// What a query asks for; an absent part matches everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct RegistryFilter<'a> {
    /// Only this domain.
    pub domain: Option<Domain>,
    /// Only this detection method.
    pub method: Option<DetectionMethod>,
    /// Only applications that match this glob; `*` spans dots.
    pub app: Option<&'a str>,
}

/// Why the registry refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// No such capability or application.
    #[error("{0} is not registered")]
    NotFound(String),
    /// A limit is reached.
    #[error("the registry holds {limit} {what}, its limit; {id} was not registered")]
    Full {
        /// Capabilities or applications.
        what: &'static str,
        /// How many.
        limit: usize,
        /// What was turned away.
        id: String,
    },
    /// An id that another application holds.
    #[error("{id} already belongs to {owner}")]
    Taken {
        /// The id.
        id: String,
        /// Its application.
        owner: String,
    },
}

/// What can be done right now. An application and its capabilities change together.
pub trait CapabilityRegistry: Send + Sync {
    /// Registers one capability, or replaces it.
    ///
    /// # Errors
    /// [`RegistryError`].
    fn register(&self, capability: CapabilityDescriptor) -> Result<(), RegistryError>;
    /// Takes one capability out.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`].
    fn unregister(&self, id: &CapabilityId) -> Result<(), RegistryError>;
    /// The capability of this id.
    fn get(&self, id: &CapabilityId) -> Option<Arc<CapabilityDescriptor>>;
    /// The capabilities that fit, sorted by id.
    fn query(&self, filter: &RegistryFilter<'_>) -> Vec<Arc<CapabilityDescriptor>>;
    /// Registers an application with all its capabilities, replacing what it had.
    ///
    /// # Errors
    /// [`RegistryError`]; nothing changes then.
    fn register_app(
        &self,
        app: AppEntry,
        capabilities: Vec<CapabilityDescriptor>,
    ) -> Result<(), RegistryError>;
    /// The applications, sorted by id.
    fn apps(&self) -> Vec<Arc<AppEntry>>;
}

/// Decides whether a caller may.
pub trait PermissionChecker: Send + Sync {
    /// The verdict; every source can only tighten.
    fn check(&self, caller: &AuthPrincipal, asked: &PermissionQuestion<'_>) -> Verdict<'_>;
}

impl PermissionChecker for crate::permission::PermissionEngine {
    fn check(&self, caller: &AuthPrincipal, asked: &PermissionQuestion<'_>) -> Verdict<'_> {
        Self::check(self, caller, asked)
    }
}

/// Whether a record must be on stable storage before the caller goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The caller waits for it.
    Durable,
    /// It is written soon.
    Lazy,
}

/// Why a record could not be written.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("audit record could not be written: {0}")]
pub struct AuditError(pub String);

/// Keeps the records. Appending never blocks on the disk; waiting is a poll, so that it allocates nothing.
pub trait AuditLogger: Send + Sync {
    /// Puts the record in order and hands it to the writer.
    ///
    /// # Errors
    /// [`AuditError`] when it cannot be kept: then no effect may follow (C6).
    fn append(&self, entry: &AuditEntry<'_>, durability: Durability) -> Result<AuditTicket, AuditError>;
    /// Ready once the record is on stable storage.
    fn poll_durable(&self, ticket: &AuditTicket, cx: &mut Context<'_>) -> Poll<Result<(), AuditError>>;
    /// Ready once a record that nobody waits for finds room, or waiting would not help: a slow disk slows its
    /// askers down and costs no record. A logger without a buffer always has room.
    fn poll_room(&self, trail: Trail, kind: RecordKind, cx: &mut Context<'_>) -> Poll<()> {
        let _ = (trail, kind, cx);
        Poll::Ready(())
    }
}

/// What is known of an operation id before it is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "only a fresh operation may be dispatched"]
pub enum ClaimState {
    /// Never seen: the caller now holds the claim and must append its record.
    Fresh,
    /// The same action ended like this; it is not run again.
    Ended(Terminal),
    /// The same action is still under way.
    Running,
    /// The id is bound to another action.
    Conflict,
    /// No more operations can be under way at once.
    Full {
        /// The limit.
        limit: usize,
    },
    /// Nothing is known of the id, and it is dated further ahead than any clock may be.
    Skewed {
        /// Milliseconds ahead of the latest time known.
        ahead_ms: u64,
        /// The most that is allowed.
        limit_ms: u64,
    },
    /// What is known of the id cannot be read, so that nothing may be done.
    Unreadable,
}

/// What a replayed operation's answer repeats of its first one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredEnd {
    /// What was known of the effect.
    pub effect: Option<Effect>,
    /// The tier that acted.
    pub tier: Option<Tier>,
    /// SHA-256 of its last record.
    pub audit_hash: Option<[u8; 32]>,
}

/// Binds operation ids to actions, so that none runs twice.
pub trait OperationClaims: Send + Sync {
    /// Claims the id for the action, or says why not. `wall_ms` is the wall clock: it says which ids are too old
    /// to be claimed, and which are of the future.
    fn begin(&self, id: OperationId, action: ActionHash, wall_ms: u64) -> ClaimState;
    /// Gives a claim back whose record was never appended.
    fn forget(&self, id: OperationId);
    /// Notes how a claimed operation ended.
    fn end(&self, id: OperationId, terminal: Terminal);
    /// What is kept of an ended operation besides its terminal, for whoever asks again.
    fn stored(&self, _id: OperationId) -> StoredEnd {
        StoredEnd::default()
    }
}

/// One invocation on its way to an application.
#[derive(Debug, Clone, Copy)]
pub struct Invocation<'a> {
    /// The capability.
    pub capability: &'a CapabilityDescriptor,
    /// What the application is told about it.
    pub context: &'a InvocationContext,
    /// The parameters as sent.
    pub parameters: &'a str,
}

/// What came back. The data itself is in the buffer that the caller handed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Whether the application says that it did it.
    pub success: bool,
    /// Which state the result came from.
    pub state_source: StateSource,
    /// The failure, where there is one, and whether the application certifies that nothing changed.
    pub failure: Option<ReplyFailure>,
}

/// An application's own failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyFailure {
    /// A code of the closed table.
    pub code: ErrorCode,
    /// The application's words.
    pub message: String,
    /// Whether nothing changed.
    pub no_effect: bool,
}

/// A dispatch that got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatchFailure {
    /// What went wrong.
    pub error: PcpError,
    /// Whether it is certain that the application never saw the invocation.
    pub no_effect: bool,
}

/// Carries an invocation to the application that serves it. The only port that touches the world (invariant 4).
///
/// Generic rather than boxed, because a boxed future would be one allocation per read; the allocation
/// count of the wire bench shows it.
pub trait Dispatcher: Send + Sync {
    /// Whether something serves the application now; asked before the claim, so that an absent
    /// application costs no claim.
    fn serves(&self, app: &AppId) -> bool;
    /// Sends the invocation and waits for the answer; the result's JSON is put into `data`.
    fn dispatch(
        &self,
        invocation: Invocation<'_>,
        data: &mut Vec<u8>,
    ) -> impl Future<Output = Result<Reply, DispatchFailure>>;
    /// Asks the application's own `validate_params`: `Err` carries its words.
    fn validate(&self, invocation: Invocation<'_>) -> impl Future<Output = Result<(), DispatchFailure>>;
}

impl<D: Dispatcher> Dispatcher for Arc<D> {
    fn serves(&self, app: &AppId) -> bool {
        (**self).serves(app)
    }

    fn dispatch(
        &self,
        invocation: Invocation<'_>,
        data: &mut Vec<u8>,
    ) -> impl Future<Output = Result<Reply, DispatchFailure>> {
        (**self).dispatch(invocation, data)
    }

    fn validate(&self, invocation: Invocation<'_>) -> impl Future<Output = Result<(), DispatchFailure>> {
        (**self).validate(invocation)
    }
}

/// Where what happens is told to whoever subscribed. Publishing is infallible by policy: what finds no room
/// becomes a gap that its subscriber reads.
pub trait EventBus: Send + Sync {
    /// What a subscriber reads from; dropping it ends the subscription.
    type Stream: EventStream;
    /// Why a subscription was refused.
    type Error: core::error::Error;

    /// Hands the event to every subscription that it fits and gives its number. Never waits and allocates nothing.
    fn publish(&self, event: Arc<Event>) -> u64;
    /// Waits until every blocking subscription that the event fits has room or `limit` is ready, then publishes
    /// . Nobody but this publisher is held up. Dropped before it is ready, it publishes nothing.
    fn publish_within(
        &self,
        event: Arc<Event>,
        limit: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = u64> + Send;
    /// Hears of events from now on.
    ///
    /// # Errors
    /// A limit is reached.
    fn subscribe(&self, wanted: Subscribe) -> Result<Self::Stream, Self::Error>;
}

/// The events of one subscription, in their order. It has no end: a bus outlives its subscriptions.
pub trait EventStream: Send {
    /// The next event or gap, once there is one.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Delivery<Arc<Event>>>;
    /// Waits for the next event or gap; dropped before it is ready, it has taken nothing.
    fn next(&mut self) -> impl Future<Output = Delivery<Arc<Event>>> + Send {
        core::future::poll_fn(|cx| self.poll_next(cx))
    }
}
