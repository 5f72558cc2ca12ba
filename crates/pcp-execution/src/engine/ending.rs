//! The acknowledgements and receipts of one operation, and the fixed sentences that stand in them.

use pcp_core::v2::{
    AckState, ActionAck, CapabilitiesFault, Effect, FailureCode, PROTOCOL_VERSION, Terminal, ValidRequest,
};

use super::boundary::Over;
use super::executor::{ExecutorError, ExecutorFault};

pub(super) const NOT_DURABLE: &str =
    "the end could not be stored; whether it will be found again is not known";
pub(super) const NOT_PROVEN: &str = "the requested verification did not prove the effect";
pub(super) const CONTEXT_CHANGED: &str = "the foreground, focus or pointer changed, or could not be compared";
pub(super) const OVER_AFTER: &str = "the operation was cancelled or expired when its effect may have begun";
pub(super) const CONTEXT_UNAVAILABLE: &str = "the foreground, focus and pointer cannot be read";
pub(super) const CHANGED_TARGET: &str = "the element no longer looks as it was observed";
pub(super) const NOT_REQUESTED: &str = "verification was not requested";
pub(super) const ISOLATION_UNKNOWN: &str = "the executor does not know whose desktop it acts on";

fn ack(operation_id: &str, request_hash: pcp_core::v2::Sha256Hash, state: AckState) -> ActionAck {
    ActionAck {
        protocol_version: PROTOCOL_VERSION,
        operation_id: operation_id.to_owned(),
        sequence: state.sequence(),
        action_hash: request_hash,
        replayed: false,
        state,
    }
}

pub(super) fn ack_of(request: &ValidRequest, state: AckState) -> ActionAck {
    ack(&request.request().operation_id, request.action_hash(), state)
}

pub(super) fn ended(request: &ValidRequest, terminal: Terminal) -> ActionAck {
    ack_of(request, AckState::Terminal { terminal: Box::new(terminal) })
}

pub(super) fn rejected(code: FailureCode, message: &str) -> Terminal {
    Terminal::Rejected { code, message: message.to_owned() }
}

pub(super) const fn before_effect(over: Over) -> Terminal {
    match over {
        Over::Cancelled => Terminal::CancelledBeforeEffect,
        Over::Expired => Terminal::ExpiredBeforeEffect,
    }
}

/// A step without effect that failed: what is wrong with the request is rejected, what does not work has failed.
pub(super) fn of_executor(error: ExecutorError) -> Terminal {
    let message = error.message.to_owned();
    let code = match error.fault {
        ExecutorFault::Stale => FailureCode::StaleTarget,
        ExecutorFault::NotFound => FailureCode::TargetNotFound,
        ExecutorFault::Invalid => FailureCode::InvalidRequest,
        ExecutorFault::PermissionDenied => FailureCode::PermissionDenied,
        ExecutorFault::Unsupported => FailureCode::Unsupported,
        ExecutorFault::Failed => return Terminal::Failed { code: FailureCode::DispatchFailed, message },
    };
    Terminal::Rejected { code, message }
}

pub(super) fn of_capabilities(fault: CapabilitiesFault) -> Terminal {
    rejected(FailureCode::Unsupported, &fault.to_string())
}

/// A success that could not be stored is not known to have been one: whoever asks again will hear "unknown".
pub(super) fn not_durable(terminal: Terminal) -> Terminal {
    match terminal {
        Terminal::Succeeded { mut receipt } | Terminal::OutcomeUnknown { mut receipt, .. } => {
            receipt.effect = Effect::Unknown;
            Terminal::OutcomeUnknown { receipt, message: NOT_DURABLE.to_owned() }
        }
        other => other,
    }
}
