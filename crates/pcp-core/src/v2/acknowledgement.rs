//! How far an operation is, and how it ended.

use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::identifier::Sha256Hash;
use super::receipt::Receipt;
use crate::words::words;

/// The sequence of [`AckState::Accepted`].
pub const SEQUENCE_ACCEPTED: u32 = 0;
/// The sequence of [`AckState::Executing`].
pub const SEQUENCE_EXECUTING: u32 = 1;
/// The sequence of [`AckState::Terminal`].
pub const SEQUENCE_TERMINAL: u32 = 2;
/// Longest acknowledgement in bytes, with room for the warnings of a receipt; the longest that is written has about two
/// kilobytes.
pub const MAX_ACK_BYTES: usize = 64 * 1024;

words! {
    /// Why an operation was rejected or failed.
    FailureCode: "failure code" {
        /// The request makes no sense to the executor.
        InvalidRequest = "invalid_request",
        /// The operation id stands for another action.
        Conflict = "conflict",
        /// The element is no longer what was observed.
        StaleTarget = "stale_target",
        /// No such element.
        TargetNotFound = "target_not_found",
        /// The system does not let the executor.
        PermissionDenied = "permission_denied",
        /// The executor cannot, or not in this mode.
        Unsupported = "unsupported",
        /// It was tried, and certainly did not happen.
        DispatchFailed = "dispatch_failed",
        /// It could not be verified.
        VerificationFailed = "verification_failed",
    }
}

/// One acknowledgement of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionAck {
    /// 2.
    pub protocol_version: u16,
    /// The operation.
    pub operation_id: String,
    /// 0 accepted, 1 executing, 2 the end.
    pub sequence: u32,
    /// The request, by its hash.
    pub action_hash: Sha256Hash,
    /// Whether this is the answer to an earlier request.
    pub replayed: bool,
    /// How far it is.
    pub state: AckState,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum AckState {
    /// Its authority is genuine.
    Accepted {},
    /// Its effect may begin.
    Executing {},
    /// It is over.
    Terminal {
        /// How it ended.
        terminal: std::boxed::Box<Terminal>,
    },
}

impl AckState {
    /// The number of this state.
    #[must_use]
    pub const fn sequence(&self) -> u32 {
        match self {
            Self::Accepted {} => SEQUENCE_ACCEPTED,
            Self::Executing {} => SEQUENCE_EXECUTING,
            Self::Terminal { .. } => SEQUENCE_TERMINAL,
        }
    }
}

/// How an operation ended.
///
/// In JSON every terminal also has the member `retry_safe`, which S3 only asks of hosts in prose. It follows from the
/// kind ([`Terminal::retry_safe`]) and is no member of its own here: a terminal that was written without it is read, and
/// one that says the opposite is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Written")]
pub enum Terminal {
    /// It was done.
    Succeeded {
        /// The proof.
        receipt: Receipt,
    },
    /// It was refused; nothing was tried.
    Rejected {
        /// Why.
        code: FailureCode,
        /// A fixed sentence.
        message: String,
    },
    /// It was tried, and certainly did not happen.
    Failed {
        /// Why.
        code: FailureCode,
        /// A fixed sentence.
        message: String,
    },
    /// It was cancelled before any effect.
    CancelledBeforeEffect,
    /// Its time was over before any effect.
    ExpiredBeforeEffect,
    /// It may have happened; never repeated.
    OutcomeUnknown {
        /// What is known.
        receipt: Receipt,
        /// A fixed sentence.
        message: String,
    },
}

impl Terminal {
    /// The word of its kind.
    #[must_use]
    pub const fn kind(&self) -> crate::outcome::Terminal {
        match self {
            Self::Succeeded { .. } => crate::outcome::Terminal::Succeeded,
            Self::Rejected { .. } => crate::outcome::Terminal::Rejected,
            Self::Failed { .. } => crate::outcome::Terminal::Failed,
            Self::CancelledBeforeEffect => crate::outcome::Terminal::CancelledBeforeEffect,
            Self::ExpiredBeforeEffect => crate::outcome::Terminal::ExpiredBeforeEffect,
            Self::OutcomeUnknown { .. } => crate::outcome::Terminal::OutcomeUnknown,
        }
    }

