//! Stage 5, second half: the only call that touches the world (invariant 4).

use std::sync::Arc;
use std::time::Duration;

use pcp_core::{
    CapabilityDescriptor, DispatchFailure, Dispatcher, ErrorCode, Invocation, InvocationContext, OutcomeKind,
    PcpError, Reply, Stage, StateSource,
};

use super::Refusal;
use super::claim::Claimed;
use crate::facts::Facts;

/// The application answered.
#[derive(Debug)]
pub(crate) struct Dispatched {
    pub(super) capability: Arc<CapabilityDescriptor>,
    pub(super) is_read: bool,
    pub(super) state_source: StateSource,
}

/// How long the dispatch may take, and which of the two clocks that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    pub(crate) left: Duration,
    pub(crate) limit: Duration,
    pub(crate) whole_pipeline: bool,
}

/// Sends the invocation. Whatever goes wrong from here on may have happened, unless it is certain that it did not.
pub(crate) async fn dispatch<D: Dispatcher>(
    claimed: Claimed<'_>,
    context: &InvocationContext,
    parameters: &str,
    dispatcher: &D,
    budget: Budget,
    data: &mut Vec<u8>,
    facts: &Facts<'_>,
) -> Result<Dispatched, Refusal> {
    let Claimed { planned, share: _held } = claimed;
    let invocation = Invocation { capability: &planned.capability, context, parameters };
    let answer = tokio::time::timeout(budget.left, dispatcher.dispatch(invocation, data)).await;
    let is_read = planned.is_read;
    let app = &planned.capability.app_id;
    let error = match answer {
        Ok(Ok(Reply { success: true, state_source, .. })) => {
            return Ok(Dispatched { state_source, is_read, capability: planned.capability });
        }
        Ok(Ok(Reply { failure, .. })) => {
            let (code, message, no_effect) = match failure {
                // "Unknown" and "nothing changed" exclude each other; the stricter word counts.
                Some(failure) => {
                    let certain = failure.no_effect && failure.code.kind() != OutcomeKind::Unknown;
                    (failure.code, failure.message, certain)
                }
                None => (ErrorCode::ExecutionFailed, "it gave no reason".to_owned(), false),
            };
            let message = format!("application {app} failed: {message}");
            return Err(after(PcpError::new(code, message), is_read || no_effect, facts));
        }
        Ok(Err(DispatchFailure { error, no_effect })) => {
            return Err(after(error, is_read || no_effect, facts));
        }
        Err(_) if budget.whole_pipeline => format!("pipeline timeout after {} ms", budget.limit.as_millis()),
        Err(_) => format!("stage execute overran its budget of {} ms", budget.limit.as_millis()),
    };
    let timeout = PcpError::new(ErrorCode::Timeout, format!("{error}: application {app} did not answer"));
    Err(Refusal { timed_out: true, ..after(timeout, is_read, facts) })
}

/// A failure after the application may have seen the invocation.
fn after(error: PcpError, certainly_nothing: bool, facts: &Facts<'_>) -> Refusal {
    let stage = Stage::Execute;
    if certainly_nothing {
        return Refusal { error: error.at(stage), stage, may_have_happened: false, timed_out: false };
    }
    let message = format!("{}; {} may have happened and is not repeated", error.message, facts.capability);
    let error = PcpError::new(ErrorCode::OutcomeUnknown, message).at(stage);
    let error = error.hint("look at the application's own state before you ask again");
    Refusal { error, stage, may_have_happened: true, timed_out: false }
}
