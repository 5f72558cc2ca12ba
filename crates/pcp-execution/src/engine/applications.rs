//! The executor of Tier 1: every application that serves its socket is one element, which has a value (C46).
//!
//! `invoke` and `set_value` are the application's own capabilities of these names, its value is what its `get_value`
//! answers. An application with more elements than itself is the accessibility tier's.

use std::borrow::Cow;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use pcp_core::v2::{
    Action, ActionCapability, ActionName, Actionability, BackgroundSupport, Capabilities, DeliveryRoute,
    FailureCode, SemanticTargetRef, SessionIsolation, Sha256Hash, VerificationPolicy, Wire as _,
    canonical_hash,
};
use pcp_core::{
    AppId, AuthPrincipal, CapabilityDescriptor, CapabilityId, DispatchFailure, Dispatcher, Domain, Gate,
    Invocation, InvocationContext, OperationId, OutcomeKind, PermissionQuestion, Reply, Tier, TrustLevel,
    Verdict,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::boundary::{Boundary, Over};
use super::door::{ActionDoor, Processes};
use super::durable::DurableStore;
use super::executor::{
    DispatchEffect, DispatchError, Executor, ExecutorError, ExecutorFault, TargetObservation,
};
use super::observations::Seen;
use crate::pipeline::ExecutionPipeline;
use crate::stages::share::Share;

/// The name of this executor in reports, receipts and observations.
pub(super) const BACKEND: &str = "pcp-tier1";

const STALE: &str = "the target is of no observation that still holds; observe the application again";
const OTHER_PROCESS: &str = "another process serves the application now; observe it again";
const NOT_RUNNING: &str = "the application is not running";
const DENIED: &str = "the policy denies the action to the caller";
const CONFIRM: &str = "a person has to confirm the action, and no confirmer is connected";
const NOT_OFFERED: &str = "the application does not offer the action";
const NO_VALUE: &str = "the application does not tell its value, so that setting it cannot be verified";
const BAD_VALUE: &str = "the application does not take such a value";
const BUSY: &str = "as many effects are under way as may be";
const UNANSWERED: &str = "the application did not tell its value in time";
const LATE: &str = "the application did not answer within the budget of its domain";
const REFUSED: &str = "the application refused and certifies that nothing changed";
const FAILED: &str = "the application failed and certifies nothing";
const UNREACHED: &str = "the application was not reached";
const LOST: &str = "the connection to the application was lost";

/// What an application is asked for one action.
pub(super) struct Asked<'r> {
    pub(super) caller: &'r AuthPrincipal,
    pub(super) operation: OperationId,
    pub(super) action: &'r Action,
    pub(super) target: &'r SemanticTargetRef,
}

/// The executor of one request.
pub(super) struct TierOne<'p, D, P> {
    pub(super) pipeline: &'p ExecutionPipeline<D>,
    pub(super) door: &'p ActionDoor<P>,
    pub(super) store: &'p DurableStore,
    pub(super) asked: Asked<'p>,
}

/// An action that may be dispatched.
pub(super) struct Ready<'p> {
    capability: Arc<CapabilityDescriptor>,
    parameters: Cow<'static, str>,
    _share: Share<'p>,
}

/// One application as an element.
pub(super) struct Element {
    pub(super) fingerprint: Sha256Hash,
    pub(super) actionability: Actionability,
}

fn fault(fault: ExecutorFault, message: &'static str) -> ExecutorError {
    ExecutorError { fault, message }
}

/// Nobody is at the application's socket.
pub(super) fn not_running() -> ExecutorError {
    fault(ExecutorFault::NotFound, NOT_RUNNING)
}

const fn no_effect(message: &'static str) -> DispatchError {
    DispatchError { message, effect: DispatchEffect::NoEffect, code: FailureCode::DispatchFailed }
}

const fn unknown(message: &'static str) -> DispatchError {
    DispatchError { message, effect: DispatchEffect::Unknown, code: FailureCode::DispatchFailed }
}

impl<D: Dispatcher> ExecutionPipeline<D> {
    /// The application's capability of this name, if something live serves it.
    fn offered(&self, app: &AppId, action: &str) -> Option<Arc<CapabilityDescriptor>> {
        let id = CapabilityId::from_parts(Domain::App, app.as_str(), action).ok()?;
        self.ports.registry.get(&id).filter(|capability| capability.executable)
    }

    /// The application as it can be acted on now.
    pub(super) fn element(&self, app: &AppId) -> Element {
        let [invoke, set, get] = ["invoke", "set_value", "get_value"].map(|action| self.offered(app, action));
        let versions: Vec<Value> = [&invoke, &set, &get]
            .into_iter()
            .map(|one| one.as_ref().map_or(Value::Null, |one| json!([&*one.version, &*one.input_schema])))
            .collect();
        let served = self.dispatcher.serves(app);
        Element {
            fingerprint: canonical_hash(&json!([BACKEND, app.as_str(), versions])),
            actionability: Actionability {
                visible: served,
                enabled: served,
                unambiguous: true,
                stable: true,
                receives_events: false,
                invokable: invoke.is_some(),
                editable: set.is_some() && get.is_some(),
            },
        }
    }

