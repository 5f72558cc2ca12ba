//! `register_detection()`: what was found becomes one change of the registry and the events that tell of it
//!

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use pcp_core::{
    AdapterState, AppEntry, AppId, CapabilityDiff, DeclaredApp, DetectionMethod, Event, SignatureStatus,
};
use pcp_native::predict::{predict, toolkit_word};
use pcp_native::{DesktopApp, FoundApp};
use pcp_registry::{Applied, Change, InMemoryRegistry};
use tracing::{info, warn};

use super::detect::{Finding, choose};
use super::manifests::Judged;

/// Everything that files say of one application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Its manifest, where root registered it.
    pub manifest: Option<Arc<Judged>>,
    /// Its desktop entry, where it has one.
    pub desktop: Option<(Arc<DesktopApp>, Arc<str>)>,
}

impl Sources {
    /// Adds what a desktop file says.
    pub fn found(&mut self, found: &FoundApp) {
        self.desktop = Some((found.app.clone(), shown(&found.file)));
    }

    /// Whether the other is the very same, so that nothing has to be registered again.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let manifest = match (&self.manifest, &other.manifest) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        manifest
            && match (&self.desktop, &other.desktop) {
                (Some((one, file)), Some((other, other_file))) => {
                    Arc::ptr_eq(one, other) && file == other_file
                }
                (one, other) => one.is_none() && other.is_none(),
            }
    }

    /// The application as the registry takes it. A signed manifest comes before a prediction; a manifest that does
    /// not count leaves its problem, and what is predicted.
    #[must_use]
    pub fn change(&self, id: &AppId) -> Change {
        let predicted = self.desktop.as_ref().map(|(app, _)| predict(id, &app.categories, app.toolkit));
        let declared = self.manifest.as_ref().map(|judged| judged.capabilities.clone());
        let mut offers = Vec::new();
        if let (Some(declared), Some(judged)) = (declared, &self.manifest) {
            let confidence = if judged.problem.is_none() { 1.0 } else { 0.0 };
            offers.push((Finding { confidence, capabilities: declared.len() }, declared));
        }
        if let (Some(predicted), Some((app, _))) = (predicted, &self.desktop) {
            offers.push((Finding { confidence: app.confidence(), capabilities: predicted.len() }, predicted));
        }
        let findings: Vec<Finding> = offers.iter().map(|(finding, _)| *finding).collect();
        let chosen = choose(&findings).capabilities;
        let capabilities = chosen.map(|place| offers.swap_remove(place).1).unwrap_or_default();
        let manifest = self.manifest.as_deref();
        let entry = AppEntry {
            id: id.clone(),
            version: manifest.map_or_else(|| "".into(), |judged| judged.version.clone()),
            method: DetectionMethod::Desktop,
            signature: manifest.map_or(SignatureStatus::Unsigned, |judged| judged.signature),
            problem: manifest.and_then(|judged| judged.problem.clone()),
            declared: self.desktop.as_ref().map(|(app, file)| Arc::new(declared_of(app, file))),
            capabilities: [].into(),
        };
        Change::App { entry, capabilities, adapter_state: AdapterState::Ready }
    }
}

fn shown(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a confidence is 0.0 to 1.0")]
fn declared_of(app: &DesktopApp, file: &Arc<str>) -> DeclaredApp {
    DeclaredApp {
        name: app.name.clone(),
        categories: app.categories.clone(),
        toolkit: toolkit_word(app.toolkit),
        evidence: app.evidence.clone(),
        program: app.program.clone(),
        window_class: app.window_class.clone(),
        file: file.clone(),
        confidence_percent: (app.confidence() * 100.0).round() as u8,
        no_display: app.no_display,
    }
}

/// Makes the changes. One that the registry refuses leaves the bare application with its problem, so that people see
/// it; the others are not touched by it. `sources` are those of which the changes were made.
pub fn register(
    registry: &InMemoryRegistry,
    changes: Vec<Change>,
    sources: &BTreeMap<AppId, Sources>,
) -> Applied {
    let ids: Vec<Option<AppId>> = changes.iter().map(app_of).collect();
    let mut applied = registry.apply(changes);
    let mut bare = Vec::new();
    for (place, error) in &applied.refused {
        let id = ids.get(*place).and_then(Option::as_ref);
        let Some(Change::App { entry, .. }) = id.and_then(|id| Some(sources.get(id)?.change(id))) else {
            continue;
        };
        warn!(app = %entry.id, %error, "application refused by the registry");
        let problem = Some(error.to_string().into());
        let entry = AppEntry { problem, ..entry };
        bare.push(Change::App { entry, capabilities: Vec::new(), adapter_state: AdapterState::Ready });
    }
    if !bare.is_empty() {
        let second = registry.apply(bare);
        applied.diffs.extend(second.diffs);
        applied.generation = second.generation;
    }
    applied
}

fn app_of(change: &Change) -> Option<AppId> {
    match change {
        Change::App { entry, .. } => Some(entry.id.clone()),
        _ => None,
    }
}

/// What one diff has to tell, in order: that the application came, each new capability, the diff itself, that it went.
pub fn events(diff: CapabilityDiff) -> impl Iterator<Item = Event> {
    let app_id = diff.app_id.clone();
    let came = diff.previous_state.is_none() && diff.new_state.is_some();
    let went = diff.previous_state.is_some() && diff.new_state.is_none();
    info!(app = %app_id, added = diff.added.len(), removed = diff.removed.len(), changed = diff.changed.len(), "detected");
    let added = came.then(|| Event::AppAdded { app_id: app_id.clone(), method: DetectionMethod::Desktop });
    let removed = went.then(|| Event::AppRemoved { app_id: app_id.clone() });
    let new: Vec<Event> = diff
        .added
        .iter()
        .map(|one| Event::CapabilityRegistered { id: one.id.clone(), app_id: app_id.clone() })
        .collect();
    added.into_iter().chain(new).chain([Event::CapabilityDiff(diff)]).chain(removed)
}

/// How many [`events`] one diff has to tell.
#[must_use]
pub fn count(diff: &CapabilityDiff) -> u64 {
    let comes_or_goes = diff.previous_state.is_some() != diff.new_state.is_some();
    1 + u64::from(comes_or_goes) + diff.added.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_has_as_many_events_as_are_counted() {
        let app = AppId::parse("org.example.mail").unwrap();
        let added: Vec<_> = predict(&app, &["Email"], None).into_iter().map(Arc::new).collect();
        assert!(!added.is_empty());
        let ready = Some(AdapterState::Ready);
        for (previous_state, new_state) in [(None, ready), (ready, ready), (ready, None)] {
            for added in [added.clone(), Vec::new()] {
                let diff = CapabilityDiff {
                    app_id: app.clone(),
                    previous_state,
                    new_state,
                    app: Vec::new(),
                    added,
                    removed: Vec::new(),
                    changed: Vec::new(),
                };
                assert_eq!(count(&diff), events(diff.clone()).count() as u64, "{diff:?}");
            }
        }
    }
}
