//! Stage 1: what kind of action the intent is. Pure.

use pcp_core::{ActionHash, CapabilityId, Classification, ErrorCode, Intent, IntentClassifier, Stage};

use super::Refusal;
use crate::facts::Facts;

/// The capability that the intent names, and what its words say.
#[derive(Debug)]
pub(crate) struct Classified {
    pub(super) id: CapabilityId,
    pub(super) classification: Classification,
}

/// Builds the id and classifies it. An unknown word is no failure: it is the strictest class.
pub(crate) fn classify(intent: &Intent<'_>, facts: &mut Facts<'_>) -> Result<Classified, Refusal> {
    let id = intent
        .capability_id()
        .map_err(|error| Refusal::new(Stage::Classify, ErrorCode::InvalidRequest, error.to_string()))?;
    let classification = IntentClassifier.classify(&id);
    facts.class = classification.effective(false);
    facts.action_hash = ActionHash::of_intent(facts.caller.uid, &id, intent.parameters);
    Ok(Classified { id, classification })
}
