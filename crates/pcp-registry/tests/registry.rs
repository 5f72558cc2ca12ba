//! What the registry promises, call by call and against a plain model.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::collections::BTreeMap;

use pcp_core::manifest::MAX_CAPABILITIES_PER_APP;
use pcp_core::{
    AppEntry, CapabilityDescriptor, CapabilityRegistry, DetectionMethod, Domain, RegistryFilter,
    SignatureStatus,
};
use pcp_registry::{Change, InMemoryRegistry, MAX_APPS, MAX_CAPABILITIES};
use proptest::prelude::*;
use support::{app, app_id, applications, capability, entry, id};

fn full_of(change: impl Iterator<Item = Change>) -> InMemoryRegistry {
    let registry = InMemoryRegistry::new();
    let applied = registry.apply(change);
    assert_eq!((applied.refused.len(), applied.generation), (0, 1));
    registry
}

#[test]
fn unregistering_an_unknown_id_is_an_error() {
    let registry = InMemoryRegistry::new();
    let error = registry.unregister(&id("app.x.y")).unwrap_err();
    assert_eq!(error.to_string(), "app.x.y is not registered");
    let error = registry.unregister_app(&app_id("x")).unwrap_err();
    assert_eq!(error.to_string(), "x is not registered");
}

#[test]
fn an_application_replaces_all_that_it_had() {
    let registry = InMemoryRegistry::new();
    let old = ["app.a.read", "app.a.edit"].map(|text| capability(text, "a", DetectionMethod::Desktop));
    registry.register_app(entry("a"), old.to_vec()).unwrap();
    let new = capability("app.a.list", "a", DetectionMethod::Desktop);
    registry.register_app(entry("a"), vec![new.clone()]).unwrap();
    assert_eq!(registry.len(), (1, 1));
    assert!(registry.get(&new.id).is_some() && registry.get(&old[0].id).is_none());
    registry.unregister_app(&app_id("a")).unwrap();
    assert!(registry.is_empty());
}

#[test]
fn an_application_lists_exactly_what_it_has() {
    let registry = InMemoryRegistry::new();
    let listed = || registry.app(&app_id("a")).unwrap().ids().cloned().collect::<Vec<_>>();
    let own = ["app.a.read", "app.a.edit"].map(|text| capability(text, "a", DetectionMethod::Desktop));
    registry.register_app(entry("a"), own.to_vec()).unwrap();
    assert_eq!(listed(), [id("app.a.edit"), id("app.a.read")]);
    registry.unregister(&id("app.a.edit")).unwrap();
    registry.register(capability("app.a.zoom", "a", DetectionMethod::Desktop)).unwrap();
    assert_eq!(listed(), [id("app.a.read"), id("app.a.zoom")]);
}

#[test]
fn an_id_of_another_application_is_refused_and_nothing_changes() {
    let registry = InMemoryRegistry::new();
    let shared = |app| capability("app.shared.read", app, DetectionMethod::Desktop);
    registry.register_app(entry("a"), vec![shared("a")]).unwrap();
    let mine = vec![capability("app.b.read", "b", DetectionMethod::Desktop), shared("b")];
    let error = registry.register_app(entry("b"), mine).unwrap_err();
    assert_eq!(error.to_string(), "app.shared.read already belongs to a");
    let error = registry.register_app(entry("b"), vec![shared("a")]).unwrap_err();
    assert_eq!(error.to_string(), "app.shared.read already belongs to a");
    assert_eq!(registry.len(), (1, 1));
}

#[test]
fn one_batch_is_one_state_and_what_it_refuses_costs_the_others_nothing() {
    let registry = InMemoryRegistry::new();
    let contested = capability("app.shared.read", "a", DetectionMethod::Desktop);
    let changes = vec![
        app("a", std::slice::from_ref(&contested)),
        Change::RemoveApp(app_id("nobody")),
        app("b", &[capability("app.shared.read", "b", DetectionMethod::Desktop)]),
        app("c", &[]),
        Change::RemoveApp(app_id("c")),
        Change::Capability(Box::new(capability("app.d.read", "d", DetectionMethod::Atspi2))),
    ];
    let applied = registry.apply(changes);
    let refused: Vec<_> = applied.refused.iter().map(|(at, error)| (*at, error.to_string())).collect();
    assert_eq!(
        refused,
        [(1, "nobody is not registered".into()), (2, "app.shared.read already belongs to a".into())]
    );
    assert_eq!((applied.generation, registry.len()), (1, (2, 1)));
    let told: Vec<_> = applied.diffs.iter().map(|diff| diff.app_id.as_str()).collect();
    assert_eq!(told, ["a", "d"]);
}

