//! A device in memory: the four ports as fakes, so that every outcome can be provoked (R-057).

use std::collections::HashMap;
use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::task::{Context, Poll};

use pcp_core::*;
use pcp_execution::{ExecutionPipeline, ExecutionResult, PipelineConfig, Ports, Request, Scratch};

/// One capability, as its manifest would declare it.
pub(crate) fn capability(text: &str) -> CapabilityDescriptor {
    let id = CapabilityId::parse(text).unwrap();
    CapabilityDescriptor {
        app_id: AppId::parse(id.app()).unwrap(),
        domain: id.domain(),
        side_effects: !["read", "list", "get"].contains(&id.action()),
        id,
        name: "".into(),
        description: "".into(),
        category: "".into(),
        input_schema: r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#.into(),
        output_schema: r#"{"type":"object"}"#.into(),
        method: DetectionMethod::Desktop,
        stability: StabilityLevel::Stable,
        version: "1".into(),
        confirmation_required: false,
        minimum_trust: TrustLevel::OBSERVE,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Verified,
        clear_parameters: Box::default(),
    }
}

/// What the fake application does with an invocation.
#[derive(Debug, Clone)]
pub(crate) enum Behave {
    Answer(&'static str),
    Fail { no_effect: bool },
    Vanish { no_effect: bool },
    Hang,
    Unsure,
}

#[derive(Debug)]
pub(crate) struct FakeApp {
    pub(crate) running: bool,
    pub(crate) behave: Mutex<Behave>,
    pub(crate) invoked: Mutex<u32>,
    pub(crate) refuses: Mutex<Option<&'static str>>,
}

impl Dispatcher for FakeApp {
    fn serves(&self, _app: &AppId) -> bool {
        self.running
    }

    async fn dispatch(
        &self,
        _invocation: Invocation<'_>,
        data: &mut Vec<u8>,
    ) -> Result<Reply, DispatchFailure> {
        *self.invoked.lock().unwrap() += 1;
        let behave = self.behave.lock().unwrap().clone();
        let ok = Reply { success: true, state_source: StateSource::Rust, failure: None };
        match behave {
            Behave::Answer(json) => {
                data.extend_from_slice(json.as_bytes());
                Ok(ok)
            }
            Behave::Hang => pending().await,
            Behave::Unsure => {
                let code = ErrorCode::OutcomeUnknown;
                let failure = ReplyFailure { code, message: "who knows".into(), no_effect: true };
                Ok(Reply { success: false, state_source: StateSource::Rust, failure: Some(failure) })
            }
            Behave::Fail { no_effect } => {
                let failure =
                    ReplyFailure { code: ErrorCode::ExecutionFailed, message: "disk full".into(), no_effect };
                Ok(Reply { success: false, state_source: StateSource::Rust, failure: Some(failure) })
            }
            Behave::Vanish { no_effect } => {
                let error = PcpError::new(ErrorCode::Unavailable, "the application closed the connection");
                Err(DispatchFailure { error, no_effect })
            }
        }
    }

    async fn validate(&self, _invocation: Invocation<'_>) -> Result<(), DispatchFailure> {
        match *self.refuses.lock().unwrap() {
            None => Ok(()),
            Some(why) => Err(DispatchFailure {
                error: PcpError::new(ErrorCode::InvalidParameters, why),
                no_effect: true,
            }),
        }
    }
}

/// One record as the fake log keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) trail: Trail,
    pub(crate) kind: RecordKind,
    pub(crate) operation: OperationId,
    pub(crate) capability: String,
    pub(crate) verdict: String,
    pub(crate) rule: String,
    pub(crate) params: String,
    pub(crate) end: Option<AuditEnd>,
    pub(crate) durable: bool,
}

#[derive(Debug, Default)]
pub(crate) struct FakeLog {
    pub(crate) kept: Mutex<Vec<Kept>>,
    /// Appending this and every later record fails.
    pub(crate) full_from: Mutex<Option<usize>>,
    /// This record and every later one never becomes durable.
    pub(crate) stuck_from: Mutex<Option<u64>>,
    /// Syncing this record and every later one fails.
    pub(crate) broken_from: Mutex<Option<u64>>,
}

