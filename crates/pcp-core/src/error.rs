//! One closed table of error codes: the word, whether it means refused, failed or unknown, the exit code.

use std::borrow::Cow;
use std::string::String;

use thiserror::Error;

use crate::outcome::Stage;
use crate::words::words;

/// A word that is in none of the closed sets.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is no {what} (one of {known})")]
pub struct UnknownWord {
    what: &'static str,
    text: String,
    known: String,
}

impl UnknownWord {
    pub(crate) fn new(what: &'static str, text: &str, known: &[&str]) -> Self {
        Self { what, text: text.chars().take(80).collect(), known: known.join(", ") }
    }
}

words! {
    /// What a failure means to the caller; the three are never mixed.
    OutcomeKind: "outcome kind" {
        /// Policy or validity said no: nothing was tried.
        Refused = "refused",
        /// It was tried and did not happen.
        Failed = "failed",
        /// It may have happened: never retried.
        Unknown = "unknown",
    }
}

macro_rules! error_codes {
    ($($(#[$meta:meta])* $variant:ident = $word:literal, $kind:ident, $exit:literal;)+) => {
        words! {
            /// The stable word of a failure on the wire, in records and in the command line's envelope.
            ErrorCode: "error code" {
                $($(#[$meta])* $variant = $word),+
            }
        }

        impl ErrorCode {
            /// Refused, failed or unknown.
            #[must_use]
            pub const fn kind(self) -> OutcomeKind {
                match self { $(Self::$variant => OutcomeKind::$kind),+ }
            }

            /// The exit code of `pcp-cli`: 2 usage, 3 protocol, 4 not found, 5 denied, 6 confirmation
            /// needed, 7 timeout, 8 rate limited, 9 outcome unknown, 10 ran and failed, 11 integrity broken,
            /// 12 integrity could not be checked, 13 `doctor` found a problem.
            #[must_use]
            pub const fn exit_code(self) -> u8 {
                match self { $(Self::$variant => $exit),+ }
            }
        }
    };
}

error_codes! {
    /// The command line itself is wrong.
    Usage = "usage", Refused, 2;
    /// The request breaks its schema, or carries an unknown field.
    InvalidRequest = "invalid_request", Refused, 3;
    /// The frame or payload could not be read.
    ProtocolError = "protocol_error", Refused, 3;
    /// This message type is not served here.
    UnsupportedMessage = "unsupported_message", Refused, 3;
    /// No daemon answers, or the listener is not the daemon.
    DaemonUnreachable = "daemon_unreachable", Refused, 3;
    /// An observation could not be made.
    ObservationError = "observation_error", Failed, 3;
    /// A value could not be written as JSON.
    SerializationError = "serialization_error", Failed, 3;
    /// No capability of this id.
    TargetNotFound = "target_not_found", Refused, 4;
    /// No such thing: an operation, an application, a subscription, a file.
    NotFound = "not_found", Refused, 4;
    /// The registry knows the application, but nothing serves it.
    CapabilityNotFound = "capability_not_found", Refused, 4;
    /// Several targets fit; the candidates are in the message.
    Ambiguous = "ambiguous", Refused, 4;
    /// The caller may not do this.
    PermissionDenied = "permission_denied", Refused, 5;
    /// The caller is in none of root's principal files.
    UnknownPrincipal = "unknown_principal", Refused, 5;
    /// The listener of an application's socket is not that application.
    SquattedSocket = "squatted_socket", Refused, 5;
    /// The capability was predicted from files, and no live element is bound to it.
    NotValidated = "not_validated", Refused, 5;
    /// The application was revoked.
    Revoked = "revoked", Refused, 5;
    /// Nothing but reads runs while the daemon is degraded.
    Degraded = "degraded", Refused, 5;
    /// A confirmer has to decide first; the prompt id is in the message.
    ConfirmationRequired = "confirmation_required", Refused, 6;
    /// The action needs a person's confirmation and no confirmer is connected.
    ConfirmationUnavailable = "confirmation_unavailable", Refused, 6;
    /// A stage or the whole pipeline overran before anything was dispatched.
    Timeout = "timeout", Failed, 7;
    /// The request's own deadline had passed before any effect.
    ExpiredBeforeEffect = "expired_before_effect", Refused, 7;
    /// Too many requests; the connection stays open.
    RateLimited = "rate_limited", Refused, 8;
    /// A limit of the daemon is reached: connections, waiting effects, memory.
    LimitReached = "limit_reached", Refused, 8;
    /// The effect may have happened.
    OutcomeUnknown = "outcome_unknown", Unknown, 9;
    /// The application answered with something else than was expected.
    VerificationFailed = "verification_failed", Failed, 10;
    /// The application reported a failure.
    ExecutionFailed = "execution_failed", Failed, 10;
    /// The application could not be reached; nothing was sent to it.
    Unavailable = "unavailable", Failed, 10;
    /// The request was cancelled before any effect.
    CancelledBeforeEffect = "cancelled_before_effect", Refused, 10;
    /// The parameters do not fit the capability's schema; the JSON pointer is in the message.
    InvalidParameters = "invalid_parameters", Refused, 10;
    /// The operation id is already bound to another action.
    Conflict = "conflict", Refused, 10;
    /// The operation id is dated too far ahead of the device's clock; it was not claimed.
    ClockSkew = "clock_skew", Refused, 10;
    /// The request is not supported by this tier or build.
    Unsupported = "unsupported", Refused, 10;
    /// The record that must precede the effect could not be written.
    AuditUnavailable = "audit_unavailable", Refused, 10;
    /// A manifest was refused.
    InvalidManifest = "invalid_manifest", Refused, 11;
    /// A trail, ledger or signature is broken.
    IntegrityBroken = "integrity_broken", Failed, 11;
    /// A trail or ledger could not be read.
    IntegrityUnchecked = "integrity_unchecked", Failed, 12;
    /// `doctor` found a problem.
    ProblemFound = "problem_found", Failed, 13;
    /// A fault of the daemon itself.
    Internal = "internal", Failed, 10;
}

/// An error that travels: code, text, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct PcpError {
    /// The stable word.
    pub code: ErrorCode,
    /// The stage that refused, where there was one.
    pub stage: Option<Stage>,
    /// The thing, the value, the limit.
    pub message: Cow<'static, str>,
    /// The next step, where there is one.
    pub hint: Option<Cow<'static, str>>,
}

impl PcpError {
    /// An error without stage and hint.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, stage: None, message: message.into(), hint: None }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Names the stage that refused.
    #[must_use]
    pub fn at(mut self, stage: Stage) -> Self {
        self.stage = Some(stage);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_word_and_an_exit_code_of_the_contract() {
        for code in ErrorCode::ALL {
            assert_eq!(code.as_str().parse::<ErrorCode>().unwrap(), *code);
            assert!((2..=13).contains(&code.exit_code()), "{code}");
        }
        assert_eq!(ErrorCode::OutcomeUnknown.kind(), OutcomeKind::Unknown);
        assert_eq!(ErrorCode::ALL.iter().filter(|code| code.kind() == OutcomeKind::Unknown).count(), 1);
    }
}
