//! When an epoch ends and the anchor moves. Belongs to the thread that writes the trails.
//!
//! The order is what a power cut cannot break: the seals of an epoch are durable in every trail, then the anchor
//! goes over to the next key, then the old key is overwritten. A seal names only what was durable before it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::key::EpochKey;
use super::vault::{Vault, VaultState};
use crate::Error;
use crate::disk::Disk;
use crate::line::Chain;
use crate::writer::Limits;

/// What one trail has to do with seals.
#[derive(Clone, Copy, Debug, Default)]
struct Trail {
    /// The last epoch that has its seal here.
    epoch: u64,
    /// Number of that seal.
    sealed: u64,
    /// The seal of the present epoch, on its way to the medium.
    under_way: Option<Chain>,
    /// Number of the last record written.
    written: u64,
    durable: Chain,
    anchored: u64,
}

/// Ends epochs and moves the anchor.
#[derive(Debug)]
pub(crate) struct Sealer {
    vault: Vault,
    key: EpochKey,
    /// Why these keys took the place of others; the first seal says it.
    reason: String,
    trails: Vec<Trail>,
    limits: Limits,
    /// Since when there is something to seal.
    unsealed_since: Option<Instant>,
    /// Since when something durable is not in the anchor.
    unanchored_since: Option<Instant>,
    /// A segment was closed: the next one begins with a seal.
    rotated: bool,
    /// Nothing is tried before: there was no space, or the disk of the keys failed.
    not_before: Option<Instant>,
    closing: bool,
    asked: bool,
}

impl Sealer {
    /// Takes the key up where it was left. `sealed` has the last seal of each trail, if one was seen.
    pub(crate) fn begin(
        disk: Arc<dyn Disk>,
        state: VaultState,
        chains: &[Chain],
        sealed: &[Option<(u64, u64)>],
        limits: Limits,
    ) -> Result<Self, Error> {
        let present = state.key.epoch();
        let trail = |(chain, seal): (&Chain, &Option<(u64, u64)>)| {
            let (epoch, sealed) = seal.unwrap_or((0, 0));
            // All trails have the seals of all epochs before this one: only then the key took its step.
            let epoch = epoch.max(present - 1);
            Trail { epoch, sealed, written: chain.seq, durable: *chain, ..Trail::default() }
        };
        if sealed.iter().flatten().any(|(epoch, _)| *epoch > present) {
            return Err(Error::SealKey { why: "a trail is sealed by a later one".into() });
        }
        let trails = chains.iter().zip(sealed).map(trail).collect();
        let VaultState { key, reason, .. } = state;
        let mut sealer = Self {
            vault: Vault::new(disk),
            key,
            reason,
            trails,
            limits,
            unsealed_since: None,
            unanchored_since: None,
            rotated: false,
            not_before: None,
            closing: false,
            asked: false,
        };
        if sealer.is_sealed_everywhere() {
            sealer.step().map_err(|source| Error::file("end the epoch of", "key", source))?;
        }
        sealer.anchor().map_err(|source| Error::file("replace", "anchor", source))?;
        sealer.look(Instant::now());
        Ok(sealer)
    }

    pub(crate) fn key(&self) -> &EpochKey {
        &self.key
    }

    pub(crate) fn reason(&self) -> &str {
        &self.reason
    }

    /// Whether the trail still wants the seal of this epoch.
    pub(crate) fn wants(&self, trail: usize) -> bool {
        let trail = &self.trails[trail];
        trail.epoch < self.key.epoch() && trail.under_way.is_none()
    }

    /// The seal of a trail has its place in the chain.
    pub(crate) fn sent(&mut self, trail: usize, seal: Chain) {
        self.trails[trail].under_way = Some(seal);
    }

    /// Somebody waits for the end of the epoch. False: it is put off.
    pub(crate) fn ask(&mut self) -> bool {
        self.asked = !self.is_put_off();
        self.asked
    }

    pub(crate) fn is_put_off(&self) -> bool {
        self.not_before.is_some_and(|moment| Instant::now() < moment)
    }

    /// Number of the last seal of a trail whose epoch has ended.
    pub(crate) fn ended_by(&self, trail: usize) -> u64 {
        let trail = &self.trails[trail];
        if trail.epoch < self.key.epoch() { trail.sealed } else { 0 }
    }

    /// The writer ends: what was put off is tried once more.
    pub(crate) fn close_up(&mut self) {
        if !std::mem::replace(&mut self.closing, true) {
            self.not_before = None;
        }
    }

    /// A segment was closed.
    pub(crate) fn rotated(&mut self) {
        self.rotated = true;
    }

