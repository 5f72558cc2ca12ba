//! What records say of an operation beside what the protocol knows: who, whose, as what it is judged, how it ended.

use pcp_core::v2::{AckState, ActionAck, ActionName, FailureCode, SafetyClass, Terminal};
use pcp_core::{ActionClass, AuditEnd, AuthPrincipal, Effect, ErrorCode, Stage, Tier};

/// What records say of an operation beside what the protocol knows.
#[derive(Debug, Clone)]
pub struct ActionFacts {
    /// Who asks.
    pub caller: AuthPrincipal,
    /// The application whose element it is.
    pub target_app: String,
    /// What the host says of the worst that may happen.
    pub safety: SafetyClass,
    /// Who acts.
    pub tier: Option<Tier>,
    /// What the permission stage found: `allowed`, `denied` or `unchecked`.
    pub verdict: &'static str,
    /// The rule that decided.
    pub rule: String,
    /// The gate.
    pub gate: &'static str,
    /// The kind of action, which is also the last part of the capability's id.
    pub action: Option<ActionName>,
}

impl ActionFacts {
    /// Those of a caller of whose request nothing is known yet.
    #[must_use]
    pub const fn of(caller: AuthPrincipal) -> Self {
        Self {
            caller,
            target_app: String::new(),
            safety: SafetyClass::Reversible,
            tier: None,
            verdict: "unchecked",
            rule: String::new(),
            gate: "",
            action: None,
        }
    }

    /// As whose capability the action is judged: `app.{application}.{action}` (C46).
    #[must_use]
    pub fn capability(&self) -> String {
        format!("app.{}.{}", self.target_app, self.action.map_or("action", ActionName::as_str))
    }

    /// As what it is judged (C46).
    #[must_use]
    pub fn class(&self) -> ActionClass {
        self.action.map_or(ActionClass::Unknown, |action| action_class(action, self.safety))
    }
}

/// The class of an action by the table of C46; what the host calls worse is judged as that.
#[must_use]
pub fn action_class(action: ActionName, safety: SafetyClass) -> ActionClass {
    let class = match action {
        ActionName::Invoke | ActionName::Click => ActionClass::Activate,
        ActionName::SetValue
        | ActionName::TypeText
        | ActionName::Paste
        | ActionName::Press
        | ActionName::Hotkey => ActionClass::InputText,
        ActionName::Scroll | ActionName::Move => ActionClass::Navigate,
    };
    class.max(match safety {
        SafetyClass::Reversible => ActionClass::Navigate,
        SafetyClass::External => ActionClass::Send,
        SafetyClass::Destructive => ActionClass::Delete,
    })
}

/// The end of an operation as a record has it.
pub(super) fn audit_end(end: &ActionAck, stage: Stage) -> AuditEnd {
    let AckState::Terminal { terminal } = &end.state else {
        return AuditEnd {
            stage,
            terminal: pcp_core::Terminal::OutcomeUnknown,
            error: Some(ErrorCode::OutcomeUnknown),
            effect: None,
            verification: "none",
            timed_out: false,
            duration_us: 0,
        };
    };
    let receipt = terminal.receipt();
    let took_ms = receipt.map_or(0, |receipt| receipt.finished_at_ms.saturating_sub(receipt.started_at_ms));
    let effect = receipt.map(|receipt| receipt.effect);
    AuditEnd {
        stage: if matches!(**terminal, Terminal::Succeeded { .. }) { Stage::Audit } else { stage },
        terminal: terminal.kind(),
        error: error_of(terminal),
        effect,
        verification: if effect == Some(Effect::Verified) { "target" } else { "none" },
        timed_out: false,
        duration_us: u64::try_from(took_ms).unwrap_or(0).saturating_mul(1_000),
    }
}

fn error_of(terminal: &Terminal) -> Option<ErrorCode> {
    Some(match terminal {
        Terminal::Succeeded { .. } => return None,
        Terminal::OutcomeUnknown { .. } => ErrorCode::OutcomeUnknown,
        Terminal::CancelledBeforeEffect => ErrorCode::CancelledBeforeEffect,
        Terminal::ExpiredBeforeEffect => ErrorCode::ExpiredBeforeEffect,
        Terminal::Rejected { code, .. } | Terminal::Failed { code, .. } => match code {
            FailureCode::InvalidRequest => ErrorCode::InvalidRequest,
            FailureCode::Conflict => ErrorCode::Conflict,
            FailureCode::StaleTarget | FailureCode::TargetNotFound => ErrorCode::TargetNotFound,
            FailureCode::PermissionDenied => ErrorCode::PermissionDenied,
            FailureCode::Unsupported => ErrorCode::Unsupported,
            FailureCode::DispatchFailed => ErrorCode::ExecutionFailed,
            FailureCode::VerificationFailed => ErrorCode::VerificationFailed,
        },
    })
}
