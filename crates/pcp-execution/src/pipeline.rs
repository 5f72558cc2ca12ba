//! The pipeline, meant to be read aloud: `steps` is the order, `execute` is the record around it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pcp_core::{
    AuditLogger, AuthPrincipal, CapabilityRegistry, Clock, Dispatcher, Domain, Envelope, Intent,
    InvocationContext, OperationClaims, OperationId, PermissionChecker, Stage, StateSource, StoredEnd,
    Terminal, Tier,
};

use crate::config::PipelineConfig;
use crate::facts::Facts;
use crate::result::{ExecutionResult, Plan, Scratch};
use crate::schema::ParameterSchemas;
use crate::stages::Refusal;
use crate::stages::claim::{Claimed, NotClaimed, Records, claim};
use crate::stages::classify::classify;
use crate::stages::dispatch::{Budget, dispatch};
use crate::stages::permit::permit;
use crate::stages::plan::{Checks, plan};
use crate::stages::record::{Ended, record};
use crate::stages::resolve::resolve;
use crate::stages::share::Shares;
use crate::stages::verify::{Verified, verify};
use crate::trace::{Trace, Traces};

/// An intent in its envelope.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Everything but the intent.
    pub envelope: Envelope,
    /// The intent.
    pub intent: Intent<'a>,
    /// Whether the request names an element of a window.
    pub names_element: bool,
}

/// The replaceable parts.
#[derive(Clone)]
pub struct Ports {
    /// What can be done.
    pub registry: Arc<dyn CapabilityRegistry>,
    /// Who may.
    pub permissions: Arc<dyn PermissionChecker>,
    /// What is recorded.
    pub audit: Arc<dyn AuditLogger>,
    /// Which operation ids are bound.
    pub claims: Arc<dyn OperationClaims>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ports").finish_non_exhaustive()
    }
}

/// The one way from an intent to an effect. The dispatcher is private to it.
#[derive(Debug)]
pub struct ExecutionPipeline<D> {
    pub(crate) ports: Ports,
    pub(crate) dispatcher: D,
    pub(crate) config: PipelineConfig,
    pub(crate) parameters: ParameterSchemas,
    results: ParameterSchemas,
    pub(crate) under_way: AtomicUsize,
    pub(crate) shares: Shares,
    traces: Traces,
}

/// Counts an operation while it is under way, however it ends.
pub(crate) struct UnderWay<'p>(&'p AtomicUsize);

