//! A whole intent through the pipeline, with the real registry, permissions and trails, and an application
//! that answers at once.

use std::sync::Arc;

use pcp_core::{
    AppId, AuthPrincipal, CapabilityDescriptor, CapabilityId, CapabilityRegistry, Clock, DetectionMethod,
    DispatchFailure, Dispatcher, Domain, Envelope, Intent, Invocation, Modality, OperationId,
    PermissionEngine, PermissionStore, Reply, SignatureStatus, StabilityLevel, StateSource, Terminal,
    TrustLevel,
};
use pcp_daemon::clock::SystemClock;
use pcp_durable::AuditLog;
use pcp_execution::{ExecutionPipeline, PipelineConfig, Ports, Request, Scratch};
use pcp_registry::InMemoryRegistry;

/// Reads whose records may wait for the writer: an emulated processor runs one thread at a time, and a full
/// buffer would make a read cheaper than it is.
const FLUSH_EVERY: u64 = 64;

/// Answers at once.
#[derive(Debug)]
struct Instant;

impl Dispatcher for Instant {
    fn serves(&self, _app: &AppId) -> bool {
        true
    }

    async fn dispatch(
        &self,
        _invocation: Invocation<'_>,
        data: &mut Vec<u8>,
    ) -> Result<Reply, DispatchFailure> {
        data.extend_from_slice(br#"{"notes":[]}"#);
        Ok(Reply { success: true, state_source: StateSource::Rust, failure: None })
    }

    async fn validate(&self, _invocation: Invocation<'_>) -> Result<(), DispatchFailure> {
        Ok(())
    }
}

/// A pipeline, its caller and its trails in a temporary folder.
#[derive(Debug)]
pub struct Lifecycle {
    pipeline: ExecutionPipeline<Instant>,
    caller: AuthPrincipal,
    scratch: Scratch,
    operations: u64,
    runtime: tokio::runtime::Runtime,
    audit: Arc<AuditLog>,
    _folder: tempfile::TempDir,
}

impl Lifecycle {
    /// A pipeline with one reading and one writing capability.
    ///
    /// # Errors
    /// What keeps a trail or a runtime from being made.
    pub fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let (audit, _) = AuditLog::open(&folder.path().join("audit"), SystemClock.wall_ms())?;
        let audit = Arc::new(audit);
        let registry = Arc::new(InMemoryRegistry::new());
        for (id, side_effects) in [("app.bench.list", false), ("app.bench.create", true)] {
            registry.register(capability(id, side_effects)?)?;
        }
        let ports = Ports {
            registry,
            permissions: Arc::new(PermissionEngine::new(PermissionStore::with_defaults())),
            audit: audit.clone(),
            claims: audit.ledger().clone(),
            clock: Arc::new(SystemClock),
        };
        let caller = AuthPrincipal {
            uid: 1000,
            pid: Some(1),
            domain: Domain::App,
            trust: TrustLevel::USER,
            admin: false,
            confirmer: false,
            modality: Modality::Remote,
            rate_per_second: None,
        };
        Ok(Self {
            pipeline: ExecutionPipeline::new(ports, Instant, PipelineConfig::default()),
            caller,
            scratch: Scratch::default(),
            operations: 0,
            runtime: tokio::runtime::Builder::new_current_thread().enable_time().build()?,
            audit,
            _folder: folder,
        })
    }

    /// One read: classify to record, unsynced.
    pub fn read(&mut self) {
        self.run("list");
    }

    /// One effect at trust level 1: both durable records included.
    pub fn effect(&mut self) {
        self.run("create");
    }

    fn run(&mut self, action: &'static str) {
        self.operations += 1;
        if self.operations.is_multiple_of(FLUSH_EVERY) {
            assert!(self.audit.flush().is_ok(), "the trails take what they are given");
        }
        let mut entropy = [0; 10];
        entropy[2..].copy_from_slice(&self.operations.to_be_bytes());
        let envelope = Envelope {
            operation_id: OperationId::from_parts(SystemClock.wall_ms(), entropy),
            deadline_ms: None,
            wait: true,
            dry_run: false,
        };
        let intent =
            Intent { domain: Domain::App, action, target_app: "bench", parameters: r#"{"limit":20}"# };
        let request = Request { envelope, intent, names_element: false };
        let result = self.runtime.block_on(self.pipeline.execute(&self.caller, &request, &mut self.scratch));
        assert_eq!(result.terminal, Terminal::Succeeded, "{:?}", result.error);
        assert_eq!(self.scratch.data(), r#"{"notes":[]}"#);
    }
}

fn capability(id: &str, side_effects: bool) -> Result<CapabilityDescriptor, pcp_core::IdError> {
    let id = CapabilityId::parse(id)?;
    Ok(CapabilityDescriptor {
        app_id: AppId::parse(id.app())?,
        domain: id.domain(),
        id,
        name: "bench".into(),
        description: "".into(),
        category: "".into(),
        input_schema:
            r#"{"type":"object","properties":{"limit":{"type":"integer"}},"additionalProperties":false}"#
                .into(),
        output_schema: r#"{"type":"object"}"#.into(),
        method: DetectionMethod::Desktop,
        stability: StabilityLevel::Stable,
        version: "1".into(),
        side_effects,
        confirmation_required: false,
        minimum_trust: TrustLevel::OBSERVE,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Verified,
        clear_parameters: Box::default(),
    })
}
