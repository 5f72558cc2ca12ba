//! A host in memory: a clock that is set by hand, a store, and an executor that does as its script says.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pcp_core::Clock;
use pcp_core::v2::*;
use pcp_execution::engine::*;
use pcp_execution::{AuthorityKey, Ed25519AuthorityVerifier};
use pcp_trust::Signer;
use serde_json::{Value, json};
use tokio::time::Instant;

/// A time in 2027, before the deadline of the golden vectors.
pub(crate) const NOW_MS: i64 = 1_800_000_000_000;

pub(crate) struct Hands {
    start: Instant,
    wall_ms: AtomicI64,
}

impl Hands {
    fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_millis()).unwrap()
    }
    pub(crate) fn set_wall(&self, wall_ms: i64) {
        self.wall_ms.store(wall_ms - self.elapsed_ms(), Ordering::Relaxed);
    }
}

impl Clock for Hands {
    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap()
    }
    fn wall_ms(&self) -> u64 {
        u64::try_from(self.wall_ms.load(Ordering::Relaxed) + self.elapsed_ms()).unwrap_or(0)
    }
}

#[derive(Default)]
pub(crate) struct Memory {
    operations: Mutex<HashMap<String, (ClaimRecord, Known)>>,
    pub(crate) claims: AtomicU32,
    pub(crate) refusals: Mutex<Vec<ActionAck>>,
    pub(crate) claim_fails: Mutex<bool>,
    pub(crate) finish_fails: Mutex<bool>,
    pub(crate) forgets: Mutex<bool>,
}

fn full() -> StoreError {
    StoreError("cannot write operations.jsonl: no space left on device".into())
}

impl Memory {
    fn known(&self, operation_id: &str, hash: Sha256Hash) -> Known {
        match self.operations.lock().unwrap().get(operation_id) {
            None if *self.forgets.lock().unwrap() => Known::Forgotten,
            None => Known::Fresh,
            Some((claim, _)) if claim.action_hash != hash => Known::Conflict,
            Some((_, known)) => known.clone(),
        }
    }
}

impl OperationStore for Memory {
    async fn look_up(&self, operation_id: &str, hash: Sha256Hash) -> Result<Known, StoreError> {
        Ok(self.known(operation_id, hash))
    }

    async fn claim(&self, claim: &ClaimRecord) -> Result<Known, StoreError> {
        if *self.claim_fails.lock().unwrap() {
            return Err(full());
        }
        let known = self.known(&claim.operation_id, claim.action_hash);
        if known == Known::Fresh {
            self.claims.fetch_add(1, Ordering::Relaxed);
            let row = (claim.clone(), Known::Running);
            self.operations.lock().unwrap().insert(claim.operation_id.clone(), row);
        }
        Ok(known)
    }

    async fn finish(&self, end: &ActionAck) -> Result<(), StoreError> {
        if *self.finish_fails.lock().unwrap() {
            return Err(full());
        }
        let mut operations = self.operations.lock().unwrap();
        operations.get_mut(&end.operation_id).unwrap().1 = Known::Ended(Box::new(end.clone()));
        Ok(())
    }

    async fn refused(&self, end: &ActionAck) {
        self.refusals.lock().unwrap().push(end.clone());
    }

    fn abandon(&self, operation_id: &str) {
        let mut operations = self.operations.lock().unwrap();
        let (claim, known) = operations.get_mut(operation_id).unwrap();
        *known = Known::Unfinished(Box::new(claim.clone()));
    }

    async fn status(&self, operation_id: &str) -> Result<Option<(ClaimRecord, Known)>, StoreError> {
        Ok(self.operations.lock().unwrap().get(operation_id).cloned())
    }
}

/// What a dispatch does.
#[derive(Clone)]
pub(crate) enum Act {
    Do,
    Fail(DispatchError),
    CancelThen(Box<Act>),
    SpendThen(Duration, Box<Act>),
    Hang,
    Panic,
    /// Ten chunks; the token is cancelled after the given number of them.
    Chunks {
        cancel_after: u32,
    },
}

pub(crate) struct Script {
    pub(crate) isolation: SessionIsolation,
    pub(crate) capabilities: Result<Capabilities, ExecutorError>,
    /// One after the other; the last one stays.
    pub(crate) observations: VecDeque<Result<TargetObservation, ExecutorError>>,
    pub(crate) resolve: Result<(), ExecutorError>,
    pub(crate) contexts: VecDeque<Option<Sha256Hash>>,
    pub(crate) act: Act,
    /// Whether the backend tells of changes, and after how long.
    pub(crate) changes: Option<Duration>,
    pub(crate) slow: Duration,
}