#[test]
fn three_hundred_applications_are_one_state_and_the_same_again_are_none() {
    let registry = full_of(applications(300, 8));
    let before = registry.snapshot();
    let applied = registry.apply(applications(300, 8));
    assert_eq!((applied.generation, applied.diffs.len(), applied.refused.len()), (1, 0, 0));
    assert!(std::sync::Arc::ptr_eq(&before, &registry.snapshot()));
}

#[test]
fn a_full_registry_names_its_limit_and_loses_nothing() {
    let registry =
        full_of(applications(MAX_CAPABILITIES / MAX_CAPABILITIES_PER_APP, MAX_CAPABILITIES_PER_APP));
    assert_eq!(registry.len().0, MAX_CAPABILITIES);
    let error = registry.register(capability("app.a.more", "a", DetectionMethod::Desktop)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the registry holds 32768 capabilities, its limit; app.a.more was not registered"
    );
    let held = "app.org.example0.app0.read_7";
    registry.register(capability(held, "org.example0.app0", DetectionMethod::Atspi2)).unwrap();
    assert_eq!(registry.len().0, MAX_CAPABILITIES);
}

#[test]
fn one_application_has_at_most_what_a_manifest_may_declare() {
    let registry = full_of(applications(1, MAX_CAPABILITIES_PER_APP));
    let more = capability("app.org.example0.app0.more", "org.example0.app0", DetectionMethod::Desktop);
    assert_eq!(
        registry.register(more).unwrap_err().to_string(),
        "the registry holds 1024 capabilities of one application, its limit; app.org.example0.app0.more was not \
         registered"
    );
}

#[test]
fn the_number_of_applications_is_limited() {
    let registry = full_of(applications(MAX_APPS, 0));
    let error = registry.register_app(entry("more"), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the registry holds 4096 applications, its limit; more was not registered");
    registry.register_app(entry("org.example0.app0"), Vec::new()).unwrap();
    registry.unregister_app(&app_id("org.example0.app0")).unwrap();
    registry.register_app(entry("more"), Vec::new()).unwrap();
}

#[test]
fn pages_put_together_are_the_query() {
    let registry = full_of(applications(20, 5));
    for app in [None, Some("*"), Some("org.example3.*"), Some("org.*.app1*"), Some("org.example2.app2")] {
        let filter = RegistryFilter { app, ..RegistryFilter::default() };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = registry.page(&filter, after.as_ref(), 3);
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            found.extend(page);
        }
        assert_eq!(found, registry.query(&filter), "{app:?}");
    }
}

#[test]
fn the_statistics_count_what_a_walk_counts() {
    let registry = full_of(applications(3, 4));
    let mut broken = entry("broken");
    broken.signature = SignatureStatus::Invalid;
    registry.register_app(broken, Vec::new()).unwrap();
    registry.register(capability("system.power.status", "power", DetectionMethod::Simulated)).unwrap();
    let stats = registry.stats();
    assert_eq!((stats.generation, stats.capabilities, stats.apps), (3, 13, 4));
    assert_eq!(stats.by_domain, [(Domain::App, 12), (Domain::Compositor, 0), (Domain::System, 1)]);
    assert_eq!(stats.by_method[0], (DetectionMethod::Desktop, 12));
    assert_eq!(stats.by_method[3], (DetectionMethod::Simulated, 1));
    assert_eq!(
        stats.by_signature,
        [(SignatureStatus::Verified, 3), (SignatureStatus::Unsigned, 0), (SignatureStatus::Invalid, 1)]
    );
    assert!(stats.estimated_bytes > 13 * size_of::<CapabilityDescriptor>());
}

/// The registry as a plain map would be.
#[derive(Debug, Default, Clone)]
struct Model {
    capabilities: BTreeMap<String, CapabilityDescriptor>,
    apps: BTreeMap<String, AppEntry>,
}

impl Model {
    fn take(&mut self, change: Change) -> bool {
        let taken = |model: &Self, one: &CapabilityDescriptor| {
            model.capabilities.get(one.id.as_str()).is_some_and(|held| held.app_id != one.app_id)
        };
        match change {
            Change::App { entry, capabilities, .. } => {
                if capabilities.iter().any(|one| taken(self, one)) {
                    return false;
                }
                self.capabilities.retain(|_, one| one.app_id != entry.id);
                self.capabilities.extend(capabilities.into_iter().map(|one| (one.id.to_string(), one)));
                self.apps.insert(entry.id.to_string(), entry);
                true
            }
            Change::RemoveApp(id) => {
                let known = self.apps.remove(id.as_str()).is_some();
                self.capabilities.retain(|_, one| !known || one.app_id != id);
                known
            }
            Change::Capability(one) => {
                let fits = !taken(self, &one);
                if fits {
                    self.capabilities.insert(one.id.to_string(), *one);
                }
                fits
            }
            Change::RemoveCapability(id) => self.capabilities.remove(id.as_str()).is_some(),
        }
    }

