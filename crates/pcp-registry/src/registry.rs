//! The registry: one immutable snapshot that a batch of changes replaces (R-011, R-029 to R-033, C19).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use pcp_core::ports::RegistryError;
use pcp_core::{
    AdapterState, AppEntry, AppId, CapabilityDescriptor, CapabilityId, CapabilityRegistry, RegistryFilter,
};

use crate::batch::{Applied, Change, Draft};
use crate::diff_tracker::CapabilityDiffTracker;
use crate::intern::Interner;
use crate::snapshot::Snapshot;
use crate::stats::RegistryStats;

/// Most capabilities: the 2 000 applications of a very full device with 16 each. At 500 bytes each they are 16 MiB,
/// an eighth of the memory budget.
pub const MAX_CAPABILITIES: usize = 32_768;
/// Most applications: twice what a very full device has installed.
pub const MAX_APPS: usize = 4_096;

/// Applications and capabilities in memory. A reader sees an application with all its capabilities or not at all, and
/// waits for nobody; writers wait for each other.
///
/// There is one face and it is synchronous: no call waits for anything but the memory. A lookup costs the same
/// however many there are. A batch costs one walk over what is held, whatever its size: an insert is cheap in
/// a batch and dear alone, so detection applies one batch.
#[derive(Debug, Default)]
pub struct InMemoryRegistry {
    now: ArcSwap<Snapshot>,
    writer: Mutex<Interner>,
}

impl InMemoryRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The state at this moment, for whoever asks more than one question of the same one.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.now.load_full()
    }

    /// Makes all changes that can be made, and shows them to readers at once.
    ///
    /// A change that is refused leaves what was before it; the others are made. A batch that changes nothing leaves
    /// the state and its generation alone.
    pub fn apply(&self, changes: impl IntoIterator<Item = Change>) -> Applied {
        let mut interner = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.now.load_full();
        let mut draft = Draft::new(&before);
        let mut refused = Vec::new();
        for (place, change) in changes.into_iter().enumerate() {
            if let Err(error) = draft.take(change, &mut interner) {
                refused.push((place, error));
            }
        }
        let touched: BTreeSet<AppId> = draft.touched.keys().cloned().collect();
        let Some(after) = draft.build() else {
            interner.sweep();
            return Applied { diffs: Vec::new(), refused, generation: before.generation() };
        };
        let tracker = CapabilityDiffTracker::new(&before, &after);
        let diffs = touched.iter().filter_map(|id| tracker.app(id)).collect();
        let generation = after.generation();
        self.now.store(Arc::new(after));
        drop(before);
        interner.sweep();
        Applied { diffs, refused, generation }
    }

    /// The application of this id.
    #[must_use]
    pub fn app(&self, id: &AppId) -> Option<Arc<AppEntry>> {
        self.now.load().app(id).map(|held| held.entry.clone())
    }

    /// How many capabilities and applications there are.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        self.now.load().len()
    }

    /// Whether nothing is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.now.load().is_empty()
    }

    /// Counts of what is held.
    #[must_use]
    pub fn stats(&self) -> RegistryStats {
        self.now.load().stats()
    }

    /// Takes an application and everything it offers out.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`].
    pub fn unregister_app(&self, id: &AppId) -> Result<(), RegistryError> {
        self.change(Change::RemoveApp(id.clone()))
    }

    /// Up to `limit` capabilities after `after` that fit, sorted by id: one page of [`CapabilityRegistry::query`].
    #[must_use]
    pub fn page(
        &self,
        filter: &RegistryFilter<'_>,
        after: Option<&CapabilityId>,
        limit: usize,
    ) -> Vec<Arc<CapabilityDescriptor>> {
        self.now.load().page(filter, after, limit)
    }

    fn change(&self, change: Change) -> Result<(), RegistryError> {
        match self.apply([change]).refused.pop() {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}

impl CapabilityRegistry for InMemoryRegistry {
    fn register(&self, capability: CapabilityDescriptor) -> Result<(), RegistryError> {
        self.change(Change::Capability(Box::new(capability)))
    }

    fn unregister(&self, id: &CapabilityId) -> Result<(), RegistryError> {
        self.change(Change::RemoveCapability(id.clone()))
    }

    fn get(&self, id: &CapabilityId) -> Option<Arc<CapabilityDescriptor>> {
        self.now.load().get(id).cloned()
    }

    fn query(&self, filter: &RegistryFilter<'_>) -> Vec<Arc<CapabilityDescriptor>> {
        self.page(filter, None, MAX_CAPABILITIES)
    }

    fn register_app(
        &self,
        entry: AppEntry,
        capabilities: Vec<CapabilityDescriptor>,
    ) -> Result<(), RegistryError> {
        self.change(Change::App { entry, capabilities, adapter_state: AdapterState::Ready })
    }

    fn apps(&self) -> Vec<Arc<AppEntry>> {
        self.now.load().apps().map(|held| held.entry.clone()).collect()
    }
}
