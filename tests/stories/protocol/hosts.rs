//! The two hosts: the daemon with a real application, and the engine in this process with an executor of its own.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pcp_core::v2::*;
use pcp_core::{AppId, AuthPrincipal, CapabilityId, Clock, Domain, ErrorCode, Modality, TrustLevel};
use pcp_durable::OperationKey;
use pcp_execution::engine::*;
use pcp_execution::{AuthorityKey, Ed25519AuthorityVerifier};
use pcp_fakeapp::{EffectLog, FakeCapability, FakeManifest};
use pcp_ipc::Json;
use serde_json::{Value, json};

use super::signed;
use crate::support::device::Seat;
use crate::support::{Device, Plan, Process, uids};

/// Longest wait for a lock that nobody means to have.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whoever executes signed requests.
pub(super) trait Host {
    /// The target of the one element there is, as it is now.
    fn target(&mut self) -> SemanticTargetRef;
    /// Executes what a program sent, or says why nothing was accepted.
    fn execute(&mut self, text: &str) -> Result<ExecuteReport, ErrorCode>;
    /// How far an operation is.
    fn status(&mut self, operation_id: &str) -> Option<ActionAck>;
    /// Ends and begins again.
    fn restart(&mut self);
    /// Takes away what acts.
    fn lose_backend(&mut self);
    /// How often the operation had its effect, by the application's own count.
    fn effects(&self, operation_id: &str) -> usize;
    /// How often anything had an effect.
    fn all_effects(&self) -> usize;
    /// Kinds of the records of an operation, in their order.
    fn records(&mut self, operation_id: &str) -> Vec<String>;
    /// Levels of JSON that a request may have.
    fn levels(&self) -> usize;
}

/// The terminal's kind, or the code of what was not accepted.
pub(super) fn end(answer: &Result<ExecuteReport, ErrorCode>) -> String {
    match answer {
        Ok(report) => report.terminal().map_or("executing", |end| end.kind().as_str()).to_owned(),
        Err(code) => code.to_string(),
    }
}

fn kinds(lines: impl Iterator<Item = String>, operation_id: &str) -> Vec<String> {
    let id = OperationKey::of(operation_id).id().to_string();
    lines
        .map(|line| serde_json::from_str::<Value>(&line).unwrap())
        .filter(|record| record["operation_id"] == id.as_str())
        .map(|record| record["kind"].as_str().unwrap().to_owned())
        .collect()
}

/// The real daemon and the fake application.
pub(super) struct Daemon {
    pub(super) device: Device,
    pub(super) seat: Seat,
    pub(super) app: Option<Process>,
}

/// The standard fake application, which can be invoked as well.
pub(super) fn manifest() -> FakeManifest {
    let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let mut manifest = FakeManifest::standard(id.clone());
    manifest.capabilities.push(FakeCapability::new(format!("app.{id}.invoke")));
    manifest
}

impl Daemon {
    pub(super) fn new() -> Self {
        Self::of(&manifest(), &[])
    }

    /// A device that takes signed actions, with this application.
    pub(super) fn of(manifest: &FakeManifest, flags: &[&str]) -> Self {
        let mut device = Device::new(&Plan::default());
        Self::pin(&device, &signed::authority_file());
        let seat = device.install(manifest, None);
        let app = Some(device.start_fake(&seat, flags));
        device.start();
        Self { device, seat, app }
    }

    /// Installs a host's key.
    pub(super) fn pin(device: &Device, file: &str) {
        let folder = device.folder("etc/portal/pcp/authorities.d", uids::own(), 0o755);
        device.write("etc/portal/pcp/authorities.d/host.toml", file);
        let config = std::fs::read_to_string(device.path("pcpd.toml")).unwrap();
        device.write("pcpd.toml", format!("{config}\n[actions]\nauthorities = {folder:?}\n"));
    }

    /// Executes on a connection of its own.
    pub(super) fn execute_on(device: &Device, text: &str) -> Result<ExecuteReport, ErrorCode> {
        let mut client = device.client();
        let report = client.execute_action(Json::parse(text).unwrap());
        report
            .map(|report| serde_json::from_str(report.report.as_str()).unwrap())
            .map_err(|error| error.code())
    }

    /// Asks a topic.
    pub(super) fn ask(&self, topic: &str, arguments: &Value) -> Result<Value, pcp_ipc::Error> {
        let arguments = arguments.to_string();
        let mut client = self.device.client();
        let state = client.query_state(topic, Json::parse(&arguments).unwrap())?;
        Ok(serde_json::from_str(state.data_json.as_str()).unwrap())
    }
}

