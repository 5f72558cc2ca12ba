//! The registry over one plain map: correct first, the map is chosen by a bench later (R-011, R-029..R-032).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, PoisonError, RwLock};

use pcp_core::ports::RegistryError;
use pcp_core::{AppEntry, AppId, CapabilityDescriptor, CapabilityId, CapabilityRegistry, RegistryFilter};

/// Most capabilities: ten times what a full desktop declares, and at 1 KiB each a tenth of the memory budget.
pub const MAX_CAPABILITIES: usize = 10_000;
/// Most applications: more than any device of this size has installed.
pub const MAX_APPS: usize = 4_096;

#[derive(Debug, Default)]
struct Maps {
    capabilities: BTreeMap<CapabilityId, Arc<CapabilityDescriptor>>,
    apps: BTreeMap<AppId, Arc<AppEntry>>,
}

/// Applications and capabilities in memory. A reader sees an application with all its capabilities or not at all.
#[derive(Debug, Default)]
pub struct InMemoryRegistry {
    maps: RwLock<Maps>,
}

impl InMemoryRegistry {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The application of this id.
    #[must_use]
    pub fn app(&self, id: &AppId) -> Option<Arc<AppEntry>> {
        self.read(|maps| maps.apps.get(id).cloned())
    }

    /// How many capabilities and applications there are.
    #[must_use]
    pub fn len(&self) -> (usize, usize) {
        self.read(|maps| (maps.capabilities.len(), maps.apps.len()))
    }

    /// Whether nothing is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == (0, 0)
    }

    /// Takes an application and everything it offers out.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`].
    pub fn unregister_app(&self, id: &AppId) -> Result<(), RegistryError> {
        self.write(|maps| {
            maps.apps.remove(id).ok_or_else(|| RegistryError::NotFound(id.to_string()))?;
            maps.capabilities.retain(|_, capability| capability.app_id != *id);
            Ok(())
        })
    }

    /// Up to `limit` capabilities after `after` that fit, sorted by id: one page of [`CapabilityRegistry::query`].
    #[must_use]
    pub fn page(
        &self,
        filter: &RegistryFilter<'_>,
        after: Option<&CapabilityId>,
        limit: usize,
    ) -> Vec<Arc<CapabilityDescriptor>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.read(|maps| {
            maps.capabilities
                .range((from, Bound::Unbounded))
                .filter(|(_, capability)| fits(filter, capability))
                .take(limit)
                .map(|(_, capability)| capability.clone())
                .collect()
        })
    }

    fn read<T>(&self, look: impl FnOnce(&Maps) -> T) -> T {
        look(&self.maps.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Maps) -> T) -> T {
        change(&mut self.maps.write().unwrap_or_else(PoisonError::into_inner))
    }
}

fn fits(filter: &RegistryFilter<'_>, capability: &CapabilityDescriptor) -> bool {
    filter.domain.is_none_or(|domain| domain == capability.domain)
        && filter.method.is_none_or(|method| method == capability.method)
        && filter.app.is_none_or(|glob| pcp_core::glob::spans(glob, capability.app_id.as_str()))
}

impl Maps {
    fn check(&self, capability: &CapabilityDescriptor) -> Result<(), RegistryError> {
        match self.capabilities.get(&capability.id) {
            Some(held) if held.app_id != capability.app_id => {
                Err(RegistryError::Taken { id: capability.id.to_string(), owner: held.app_id.to_string() })
            }
            _ => Ok(()),
        }
    }
}

impl CapabilityRegistry for InMemoryRegistry {
    fn register(&self, capability: CapabilityDescriptor) -> Result<(), RegistryError> {
        self.write(|maps| {
            maps.check(&capability)?;
            if maps.capabilities.len() >= MAX_CAPABILITIES && !maps.capabilities.contains_key(&capability.id)
            {
                return Err(full("capabilities", MAX_CAPABILITIES, capability.id.as_str()));
            }
            maps.capabilities.insert(capability.id.clone(), Arc::new(capability));
            Ok(())
        })
    }

    fn unregister(&self, id: &CapabilityId) -> Result<(), RegistryError> {
        self.write(|maps| {
            let removed = maps.capabilities.remove(id);
            removed.map(drop).ok_or_else(|| RegistryError::NotFound(id.to_string()))
        })
    }

    fn get(&self, id: &CapabilityId) -> Option<Arc<CapabilityDescriptor>> {
        self.read(|maps| maps.capabilities.get(id).cloned())
    }

    fn query(&self, filter: &RegistryFilter<'_>) -> Vec<Arc<CapabilityDescriptor>> {
        self.page(filter, None, MAX_CAPABILITIES)
    }

    fn register_app(
        &self,
        app: AppEntry,
        capabilities: Vec<CapabilityDescriptor>,
    ) -> Result<(), RegistryError> {
        self.write(|maps| {
            for capability in &capabilities {
                maps.check(capability)?;
            }
            let held = maps.capabilities.values().filter(|capability| capability.app_id == app.id).count();
            if maps.capabilities.len() - held + capabilities.len() > MAX_CAPABILITIES {
                return Err(full("capabilities", MAX_CAPABILITIES, app.id.as_str()));
            }
            if maps.apps.len() >= MAX_APPS && !maps.apps.contains_key(&app.id) {
                return Err(full("applications", MAX_APPS, app.id.as_str()));
            }
            maps.capabilities.retain(|_, capability| capability.app_id != app.id);
            maps.capabilities.extend(
                capabilities.into_iter().map(|capability| (capability.id.clone(), Arc::new(capability))),
            );
            maps.apps.insert(app.id.clone(), Arc::new(app));
            Ok(())
        })
    }

