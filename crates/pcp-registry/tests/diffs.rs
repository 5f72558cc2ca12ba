//! A diff tells exactly what a batch did, once per application.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use pcp_core::{
    AdapterState, CapabilityDescriptor, CapabilityDiff, CapabilityId, CapabilityRegistry, ChangedField,
    DetectionMethod, FieldChange, FieldValue, TrustLevel,
};
use pcp_registry::{CapabilityDiffTracker, Change, InMemoryRegistry, Snapshot};
use proptest::prelude::*;
use support::{app, app_id, capability};

fn one(action: &str) -> CapabilityDescriptor {
    capability(&format!("app.a.{action}"), "a", DetectionMethod::Desktop)
}

#[test]
fn two_more_one_less_and_one_changed_field_are_one_diff() {
    let registry = InMemoryRegistry::new();
    let _ = registry.apply([app("a", &[one("edit"), one("list"), one("read")]), app("b", &[])]);
    let mut list = one("list");
    list.description = "Lists more".into();

    let applied = registry.apply([app("a", &[one("zoom"), one("add"), one("read"), list.clone()])]);

    let [diff] = &applied.diffs[..] else { panic!("{:?}", applied.diffs) };
    let added: Vec<_> = diff.added.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(added, ["app.a.add", "app.a.zoom"]);
    assert_eq!(diff.removed, [one("edit").id]);
    assert_eq!(diff.changed.len(), 1);
    assert_eq!(diff.changed[0].id, list.id);
    let old = FieldValue::Text(one("list").description);
    let new = FieldValue::Text(list.description);
    assert_eq!(diff.changed[0].fields, [FieldChange { field: ChangedField::Description, old, new }]);
    assert_eq!(diff.previous_state, Some(AdapterState::Ready));
    assert_eq!((diff.new_state, diff.app.len()), (Some(AdapterState::Ready), 0));
}

#[test]
fn what_is_as_it_was_is_not_told() {
    let registry = InMemoryRegistry::new();
    let same = || app("a", &[one("edit"), one("read")]);
    assert_eq!(registry.apply([same()]).diffs.len(), 1);
    assert!(registry.apply([same()]).diffs.is_empty());
    // Gone and back within one batch is nothing that anybody saw.
    let applied = registry.apply([Change::RemoveApp(app_id("a")), same()]);
    assert_eq!((applied.diffs.len(), applied.generation), (0, 1));
}

#[test]
fn an_application_that_comes_leaves_or_loses_its_adapter_says_so() {
    let registry = InMemoryRegistry::new();
    let came = registry.apply([app("a", &[one("read")])]).diffs.remove(0);
    assert_eq!((came.previous_state, came.new_state), (None, Some(AdapterState::Ready)));
    assert_eq!(came.added.len(), 1);

    let mut degraded = app("a", &[one("read")]);
    if let Change::App { entry, adapter_state, .. } = &mut degraded {
        *adapter_state = AdapterState::Degraded;
        entry.problem = Some("half of it is missing".into());
    }
    let worse = registry.apply([degraded]).diffs.remove(0);
    assert_eq!(worse.new_state, Some(AdapterState::Degraded));
    let new = FieldValue::Text("half of it is missing".into());
    assert_eq!(worse.app, [FieldChange { field: ChangedField::Problem, old: FieldValue::Absent, new }]);
    assert!(worse.added.is_empty() && worse.removed.is_empty() && worse.changed.is_empty());

    let left = registry.apply([Change::RemoveApp(app_id("a"))]).diffs.remove(0);
    assert_eq!((left.previous_state, left.new_state), (Some(AdapterState::Degraded), None));
    assert_eq!(left.removed, [one("read").id]);
}

#[test]
fn the_fields_of_a_capability_are_all_compared() {
    let old = one("read");
    let mut new = old.clone();
    let text = || Arc::from("other");
    (new.name, new.description, new.category) = (text(), text(), text());
    (new.input_schema, new.output_schema, new.version) = (text(), text(), text());
    new.method = DetectionMethod::Wine;
    new.stability = pcp_core::StabilityLevel::Predicted;
    new.side_effects = true;
    new.confirmation_required = true;
    new.minimum_trust = TrustLevel::OBSERVE;
    new.validates_params = true;
    new.executable = false;
    new.signature = pcp_core::SignatureStatus::Unsigned;
    new.clear_parameters = ["mode".into()].into();
    let fields: Vec<_> = old.changes_to(&new).into_iter().map(|change| change.field).collect();
    let of_the_app = [ChangedField::Problem, ChangedField::Toolkit];
    let want: Vec<_> =
        ChangedField::ALL.iter().copied().filter(|field| !of_the_app.contains(field)).collect();
    assert_eq!(fields, want);
    assert!(old.changes_to(&old).is_empty());
}