impl<'p> UnderWay<'p> {
    pub(crate) fn begin(count: &'p AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How the steps ended short of a verified effect.
enum Stop {
    Refused(Refusal),
    Replayed(Terminal),
    Planned(Box<Plan>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<NotClaimed> for Stop {
    fn from(not: NotClaimed) -> Self {
        match not {
            NotClaimed::Refused(refusal) => Self::Refused(refusal),
            NotClaimed::Ended(terminal) => Self::Replayed(terminal),
        }
    }
}

impl<D: Dispatcher> ExecutionPipeline<D> {
    /// A pipeline over its ports.
    #[must_use]
    pub fn new(ports: Ports, dispatcher: D, config: PipelineConfig) -> Self {
        let (parameters, results) = (ParameterSchemas::default(), ParameterSchemas::default());
        Self {
            ports,
            dispatcher,
            config,
            parameters,
            results,
            under_way: AtomicUsize::new(0),
            shares: Shares::default(),
            traces: Traces::default(),
        }
    }

    /// How many operations are under way.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// How one of the newest operations went through the stages.
    #[must_use]
    pub fn trace(&self, operation: OperationId) -> Option<Trace> {
        self.traces.of(operation)
    }

    /// Runs one intent for `caller` and records it, however it ends. The application's answer is in `scratch`.
    pub async fn execute(
        &self,
        caller: &AuthPrincipal,
        request: &Request<'_>,
        scratch: &mut Scratch,
    ) -> ExecutionResult {
        let _counted = UnderWay::begin(&self.under_way);
        let operation = request.envelope.operation_id;
        let mut facts = Facts::new(caller, &request.intent, &*self.ports.clock);
        scratch.clear();

        let outcome = self.steps(request, &mut facts, scratch).await;

        let duration_us = facts.watch.elapsed_us();
        let mut result = ExecutionResult {
            operation_id: operation,
            terminal: Terminal::Succeeded,
            error: None,
            effect: None,
            tier: facts.tier,
            state_source: StateSource::Unknown,
            audit_hash: None,
            replayed: false,
            duration_us,
            plan: None,
        };
        let mut ended = match outcome {
            Ok(verified) => Ended::of(Ok(verified)),
            Err(Stop::Refused(refusal)) => Ended::of(Err(refusal)),
            Err(Stop::Replayed(terminal)) => {
                let StoredEnd { effect, tier, audit_hash } = self.ports.claims.stored(operation);
                let tier = tier.or(result.tier);
                let result = ExecutionResult { terminal, effect, tier, audit_hash, replayed: true, ..result };
                return self.trace_of(facts, result, false);
            }
            Err(Stop::Planned(plan)) => {
                return self.trace_of(facts, ExecutionResult { plan: Some(*plan), ..result }, false);
            }
        };
        facts.watch.enter(Stage::Audit);
        let moment = (self.ports.clock.wall_ms(), duration_us);
        match record(&ended, operation, moment, &scratch.params, &facts, &*self.ports.audit).await {
            Ok(ticket) => result.audit_hash = Some(ticket.hash),
            Err(error) if facts.claimed => ended.lose_record(&error.0),
            // Nothing was changed, so nothing is hidden; the writer has reported why it cannot write.
            Err(_) => {}
        }
        if facts.claimed {
            self.ports.claims.end(operation, ended.terminal);
        }
        if ended.terminal != Terminal::Succeeded {
            scratch.data.clear();
        }
        let timed_out = ended.timed_out();
        (result.terminal, result.error) = (ended.terminal, ended.error);
        (result.effect, result.state_source) = (ended.effect, ended.state_source);
        self.trace_of(facts, result, timed_out)
    }

    /// Keeps how the operation went, whatever its end, and hands its result on.
    fn trace_of(&self, mut facts: Facts<'_>, result: ExecutionResult, timed_out: bool) -> ExecutionResult {
        facts.watch.stop();
        self.traces.keep(Trace {
            operation_id: result.operation_id,
            uid: facts.caller.uid,
            capability: facts.capability,
            class: facts.class,
            verdict: facts.verdict,
            rule: facts.rule,
            gate: facts.gate,
            tier: result.tier,
            fallback: facts.fallback,
            dry_run: result.plan.is_some(),
            replayed: result.replayed,
            spans: facts.watch.spans().clone(),
            terminal: result.terminal,
            error: result.error.as_ref().map(|error| error.code),
            timed_out,
            duration_us: result.duration_us,
        });
        result
    }

    /// The order. Each step consumes what the one before it established.
    async fn steps(
        &self,
        request: &Request<'_>,
        facts: &mut Facts<'_>,
        scratch: &mut Scratch,
    ) -> Result<Verified, Stop> {
        let intent = &request.intent;
        let domain = intent.domain;
        let mut context = self.context(request, facts);
        facts.watch.enter(Stage::Classify);
        let classified = classify(intent, facts)?;
        facts.watch.enter(Stage::ResolveTarget);
        let resolved = resolve(classified, &*self.ports.registry, facts);
        resolved.redact_parameters(intent.parameters, &mut scratch.params);
        facts.watch.enter(Stage::CheckPermissions);
        let permitted = permit(resolved, &*self.ports.permissions, facts)?;
        let dry_run = request.envelope.dry_run;
        let consented = if dry_run { permitted.without_waiting() } else { permitted.wait()? };
        facts.watch.enter(Stage::ResolveAction);
        let planned = plan(consented, request, &context, &self.checks(), facts).await?;
        if dry_run {
            return Err(Stop::Planned(Box::new(planned.describe(facts, self.config.total(domain)))));
        }
        context.tier = planned.tier();
        facts.watch.enter(Stage::Execute);
        let clock = BudgetClock::start(&self.config, domain);
        let records =
            Records { audit: &*self.ports.audit, claims: &*self.ports.claims, shares: &self.shares };
        let moment = (self.ports.clock.wall_ms(), clock.execute().left);
        let operation = request.envelope.operation_id;
        let claimed: Claimed<'_> = claim(planned, operation, records, moment, &scratch.params, facts).await?;
        let budget = clock.execute();
        let data = &mut scratch.data;
        let dispatched =
            dispatch(claimed, &context, intent.parameters, &self.dispatcher, budget, data, facts).await?;
        facts.watch.enter(Stage::Verify);
        Ok(verify(dispatched, &self.results, scratch.data())?)
    }

    fn context(&self, request: &Request<'_>, facts: &Facts<'_>) -> InvocationContext {
        let budget = self.config.execute(request.intent.domain);
        InvocationContext {
            operation_id: request.envelope.operation_id,
            uid: facts.caller.uid,
            domain: facts.caller.domain,
            trust: facts.caller.trust,
            modality: facts.caller.modality,
            tier: Tier::One,
            budget_ms: u64::try_from(budget.as_millis()).unwrap_or(u64::MAX),
        }
    }

    fn checks(&self) -> Checks<'_, D> {
        Checks {
            wall_ms: self.ports.clock.wall_ms(),
            schemas: &self.parameters,
            dispatcher: &self.dispatcher,
            validate: Duration::from_millis(self.config.validate_ms),
        }
    }
}

/// The budget from claim to verification; starts when nothing is left to wait for.
struct BudgetClock {
    started: tokio::time::Instant,
    total: Duration,
    execute: Duration,
}

impl BudgetClock {
    fn start(config: &PipelineConfig, domain: Domain) -> Self {
        Self {
            started: tokio::time::Instant::now(),
            total: config.total(domain),
            execute: config.execute(domain),
        }
    }

    fn execute(&self) -> Budget {
        let whole_pipeline = self.total < self.execute;
        let limit = self.total.min(self.execute);
        Budget { left: limit.saturating_sub(self.started.elapsed()), limit, whole_pipeline }
    }
}