impl AuditLogger for FakeLog {
    fn append(&self, entry: &AuditEntry<'_>, durability: Durability) -> Result<AuditTicket, AuditError> {
        let mut kept = self.kept.lock().unwrap();
        if self.full_from.lock().unwrap().is_some_and(|from| kept.len() >= from) {
            return Err(AuditError("no space left on device".into()));
        }
        kept.push(Kept {
            trail: entry.trail,
            kind: entry.kind,
            operation: entry.operation_id,
            capability: entry.capability.into(),
            verdict: entry.permission.verdict.into(),
            rule: entry.permission.rule.into(),
            params: entry.params.into(),
            end: entry.end,
            durable: durability == Durability::Durable,
        });
        Ok(AuditTicket { trail: entry.trail, seq: kept.len() as u64 - 1, hash: [7; 32] })
    }

    fn poll_durable(&self, ticket: &AuditTicket, _cx: &mut Context<'_>) -> Poll<Result<(), AuditError>> {
        let past = |from: &Mutex<Option<u64>>| from.lock().unwrap().is_some_and(|from| ticket.seq >= from);
        if past(&self.stuck_from) {
            return Poll::Pending;
        }
        Poll::Ready(if past(&self.broken_from) {
            Err(AuditError("input/output error".into()))
        } else {
            Ok(())
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Registry(RwLock<HashMap<CapabilityId, Arc<CapabilityDescriptor>>>);

impl CapabilityRegistry for Registry {
    /// Never waits: whoever holds the registry across an invocation is found out.
    fn register(&self, capability: CapabilityDescriptor) -> Result<(), RegistryError> {
        let mut map = self.0.try_write().unwrap();
        map.insert(capability.id.clone(), Arc::new(capability));
        Ok(())
    }
    fn unregister(&self, _id: &CapabilityId) -> Result<(), RegistryError> {
        unreachable!("the pipeline only reads")
    }
    fn get(&self, id: &CapabilityId) -> Option<Arc<CapabilityDescriptor>> {
        self.0.read().unwrap().get(id).cloned()
    }
    fn query(&self, _filter: &RegistryFilter<'_>) -> Vec<Arc<CapabilityDescriptor>> {
        unreachable!("the pipeline looks up by id")
    }
    fn register_app(&self, _app: AppEntry, _all: Vec<CapabilityDescriptor>) -> Result<(), RegistryError> {
        unreachable!("the pipeline only reads")
    }
    fn apps(&self) -> Vec<Arc<AppEntry>> {
        unreachable!("the pipeline looks up by id")
    }
}

/// As the ledger's.
pub(crate) const MAX_AHEAD_MS: u64 = 300_000;

#[derive(Debug, Default)]
struct Claims(Mutex<HashMap<OperationId, (ActionHash, Option<Terminal>)>>);

impl OperationClaims for Claims {
    fn begin(&self, id: OperationId, action: ActionHash, wall_ms: u64) -> ClaimState {
        let mut held = self.0.lock().unwrap();
        match held.get(&id) {
            Some((hash, _)) if *hash != action => ClaimState::Conflict,
            Some((_, Some(terminal))) => ClaimState::Ended(*terminal),
            Some((_, None)) => ClaimState::Running,
            None if id.unix_ms() > wall_ms + MAX_AHEAD_MS => {
                ClaimState::Skewed { ahead_ms: id.unix_ms() - wall_ms, limit_ms: MAX_AHEAD_MS }
            }
            None => {
                held.insert(id, (action, None));
                ClaimState::Fresh
            }
        }
    }
    fn forget(&self, id: OperationId) {
        self.0.lock().unwrap().remove(&id);
    }
    fn end(&self, id: OperationId, terminal: Terminal) {
        if let Some(held) = self.0.lock().unwrap().get_mut(&id) {
            held.1 = Some(terminal);
        }
    }
}

#[derive(Debug)]
pub(crate) struct FixedClock(AtomicU64);

impl Clock for FixedClock {
    fn monotonic_us(&self) -> u64 {
        0
    }
    fn wall_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The whole device.
pub(crate) struct Device {
    pub(crate) app: Arc<FakeApp>,
    pub(crate) log: Arc<FakeLog>,
    pub(crate) registry: Arc<Registry>,
    clock: Arc<FixedClock>,
    pub(crate) pipeline: ExecutionPipeline<Arc<FakeApp>>,
    pub(crate) scratch: Scratch,
}

pub(crate) const NOW_MS: u64 = 1_780_000_000_000;

impl Device {
    pub(crate) fn new(behave: Behave) -> Self {
        Self::with(behave, PipelineConfig::default(), PermissionStore::with_defaults(), |_| {})
    }

    pub(crate) fn with(
        behave: Behave,
        config: PipelineConfig,
        rules: PermissionStore,
        change: impl Fn(&mut CapabilityDescriptor),
    ) -> Self {
        let app = FakeApp { running: true, behave: behave.into(), invoked: 0.into(), refuses: None.into() };
        Self::over(app, config, rules, change)
    }

    pub(crate) fn over(
        app: FakeApp,
        config: PipelineConfig,
        rules: PermissionStore,
        change: impl Fn(&mut CapabilityDescriptor),
    ) -> Self {
        let ids = [
            "app.fake.read",
            "app.fake.set_value",
            "app.fake.delete",
            "app.fake.export",
            "app.fake.frobnicate",
            "compositor.fake.move",
            "compositor.fake.list",
            "system.fake.get",
            "system.fake.write",
        ];
        let registry = Arc::new(Registry::default());
        for id in ids {
            let mut one = capability(id);
            change(&mut one);
            registry.register(one).unwrap();
        }
        let (app, log) = (Arc::new(app), Arc::new(FakeLog::default()));
        let clock = Arc::new(FixedClock(NOW_MS.into()));
        let ports = Ports {
            registry: registry.clone(),
            permissions: Arc::new(PermissionEngine::new(rules)),
            audit: log.clone(),
            claims: Arc::new(Claims::default()),
            clock: clock.clone(),
        };
        let pipeline = ExecutionPipeline::new(ports, app.clone(), config);
        Self { app, log, registry, clock, pipeline, scratch: Scratch::default() }
    }

    pub(crate) async fn run(
        &mut self,
        caller: &AuthPrincipal,
        id: &str,
        parameters: &str,
    ) -> ExecutionResult {
        self.run_in(caller, id, parameters, envelope(1)).await
    }

    pub(crate) async fn run_in(
        &mut self,
        caller: &AuthPrincipal,
        id: &str,
        parameters: &str,
        envelope: Envelope,
    ) -> ExecutionResult {
        let (domain, rest) = id.split_once('.').unwrap();
        let (target_app, action) = rest.rsplit_once('.').unwrap();
        let intent = Intent { domain: domain.parse().unwrap(), action, target_app, parameters };
        self.pipeline
            .execute(caller, &Request { envelope, intent, names_element: false }, &mut self.scratch)
            .await
    }

    /// Sets the wall clock, back as well as forward.
    pub(crate) fn set_clock(&self, wall_ms: u64) {
        self.clock.0.store(wall_ms, Ordering::Relaxed);
    }

    pub(crate) fn invoked(&self) -> u32 {
        *self.app.invoked.lock().unwrap()
    }

    pub(crate) fn kept(&self) -> Vec<Kept> {
        self.log.kept.lock().unwrap().clone()
    }
}

pub(crate) fn envelope(n: u8) -> Envelope {
    Envelope {
        operation_id: OperationId::from_parts(NOW_MS, [n; 10]),
        deadline_ms: None,
        wait: true,
        dry_run: false,
    }
}

pub(crate) fn caller(domain: Domain, trust: u8) -> AuthPrincipal {
    AuthPrincipal {
        uid: 1000,
        pid: Some(1),
        domain,
        trust: TrustLevel::new(trust).unwrap(),
        admin: false,
        confirmer: false,
        modality: Modality::Remote,
        rate_per_second: None,
    }
}