impl Host for Daemon {
    fn target(&mut self) -> SemanticTargetRef {
        let seen = self.ask("observation", &json!({ "app": self.seat.id })).unwrap();
        let observation: SemanticObservation = serde_json::from_value(seen).unwrap();
        observation.validate().unwrap();
        observation.target("e1").unwrap()
    }

    fn execute(&mut self, text: &str) -> Result<ExecuteReport, ErrorCode> {
        Self::execute_on(&self.device, text)
    }

    fn status(&mut self, operation_id: &str) -> Option<ActionAck> {
        let known = self.ask("operation", &json!({ "operation_id": operation_id })).unwrap();
        serde_json::from_value(known).unwrap()
    }

    fn restart(&mut self) {
        self.device.stop();
        self.device.start();
    }

    fn lose_backend(&mut self) {
        self.app.take().unwrap().end_cleanly();
    }

    fn effects(&self, operation_id: &str) -> usize {
        pcp_fakeapp::count(&self.seat.effects(), OperationKey::of(operation_id).id()).unwrap()
    }

    fn all_effects(&self) -> usize {
        self.seat.effect_count()
    }

    fn records(&mut self, operation_id: &str) -> Vec<String> {
        self.device.stop();
        let lines = crate::support::records::lines(&self.device.audit());
        self.device.start();
        kinds(lines.into_iter().map(|line| line.text), operation_id)
    }

    fn levels(&self) -> usize {
        // What travels is nested in two objects of the wire.
        30
    }
}

struct Machine(Instant);

impl Clock for Machine {
    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap()
    }
    fn wall_ms(&self) -> u64 {
        u64::try_from(signed::now_ms()).unwrap()
    }
}

/// A field on a desk: it has a value and counts its effects in a file.
pub(super) struct Desk {
    effects: EffectLog,
    value: Mutex<String>,
    operation: Mutex<String>,
    gone: AtomicBool,
}

const FINGERPRINT: &[u8] = b"the field";

impl Executor for Desk {
    type Resolved = ();

    fn session_isolation(&self) -> SessionIsolation {
        SessionIsolation::HostIsolated
    }

    async fn capabilities(&self, _: &Boundary) -> Result<Capabilities, ExecutorError> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(ExecutorError { fault: ExecutorFault::Failed, message: "the desk is gone" });
        }
        let addressed = |action| ActionCapability {
            action,
            delivery_route: DeliveryRoute::TargetAddressed,
            background_support: BackgroundSupport::HostIsolatedOnly,
        };
        let actions = [ActionName::Invoke, ActionName::SetValue];
        Ok(Capabilities {
            platform: "linux".into(),
            backend: "desk".into(),
            session_isolation: SessionIsolation::HostIsolated,
            supported_actions: actions.to_vec(),
            action_capabilities: actions.map(addressed).to_vec(),
            permissions: std::collections::BTreeMap::new(),
            display_geometry_hash: Sha256Hash::ZERO,
        })
    }

    async fn observe(&self, _: &SemanticTargetRef, _: &Boundary) -> Result<TargetObservation, ExecutorError> {
        let state = json!({ "value_hash": Sha256Hash::of(self.value.lock().unwrap().as_bytes()) });
        Ok(TargetObservation {
            observation_hash: canonical_hash(&state),
            fingerprint_hash: Sha256Hash::of(FINGERPRINT),
            display_geometry_hash: Sha256Hash::ZERO,
            state,
            observed_at_ms: signed::now_ms(),
        })
    }

    async fn resolve(&self, _: &SemanticTargetRef, _: &Boundary) -> Result<(), ExecutorError> {
        Ok(())
    }

    async fn shared_context(&self, _: &Boundary) -> Option<Sha256Hash> {
        None
    }

    async fn dispatch(
        &self,
        action: &Action,
        (): (),
        _: &VerificationPolicy,
        _: &Boundary,
    ) -> Result<(), DispatchError> {
        let id = OperationKey::of(&self.operation.lock().unwrap()).id();
        let capability = CapabilityId::parse("app.desk.set_value").unwrap();
        self.effects.record(id, &capability).unwrap();
        if let Action::SetValue { value } = action {
            self.value.lock().unwrap().clone_from(value);
        }
        Ok(())
    }

    async fn changed(&self, _: &SemanticTargetRef, _: &Boundary) -> bool {
        false
    }
}

