//! The pipeline without daemon, socket or disk: every port is this file's own (R-057, R-213).
//!
//! Prints how an effect, a read and a denied intent end, and what was recorded of them.

#![allow(clippy::unwrap_used, reason = "an example that cannot go on ends")]

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use pcp_core::ports::RegistryError;
use pcp_core::*;
use pcp_execution::{ExecutionPipeline, PipelineConfig, Ports, Request, Scratch};

/// Knows one application by heart.
struct OneApp(Vec<Arc<CapabilityDescriptor>>);

impl CapabilityRegistry for OneApp {
    fn register(&self, capability: CapabilityDescriptor) -> Result<(), RegistryError> {
        Err(RegistryError::Full { what: "capabilities", limit: self.0.len(), id: capability.id.to_string() })
    }
    fn unregister(&self, id: &CapabilityId) -> Result<(), RegistryError> {
        Err(RegistryError::NotFound(id.to_string()))
    }
    fn get(&self, id: &CapabilityId) -> Option<Arc<CapabilityDescriptor>> {
        self.0.iter().find(|capability| capability.id == *id).cloned()
    }
    fn query(&self, _filter: &RegistryFilter<'_>) -> Vec<Arc<CapabilityDescriptor>> {
        self.0.clone()
    }
    fn register_app(&self, app: AppEntry, _all: Vec<CapabilityDescriptor>) -> Result<(), RegistryError> {
        Err(RegistryError::Full { what: "applications", limit: 1, id: app.id.to_string() })
    }
    fn apps(&self) -> Vec<Arc<AppEntry>> {
        Vec::new()
    }
}

/// Lets everything through that is in the App domain.
struct AppsOnly;

impl PermissionChecker for AppsOnly {
    fn check(&self, caller: &AuthPrincipal, asked: &PermissionQuestion<'_>) -> Verdict<'_> {
        match asked.id.domain() {
            Domain::App => Verdict::Allowed { rule: "apps-only", gate: Gate::Allow },
            needs => Verdict::Denied(Denial::Domain { needs, holds: caller.domain }),
        }
    }
}

/// Keeps records in memory; every one is durable at once.
#[derive(Default)]
struct Memory(Mutex<Vec<String>>);

impl AuditLogger for Memory {
    fn append(&self, entry: &AuditEntry<'_>, _durability: Durability) -> Result<AuditTicket, AuditError> {
        let mut records = self.0.lock().unwrap();
        records.push(format!("{:?} {} {}", entry.kind, entry.capability, entry.permission.verdict));
        Ok(AuditTicket { trail: entry.trail, seq: records.len() as u64, hash: [0; 32] })
    }
    fn poll_durable(&self, _ticket: &AuditTicket, _cx: &mut Context<'_>) -> Poll<Result<(), AuditError>> {
        Poll::Ready(Ok(()))
    }
}

/// Every operation is new.
struct AlwaysFresh;

impl OperationClaims for AlwaysFresh {
    fn begin(&self, _id: OperationId, _action: ActionHash, _wall_ms: u64) -> ClaimState {
        ClaimState::Fresh
    }
    fn forget(&self, _id: OperationId) {}
    fn end(&self, _id: OperationId, _terminal: Terminal) {}
}

/// Answers whatever it is asked.
struct Echo;

impl Dispatcher for Echo {
    fn serves(&self, _app: &AppId) -> bool {
        true
    }
    async fn dispatch(
        &self,
        invocation: Invocation<'_>,
        data: &mut Vec<u8>,
    ) -> Result<Reply, DispatchFailure> {
        data.extend_from_slice(invocation.parameters.as_bytes());
        Ok(Reply { success: true, state_source: StateSource::Rust, failure: None })
    }
    async fn validate(&self, _invocation: Invocation<'_>) -> Result<(), DispatchFailure> {
        Ok(())
    }
}

/// Stands still.
struct Still;

impl Clock for Still {
    fn monotonic_us(&self) -> u64 {
        0
    }
    fn wall_ms(&self) -> u64 {
        1_780_000_000_000
    }
}

fn capability(id: &str, side_effects: bool) -> Arc<CapabilityDescriptor> {
    let id = CapabilityId::parse(id).unwrap();
    Arc::new(CapabilityDescriptor {
        app_id: AppId::parse(id.app()).unwrap(),
        domain: id.domain(),
        id,
        name: "".into(),
        description: "".into(),
        category: "".into(),
        input_schema: "{}".into(),
        output_schema: "{}".into(),
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

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let memory = Arc::new(Memory::default());
    let ports = Ports {
        registry: Arc::new(OneApp(vec![
            capability("app.echo.create", true),
            capability("app.echo.read", false),
        ])),
        permissions: Arc::new(AppsOnly),
        audit: memory.clone(),
        claims: Arc::new(AlwaysFresh),
        clock: Arc::new(Still),
    };
    let pipeline = ExecutionPipeline::new(ports, Echo, PipelineConfig::default());
    let caller = AuthPrincipal {
        uid: 1000,
        pid: None,
        domain: Domain::App,
        trust: TrustLevel::USER,
        admin: false,
        confirmer: false,
        modality: Modality::Remote,
        rate_per_second: None,
    };
    let mut scratch = Scratch::default();
    let expected = [Terminal::Succeeded, Terminal::Succeeded, Terminal::Rejected];
    for ((domain, app, action), terminal) in [
        (Domain::App, "echo", "create"),
        (Domain::App, "echo", "read"),
        (Domain::System, "power", "shutdown"),
    ]
    .into_iter()
    .zip(expected)
    {
        let operation_id = OperationId::from_parts(1_780_000_000_000, [action.len().try_into().unwrap(); 10]);
        let envelope = Envelope { operation_id, deadline_ms: None, wait: true, dry_run: false };
        let intent = Intent { domain, action, target_app: app, parameters: r#"{"text":"hello"}"# };
        let request = Request { envelope, intent, names_element: false };
        let result = pipeline.execute(&caller, &request, &mut scratch).await;
        println!("{domain}.{app}.{action}: {} {}", result.terminal, scratch.data());
        assert_eq!(result.terminal, terminal);
    }
    let records = memory.0.lock().unwrap();
    for record in records.iter() {
        println!("recorded: {record}");
    }
    assert_eq!(records.len(), 4, "an intent and its end, a read, a refusal");
}
