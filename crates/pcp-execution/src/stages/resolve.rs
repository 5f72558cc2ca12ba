//! Stage 2: the capability in the registry. Whether its absence may be told is decided by the next stage.

use std::sync::Arc;

use pcp_core::{ActionClass, CapabilityDescriptor, CapabilityId, CapabilityRegistry};

use super::classify::Classified;
use crate::facts::Facts;
use crate::redact::{Declared, redact};

/// What the registry says about the id; looked up once.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(super) id: CapabilityId,
    pub(super) class: ActionClass,
    pub(super) service: bool,
    pub(super) found: Option<Arc<CapabilityDescriptor>>,
}

/// Looks the capability up. `side_effects: false` of a verified manifest makes an unknown action a read.
pub(crate) fn resolve(
    classified: Classified,
    registry: &dyn CapabilityRegistry,
    facts: &mut Facts<'_>,
) -> Resolved {
    let Classified { id, classification } = classified;
    let found = registry.get(&id);
    let changes_nothing = found.as_ref().is_some_and(|capability| capability.changes_nothing());
    let class = classification.effective(changes_nothing);
    facts.class = class;
    Resolved { id, class, service: classification.service, found }
}

impl Resolved {
    /// The parameters as the record will show them: by the schema's word on each, where there is one.
    pub(crate) fn redact_parameters(&self, parameters: &str, out: &mut String) {
        let declared = self.found.as_ref().map(|capability| Declared {
            schema: &capability.input_schema,
            clear: &capability.clear_parameters,
        });
        redact(parameters, declared.unwrap_or_default(), out);
    }
}