/// The engine in this process.
pub(super) struct Library {
    space: tempfile::TempDir,
    engine: Option<Engine<Arc<Desk>, Ed25519AuthorityVerifier, DurableStore>>,
    desk: Arc<Desk>,
    runtime: tokio::runtime::Runtime,
}

impl Library {
    pub(super) fn new() -> Self {
        let space = tempfile::tempdir().unwrap();
        let effects = EffectLog::open(&space.path().join("effects.log")).unwrap();
        let desk = Desk {
            effects,
            value: Mutex::default(),
            operation: Mutex::default(),
            gone: AtomicBool::new(false),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut host = Self { space, engine: None, desk: Arc::new(desk), runtime };
        host.restart();
        host
    }

    pub(super) fn log(&self) -> PathBuf {
        self.space.path().join("operations")
    }

    pub(super) fn caller() -> AuthPrincipal {
        AuthPrincipal {
            uid: uids::own(),
            pid: None,
            domain: Domain::App,
            trust: TrustLevel::USER,
            admin: false,
            confirmer: false,
            modality: Modality::Current,
            rate_per_second: None,
        }
    }
}

impl Host for Library {
    fn target(&mut self) -> SemanticTargetRef {
        SemanticTargetRef {
            observation_id: "1".repeat(64),
            provenance_hash: "2".repeat(64),
            element_id: "3".repeat(64),
            fingerprint_hash: Sha256Hash::of(FINGERPRINT).to_string(),
            generation: 1,
        }
    }

    fn execute(&mut self, text: &str) -> Result<ExecuteReport, ErrorCode> {
        let refused = |error: &ProtocolError| match error {
            ProtocolError::AuthorityDenied(_) => ErrorCode::PermissionDenied,
            ProtocolError::Conflict => ErrorCode::Conflict,
            ProtocolError::Store(_) => ErrorCode::AuditUnavailable,
            _ => ErrorCode::InvalidRequest,
        };
        let request = ActionRequest::parse(text.as_bytes()).map_err(|_| ErrorCode::InvalidRequest)?;
        self.desk.operation.lock().unwrap().clone_from(&request.operation_id);
        let engine = self.engine.as_ref().unwrap();
        let report = self.runtime.block_on(engine.execute(request, &CancellationToken::new()));
        report.map_err(|error| refused(&error))
    }

    fn status(&mut self, operation_id: &str) -> Option<ActionAck> {
        self.runtime.block_on(self.engine.as_ref().unwrap().status(operation_id)).unwrap()
    }

    fn restart(&mut self) {
        self.engine = None;
        let clock: Arc<dyn Clock> = Arc::new(Machine(Instant::now()));
        let begun = Instant::now();
        let store = loop {
            let facts = ActionFacts::of(Self::caller());
            match DurableStore::open(&self.log(), Arc::clone(&clock), facts) {
                Ok((store, _)) => break store,
                // A program that another test starts has the lock for a moment, between its fork and its exec.
                Err(error) => assert!(error.0.contains("in use") && begun.elapsed() < PATIENCE, "{error}"),
            }
            std::thread::yield_now();
        };
        let key = AuthorityKey {
            issuer: "issuer".into(),
            key_id: "k1".into(),
            policy_generation: "gen1".into(),
            public_key: signed::signer().verifier().to_bytes(),
        };
        let verifier = Ed25519AuthorityVerifier::new([key]).unwrap();
        let time = SteadyTime::since(store.high_water_ms(), &*clock);
        self.engine = Some(Engine::new(Arc::clone(&self.desk), verifier, store, clock, time));
    }

    fn lose_backend(&mut self) {
        self.desk.gone.store(true, Ordering::Relaxed);
    }

    fn effects(&self, operation_id: &str) -> usize {
        let id = OperationKey::of(operation_id).id();
        pcp_fakeapp::count(&self.space.path().join("effects.log"), id).unwrap()
    }

    fn all_effects(&self) -> usize {
        pcp_fakeapp::effects(&self.space.path().join("effects.log")).unwrap().len()
    }

    fn records(&mut self, operation_id: &str) -> Vec<String> {
        self.restart();
        let text = std::fs::read_to_string(self.log().join("application.000001.jsonl")).unwrap();
        kinds(text.lines().map(str::to_owned), operation_id)
    }

    fn levels(&self) -> usize {
        MAX_EXPECTED_DEPTH
    }
}
