//! The stages, one file each. Every stage consumes the value of the stage before it, and only that stage can
//! make it: the fields are private to their file.

pub(crate) mod claim;
pub(crate) mod classify;
pub(crate) mod dispatch;
pub(crate) mod permit;
pub(crate) mod plan;
pub(crate) mod record;
pub(crate) mod resolve;
pub(crate) mod share;
#[cfg(test)]
pub(crate) mod test_support;
pub(crate) mod verify;

use pcp_core::{ErrorCode, PcpError, Stage};

/// Why a stage did not go on, and whether an effect may have happened by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) error: PcpError,
    pub(crate) stage: Stage,
    pub(crate) may_have_happened: bool,
    pub(crate) timed_out: bool,
}

impl Refusal {
    /// Nothing happened.
    pub(crate) fn new(
        stage: Stage,
        code: ErrorCode,
        message: impl Into<std::borrow::Cow<'static, str>>,
    ) -> Self {
        Self {
            error: PcpError::new(code, message).at(stage),
            stage,
            may_have_happened: false,
            timed_out: false,
        }
    }

    /// Nothing happened, and this is what to do.
    pub(crate) fn hint(mut self, hint: impl Into<std::borrow::Cow<'static, str>>) -> Self {
        self.error = self.error.hint(hint);
        self
    }
}