impl Script {
    /// Everything works, and the golden `set_value` is verified.
    pub(crate) fn working() -> Self {
        use {ActionName::*, BackgroundSupport::*, DeliveryRoute::*};
        let facts = [
            capability(Invoke, TargetAddressed, Guarded),
            capability(SetValue, TargetAddressed, Guarded),
            capability(TypeText, Pointer, HostIsolatedOnly),
        ];
        Self {
            isolation: SessionIsolation::SharedDesktop,
            capabilities: Ok(report(SessionIsolation::SharedDesktop, &facts)),
            observations: [Ok(seen(value_is("old"))), Ok(seen(value_is(VALUE)))].into(),
            resolve: Ok(()),
            contexts: [Some(Sha256Hash::ZERO)].into(),
            act: Act::Do,
            changes: None,
            slow: Duration::ZERO,
        }
    }
}

pub(crate) struct Scripted {
    pub(crate) script: Mutex<Script>,
    pub(crate) dispatched: AtomicU32,
    pub(crate) observed: AtomicU32,
    pub(crate) effects: AtomicU32,
    pub(crate) token: CancellationToken,
}

fn next<T: Clone>(queue: &mut VecDeque<T>) -> T {
    if queue.len() > 1 { queue.pop_front().unwrap() } else { queue.front().unwrap().clone() }
}

impl Executor for Scripted {
    type Resolved = ();

    fn session_isolation(&self) -> SessionIsolation {
        self.script.lock().unwrap().isolation
    }

    async fn capabilities(&self, _boundary: &Boundary) -> Result<Capabilities, ExecutorError> {
        let slow = self.script.lock().unwrap().slow;
        tokio::time::sleep(slow).await;
        self.script.lock().unwrap().capabilities.clone()
    }

    async fn observe(
        &self,
        _target: &SemanticTargetRef,
        _boundary: &Boundary,
    ) -> Result<TargetObservation, ExecutorError> {
        self.observed.fetch_add(1, Ordering::Relaxed);
        next(&mut self.script.lock().unwrap().observations)
    }

    async fn resolve(&self, _target: &SemanticTargetRef, _boundary: &Boundary) -> Result<(), ExecutorError> {
        self.script.lock().unwrap().resolve
    }

    async fn shared_context(&self, _boundary: &Boundary) -> Option<Sha256Hash> {
        next(&mut self.script.lock().unwrap().contexts)
    }

    async fn dispatch(
        &self,
        _action: &Action,
        (): (),
        _verification: &VerificationPolicy,
        boundary: &Boundary,
    ) -> Result<(), DispatchError> {
        self.dispatched.fetch_add(1, Ordering::Relaxed);
        let act = self.script.lock().unwrap().act.clone();
        self.play(act, boundary).await
    }

    async fn changed(&self, _target: &SemanticTargetRef, _boundary: &Boundary) -> bool {
        let after = self.script.lock().unwrap().changes;
        match after {
            Some(after) => {
                tokio::time::sleep(after).await;
                true
            }
            None => false,
        }
    }
}