    /// The application's state: what can be done with it, and the hash of its value where it tells one.
    pub(super) async fn state(
        &self,
        app: &AppId,
        caller: &AuthPrincipal,
        operation: OperationId,
        actionability: Actionability,
    ) -> Result<Value, ExecutorError> {
        let mut state = json!({ "actionability": actionability.to_value() });
        let Some(capability) = self.offered(app, "get_value").filter(|get| get.changes_nothing()) else {
            return Ok(state);
        };
        let (context, mut data) = (self.told(caller, operation), Vec::new());
        let read = Invocation { capability: &capability, context: &context, parameters: "{}" };
        let limit = self.config.execute(Domain::App).min(self.config.total(Domain::App));
        let reply = tokio::time::timeout(limit, self.dispatcher.dispatch(read, &mut data)).await;
        let Ok(Ok(Reply { success: true, .. })) = reply else {
            return Err(fault(ExecutorFault::Failed, UNANSWERED));
        };
        let value = serde_json::from_slice::<Value>(&data).ok();
        if let Some(value) = value.as_ref().and_then(|value| value.get("value")).and_then(Value::as_str) {
            state["value_hash"] = Value::from(Sha256Hash::of(value.as_bytes()).to_string());
        }
        Ok(state)
    }

    fn told(&self, caller: &AuthPrincipal, operation_id: OperationId) -> InvocationContext {
        let budget = self.config.execute(Domain::App);
        InvocationContext {
            operation_id,
            uid: caller.uid,
            domain: caller.domain,
            trust: caller.trust,
            modality: caller.modality,
            tier: Tier::One,
            budget_ms: u64::try_from(budget.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

impl<'p, D: Dispatcher, P: Processes> TierOne<'p, D, P> {
    fn seen(&self) -> Result<Arc<Seen<AppId>>, ExecutorError> {
        let found = self.door.observations.find(self.asked.target, &*self.pipeline.ports.clock);
        found.ok_or_else(|| fault(ExecutorFault::Stale, STALE))
    }

    fn action(&self) -> ActionName {
        self.asked.action.name()
    }

    /// Policy and gate, by the same engine that judges intents, before anything of the application is told.
    fn permit(&self, app: &AppId) -> Result<(), ExecutorError> {
        let denied = |message| Err(fault(ExecutorFault::PermissionDenied, message));
        let name = self.action().as_str();
        let Ok(id) = CapabilityId::from_parts(Domain::App, app.as_str(), name) else {
            return Err(fault(ExecutorFault::Invalid, NOT_OFFERED));
        };
        let ports = &self.pipeline.ports;
        let found = ports.registry.get(&id);
        let mut facts = self.store.facts();
        app.as_str().clone_into(&mut facts.target_app);
        let asked = PermissionQuestion {
            id: &id,
            class: facts.class(),
            service: false,
            confirmation_required: found.as_ref().is_some_and(|one| one.confirmation_required),
            minimum_trust: found.as_ref().map_or(TrustLevel::OBSERVE, |one| one.minimum_trust),
        };
        match ports.permissions.check(self.asked.caller, &asked) {
            Verdict::Denied(denial) => {
                facts.verdict = "denied";
                denial.rule().clone_into(&mut facts.rule);
                denied(DENIED)
            }
            Verdict::Allowed { rule, gate } => {
                facts.verdict = "allowed";
                rule.clone_into(&mut facts.rule);
                facts.gate = gate.as_str();
                if gate == Gate::Allow { Ok(()) } else { denied(CONFIRM) }
            }
        }
    }

    /// The parameters of the capability that does the action.
    fn parameters(&self) -> Result<Cow<'static, str>, ExecutorError> {
        match self.asked.action {
            Action::Invoke {} => Ok("{}".into()),
            Action::SetValue { value } => Ok(json!({ "value": value }).to_string().into()),
            _ => Err(fault(ExecutorFault::Unsupported, NOT_OFFERED)),
        }
    }

    async fn look(&self, target: &SemanticTargetRef) -> Result<TargetObservation, ExecutorError> {
        let seen = self.seen()?;
        self.same_process(&seen).await?;
        if seen.element(target).is_none() {
            return Err(fault(ExecutorFault::NotFound, STALE));
        }
        let element = self.pipeline.element(&seen.backend);
        let asked = &self.asked;
        let state =
            self.pipeline.state(&seen.backend, asked.caller, asked.operation, element.actionability).await?;
        let provenance = seen.observation.provenance_hash();
        Ok(TargetObservation {
            observation_hash: canonical_hash(&Value::Array(vec![
                provenance.to_value(),
                element.fingerprint.to_value(),
                state.clone(),
            ])),
            fingerprint_hash: element.fingerprint,
            display_geometry_hash: Sha256Hash::ZERO,
            state,
            observed_at_ms: self.door.now_ms(&*self.pipeline.ports.clock),
        })
    }

    async fn same_process(&self, seen: &Seen<AppId>) -> Result<(), ExecutorError> {
        let now = self.door.processes.process(&seen.backend).await;
        let now = now.ok_or_else(|| fault(ExecutorFault::Stale, NOT_RUNNING))?;
        let then = &seen.observation.provenance;
        if (now.id, now.generation.as_str()) == (then.process_id, then.process_generation.as_str()) {
            Ok(())
        } else {
            Err(fault(ExecutorFault::Stale, OTHER_PROCESS))
        }
    }
}

impl<'p, D: Dispatcher, P: Processes> Executor for TierOne<'p, D, P> {
    type Resolved = Ready<'p>;

    fn session_isolation(&self) -> SessionIsolation {
        SessionIsolation::SharedDesktop
    }

    async fn capabilities(&self, _boundary: &Boundary) -> Result<Capabilities, ExecutorError> {
        if let Ok(seen) = self.seen() {
            self.permit(&seen.backend)?;
        }
        Ok(report())
    }

    async fn observe(
        &self,
        target: &SemanticTargetRef,
        _boundary: &Boundary,
    ) -> Result<TargetObservation, ExecutorError> {
        // Boxed: it is waited for before and after the effect, and would be compiled into both places.
        let look: Pin<Box<dyn Future<Output = _> + '_>> = Box::pin(self.look(target));
        look.await
    }

    async fn resolve(
        &self,
        _target: &SemanticTargetRef,
        _boundary: &Boundary,
    ) -> Result<Ready<'p>, ExecutorError> {
        let seen = self.seen()?;
        let app = &seen.backend;
        let unsupported = |message| fault(ExecutorFault::Unsupported, message);
        let capability = self.pipeline.offered(app, self.action().as_str());
        let capability = capability.ok_or_else(|| unsupported(NOT_OFFERED))?;
        if matches!(self.asked.action, Action::SetValue { .. })
            && !self.pipeline.element(app).actionability.editable
        {
            return Err(unsupported(NO_VALUE));
        }
        let parameters = self.parameters()?;
        let sha256 = Sha256::digest(parameters.as_bytes()).into();
        let checked = self.pipeline.parameters.check(&capability, &parameters, &sha256);
        checked.map_err(|_| fault(ExecutorFault::Invalid, BAD_VALUE))?;
        if !self.pipeline.dispatcher.serves(app) {
            return Err(fault(ExecutorFault::Failed, NOT_RUNNING));
        }
        let share = self.pipeline.shares.take(self.asked.caller.uid, app);
        let share = share.map_err(|_| fault(ExecutorFault::Failed, BUSY))?;
        Ok(Ready { capability, parameters, _share: share })
    }

    async fn shared_context(&self, _boundary: &Boundary) -> Option<Sha256Hash> {
        // A socket tells nothing of foreground, focus and pointer.
        None
    }

    async fn dispatch(
        &self,
        _action: &Action,
        ready: Ready<'p>,
        _verification: &VerificationPolicy,
        boundary: &Boundary,
    ) -> Result<(), DispatchError> {
        if let Err(over) = boundary.check() {
            let effect = match over {
                Over::Cancelled => DispatchEffect::CancelledBeforeEffect,
                Over::Expired => DispatchEffect::ExpiredBeforeEffect,
            };
            return Err(DispatchError { effect, ..no_effect(UNREACHED) });
        }
        let context = self.pipeline.told(self.asked.caller, self.asked.operation);
        let invocation =
            Invocation { capability: &ready.capability, context: &context, parameters: &ready.parameters };
        let config = &self.pipeline.config;
        let budget = config.execute(Domain::App).min(config.total(Domain::App));
        let mut data = Vec::new();
        let answer =
            tokio::time::timeout(budget, self.pipeline.dispatcher.dispatch(invocation, &mut data)).await;
        match answer {
            Ok(Ok(Reply { success: true, .. })) => Ok(()),
            Ok(Ok(Reply { failure, .. })) => {
                let certain =
                    failure.is_some_and(|one| one.no_effect && one.code.kind() != OutcomeKind::Unknown);
                Err(if certain { no_effect(REFUSED) } else { unknown(FAILED) })
            }
            Ok(Err(DispatchFailure { no_effect: true, .. })) => Err(no_effect(UNREACHED)),
            Ok(Err(_)) => Err(unknown(LOST)),
            Err(_) => Err(unknown(LATE)),
        }
    }

    async fn changed(&self, _target: &SemanticTargetRef, _boundary: &Boundary) -> bool {
        // Whoever answers on a socket has done it; there is nothing to wait for.
        false
    }
}

/// What Tier 1 can do: the two actions that are addressed to their target.
pub(super) fn report() -> Capabilities {
    let addressed = |action| ActionCapability {
        action,
        delivery_route: DeliveryRoute::TargetAddressed,
        background_support: BackgroundSupport::Unavailable,
    };
    let actions = [ActionName::Invoke, ActionName::SetValue];
    Capabilities {
        platform: "linux".to_owned(),
        backend: BACKEND.to_owned(),
        session_isolation: SessionIsolation::SharedDesktop,
        supported_actions: actions.to_vec(),
        action_capabilities: actions.map(addressed).to_vec(),
        permissions: std::collections::BTreeMap::new(),
        display_geometry_hash: Sha256Hash::ZERO,
    }
}
