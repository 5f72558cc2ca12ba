//! The registry at the size of a full device, and beside it what it is measured against: an unshared map and an
//! unshared list that nobody writes, and a tree behind a lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use pcp_core::glob::spans;
use pcp_core::{
    AdapterState, AppEntry, AppId, CapabilityDescriptor, CapabilityId, CapabilityRegistry, DetectionMethod,
    IdError, RegistryFilter, SignatureStatus, StabilityLevel, TrustLevel,
};
use pcp_registry::{Change, InMemoryRegistry};

/// Applications of the device; with eight capabilities each they are ten thousand.
const APPS: usize = 1_250;
/// Capabilities of each application.
const EACH: usize = 8;
/// Lookups of one measurement, spread over all rows.
pub const LOOKUPS: usize = 64;
/// A pattern that has to be judged application by application: one in ten fits.
pub const GLOB: &str = "org.*.Application*7";
/// The applications of one vendor in forty.
pub const PREFIX: &str = "org.vendor7.*";

/// The same descriptors, held in four ways.
#[derive(Debug)]
pub struct Registries {
    /// The product's.
    pub registry: InMemoryRegistry,
    /// The limit of a lookup.
    pub map: HashMap<CapabilityId, Arc<CapabilityDescriptor>>,
    /// The limit of a query.
    pub list: Vec<Arc<CapabilityDescriptor>>,
    /// The plain alternative.
    pub tree: RwLock<BTreeMap<CapabilityId, Arc<CapabilityDescriptor>>>,
    /// What is looked up.
    pub wanted: Vec<CapabilityId>,
}

impl Registries {
    /// All four, filled.
    ///
    /// # Errors
    /// [`IdError`] when an id of the set-up is malformed.
    pub fn new() -> Result<Self, IdError> {
        let registry = InMemoryRegistry::new();
        let applied = registry.apply(device()?);
        assert!(applied.refused.is_empty(), "{:?}", applied.refused);
        let list = registry.query(&RegistryFilter::default());
        assert_eq!(list.len(), APPS * EACH);
        let pairs = || list.iter().map(|one| (one.id.clone(), one.clone()));
        let wanted =
            (0..LOOKUPS).filter_map(|n| list.get(n * 2_654_435_761 % list.len())).map(|one| one.id.clone());
        Ok(Self {
            map: pairs().collect(),
            tree: RwLock::new(pairs().collect()),
            wanted: wanted.collect(),
            registry,
            list,
        })
    }

    /// Looks all wanted ids up; gives how many were found.
    #[must_use]
    pub fn get_registry(&self) -> usize {
        self.wanted.iter().filter_map(|id| self.registry.get(id)).count()
    }

    /// The same in the plain map.
    #[must_use]
    pub fn get_map(&self) -> usize {
        self.wanted.iter().filter_map(|id| self.map.get(id).cloned()).count()
    }

    /// The same in the tree behind the lock, which is taken once per lookup, as requests come.
    #[must_use]
    pub fn get_tree(&self) -> usize {
        let get = |id| self.tree.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned();
        self.wanted.iter().filter_map(get).count()
    }

    /// The capabilities of the applications that a pattern fits.
    #[must_use]
    pub fn query_registry(&self, app: &str) -> Vec<Arc<CapabilityDescriptor>> {
        self.registry.query(&filter(app))
    }

    /// The same by a scan of the plain list.
    #[must_use]
    pub fn query_list(&self, app: &str) -> Vec<Arc<CapabilityDescriptor>> {
        let filter = filter(app);
        self.list.iter().filter(|one| fits(&filter, one)).cloned().collect()
    }

    /// The same by a walk over the tree behind the lock.
    #[must_use]
    pub fn query_tree(&self, app: &str) -> Vec<Arc<CapabilityDescriptor>> {
        let filter = filter(app);
        let tree = self.tree.read().unwrap_or_else(PoisonError::into_inner);
        tree.values().filter(|one| fits(&filter, one)).cloned().collect()
    }

    /// One application is detected again, changed: the state is replaced. Gives how many differences were told.
    pub fn replace(&self, n: usize, version: &str) -> Result<usize, IdError> {
        Ok(self.registry.apply([application(n, version)?]).diffs.len())
    }
}

fn filter(app: &str) -> RegistryFilter<'_> {
    RegistryFilter { domain: Some(pcp_core::Domain::App), app: Some(app), ..RegistryFilter::default() }
}

fn fits(filter: &RegistryFilter<'_>, one: &CapabilityDescriptor) -> bool {
    filter.domain.is_none_or(|domain| domain == one.domain)
        && filter.method.is_none_or(|method| method == one.method)
        && filter.app.is_none_or(|glob| spans(glob, one.app_id.as_str()))
}

/// What a first detection of the whole device brings.
///
/// # Errors
/// [`IdError`] when an id of the set-up is malformed.
pub fn device() -> Result<Vec<Change>, IdError> {
    (0..APPS).map(|n| application(n, "1")).collect()
}

fn application(n: usize, version: &str) -> Result<Change, IdError> {
    let id = AppId::parse(&format!("org.vendor{}.Application{n}", n % 40))?;
    let one = |k: usize| {
        let capability = CapabilityId::parse(&format!("app.{id}.read_{k}"))?;
        Ok(CapabilityDescriptor {
            app_id: id.clone(),
            domain: capability.domain(),
            id: capability,
            name: "Read".into(),
            description: "Reads what is open".into(),
            category: "editor".into(),
            input_schema: r#"{"type":"object","properties":{"limit":{"type":"integer"}}}"#.into(),
            output_schema: r#"{"type":"object"}"#.into(),
            method: DetectionMethod::Desktop,
            stability: StabilityLevel::Predicted,
            version: version.into(),
            side_effects: false,
            confirmation_required: false,
            minimum_trust: TrustLevel::USER,
            validates_params: false,
            executable: false,
            signature: SignatureStatus::Unsigned,
            clear_parameters: Box::default(),
        })
    };
    let capabilities = (0..EACH).map(one).collect::<Result<_, IdError>>()?;
    let entry = AppEntry {
        id: id.clone(),
        version: version.into(),
        method: DetectionMethod::Desktop,
        signature: SignatureStatus::Unsigned,
        problem: None,
        declared: None,
        capabilities: [].into(),
    };
    Ok(Change::App { entry, capabilities, adapter_state: AdapterState::Ready })
}
