//! How an operation ended, and what is known of its effect (R-194, C4).

use crate::words::words;

words! {
    /// The seven stages of the pipeline, in order. Wait and hold belong to stages 3 and 4,
    /// the claim to stage 5.
    Stage: "stage" {
        /// The action class.
        Classify = "classify",
        /// The capability in the registry.
        ResolveTarget = "resolve_target",
        /// Domain, rules, trust, gate.
        CheckPermissions = "check_permissions",
        /// Parameters, method, tier.
        ResolveAction = "resolve_action",
        /// Claim and dispatch.
        Execute = "execute",
        /// By the tier that acted.
        Verify = "verify",
        /// The record.
        Audit = "audit",
    }
}

impl Stage {
    /// 1 to 7 (C1: the six steps of S2 are stages 2 to 7).
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Classify => 1,
            Self::ResolveTarget => 2,
            Self::CheckPermissions => 3,
            Self::ResolveAction => 4,
            Self::Execute => 5,
            Self::Verify => 6,
            Self::Audit => 7,
        }
    }
}

words! {
    /// The last word on an operation.
    Terminal: "terminal" {
        /// It was done.
        Succeeded = "succeeded",
        /// It was refused; nothing was tried.
        Rejected = "rejected",
        /// It was tried, and certainly did not happen.
        Failed = "failed",
        /// It was cancelled before any effect.
        CancelledBeforeEffect = "cancelled_before_effect",
        /// Its time was over before any effect.
        ExpiredBeforeEffect = "expired_before_effect",
        /// It may have happened; never repeated.
        OutcomeUnknown = "outcome_unknown",
    }
}

impl Terminal {
    /// Whether a new operation with the same action cannot double an effect.
    #[must_use]
    pub const fn retry_safe(self) -> bool {
        match self {
            Self::Rejected | Self::Failed | Self::CancelledBeforeEffect | Self::ExpiredBeforeEffect => true,
            Self::Succeeded | Self::OutcomeUnknown => false,
        }
    }
}

words! {
    /// What was proven about an effect (C4).
    Effect: "effect" {
        /// Proven by the tier that acted.
        Verified = "verified",
        /// Done as far as the tier can tell; not proven.
        ExecutedUnverified = "executed_unverified",
        /// Not known.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stages_are_numbered_in_order() {
        let numbers: Vec<u8> = Stage::ALL.iter().map(|stage| stage.number()).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn an_unknown_outcome_is_never_retry_safe() {
        assert!(!Terminal::OutcomeUnknown.retry_safe());
        assert!(!Terminal::Succeeded.retry_safe());
        assert_eq!(Terminal::ALL.iter().filter(|terminal| terminal.retry_safe()).count(), 4);
    }
}
