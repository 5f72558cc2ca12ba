//! A change of the registry, and the draft of the state that it leads to: judged change by change, made in one piece.

use std::collections::BTreeMap;
use std::sync::Arc;

use pcp_core::manifest::MAX_CAPABILITIES_PER_APP;
use pcp_core::ports::RegistryError;
use pcp_core::{AdapterState, AppEntry, AppId, CapabilityDescriptor, CapabilityDiff, CapabilityId};

use crate::intern::Interner;
use crate::snapshot::{HeldApp, Snapshot};
use crate::{MAX_APPS, MAX_CAPABILITIES};

/// One change of a batch. Each is taken or refused as a whole; one that is refused costs the others nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// An application with all that it offers, in place of what it had.
    App {
        /// The application; its list of capabilities is set by the registry.
        entry: AppEntry,
        /// What it offers.
        capabilities: Vec<CapabilityDescriptor>,
        /// The state of the adapter that found it.
        adapter_state: AdapterState,
    },
    /// An application and all that it offers leave.
    RemoveApp(AppId),
    /// One capability, new or in place of the one of its id.
    Capability(Box<CapabilityDescriptor>),
    /// One capability leaves.
    RemoveCapability(CapabilityId),
}

/// What a batch did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "what was refused is not registered, and what changed is to be told"]
pub struct Applied {
    /// One per application that changed, sorted by id; none for what is as it was.
    pub diffs: Vec<CapabilityDiff>,
    /// The changes that were refused: their place in the batch and why.
    pub refused: Vec<(usize, RegistryError)>,
    /// The generation of the state that readers see now.
    pub generation: u64,
}

/// What a batch does to one application.
#[derive(Debug, Clone)]
pub(crate) struct Touched {
    pub(crate) app: Option<HeldApp>,
    /// How many capabilities it has now.
    pub(crate) count: usize,
}

/// The next state, as differences from the one that holds.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) base: &'a Snapshot,
    /// New and changed capabilities, and those that leave.
    pub(crate) capabilities: BTreeMap<CapabilityId, Option<Arc<CapabilityDescriptor>>>,
    pub(crate) touched: BTreeMap<AppId, Touched>,
    /// How many capabilities and applications there are.
    counts: (usize, usize),
}

impl<'a> Draft<'a> {
    pub(crate) fn new(base: &'a Snapshot) -> Self {
        Self { base, capabilities: BTreeMap::new(), touched: BTreeMap::new(), counts: base.len() }
    }

    /// Takes one change in, or refuses it and changes nothing.
    pub(crate) fn take(&mut self, change: Change, interner: &mut Interner) -> Result<(), RegistryError> {
        match change {
            Change::App { entry, capabilities, adapter_state } => {
                self.set_app(entry, capabilities, adapter_state, interner)
            }
            Change::RemoveApp(id) => self.remove_app(&id),
            Change::Capability(capability) => self.set_capability(*capability, interner),
            Change::RemoveCapability(id) => self.remove_capability(id),
        }
    }

    fn get(&self, id: &CapabilityId) -> Option<&Arc<CapabilityDescriptor>> {
        // A scan brings its capabilities sorted: one comparison tells that this one comes behind all of them.
        let is_last = self.capabilities.last_key_value().is_none_or(|(last, _)| last < id);
        let drafted = if is_last { None } else { self.capabilities.get(id) };
        match drafted {
            Some(drafted) => drafted.as_ref(),
            None => self.base.get(id),
        }
    }

    /// The ids that an application has in this draft.
    fn ids_of(&self, app: &AppId) -> Vec<CapabilityId> {
        let held = self.base.capabilities_of(app).map(|capability| &capability.id);
        let mut ids: Vec<_> = held.filter(|id| !self.capabilities.contains_key(id)).cloned().collect();
        if self.touched.contains_key(app) {
            let drafted = self.capabilities.values().flatten();
            ids.extend(drafted.filter(|drafted| drafted.app_id == *app).map(|drafted| drafted.id.clone()));
        }
        ids
    }

    fn touch(&mut self, app: &AppId) -> &mut Touched {
        let base = self.base;
        let owner = base.owner(app).map(|(_, owner)| owner);
        // The id that is held already, so that all that name it share one text.
        let id = owner.map_or(app, |owner| &owner.id);
        self.touched.entry(id.clone()).or_insert_with(|| Touched {
            app: owner.and_then(|owner| owner.app.clone()),
            count: owner.map_or(0, |owner| owner.count as usize),
        })
    }

    fn check_owner(&self, id: &CapabilityId, app: &AppId) -> Result<(), RegistryError> {
        match self.get(id) {
            Some(held) if held.app_id != *app => {
                Err(RegistryError::Taken { id: id.to_string(), owner: held.app_id.to_string() })
            }
            _ => Ok(()),
        }
    }

