//! What was observed lately, so that a target is held against the very observation it was taken from.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pcp_core::Clock;
use pcp_core::v2::{Deadline, SemanticElement, SemanticObservation, SemanticTargetRef};

/// Most observations kept: several windows of several callers, each for 30 s at most.
pub const MAX_OBSERVATIONS: usize = 256;
/// Most observations kept for one owner, who loses its own oldest one then and nobody else's.
pub const MAX_OBSERVATIONS_PER_OWNER: usize = 32;
/// Most bytes of all observations kept, as JSON: two of the largest.
pub const MAX_OBSERVATIONS_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug)]
struct Row<T> {
    owner: u32,
    bytes: usize,
    until: Deadline,
    seen: Arc<Seen<T>>,
}

/// One observation, and what its backend needs to find its elements again.
#[derive(Debug)]
pub struct Seen<T> {
    /// The observation.
    pub observation: SemanticObservation,
    /// The backend's own.
    pub backend: T,
}

impl<T> Seen<T> {
    /// The element of a target, if every hash of it is that of this observation.
    #[must_use]
    pub fn element(&self, target: &SemanticTargetRef) -> Option<&SemanticElement> {
        let is = |text: &str, hash: pcp_core::v2::Sha256Hash| hash.to_string() == text;
        let fenced = target.generation == self.observation.generation
            && is(&target.observation_id, self.observation.observation_id)
            && is(&target.provenance_hash, self.observation.provenance_hash());
        let mut elements = self.observation.elements.iter().filter(|_| fenced);
        elements.find(|element| {
            is(&target.element_id, element.element_id)
                && is(&target.fingerprint_hash, element.fingerprint_hash)
        })
    }
}

/// A bounded store of observations. The oldest go first, and an expired one is found by nobody.
#[derive(Debug)]
pub struct ObservationStore<T> {
    rows: Mutex<VecDeque<Row<T>>>,
    generation: AtomicU64,
}

impl<T> Default for ObservationStore<T> {
    fn default() -> Self {
        Self { rows: Mutex::default(), generation: AtomicU64::new(0) }
    }
}

impl<T> ObservationStore<T> {
    /// The number of the next observation, from 1.
    pub fn next_generation(&self) -> u64 {
        self.generation.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Keeps an observation of `bytes` bytes until `until`. One that is larger than the whole store is not kept.
    pub fn keep(&self, owner: u32, seen: Arc<Seen<T>>, bytes: usize, until: Deadline, clock: &dyn Clock) {
        if bytes > MAX_OBSERVATIONS_BYTES {
            return;
        }
        let mut rows = self.lock();
        rows.retain(|row| !row.until.is_over(clock));
        if rows.iter().filter(|row| row.owner == owner).count() >= MAX_OBSERVATIONS_PER_OWNER
            && let Some(oldest) = rows.iter().position(|row| row.owner == owner)
        {
            rows.remove(oldest);
        }
        let size = |rows: &VecDeque<Row<T>>| rows.iter().map(|row| row.bytes).sum::<usize>();
        while rows.len() >= MAX_OBSERVATIONS || size(&rows) + bytes > MAX_OBSERVATIONS_BYTES {
            rows.pop_front();
        }
        rows.push_back(Row { owner, bytes, until, seen });
    }

    /// The observation that a target was taken from; `None` when it is too old, unknown, or not this one.
    #[must_use]
    pub fn find(&self, target: &SemanticTargetRef, clock: &dyn Clock) -> Option<Arc<Seen<T>>> {
        let rows = self.lock();
        let mut rows = rows.iter().rev().filter(|row| !row.until.is_over(clock));
        rows.find(|row| row.seen.element(target).is_some()).map(|row| Arc::clone(&row.seen))
    }

    /// How many are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Row<T>>> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
