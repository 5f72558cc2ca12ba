//! What changed of each application between two states of the registry.

use std::cmp::Ordering;
use std::sync::Arc;

use pcp_core::{AppId, CapabilityChange, CapabilityDescriptor, CapabilityDiff};

use crate::snapshot::Snapshot;

/// Two states side by side. Compares only what differs by more than its address.
#[derive(Debug, Clone, Copy)]
pub struct CapabilityDiffTracker<'a> {
    before: &'a Snapshot,
    after: &'a Snapshot,
}

impl<'a> CapabilityDiffTracker<'a> {
    /// Compares `before` with `after`.
    #[must_use]
    pub const fn new(before: &'a Snapshot, after: &'a Snapshot) -> Self {
        Self { before, after }
    }

    /// What changed of one application; `None` when nothing did.
    #[must_use]
    pub fn app(&self, id: &AppId) -> Option<CapabilityDiff> {
        let (old, new) = (self.before.app(id), self.after.app(id));
        let mut diff = CapabilityDiff {
            app_id: id.clone(),
            previous_state: old.map(|held| held.adapter_state),
            new_state: new.map(|held| held.adapter_state),
            app: match (old, new) {
                (Some(old), Some(new)) => old.entry.changes_to(&new.entry),
                _ => Vec::new(),
            },
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
        };
        self.compare(id, &mut diff);
        (!diff.is_empty()).then_some(diff)
    }

    /// What changed of every application, sorted by id.
    #[must_use]
    pub fn all(&self) -> Vec<CapabilityDiff> {
        let ids = |snapshot: &'a Snapshot| snapshot.owners.iter().map(|owner| &owner.id);
        merge(ids(self.before), ids(self.after), AppId::cmp).filter_map(|pair| self.app(pair.any())).collect()
    }

    fn compare(&self, id: &AppId, diff: &mut CapabilityDiff) {
        let (old, new) = (self.before.capabilities_of(id), self.after.capabilities_of(id));
        for pair in merge(old, new, |old, new| old.id.cmp(&new.id)) {
            match pair {
                Pair::Old(old) => diff.removed.push(old.id.clone()),
                Pair::New(new) => diff.added.push(new.clone()),
                Pair::Both(old, new) => diff.changed.extend(change(old, new)),
            }
        }
    }
}

fn change(old: &Arc<CapabilityDescriptor>, new: &Arc<CapabilityDescriptor>) -> Option<CapabilityChange> {
    if Arc::ptr_eq(old, new) {
        return None;
    }
    let fields = old.changes_to(new);
    (!fields.is_empty()).then(|| CapabilityChange { id: new.id.clone(), fields })
}

/// An item of two sorted lists: in the old one, in the new one, or in both.
enum Pair<T> {
    Old(T),
    New(T),
    Both(T, T),
}

impl<T> Pair<T> {
    fn any(self) -> T {
        match self {
            Self::Old(one) | Self::New(one) | Self::Both(_, one) => one,
        }
    }
}

fn merge<T: Copy>(
    old: impl Iterator<Item = T>,
    new: impl Iterator<Item = T>,
    order: impl Fn(T, T) -> Ordering,
) -> impl Iterator<Item = Pair<T>> {
    let (mut old, mut new) = (old.peekable(), new.peekable());
    std::iter::from_fn(move || {
        let which = match (old.peek(), new.peek()) {
            (Some(one), Some(other)) => order(*one, *other),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        match which {
            Ordering::Less => old.next().map(Pair::Old),
            Ordering::Greater => new.next().map(Pair::New),
            Ordering::Equal => old.next().zip(new.next()).map(|(old, new)| Pair::Both(old, new)),
        }
    })
}
