//! The second door into the one pipeline: a signed request of protocol v2 for an application (C46, R-056).
//!
//! Policy, gate, claim, audit and the applications' sockets are those of the intents; only the order is the engine's.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pcp_core::v2::{
    ActionAck, ActionRequest, Capabilities, ExecuteReport, MAX_OBSERVATION_MS, ObservationBackend,
    PROTOCOL_VERSION, SemanticElement, SemanticObservation, SemanticProvenance, Sha256Hash, SteadyTime,
    canonical_hash,
};
use pcp_core::{AppId, AuthPrincipal, Clock, Dispatcher, Tier};
use pcp_durable::{OperationKey, Operations};
use pcp_trust::Ed25519AuthorityVerifier;
use serde_json::json;

use super::applications::{Asked, BACKEND, TierOne, report};
use super::boundary::CancellationToken;
use super::durable::DurableStore;
use super::error::ProtocolError;
use super::execute::Engine;
use super::executor::ExecutorError;
use super::facts::ActionFacts;
use super::observations::{ObservationStore, Seen};
use crate::pipeline::{ExecutionPipeline, UnderWay};

/// One life of one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// What tells it from another one with the same number: 1 to 256 bytes.
    pub generation: String,
}

/// Tells which process serves an application now.
pub trait Processes: Send + Sync {
    /// The process at the application's socket; `None` if nobody is there, or somebody else.
    fn process(&self, app: &AppId) -> impl Future<Output = Option<Process>>;
}

/// What the door needs beside the pipeline: keys, operations, observations.
#[derive(Debug)]
pub struct ActionDoor<P> {
    /// The keys of the hosts that may sign.
    verifier: Arc<Ed25519AuthorityVerifier>,
    operations: Arc<Operations>,
    time: Arc<SteadyTime>,
    pub(super) processes: P,
    pub(super) observations: ObservationStore<AppId>,
    /// By caller and id: nobody can cancel another's.
    running: Mutex<HashMap<(u32, String), CancellationToken>>,
}

/// Takes an operation out of those that can be cancelled, however it ends.
struct Running<'d, P> {
    door: &'d ActionDoor<P>,
    key: (u32, String),
    token: CancellationToken,
    /// Whether it is this request's own token, and not that of an earlier one of the same operation.
    own: bool,
}

impl<P> Drop for Running<'_, P> {
    fn drop(&mut self) {
        if self.own {
            self.door.running().remove(&self.key);
        }
    }
}

impl<P> ActionDoor<P> {
    /// A door for the requests that hosts with these keys have signed.
    #[must_use]
    pub fn new(
        verifier: Ed25519AuthorityVerifier,
        operations: Arc<Operations>,
        processes: P,
        clock: &dyn Clock,
    ) -> Self {
        let high_water_ms = i64::try_from(operations.high_water_ms()).unwrap_or(i64::MAX);
        Self {
            verifier: Arc::new(verifier),
            operations,
            time: Arc::new(SteadyTime::since(high_water_ms, clock)),
            processes,
            observations: ObservationStore::default(),
            running: Mutex::default(),
        }
    }

    /// Cancels an operation of `uid` that is under way. False: there is none.
    pub fn cancel(&self, uid: u32, operation_id: &str) -> bool {
        let token = self.running().get(&(uid, operation_id.to_owned())).cloned();
        token.inspect(CancellationToken::cancel).is_some()
    }

    /// What this door can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        report()
    }

    pub(super) fn now_ms(&self, clock: &dyn Clock) -> i64 {
        self.time.now_ms(clock)
    }

    fn running(&self) -> MutexGuard<'_, HashMap<(u32, String), CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, uid: u32, operation_id: &str) -> Running<'_, P> {
        let key = (uid, operation_id.to_owned());
        let mut running = self.running();
        let own = !running.contains_key(&key);
        let token = running.entry(key.clone()).or_default().clone();
        Running { door: self, key, token, own }
    }
}

