//! Everything that can be checked without an effect, in order; what fails here costs no operation id.

use pcp_core::v2::{
    ActionCapability, CapabilitiesFault, FailureCode, SessionIsolation, Terminal, ValidRequest,
};

use super::boundary::{Boundary, Over};
use super::context::Watch;
use super::ending::{
    CHANGED_TARGET, CONTEXT_UNAVAILABLE, ISOLATION_UNKNOWN, before_effect, of_capabilities, of_executor,
    rejected,
};
use super::executor::{Executor, TargetObservation};
use super::verification::is_fenced;

/// What an effect needs, found and checked.
pub(super) struct Prepared<R> {
    pub(super) backend: String,
    pub(super) capability: ActionCapability,
    pub(super) isolation: SessionIsolation,
    pub(super) before: TargetObservation,
    pub(super) resolved: R,
    pub(super) watch: Watch,
}

fn over(over: Over) -> Box<Terminal> {
    Box::new(before_effect(over))
}

/// Cancellation, deadline, isolation, capabilities, mode, the element as it is, the live element, the context.
pub(super) async fn prepare<E: Executor>(
    executor: &E,
    request: &ValidRequest,
    boundary: &Boundary,
) -> Result<Prepared<E::Resolved>, Box<Terminal>> {
    boundary.check().map_err(over)?;
    let asked = request.request();
    let target = request.element();
    let isolation = executor.session_isolation();
    if isolation == SessionIsolation::Unknown {
        return Err(Box::new(rejected(FailureCode::Unsupported, ISOLATION_UNKNOWN)));
    }
    let refuse = |fault| Box::new(of_capabilities(fault));
    let failed = |error| Box::new(of_executor(error));
    let report = boundary.run(executor.capabilities(boundary)).await.map_err(over)?.map_err(failed)?;
    let capability = report.route(asked.action.name()).map_err(refuse)?;
    if report.session_isolation != isolation {
        return Err(refuse(CapabilitiesFault::Isolation));
    }
    capability.permits(asked.interaction_mode, isolation).map_err(refuse)?;
    let before = boundary.run(executor.observe(target, boundary)).await.map_err(over)?.map_err(failed)?;
    if !is_fenced(target, &before) {
        return Err(Box::new(rejected(FailureCode::StaleTarget, CHANGED_TARGET)));
    }
    let resolved = boundary.run(executor.resolve(target, boundary)).await.map_err(over)?.map_err(failed)?;
    let watch = Watch::of(asked.interaction_mode, isolation);
    watch.sample(executor, boundary).await.map_err(unread)?;
    Ok(Prepared { backend: report.backend, capability, isolation, before, resolved, watch })
}

/// A context that was not read before the effect.
pub(super) fn unread(why: Option<Over>) -> Box<Terminal> {
    why.map_or_else(|| Box::new(rejected(FailureCode::Unsupported, CONTEXT_UNAVAILABLE)), over)
}
