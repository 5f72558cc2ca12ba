//! The rules of a request, in the order in which they are applied.

use super::PROTOCOL_VERSION;
use super::identifier::check_identifier;
use super::invalid::InvalidRequest;
use super::receipt::InteractionMode;
use super::request::ActionRequest;
use super::target::SemanticTargetRef;

impl ActionRequest {
    /// The element, if every rule is kept.
    pub(super) fn validate(&self) -> Result<&SemanticTargetRef, InvalidRequest> {
        for (field, value) in [
            ("protocol_version", self.protocol_version),
            ("action_version", self.action_version),
            ("target_version", self.target_version),
            ("verification_version", self.verification_version),
        ] {
            if value != PROTOCOL_VERSION {
                return Err(InvalidRequest::Version { field, value });
            }
        }
        if self.interaction_mode == InteractionMode::Unknown {
            return Err(InvalidRequest::InteractionMode);
        }
        check_identifier("operation_id", &self.operation_id)?;
        check_identifier("subject", &self.subject)?;
        check_identifier("session_id", &self.session_id)?;
        let element = self.target.element()?;
        self.action.validate()?;
        self.verification.validate()?;
        self.verification.fits(&self.action)?;
        if self.deadline_at_ms <= 0 {
            return Err(InvalidRequest::Deadline { value: self.deadline_at_ms });
        }
        if self.authority.signature_bytes().is_none() {
            let characters = self.authority.signature.chars().count();
            return Err(InvalidRequest::SignatureForm { characters });
        }
        element.validate()?;
        Ok(element)
    }
}