    /// Whether asking again cannot double an effect.
    #[must_use]
    pub const fn retry_safe(&self) -> bool {
        self.kind().retry_safe()
    }

    /// The receipt, where there is one.
    #[must_use]
    pub const fn receipt(&self) -> Option<&Receipt> {
        match self {
            Self::Succeeded { receipt } | Self::OutcomeUnknown { receipt, .. } => Some(receipt),
            _ => None,
        }
    }
}

/// A terminal as it stands in JSON.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Written {
    Succeeded { receipt: Receipt, retry_safe: Option<bool> },
    Rejected { code: FailureCode, message: String, retry_safe: Option<bool> },
    Failed { code: FailureCode, message: String, retry_safe: Option<bool> },
    CancelledBeforeEffect { retry_safe: Option<bool> },
    ExpiredBeforeEffect { retry_safe: Option<bool> },
    OutcomeUnknown { receipt: Receipt, message: String, retry_safe: Option<bool> },
}

impl From<Terminal> for Written {
    fn from(terminal: Terminal) -> Self {
        let retry_safe = Some(terminal.retry_safe());
        match terminal {
            Terminal::Succeeded { receipt } => Self::Succeeded { receipt, retry_safe },
            Terminal::Rejected { code, message } => Self::Rejected { code, message, retry_safe },
            Terminal::Failed { code, message } => Self::Failed { code, message, retry_safe },
            Terminal::CancelledBeforeEffect => Self::CancelledBeforeEffect { retry_safe },
            Terminal::ExpiredBeforeEffect => Self::ExpiredBeforeEffect { retry_safe },
            Terminal::OutcomeUnknown { receipt, message } => {
                Self::OutcomeUnknown { receipt, message, retry_safe }
            }
        }
    }
}

impl Written {
    /// The terminal, unless what it says of a retry is not what it means.
    pub(super) fn meant(self) -> Option<Terminal> {
        let (terminal, said) = match self {
            Self::Succeeded { receipt, retry_safe } => (Terminal::Succeeded { receipt }, retry_safe),
            Self::Rejected { code, message, retry_safe } => {
                (Terminal::Rejected { code, message }, retry_safe)
            }
            Self::Failed { code, message, retry_safe } => (Terminal::Failed { code, message }, retry_safe),
            Self::CancelledBeforeEffect { retry_safe } => (Terminal::CancelledBeforeEffect, retry_safe),
            Self::ExpiredBeforeEffect { retry_safe } => (Terminal::ExpiredBeforeEffect, retry_safe),
            Self::OutcomeUnknown { receipt, message, retry_safe } => {
                (Terminal::OutcomeUnknown { receipt, message }, retry_safe)
            }
        };
        said.is_none_or(|said| said == terminal.retry_safe()).then_some(terminal)
    }
}

impl<'de> Deserialize<'de> for Terminal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let terminal = Written::deserialize(deserializer)?.meant();
        terminal.ok_or_else(|| de::Error::custom("retry_safe is not what the terminal means"))
    }
}

/// What an execution answers: every acknowledgement that it came to, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecuteReport {
    /// 0 to 2, or one that is replayed.
    pub acknowledgements: Vec<ActionAck>,
}

impl ExecuteReport {
    /// How the operation ended; `None` while another request of the same operation is still under way.
    #[must_use]
    pub fn terminal(&self) -> Option<&Terminal> {
        match &self.acknowledgements.last()?.state {
            AckState::Terminal { terminal } => Some(terminal),
            AckState::Accepted {} | AckState::Executing {} => None,
        }
    }
}