impl Scripted {
    async fn play(&self, act: Act, boundary: &Boundary) -> Result<(), DispatchError> {
        let mut act = act;
        loop {
            act = match act {
                Act::Do => {
                    self.effects.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Act::Fail(error) => return Err(error),
                Act::Hang => pending().await,
                Act::Panic => panic!("the backend broke"),
                Act::CancelThen(then) => {
                    self.token.cancel();
                    *then
                }
                Act::SpendThen(time, then) => {
                    tokio::time::sleep(time).await;
                    *then
                }
                Act::Chunks { cancel_after } => return self.chunks(cancel_after, boundary),
            }
        }
    }

    fn chunks(&self, cancel_after: u32, boundary: &Boundary) -> Result<(), DispatchError> {
        for chunk in 0..10 {
            if chunk == cancel_after {
                self.token.cancel();
            }
            if boundary.check().is_err() {
                let effect =
                    if chunk == 0 { DispatchEffect::CancelledBeforeEffect } else { DispatchEffect::Unknown };
                return Err(failure(effect));
            }
            self.effects.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

pub(crate) fn failure(effect: DispatchEffect) -> DispatchError {
    DispatchError { message: "the backend said no", effect, code: FailureCode::TargetNotFound }
}

pub(crate) fn fault(fault: ExecutorFault) -> ExecutorError {
    ExecutorError { fault, message: "the backend said no" }
}

/// What the element of the golden vectors looks like, with this state.
pub(crate) fn seen(state: Value) -> TargetObservation {
    TargetObservation {
        observation_hash: canonical_hash(&state),
        fingerprint_hash: Sha256Hash::parse(&"4".repeat(64)).unwrap(),
        display_geometry_hash: Sha256Hash::ZERO,
        state,
        observed_at_ms: NOW_MS,
    }
}

pub(crate) fn capability(
    action: ActionName,
    route: DeliveryRoute,
    support: BackgroundSupport,
) -> ActionCapability {
    ActionCapability { action, delivery_route: route, background_support: support }
}

pub(crate) fn report(isolation: SessionIsolation, facts: &[ActionCapability]) -> Capabilities {
    Capabilities {
        platform: "linux".into(),
        backend: "scripted".into(),
        session_isolation: isolation,
        supported_actions: facts.iter().map(|fact| fact.action).collect(),
        action_capabilities: facts.to_vec(),
        permissions: std::collections::BTreeMap::new(),
        display_geometry_hash: Sha256Hash::ZERO,
    }
}

/// The state that the golden `set_value` asks for.
pub(crate) fn value_is(value: &str) -> Value {
    json!({"value_hash": Sha256Hash::of(value.as_bytes())})
}

pub(crate) const VALUE: &str = "h\u{e9}llo\n";

pub(crate) struct Device {
    pub(crate) engine: Engine<Arc<Scripted>, Ed25519AuthorityVerifier, Arc<Memory>>,
    pub(crate) hands: Arc<Scripted>,
    pub(crate) memory: Arc<Memory>,
    pub(crate) clock: Arc<Hands>,
    pub(crate) token: CancellationToken,
}

impl Device {
    /// Everything works, and the golden `set_value` is verified.
    pub(crate) fn new() -> Self {
        let token = CancellationToken::new();
        let hands = Arc::new(Scripted {
            script: Mutex::new(Script::working()),
            dispatched: AtomicU32::new(0),
            observed: AtomicU32::new(0),
            effects: AtomicU32::new(0),
            token: token.clone(),
        });
        let memory = Arc::new(Memory::default());
        let clock = Arc::new(Hands { start: Instant::now(), wall_ms: AtomicI64::new(NOW_MS) });
        let key = AuthorityKey {
            issuer: "issuer".into(),
            key_id: "k1".into(),
            policy_generation: "gen1".into(),
            public_key: signer().verifier().to_bytes(),
        };
        let verifier = Ed25519AuthorityVerifier::new([key]).unwrap();
        let shared: Arc<dyn Clock> = clock.clone();
        let engine =
            Engine::new(Arc::clone(&hands), verifier, Arc::clone(&memory), shared, SteadyTime::default());
        Self { engine, hands, memory, clock, token }
    }

    pub(crate) fn with(self, change: impl FnOnce(&mut Script)) -> Self {
        change(&mut self.hands.script.lock().unwrap());
        self
    }

    pub(crate) async fn execute(&self, request: ActionRequest) -> Result<ExecuteReport, ProtocolError> {
        self.engine.execute(request, &self.token).await
    }

    /// How the request ended.
    pub(crate) async fn end(&self, request: ActionRequest) -> Terminal {
        self.execute(request).await.unwrap().terminal().unwrap().clone()
    }

    pub(crate) fn dispatched(&self) -> u32 {
        self.hands.dispatched.load(Ordering::Relaxed)
    }

    pub(crate) fn effects(&self) -> u32 {
        self.hands.effects.load(Ordering::Relaxed)
    }

    pub(crate) fn claims(&self) -> u32 {
        self.memory.claims.load(Ordering::Relaxed)
    }
}

pub(crate) fn signer() -> Signer {
    Signer::from_secret_bytes(&[0x2a; 32])
}

/// A request of the golden vectors, changed and signed again.
pub(crate) fn request(vector: usize, change: impl FnOnce(&mut ActionRequest)) -> ActionRequest {
    let text = include_str!("../../../../tests/stories/data/protocol/vectors.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    let text = vectors["vectors"][vector]["request"].to_string();
    let mut request = ActionRequest::parse(text.as_bytes()).unwrap();
    change(&mut request);
    let grant = &mut request.authority.grant;
    grant.operation_id.clone_from(&request.operation_id);
    grant.subject.clone_from(&request.subject);
    grant.session_id.clone_from(&request.session_id);
    grant.risk = request.safety;
    request.authority.grant.action_hash = request.action_hash().to_string();
    sign(&mut request);
    request
}

pub(crate) fn sign(request: &mut ActionRequest) {
    let signature = signer().sign(&request.authority.grant.signed_bytes()).to_bytes();
    request.authority.signature = signature.iter().map(|byte| format!("{byte:02x}")).collect();
}

/// The golden `set_value`.
pub(crate) fn set_value() -> ActionRequest {
    request(0, |_| {})
}

/// An `invoke` with this verification.
pub(crate) fn invoke(verification: VerificationPolicy) -> ActionRequest {
    request(1, |request| request.verification = verification)
}
