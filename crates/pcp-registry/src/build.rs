//! From a draft to the next snapshot: what is sorted is merged, so that the work is one walk over the rows.

use std::collections::btree_map;
use std::iter::Peekable;
use std::sync::Arc;

use pcp_core::{AppEntry, CapabilityDescriptor, CapabilityId};

use crate::batch::Draft;
use crate::index::Index;
use crate::snapshot::{Owner, Row, Snapshot};

/// An owner of the old snapshot that the new one does not have; no row names it.
const GONE: u32 = u32::MAX;

impl Draft<'_> {
    /// The state that this draft describes, or `None` when it is the one that holds.
    pub(crate) fn build(self) -> Option<Snapshot> {
        if self.is_as_before() {
            return None;
        }
        let (mut owners, places) = self.owners();
        let rows = self.rows(&owners, &places);
        let by_owner = group(&mut owners, &rows);
        let mut snapshot = Snapshot {
            generation: self.base.generation + 1,
            hasher: self.base.hasher.clone(),
            index: Index::build(rows.iter().map(|row| row.hash)),
            rows,
            owners,
            by_owner,
        };
        self.complete_entries(&mut snapshot);
        Some(snapshot)
    }

    fn is_as_before(&self) -> bool {
        let same_rows = self.capabilities.iter().all(|(id, drafted)| match (self.base.get(id), drafted) {
            (Some(held), Some(drafted)) => Arc::ptr_eq(held, drafted),
            (held, drafted) => held.is_none() && drafted.is_none(),
        });
        let same_apps = |(id, touched): (_, &crate::batch::Touched)| match (self.base.app(id), &touched.app) {
            (Some(held), Some(touched)) => {
                held.adapter_state == touched.adapter_state
                    && held.entry.declared == touched.entry.declared
                    && held.entry.changes_to(&touched.entry).is_empty()
            }
            (held, touched) => held.is_none() && touched.is_none(),
        };
        same_rows && self.touched.iter().all(same_apps)
    }

    /// The owners, sorted, and where each old one stands now.
    fn owners(&self) -> (Box<[Owner]>, Vec<u32>) {
        let touched = self.touched.iter().filter(|(_, touched)| touched.app.is_some() || touched.count > 0);
        let kept = self.base.owners.iter().filter(|owner| !self.touched.contains_key(&owner.id)).cloned();
        let mut owners: Vec<Owner> = kept
            .chain(touched.map(|(id, touched)| Owner {
                id: id.clone(),
                app: touched.app.clone(),
                first: 0,
                count: 0,
            }))
            .collect();
        owners.sort_by(|one, other| one.id.cmp(&other.id));
        let mut places = Vec::with_capacity(self.base.owners.len());
        let mut at = 0;
        for old in &self.base.owners {
            while owners.get(at).is_some_and(|owner| owner.id < old.id) {
                at += 1;
            }
            let is_kept = owners.get(at).is_some_and(|owner| owner.id == old.id);
            places.push(if is_kept { place(at) } else { GONE });
        }
        (owners.into_boxed_slice(), places)
    }

    /// The rows, sorted by id: those of before and those of the draft, merged.
    fn rows(&self, owners: &[Owner], places: &[u32]) -> Box<[Row]> {
        let mut rows = Vec::with_capacity(self.base.rows.len() + self.capabilities.len());
        let mut drafted = self.capabilities.iter().peekable();
        for row in &self.base.rows {
            let id = &row.capability.id;
            while let Some((_, new)) = drafted.next_if(|(new, _)| *new < id) {
                rows.extend(self.new_row(owners, new.as_ref()));
            }
            if let Some(new) = same(&mut drafted, id) {
                rows.extend(self.new_row(owners, new));
            } else {
                let owner = places.get(row.owner as usize).copied().unwrap_or(GONE);
                rows.push(Row { owner, ..row.clone() });
            }
        }
        for (_, new) in drafted {
            rows.extend(self.new_row(owners, new.as_ref()));
        }
        rows.into_boxed_slice()
    }

    fn new_row(&self, owners: &[Owner], capability: Option<&Arc<CapabilityDescriptor>>) -> Option<Row> {
        let capability = capability?;
        let owner = owners.binary_search_by(|owner| owner.id.cmp(&capability.app_id)).ok()?;
        Some(Row {
            hash: self.base.hasher.of(capability.id.as_str()),
            owner: place(owner),
            domain: capability.domain,
            method: capability.method,
            capability: capability.clone(),
        })
    }

    /// Lets each application that was touched list exactly what it has.
    fn complete_entries(&self, snapshot: &mut Snapshot) {
        for id in self.touched.keys() {
            let Some((at, owner)) = snapshot.owner(id) else { continue };
            let Some(app) = &owner.app else { continue };
            let now = || snapshot.capabilities_of(id);
            let same =
                |old: &[Arc<CapabilityDescriptor>]| now().map(Arc::as_ptr).eq(old.iter().map(Arc::as_ptr));
            let old = self.base.app(id).filter(|old| same(&old.entry.capabilities));
            let capabilities = match old {
                Some(old) => old.entry.capabilities.clone(),
                None => now().cloned().collect(),
            };
            let entry = Arc::new(AppEntry { capabilities, ..(*app.entry).clone() });
            let slot = snapshot.owners.get_mut(at).and_then(|owner| owner.app.as_mut());
            if let Some(app) = slot {
                app.entry = entry;
            }
        }
    }
}

type Drafted<'a> = btree_map::Iter<'a, CapabilityId, Option<Arc<CapabilityDescriptor>>>;

/// What the draft says of exactly this id.
fn same<'a>(
    drafted: &mut Peekable<Drafted<'a>>,
    id: &CapabilityId,
) -> Option<Option<&'a Arc<CapabilityDescriptor>>> {
    drafted.next_if(|(new, _)| *new == id).map(|(_, new)| new.as_ref())
}

/// Groups the rows' numbers by owner, and tells each owner where its own are.
fn group(owners: &mut [Owner], rows: &[Row]) -> Box<[u32]> {
    owners.iter_mut().for_each(|owner| owner.count = 0);
    for row in rows {
        if let Some(owner) = owners.get_mut(row.owner as usize) {
            owner.count += 1;
        }
    }
    let mut first = 0;
    for owner in owners.iter_mut() {
        owner.first = first;
        first += owner.count;
        owner.count = 0;
    }
    let mut numbers = vec![0; rows.len()].into_boxed_slice();
    for (number, row) in (0_u32..).zip(rows) {
        let Some(owner) = owners.get_mut(row.owner as usize) else { continue };
        if let Some(slot) = numbers.get_mut((owner.first + owner.count) as usize) {
            *slot = number;
        }
        owner.count += 1;
    }
    numbers
}

/// A place as the rows hold it. There are fewer owners than capabilities and applications together may be.
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(GONE)
}