    fn set_app(
        &mut self,
        mut entry: AppEntry,
        mut capabilities: Vec<CapabilityDescriptor>,
        adapter_state: AdapterState,
        interner: &mut Interner,
    ) -> Result<(), RegistryError> {
        // Of two with the same id the later one counts, as if they came one after the other.
        capabilities.reverse();
        capabilities.sort_by(|one, other| one.id.cmp(&other.id));
        capabilities.dedup_by(|later, first| later.id == first.id);
        for capability in &capabilities {
            if capability.app_id != entry.id {
                let owner = capability.app_id.to_string();
                return Err(RegistryError::Taken { id: capability.id.to_string(), owner });
            }
            self.check_owner(&capability.id, &entry.id)?;
        }
        let old = self.ids_of(&entry.id);
        let is_new = self.touch(&entry.id).app.is_none();
        check_room(&entry.id, capabilities.len(), self.counts.0 - old.len() + capabilities.len())?;
        if is_new && self.counts.1 >= MAX_APPS {
            return Err(full("applications", MAX_APPS, entry.id.as_str()));
        }
        self.counts = (self.counts.0 - old.len() + capabilities.len(), self.counts.1 + usize::from(is_new));
        let count = capabilities.len();
        for id in old {
            self.capabilities.insert(id, None);
        }
        entry.id = self.shared(&entry.id);
        let id = entry.id.clone();
        for capability in capabilities {
            self.put(capability, &id, interner);
        }
        *self.touch(&id) = Touched { app: Some(HeldApp { entry: Arc::new(entry), adapter_state }), count };
        Ok(())
    }

    fn remove_app(&mut self, id: &AppId) -> Result<(), RegistryError> {
        if self.touch(id).app.is_none() {
            return Err(RegistryError::NotFound(id.to_string()));
        }
        let old = self.ids_of(id);
        self.counts = (self.counts.0 - old.len(), self.counts.1 - 1);
        self.capabilities.extend(old.into_iter().map(|id| (id, None)));
        *self.touch(id) = Touched { app: None, count: 0 };
        Ok(())
    }

    fn set_capability(
        &mut self,
        capability: CapabilityDescriptor,
        interner: &mut Interner,
    ) -> Result<(), RegistryError> {
        self.check_owner(&capability.id, &capability.app_id)?;
        let added = usize::from(self.get(&capability.id).is_none());
        let count = self.touch(&capability.app_id).count + added;
        if added == 1 {
            check_room(&capability.id, count, self.counts.0 + 1)?;
        }
        self.touch(&capability.app_id).count = count;
        self.counts.0 += added;
        let owner = self.shared(&capability.app_id);
        self.put(capability, &owner, interner);
        Ok(())
    }

    fn remove_capability(&mut self, id: CapabilityId) -> Result<(), RegistryError> {
        let Some(held) = self.get(&id) else { return Err(RegistryError::NotFound(id.to_string())) };
        let app = held.app_id.clone();
        self.touch(&app).count -= 1;
        self.counts.0 -= 1;
        self.capabilities.insert(id, None);
        Ok(())
    }

    /// The one copy of an id that this draft touches.
    fn shared(&self, id: &AppId) -> AppId {
        self.touched.get_key_value(id).map_or(id, |(held, _)| held).clone()
    }

    /// Puts a capability of `owner` in; one that is as it was stays the very same, so that nobody takes it for changed.
    fn put(&mut self, mut capability: CapabilityDescriptor, owner: &AppId, interner: &mut Interner) {
        interner.intern(&mut capability);
        capability.app_id = owner.clone();
        match self.base.get(&capability.id) {
            Some(held) if **held == capability => {
                self.capabilities.insert(capability.id, Some(held.clone()));
            }
            _ => {
                self.capabilities.insert(capability.id.clone(), Some(Arc::new(capability)));
            }
        }
    }
}

/// Whether `of_app` capabilities of one application and `in_all` of all are within the limits.
fn check_room(id: &impl AsRef<str>, of_app: usize, in_all: usize) -> Result<(), RegistryError> {
    if of_app > MAX_CAPABILITIES_PER_APP {
        return Err(full("capabilities of one application", MAX_CAPABILITIES_PER_APP, id.as_ref()));
    }
    if in_all > MAX_CAPABILITIES {
        return Err(full("capabilities", MAX_CAPABILITIES, id.as_ref()));
    }
    Ok(())
}

fn full(what: &'static str, limit: usize, id: &str) -> RegistryError {
    RegistryError::Full { what, limit, id: id.to_owned() }
}