/// Sets the field that the change names, as a listener would.
fn set(one: &mut CapabilityDescriptor, change: &FieldChange) {
    match (change.field, &change.new) {
        (ChangedField::Name, FieldValue::Text(text)) => one.name = text.clone(),
        (ChangedField::Version, FieldValue::Text(text)) => one.version = text.clone(),
        (ChangedField::Method, FieldValue::Text(text)) => one.method = text.parse().unwrap(),
        (ChangedField::Executable, FieldValue::Flag(flag)) => one.executable = *flag,
        (ChangedField::ClearParameters, FieldValue::Texts(texts)) => one.clear_parameters = texts.clone(),
        other => panic!("the strategy does not change {other:?}"),
    }
}

type All = BTreeMap<CapabilityId, CapabilityDescriptor>;

/// What a listener knows after it has heard the diff.
fn heard(all: &mut All, diff: &CapabilityDiff) {
    for id in &diff.removed {
        assert!(all.remove(id).is_some(), "{id} was not there");
    }
    for added in &diff.added {
        assert!(all.insert(added.id.clone(), (**added).clone()).is_none(), "{} was there", added.id);
    }
    for change in &diff.changed {
        let one = all.get_mut(&change.id).unwrap();
        change.fields.iter().for_each(|field| set(one, field));
    }
}

fn held(snapshot: &Snapshot) -> All {
    let apps = snapshot.apps().map(|held| held.entry.id.clone()).collect::<Vec<_>>();
    let all = apps.iter().flat_map(|app| snapshot.capabilities_of(app));
    all.map(|one| (one.id.clone(), (**one).clone())).collect()
}

fn any_app() -> impl Strategy<Value = Change> {
    let capability = (0..6_u8, 0..3_u8, any::<bool>(), prop::sample::select(DetectionMethod::ALL));
    (prop::sample::select(&["a", "b", "c"][..]), prop::collection::vec(capability, 0..6)).prop_map(
        |(name, all)| {
            let one = |(n, version, flag, method): (u8, u8, bool, DetectionMethod)| {
                let mut one = support::capability(&format!("app.{name}.x{n}"), name, method);
                one.version = version.to_string().into();
                one.name = (version % 2).to_string().into();
                one.executable = flag;
                one.clear_parameters = (0..version).map(|n| n.to_string().into()).collect();
                one
            };
            app(name, &all.into_iter().map(one).collect::<Vec<_>>())
        },
    )
}

fn any_change() -> impl Strategy<Value = Change> {
    let gone = prop::sample::select(&["a", "b", "c"][..]).prop_map(|name| Change::RemoveApp(app_id(name)));
    prop_oneof![4 => any_app(), 1 => gone]
}

proptest! {
    #[test]
    fn whoever_hears_the_diffs_knows_what_the_registry_holds(
        batches in prop::collection::vec(prop::collection::vec(any_change(), 0..5), 1..6),
    ) {
        let registry = InMemoryRegistry::new();
        let mut known = All::new();
        for batch in batches {
            let before = registry.snapshot();
            let applied = registry.apply(batch);
            let after = registry.snapshot();
            let same_by_walk = CapabilityDiffTracker::new(&before, &after).all();
            prop_assert_eq!(&applied.diffs, &same_by_walk);
            prop_assert!(applied.diffs.is_sorted_by(|one, other| one.app_id < other.app_id));
            prop_assert!(applied.diffs.iter().all(|diff| !diff.is_empty()));
            prop_assert_eq!(applied.diffs.is_empty(), before.generation() == after.generation());
            applied.diffs.iter().for_each(|diff| heard(&mut known, diff));
            prop_assert_eq!(&known, &held(&after));
            prop_assert_eq!(registry.len().0, known.len());
        }
        prop_assert_eq!(registry.query(&pcp_core::RegistryFilter::default()).len(), known.len());
    }
}
