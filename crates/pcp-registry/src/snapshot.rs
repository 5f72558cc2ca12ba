//! One state of the registry, whole and unchanging: what every reader looks at.

use std::sync::Arc;

use pcp_core::{AdapterState, AppEntry, AppId, CapabilityDescriptor, CapabilityId, DetectionMethod, Domain};

use crate::hash::KeyedHash;
use crate::index::Index;

/// A capability, with what a query asks for beside it: a scan follows no pointer for what does not fit.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) hash: u32,
    /// The place of its application among the owners.
    pub(crate) owner: u32,
    pub(crate) domain: Domain,
    pub(crate) method: DetectionMethod,
    pub(crate) capability: Arc<CapabilityDescriptor>,
}

/// An application, registered or only named by capabilities that were registered one by one.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) id: AppId,
    pub(crate) app: Option<HeldApp>,
    /// Where its rows' numbers begin in `by_owner`.
    pub(crate) first: u32,
    /// How many rows it has.
    pub(crate) count: u32,
}

/// A registered application and the state of the adapter that serves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldApp {
    /// The application. Its list of capabilities is exactly what the snapshot holds of it.
    pub entry: Arc<AppEntry>,
    /// The state of the adapter that found it, at that time.
    pub adapter_state: AdapterState,
}

/// Applications and capabilities at one moment, the rows contiguous and sorted by id. Never changes.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(crate) generation: u64,
    pub(crate) hasher: KeyedHash,
    pub(crate) rows: Box<[Row]>,
    pub(crate) index: Index,
    /// Sorted by id.
    pub(crate) owners: Box<[Owner]>,
    /// Row numbers, grouped by owner, ascending within each.
    pub(crate) by_owner: Box<[u32]>,
}

impl Snapshot {
    /// How often the registry has changed before this state.
    #[must_use]
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The capability of this id.
    #[must_use]
    pub fn get(&self, id: &CapabilityId) -> Option<&Arc<CapabilityDescriptor>> {
        self.row_of(id).map(|(_, row)| &row.capability)
    }

    /// The application of this id, as it was registered.
    #[must_use]
    pub fn app(&self, id: &AppId) -> Option<&HeldApp> {
        self.owner(id).and_then(|(_, owner)| owner.app.as_ref())
    }

    /// The applications, sorted by id.
    pub fn apps(&self) -> impl Iterator<Item = &HeldApp> {
        self.owners.iter().filter_map(|owner| owner.app.as_ref())
    }

    /// What one application offers, sorted by id.
    pub fn capabilities_of(&self, id: &AppId) -> impl Iterator<Item = &Arc<CapabilityDescriptor>> {
        let owner = self.owner(id).map(|(_, owner)| owner);
        self.numbers_of(owner).iter().filter_map(|number| self.row(*number)).map(|row| &row.capability)
    }

    /// How many capabilities and applications there are.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        (self.rows.len(), self.apps().count())
    }

    /// Whether nothing is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    #[inline]
    pub(crate) fn row(&self, number: u32) -> Option<&Row> {
        self.rows.get(number as usize)
    }

    #[inline]
    pub(crate) fn row_of(&self, id: &CapabilityId) -> Option<(u32, &Row)> {
        let hash = self.hasher.of(id.as_str());
        let is_it = |number| self.row(number).is_some_and(|row| row.hash == hash && row.capability.id == *id);
        let number = self.index.find(hash, is_it)?;
        Some((number, self.row(number)?))
    }

    pub(crate) fn owner(&self, id: &AppId) -> Option<(usize, &Owner)> {
        let at = self.owners.binary_search_by(|owner| owner.id.cmp(id)).ok()?;
        Some((at, self.owners.get(at)?))
    }

    /// The rows' numbers of one owner.
    pub(crate) fn numbers_of(&self, owner: Option<&Owner>) -> &[u32] {
        let Some(owner) = owner else { return &[] };
        let first = owner.first as usize;
        self.by_owner.get(first..first + owner.count as usize).unwrap_or_default()
    }
}