    /// Every capability is asked about on its own, and the pattern by trying every split.
    fn query(&self, filter: &RegistryFilter<'_>) -> Vec<&CapabilityDescriptor> {
        let fits = |one: &&CapabilityDescriptor| {
            filter.domain.is_none_or(|domain| one.domain == domain)
                && filter.method.is_none_or(|method| one.method == method)
                && filter.app.is_none_or(|glob| matches(glob.as_bytes(), one.app_id.as_str().as_bytes()))
        };
        self.capabilities.values().filter(fits).collect()
    }
}

fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skip| matches(rest, &text[skip..])),
        Some((first, rest)) => {
            text.split_first().is_some_and(|(head, tail)| head == first && matches(rest, tail))
        }
    }
}

const APPS: [&str; 6] = ["com.y.b", "com.y.b2", "org", "org.x.a", "org.x.c", "org.z"];
const PATTERNS: [&str; 9] = ["*", "", "org*", "org.*", "org.x.a", "*.b", "o*.x.*", "com.y.b*", "nothing.*"];

fn any_capability() -> impl Strategy<Value = CapabilityDescriptor> {
    let methods = prop::sample::select(DetectionMethod::ALL);
    let domains = prop::sample::select(Domain::ALL);
    (prop::sample::select(&APPS[..]), prop::sample::select(&APPS[..]), domains, methods, 0..4_u8, 0..3_u8)
        .prop_map(|(app, part, domain, method, action, version)| {
            // One in many is named after another application than its own, so that ids are contested.
            let part = if version == 0 { part } else { app };
            let mut one = capability(&format!("{domain}.{part}.a{action}"), app, method);
            one.version = format!("{version}").into();
            one
        })
}

fn any_change() -> impl Strategy<Value = Change> {
    let apps = || prop::sample::select(&APPS[..]);
    prop_oneof![
        4 => (apps(), prop::collection::vec(any_capability(), 0..6)).prop_map(|(name, mut all)| {
            all.iter_mut().for_each(|one| one.app_id = app_id(name));
            app(name, &all)
        }),
        1 => apps().prop_map(|name| Change::RemoveApp(app_id(name))),
        3 => any_capability().prop_map(|one| Change::Capability(Box::new(one))),
        1 => any_capability().prop_map(|one| Change::RemoveCapability(one.id)),
    ]
}

fn same(registry: &InMemoryRegistry, model: &Model) -> Result<(), TestCaseError> {
    for app in PATTERNS.map(Some).into_iter().chain([None]) {
        for bits in 0..4 {
            for domain in Domain::ALL {
                let filter = RegistryFilter {
                    domain: (bits & 1 != 0).then_some(*domain),
                    method: (bits & 2 != 0).then_some(DetectionMethod::Atspi2),
                    app,
                };
                let found = registry.query(&filter);
                let found: Vec<_> = found.iter().map(|one| &**one).collect();
                prop_assert_eq!(found, model.query(&filter), "{:?}", filter);
            }
        }
    }
    for one in model.capabilities.values() {
        let found = registry.get(&one.id);
        prop_assert_eq!(found.as_deref(), Some(one));
    }
    let apps = registry.apps();
    prop_assert!(apps.iter().map(|held| held.id.as_str()).eq(model.apps.keys().map(String::as_str)));
    for held in apps {
        let own = model.capabilities.values().filter(|one| one.app_id == held.id).map(|one| &one.id);
        prop_assert!(own.eq(held.ids()), "{:?}", held);
    }
    prop_assert_eq!(registry.len(), (model.capabilities.len(), model.apps.len()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// All eight combinations of the three filters, after any batches.
    #[test]
    fn any_batches_leave_what_a_plain_map_holds_and_every_filter_finds_what_a_plain_scan_finds(
        batches in prop::collection::vec(prop::collection::vec(any_change(), 0..8), 1..6),
    ) {
        let registry = InMemoryRegistry::new();
        let mut model = Model::default();
        for batch in batches {
            let refused = registry.apply(batch.clone()).refused;
            let taken: Vec<bool> = batch.iter().cloned().map(|change| model.take(change)).collect();
            let want = taken.iter().enumerate().filter(|(_, taken)| !**taken).map(|(at, _)| at);
            prop_assert!(refused.iter().map(|(at, _)| *at).eq(want), "{:?}", refused);
            same(&registry, &model)?;
        }
    }
}
