//! What is asked for, and the envelope it comes in.

use crate::domain::Domain;
use crate::id::{CapabilityId, IdError, OperationId};

/// Largest parameter object in bytes; leaves room in the 1 MiB frame for everything around it.
pub const MAX_PARAMETERS_BYTES: usize = 768 * 1024;

/// One semantic request: four fields and nothing else. Never a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intent<'a> {
    /// The domain it is bound to.
    pub domain: Domain,
    /// What to do, one word of the capability's id.
    pub action: &'a str,
    /// The application that shall do it.
    pub target_app: &'a str,
    /// The parameters: one JSON object as text, handed through unparsed.
    pub parameters: &'a str,
}

impl Intent<'_> {
    /// The capability that the intent names.
    ///
    /// # Errors
    /// [`IdError`] when its parts make no id.
    pub fn capability_id(&self) -> Result<CapabilityId, IdError> {
        CapabilityId::from_parts(self.domain, self.target_app, self.action)
    }
}

/// Everything a request needs besides the intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Envelope {
    /// The request's id.
    pub operation_id: OperationId,
    /// The requester's own deadline in Unix milliseconds, where it set one.
    pub deadline_ms: Option<u64>,
    /// Whether the requester waits for a confirmation, or wants `confirmation_required` at once.
    pub wait: bool,
    /// Whether to stop before the claim and to answer with the plan.
    pub dry_run: bool,
}