    /// What the thread wrote and synced of a trail; `cut`: everything behind that had no space.
    pub(crate) fn wrote(&mut self, trail: usize, written: Chain, durable: Chain, cut: bool) {
        let epoch = self.key.epoch();
        let trail = &mut self.trails[trail];
        (trail.written, trail.durable) = (written.seq, durable);
        let Some(seal) = trail.under_way else { return };
        if durable.seq >= seal.seq {
            (trail.epoch, trail.sealed, trail.under_way) = (epoch, seal.seq, None);
        } else if cut && written.seq < seal.seq {
            // There was no space for it.
            trail.under_way = None;
            self.put_off();
        }
    }

    /// Notes since when there is something to do; ends the epoch whose seals are all on the medium.
    pub(crate) fn advance(&mut self) {
        let now = Instant::now();
        self.look(now);
        if self.not_before.is_some_and(|moment| now < moment) {
            return;
        }
        self.not_before = None;
        let done = if self.is_sealed_everywhere() {
            self.step()
        } else if self.anchor_due(now) {
            self.anchor()
        } else {
            Ok(())
        };
        if done.is_err() {
            self.put_off();
        }
        self.look(now);
    }

    /// Whether seals are to be written now.
    pub(crate) fn seal_due(&self) -> bool {
        let now = Instant::now();
        let open = self.trails.iter().any(|trail| trail.under_way.is_some());
        if open || self.is_sealed_everywhere() || self.not_before.is_some_and(|moment| now < moment) {
            return false;
        }
        let begun = self.trails.iter().any(|trail| trail.epoch == self.key.epoch());
        let unsealed = self.unsealed();
        begun
            || unsealed > 0
                && (self.closing
                    || self.asked
                    || self.rotated
                    || unsealed >= self.limits.seal_records
                    || self.unsealed_since.is_some_and(|since| now - since >= self.limits.seal_interval))
    }

    /// Seals could not be written, or the disk of the keys failed: the trails go on without for a while.
    pub(crate) fn put_off(&mut self) {
        self.not_before = Some(Instant::now() + self.limits.seal_interval);
    }

    /// How long the thread may sleep; `None`: until somebody wakes it.
    pub(crate) fn due_in(&self) -> Option<Duration> {
        let now = Instant::now();
        if let Some(moment) = self.not_before {
            return Some(moment.saturating_duration_since(now));
        }
        if self.seal_due() || self.is_sealed_everywhere() {
            return Some(Duration::ZERO);
        }
        let left = |since: Option<Instant>, all: Duration| Some(all.saturating_sub(now - since?));
        let seal = left(self.unsealed_since, self.limits.seal_interval);
        let anchor = left(self.unanchored_since, self.limits.anchor_delay);
        [seal, anchor].into_iter().flatten().min()
    }

    /// Records that stand behind the last seals.
    fn unsealed(&self) -> u64 {
        self.trails.iter().map(|trail| trail.written.saturating_sub(trail.sealed)).sum()
    }

    fn unanchored(&self) -> u64 {
        self.trails.iter().map(|trail| trail.durable.seq.saturating_sub(trail.anchored)).sum()
    }

    fn is_sealed_everywhere(&self) -> bool {
        self.trails.iter().all(|trail| trail.epoch == self.key.epoch())
    }

    fn look(&mut self, now: Instant) {
        let since = |is: bool, since: Option<Instant>| is.then(|| since.unwrap_or(now));
        self.unsealed_since = since(self.unsealed() > 0, self.unsealed_since);
        self.unanchored_since = since(self.unanchored() > 0, self.unanchored_since);
    }

    fn anchor_due(&self, now: Instant) -> bool {
        let unanchored = self.unanchored();
        unanchored > 0
            && (self.closing
                || unanchored >= self.limits.anchor_records
                || self.unanchored_since.is_some_and(|since| now - since >= self.limits.anchor_delay))
    }

    fn heads(&self) -> Vec<Chain> {
        self.trails.iter().map(|trail| trail.durable).collect()
    }

    fn anchor(&mut self) -> std::io::Result<()> {
        self.vault.put_anchor(&self.key, &self.heads())?;
        self.trails.iter_mut().for_each(|trail| trail.anchored = trail.durable.seq);
        self.unanchored_since = None;
        Ok(())
    }

    fn step(&mut self) -> std::io::Result<()> {
        self.key = self.vault.step(&self.key, &self.heads())?;
        self.reason.clear();
        self.trails.iter_mut().for_each(|trail| trail.anchored = trail.durable.seq);
        (self.unsealed_since, self.unanchored_since, self.rotated) = (None, None, false);
        self.asked = false;
        Ok(())
    }
}
