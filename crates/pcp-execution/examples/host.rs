//! A host of protocol v2 in one process: it signs a request, its own executor does it, the end is kept and told again.
//!
//! The element is a text field that lives in this program. Run it twice with the same directory as its argument, and the
//! second run finds the operation of the first one.

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "an example prints, and ends where it cannot go on"
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use pcp_core::v2::{
    Action, ActionCapability, ActionName, ActionRequest, AuthorityGrant, BackgroundSupport, Capabilities,
    DeliveryRoute, InteractionMode, PROTOCOL_VERSION, SafetyClass, SemanticTargetRef, SessionIsolation,
    Sha256Hash, SignedAuthority, SteadyTime, TargetRef, VerificationPolicy, Wire as _, canonical_hash,
};
use pcp_core::{AuthPrincipal, Clock, Domain, Modality, TrustLevel};
use pcp_execution::engine::{
    ActionFacts, Boundary, CancellationToken, DispatchEffect, DispatchError, DurableStore, Engine, Executor,
    ExecutorError, TargetObservation,
};
use pcp_execution::{AuthorityKey, Ed25519AuthorityVerifier};
use pcp_trust::Signer;
use serde_json::json;

/// How long the request may take, in milliseconds.
const PATIENCE_MS: i64 = 60_000;

struct Machine(Instant);

impl Clock for Machine {
    fn monotonic_us(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
    fn wall_ms(&self) -> u64 {
        u64::try_from(now_ms()).unwrap_or(0)
    }
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// A text field.
#[derive(Default)]
struct Field(Mutex<String>);

impl Field {
    fn fingerprint() -> Sha256Hash {
        Sha256Hash::of(b"the one field of this program")
    }

    fn target() -> SemanticTargetRef {
        SemanticTargetRef {
            observation_id: Sha256Hash::of(b"observation").to_string(),
            provenance_hash: Sha256Hash::of(b"provenance").to_string(),
            element_id: Sha256Hash::of(b"element").to_string(),
            fingerprint_hash: Self::fingerprint().to_string(),
            generation: 1,
        }
    }
}

impl Executor for Field {
    type Resolved = ();

    fn session_isolation(&self) -> SessionIsolation {
        SessionIsolation::HostIsolated
    }

    async fn capabilities(&self, _: &Boundary) -> Result<Capabilities, ExecutorError> {
        Ok(Capabilities {
            platform: "linux".to_owned(),
            backend: "example".to_owned(),
            session_isolation: self.session_isolation(),
            supported_actions: vec![ActionName::SetValue],
            action_capabilities: vec![ActionCapability {
                action: ActionName::SetValue,
                delivery_route: DeliveryRoute::TargetAddressed,
                background_support: BackgroundSupport::HostIsolatedOnly,
            }],
            permissions: BTreeMap::new(),
            display_geometry_hash: Sha256Hash::ZERO,
        })
    }

    async fn observe(&self, _: &SemanticTargetRef, _: &Boundary) -> Result<TargetObservation, ExecutorError> {
        let value = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let state = json!({ "value_hash": Sha256Hash::of(value.as_bytes()).to_string() });
        Ok(TargetObservation {
            observation_hash: canonical_hash(&state),
            fingerprint_hash: Self::fingerprint(),
            display_geometry_hash: Sha256Hash::ZERO,
            state,
            observed_at_ms: now_ms(),
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
        boundary: &Boundary,
    ) -> Result<(), DispatchError> {
        let no_effect = |message| DispatchError {
            message,
            effect: DispatchEffect::NoEffect,
            code: pcp_core::v2::FailureCode::Unsupported,
        };
        boundary.check().map_err(|_| no_effect("the request was over before anything was done"))?;
        let Action::SetValue { value } = action else { return Err(no_effect("a field has a value only")) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(value);
        Ok(())
    }

    async fn changed(&self, _: &SemanticTargetRef, _: &Boundary) -> bool {
        false
    }
}

/// What a model proposed, signed by the host.
fn signed(signer: &Signer, operation_id: &str, value: &str) -> ActionRequest {
    let deadline_at_ms = now_ms().saturating_add(PATIENCE_MS);
    let grant = AuthorityGrant {
        protocol_version: PROTOCOL_VERSION,
        issuer: "example-host".to_owned(),
        key_id: "k1".to_owned(),
        operation_id: operation_id.to_owned(),
        subject: "alice".to_owned(),
        session_id: "s1".to_owned(),
        risk: SafetyClass::Reversible,
        expires_at_ms: deadline_at_ms,
        policy_generation: "gen1".to_owned(),
        action_hash: String::new(),
    };
    let mut request = ActionRequest {
        protocol_version: PROTOCOL_VERSION,
        action_version: PROTOCOL_VERSION,
        target_version: PROTOCOL_VERSION,
        verification_version: PROTOCOL_VERSION,
        operation_id: operation_id.to_owned(),
        subject: "alice".to_owned(),
        session_id: "s1".to_owned(),
        authority: SignedAuthority { grant, signature: String::new() },
        action: Action::SetValue { value: value.to_owned() },
        target: TargetRef::Element { target: Field::target() },
        interaction_mode: InteractionMode::BackgroundOnly,
        deadline_at_ms,
        verification: VerificationPolicy::TargetValueHash {
            sha256: Sha256Hash::of(value.as_bytes()).to_string(),
        },
        safety: SafetyClass::Reversible,
    };
    request.authority.grant.action_hash = request.action_hash().to_string();
    let signature = signer.sign(&request.authority.grant.signed_bytes()).to_bytes();
    request.authority.signature = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    request
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let kept = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or_else(|| kept.path().join("operations"), PathBuf::from);
    let clock: Arc<dyn Clock> = Arc::new(Machine(Instant::now()));
    let caller = AuthPrincipal {
        uid: 1_000,
        pid: None,
        domain: Domain::App,
        trust: TrustLevel::USER,
        admin: false,
        confirmer: false,
        modality: Modality::Current,
        rate_per_second: None,
    };
    let (store, recovery) = DurableStore::open(&directory, Arc::clone(&clock), ActionFacts::of(caller))?;
    println!("opened {}: {} operations are unknown", directory.display(), recovery.unknown.len());
    let time = SteadyTime::since(store.high_water_ms(), &*clock);
    // A real host keeps its key; this one signs for itself alone.
    let signer = Signer::from_secret_bytes(&[7; 32]);
    let verifier = Ed25519AuthorityVerifier::new([AuthorityKey {
        issuer: "example-host".to_owned(),
        key_id: "k1".to_owned(),
        policy_generation: "gen1".to_owned(),
        public_key: signer.verifier().to_bytes(),
    }])?;
    let engine = Engine::new(Field::default(), verifier, store, clock, time);

    if let Some(ack) = engine.status("example-1").await? {
        println!("an earlier run: {}", ack.to_value());
        return Ok(());
    }
    let request = signed(&signer, "example-1", "Milk");
    for round in ["first", "again"] {
        let report = engine.execute(request.clone(), &CancellationToken::new()).await?;
        let states: Vec<String> = report
            .acknowledgements
            .iter()
            .map(|ack| format!("{} (replayed: {})", ack.sequence, ack.replayed))
            .collect();
        println!("{round}: {}", states.join(", "));
        let terminal = report.terminal().ok_or("still under way")?;
        println!("  {}, retry safe: {}", terminal.kind(), terminal.retry_safe());
    }
    println!("{}", engine.status("example-1").await?.ok_or("not kept")?.to_value());
    Ok(())
}
