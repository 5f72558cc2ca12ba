//! How much of what the registry holds.

use std::sync::Arc;

use pcp_core::{CapabilityDescriptor, DetectionMethod, Domain, SignatureStatus};

use crate::snapshot::{Row, Snapshot};

/// The two counts before everything that is shared.
const COUNTS: usize = 2 * size_of::<usize>();

/// Counts of one state of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryStats {
    /// How often the registry has changed.
    pub generation: u64,
    /// Capabilities.
    pub capabilities: usize,
    /// Applications.
    pub apps: usize,
    /// Capabilities of each domain.
    pub by_domain: Vec<(Domain, usize)>,
    /// Capabilities of each detection method.
    pub by_method: Vec<(DetectionMethod, usize)>,
    /// Applications of each signature status.
    pub by_signature: Vec<(SignatureStatus, usize)>,
    /// What the state takes in memory, by the sizes of its parts; the allocator's own overhead is not in it.
    pub estimated_bytes: usize,
}

impl Snapshot {
    /// Counts everything, in one walk over the rows per question.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        let (capabilities, apps) = self.len();
        let count = |wanted: &dyn Fn(&Row) -> bool| self.rows.iter().filter(|row| wanted(row)).count();
        let signed = |status| self.apps().filter(|app| app.entry.signature == status).count();
        RegistryStats {
            generation: self.generation,
            capabilities,
            apps,
            by_domain: Domain::ALL
                .iter()
                .map(|domain| (*domain, count(&|row| row.domain == *domain)))
                .collect(),
            by_method: DetectionMethod::ALL
                .iter()
                .map(|method| (*method, count(&|row| row.method == *method)))
                .collect(),
            by_signature: SignatureStatus::ALL.iter().map(|status| (*status, signed(*status))).collect(),
            estimated_bytes: self.bytes(),
        }
    }

    fn bytes(&self) -> usize {
        let entries = self
            .apps()
            .map(|app| COUNTS + size_of_val(&*app.entry) + COUNTS + size_of_val(&*app.entry.capabilities));
        self.rows.iter().map(|row| size_of::<Row>() + descriptor_bytes(&row.capability)).sum::<usize>()
            + size_of_val(&*self.owners)
            + self.owners.iter().map(|owner| COUNTS + owner.id.as_str().len()).sum::<usize>()
            + entries.sum::<usize>()
            + size_of_val(&*self.by_owner)
            + self.index.bytes()
    }
}

/// A descriptor, and its share of the texts that it has in common with others.
fn descriptor_bytes(one: &CapabilityDescriptor) -> usize {
    let texts =
        [&one.name, &one.description, &one.category, &one.input_schema, &one.output_schema, &one.version];
    let share = |text: &Arc<str>| (COUNTS + text.len()) / Arc::strong_count(text);
    let clear = &one.clear_parameters;
    COUNTS
        + size_of::<CapabilityDescriptor>()
        + texts.into_iter().map(share).sum::<usize>()
        + size_of_val(&**clear)
        + clear.iter().map(|name| name.len()).sum::<usize>()
}