impl<D: Dispatcher> ExecutionPipeline<D> {
    /// Executes a signed request for `caller`, at most once.
    ///
    /// # Errors
    /// [`ProtocolError`]: nothing was accepted, and nothing was done.
    pub async fn execute_action<P: Processes>(
        &self,
        caller: &AuthPrincipal,
        request: ActionRequest,
        door: &ActionDoor<P>,
    ) -> Result<ExecuteReport, ProtocolError> {
        let _counted = UnderWay::begin(&self.under_way);
        let store = self.store(caller, door);
        {
            let mut facts = store.facts();
            (facts.action, facts.safety, facts.tier) =
                (Some(request.action.name()), request.safety, Some(Tier::One));
        }
        let operation_id = request.operation_id.clone();
        // The rules first: an id that is none must not stand among those under way.
        let valid = pcp_core::v2::ValidRequest::new(request)?;
        let running = door.begin(caller.uid, &operation_id);
        let asked = Asked {
            caller,
            operation: OperationKey::of(&operation_id).id(),
            action: &valid.request().action,
            target: valid.element(),
        };
        let executor = TierOne { pipeline: self, door, store: &store, asked };
        let engine = self.engine(executor, store.clone(), door);
        let report = engine.execute_valid(&valid, &running.token).await;
        if let Err(error @ (ProtocolError::AuthorityDenied(_) | ProtocolError::Conflict)) = &report {
            store.denied(&operation_id, valid.action_hash(), error).await;
        }
        report
    }

    /// How far an operation of `caller` is; `None` if nothing is known of it.
    ///
    /// # Errors
    /// [`ProtocolError::Store`].
    pub async fn action_status<P: Processes>(
        &self,
        caller: &AuthPrincipal,
        operation_id: &str,
        door: &ActionDoor<P>,
    ) -> Result<Option<ActionAck>, ProtocolError> {
        super::execute::status(&self.store(caller, door), door.now_ms(&*self.ports.clock), operation_id).await
    }

    /// Observes an application: one element, its tag `e1`, kept for 30 s.
    ///
    /// # Errors
    /// [`ExecutorError`] names the cause.
    pub async fn observe_application<P: Processes>(
        &self,
        caller: &AuthPrincipal,
        app: &AppId,
        door: &ActionDoor<P>,
    ) -> Result<SemanticObservation, ExecutorError> {
        let clock = &*self.ports.clock;
        let process = door.processes.process(app).await.ok_or_else(super::applications::not_running)?;
        let element = self.element(app);
        let generation = door.observations.next_generation();
        let observed_at_ms = door.now_ms(clock);
        let observation_id = canonical_hash(&json!([
            BACKEND,
            app.as_str(),
            process.id,
            process.generation,
            generation,
            observed_at_ms,
            clock.monotonic_us()
        ]));
        let observation = SemanticObservation {
            protocol_version: PROTOCOL_VERSION,
            observation_id,
            generation,
            provenance: SemanticProvenance {
                backend: ObservationBackend::Application,
                backend_name: BACKEND.to_owned(),
                process_id: process.id,
                process_generation: process.generation,
                window_id: app.as_str().to_owned(),
                document_id: None,
                display_geometry_hash: Sha256Hash::ZERO,
            },
            observed_at_ms,
            expires_at_ms: observed_at_ms.saturating_add(MAX_OBSERVATION_MS),
            truncated: false,
            elements: vec![SemanticElement {
                tag: "e1".to_owned(),
                element_id: SemanticObservation::element_id(&observation_id, app.as_str()),
                parent_id: None,
                fingerprint_hash: element.fingerprint,
                role: "application".to_owned(),
                name: Some(app.as_str().to_owned()),
                bounds: None,
                actionability: element.actionability,
            }],
        };
        let until = door.time.deadline(observation.expires_at_ms, clock);
        let bytes = size_of::<SemanticObservation>() + 1024;
        let seen = Arc::new(Seen { observation: observation.clone(), backend: app.clone() });
        door.observations.keep(caller.uid, seen, bytes, until, clock);
        Ok(observation)
    }

    fn store<P>(&self, caller: &AuthPrincipal, door: &ActionDoor<P>) -> DurableStore {
        DurableStore::new(
            Arc::clone(&door.operations),
            Arc::clone(&self.ports.clock),
            ActionFacts::of(*caller),
        )
    }

    fn engine<'p, P: Processes>(
        &'p self,
        executor: TierOne<'p, D, P>,
        store: DurableStore,
        door: &ActionDoor<P>,
    ) -> Engine<TierOne<'p, D, P>, Arc<Ed25519AuthorityVerifier>, DurableStore> {
        let clock = Arc::clone(&self.ports.clock);
        Engine::new(executor, Arc::clone(&door.verifier), store, clock, Arc::clone(&door.time))
    }
}