    fn apps(&self) -> Vec<Arc<AppEntry>> {
        self.read(|maps| maps.apps.values().cloned().collect())
    }
}

fn full(what: &'static str, limit: usize, id: &str) -> RegistryError {
    RegistryError::Full { what, limit, id: id.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcp_core::{DetectionMethod, Domain, SignatureStatus, StabilityLevel, TrustLevel};

    fn capability(text: &str, app: &str, method: DetectionMethod) -> CapabilityDescriptor {
        let id = CapabilityId::parse(text).unwrap();
        CapabilityDescriptor {
            app_id: AppId::parse(app).unwrap(),
            domain: id.domain(),
            id,
            name: "".into(),
            description: "".into(),
            category: "".into(),
            input_schema: "{}".into(),
            output_schema: "{}".into(),
            method,
            stability: StabilityLevel::Stable,
            version: "1".into(),
            side_effects: false,
            confirmation_required: false,
            minimum_trust: TrustLevel::USER,
            validates_params: false,
            executable: true,
            signature: SignatureStatus::Verified,
            clear_parameters: Box::default(),
        }
    }

    fn app(id: &str, capabilities: &[CapabilityDescriptor]) -> AppEntry {
        AppEntry {
            id: AppId::parse(id).unwrap(),
            version: "1".into(),
            method: DetectionMethod::Desktop,
            signature: SignatureStatus::Verified,
            problem: None,
            capabilities: capabilities.iter().map(|capability| capability.id.clone()).collect(),
        }
    }

    #[test]
    fn unregistering_an_unknown_id_is_an_error() {
        let registry = InMemoryRegistry::new();
        let error = registry.unregister(&CapabilityId::parse("app.x.y").unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "app.x.y is not registered");
    }

    #[test]
    fn an_application_replaces_all_that_it_had() {
        let registry = InMemoryRegistry::new();
        let old = [
            capability("app.a.read", "a", DetectionMethod::Desktop),
            capability("app.a.edit", "a", DetectionMethod::Desktop),
        ];
        registry.register_app(app("a", &old), old.to_vec()).unwrap();
        let new = [capability("app.a.list", "a", DetectionMethod::Desktop)];
        registry.register_app(app("a", &new), new.to_vec()).unwrap();
        assert_eq!(registry.len(), (1, 1));
        assert!(registry.get(&new[0].id).is_some() && registry.get(&old[0].id).is_none());
        registry.unregister_app(&AppId::parse("a").unwrap()).unwrap();
        assert!(registry.is_empty());
    }

    #[test]
    fn an_id_of_another_application_is_refused_and_nothing_changes() {
        let registry = InMemoryRegistry::new();
        let theirs = [capability("app.shared.read", "a", DetectionMethod::Desktop)];
        registry.register_app(app("a", &theirs), theirs.to_vec()).unwrap();
        let mine = [
            capability("app.b.read", "b", DetectionMethod::Desktop),
            capability("app.shared.read", "b", DetectionMethod::Desktop),
        ];
        let error = registry.register_app(app("b", &mine), mine.to_vec()).unwrap_err();
        assert_eq!(error.to_string(), "app.shared.read already belongs to a");
        assert_eq!(registry.len(), (1, 1));
    }

    #[test]
    fn a_query_gives_what_each_of_the_eight_filters_says() {
        let registry = InMemoryRegistry::new();
        let mut all = Vec::new();
        for (app_id, domain) in [("org.x.a", "app"), ("com.y.b", "compositor"), ("org.x.c", "system")] {
            for (action, method) in [("read", DetectionMethod::Desktop), ("edit", DetectionMethod::Atspi2)] {
                all.push(capability(&format!("{domain}.{app_id}.{action}"), app_id, method));
            }
        }
        all.iter().for_each(|one| registry.register(one.clone()).unwrap());
        for bits in 0..8 {
            let filter = RegistryFilter {
                domain: (bits & 1 != 0).then_some(Domain::App),
                method: (bits & 2 != 0).then_some(DetectionMethod::Atspi2),
                app: (bits & 4 != 0).then_some("org.*"),
            };
            let mut want: Vec<_> = all
                .iter()
                .filter(|one| {
                    filter.domain.is_none_or(|domain| one.domain == domain)
                        && filter.method.is_none_or(|method| one.method == method)
                        && filter.app.is_none_or(|_| one.app_id.as_str().starts_with("org."))
                })
                .map(|one| one.id.clone())
                .collect();
            want.sort();
            let found: Vec<_> = registry.query(&filter).iter().map(|one| one.id.clone()).collect();
            assert_eq!(found, want, "{bits}");
        }
    }

    #[test]
    fn a_full_registry_names_its_limit_and_loses_nothing() {
        let registry = InMemoryRegistry::new();
        for n in 0..MAX_CAPABILITIES {
            registry.register(capability(&format!("app.a.read_{n}"), "a", DetectionMethod::Desktop)).unwrap();
        }
        let error = registry.register(capability("app.a.more", "a", DetectionMethod::Desktop)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the registry holds 10000 capabilities, its limit; app.a.more was not registered"
        );
        registry.register(capability("app.a.read_7", "a", DetectionMethod::Atspi2)).unwrap();
        assert_eq!(registry.len().0, MAX_CAPABILITIES);
    }

    #[test]
    fn pages_put_together_are_the_query() {
        let registry = InMemoryRegistry::new();
        for n in 0..10 {
            registry.register(capability(&format!("app.a.read_{n}"), "a", DetectionMethod::Desktop)).unwrap();
        }
        let filter = RegistryFilter::default();
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = registry.page(&filter, after.as_ref(), 3);
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            found.extend(page);
        }
        assert_eq!(found, registry.query(&filter));
    }
}
