//! Holds seals against keys, and the heads that seals, anchors and pins name against what stands in the trails.
//!
//! The trails are read side by side, epoch by epoch, so that a head that is named is still remembered or still to
//! come. What a head says is compared in both directions of time; what is missing shows at the end.

use std::collections::VecDeque;
use std::fmt;

use super::VerificationKey;
use super::key::EpochKey;
use super::line::{Seal, epoch_of};
use crate::Error;
use crate::line::{Chain, Hash};
use crate::scan::Line;

/// What the anchor is called where it is a witness.
pub(crate) const ANCHOR: &str = "the anchor";

/// Lines of a trail that are remembered: four epochs of the usual length. Heads further back are not compared.
const RECENT_LINES: usize = 65_536;

/// Steps that a key is taken forward at once: two centuries of epochs, a minute each.
const MAX_STEPS: u64 = 100_000_000;

/// What is wrong with a seal, or with a line that somebody else names.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SealFault {
    /// Says that it is a seal and is none.
    Form,
    /// Does not end the epoch that follows the one before.
    Epoch {
        /// The epoch it should end.
        expected: u64,
        /// The epoch it ends.
        found: u64,
    },
    /// The key of its epoch did not make it.
    Mac {
        /// Its epoch.
        epoch: u64,
    },
    /// A witness names another record of this number.
    Other {
        /// Who.
        witness: String,
    },
    /// It names another record of a trail than the one that stands there.
    Names {
        /// The trail.
        trail: String,
        /// The record.
        seq: u64,
    },
    /// The trail ends here without the seal of an epoch that has ended.
    Missing {
        /// The epoch.
        epoch: u64,
    },
    /// The trail begins here, and no record of it says so.
    Begin,
    /// The key is older than the trail: it is an older copy.
    OldKey {
        /// The epoch of the key.
        epoch: u64,
    },
}

impl fmt::Display for SealFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => write!(out, "a seal that cannot be read"),
            Self::Epoch { expected, found } => {
                write!(out, "seals epoch {found} where epoch {expected} was expected")
            }
            Self::Mac { epoch } => write!(out, "not sealed with the key of epoch {epoch}"),
            Self::Other { witness } => write!(out, "not the record that {witness} names"),
            Self::Names { trail, seq } => {
                write!(out, "names a record {seq} of trail {trail} that is not the one there")
            }
            Self::Missing { epoch } => write!(out, "the trail ends without the seal of epoch {epoch}"),
            Self::Begin => {
                write!(out, "the trail begins here and no record of it says so: segments are missing")
            }
            Self::OldKey { epoch } => {
                write!(out, "sealed by a later key than the one of epoch {epoch}, which is an older copy")
            }
        }
    }
}

/// A record that somebody names and that was not read yet.
#[derive(Debug)]
struct Awaited {
    head: Chain,
    witness: String,
}

/// What is known of one trail.
#[derive(Debug, Default)]
struct Track {
    /// The epoch of its last seal.
    epoch: Option<u64>,
    seq: u64,
    checked: u64,
    unchecked: u64,
    /// The key of the epoch after the last seal, if it is known.
    key: Option<EpochKey>,
    /// New keys began that nobody gave.
    lost: bool,
    /// Only a part of the trail is there: the first seal may be of any epoch.
    is_part: bool,
    broken: bool,
    recent: VecDeque<(u64, Hash)>,
    awaited: Vec<Awaited>,
}

/// What a trail's seals came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sealed {
    /// The epoch of the last seal; 0 if there is none.
    pub epoch: u64,
    /// Seals that were checked with their key.
    pub checked: u64,
    /// Seals for which no key was given.
    pub unchecked: u64,
}

/// Checks the seals of several trails that are read side by side.
#[derive(Debug)]
pub(crate) struct Checker<'k> {
    names: Vec<String>,
    keys: &'k [VerificationKey],
    tracks: Vec<Track>,
}

impl<'k> Checker<'k> {
    pub(crate) fn new(names: &[&str], keys: &'k [VerificationKey]) -> Self {
        let tracks = names.iter().map(|_| Track::default()).collect();
        Self { names: names.iter().map(|name| (*name).to_owned()).collect(), keys, tracks }
    }

    /// The epoch of the last seal of a trail; 0 if there is none.
    pub(crate) fn epoch(&self, trail: usize) -> u64 {
        self.tracks[trail].epoch.unwrap_or(0)
    }

    pub(crate) fn sealed(&self, trail: usize) -> Sealed {
        let Track { checked, unchecked, .. } = self.tracks[trail];
        Sealed { epoch: self.epoch(trail), checked, unchecked }
    }

    /// The trail begins behind records that were deleted.
    pub(crate) fn begins_behind(&mut self, trail: usize, before: Chain) {
        let track = &mut self.tracks[trail];
        (track.is_part, track.seq) = (true, before.seq);
        track.recent.push_back((before.seq, before.hash));
    }

    /// Only a part of the trail is there: its first seal may be of any epoch.
    pub(crate) fn is_part(&mut self, trail: usize) {
        self.tracks[trail].is_part = true;
    }

    /// The trail is wrong or cannot be read: what it lacks from here on is no news.
    pub(crate) fn give_up(&mut self, trail: usize) {
        self.tracks[trail].broken = true;
    }

    /// Somebody names a record of a trail that was not read yet.
    pub(crate) fn expect(&mut self, trail: usize, head: Chain, witness: &str) {
        if head.seq > 0 {
            self.tracks[trail].awaited.push(Awaited { head, witness: witness.to_owned() });
        }
    }

    /// Takes the next line of a trail; true if it is a seal.
    pub(crate) fn line(&mut self, trail: usize, line: &Line<'_>) -> Result<bool, Error> {
        let track = &mut self.tracks[trail];
        track.seq = line.link.seq;
        if let Some(at) = track.awaited.iter().position(|awaited| awaited.head.seq == track.seq) {
            let awaited = track.awaited.swap_remove(at);
            if awaited.head.hash != line.hash {
                return Err(line.fault(SealFault::Other { witness: awaited.witness }));
            }
            track.awaited.retain(|other| other.head != awaited.head);
            if let Some(other) = track.awaited.iter().find(|other| other.head.seq == track.seq) {
                return Err(line.fault(SealFault::Other { witness: other.witness.clone() }));
            }
        }
        if track.recent.len() == RECENT_LINES {
            track.recent.pop_front();
        }
        track.recent.push_back((track.seq, line.hash));
        if epoch_of(line.bytes).is_none() {
            return Ok(false);
        }
        let seal = Seal::read(line.bytes).ok_or_else(|| line.fault(SealFault::Form))?;
        self.tracks[trail].take(&seal, &self.names[trail], self.keys).map_err(|fault| line.fault(fault))?;
        for (name, head) in &seal.heads {
            let other = self.names.iter().position(|known| known == name);
            let other = other.filter(|other| *other != trail).ok_or_else(|| line.fault(SealFault::Form))?;
            if self.contradicts(other, *head, line) {
                let (trail, seq) = (name.clone(), head.seq);
                return Err(line.fault(SealFault::Names { trail, seq }));
            }
        }
        Ok(true)
    }

    /// Whether a head that a seal names is not what stands there; one that was not read yet is awaited.
    fn contradicts(&mut self, other: usize, head: Chain, line: &Line<'_>) -> bool {
        let track = &mut self.tracks[other];
        if track.broken || head.seq == 0 {
            return false;
        }
        if head.seq > track.seq {
            self.expect(other, head, &format!("{} line {}", line.file, line.number));
            return false;
        }
        let found = track.recent.binary_search_by_key(&head.seq, |(seq, _)| *seq);
        found.is_ok_and(|at| track.recent[at].1 != head.hash)
    }

    /// The end of a trail: the last record that is named and missing, and by whom.
    pub(crate) fn missing(&self, trail: usize) -> Option<(u64, &str)> {
        let last = self.tracks[trail].awaited.iter().max_by_key(|awaited| awaited.head.seq)?;
        Some((last.head.seq, &last.witness))
    }

    /// What is wrong with where the seals of a trail end, given the epoch of the present key, if it is there.
    pub(crate) fn end(&self, trail: usize, present: Option<u64>) -> Option<SealFault> {
        let epoch = self.epoch(trail);
        if let Some(present) = present.filter(|present| epoch > *present) {
            return Some(SealFault::OldKey { epoch: present });
        }
        let latest = (0..self.tracks.len()).map(|trail| self.epoch(trail)).max().unwrap_or(0);
        let first = self.keys.iter().map(VerificationKey::first_epoch).min().filter(|_| present.is_none());
        let ended = present.unwrap_or(latest).saturating_sub(1).max(first.unwrap_or(0));
        (epoch < ended).then_some(SealFault::Missing { epoch: epoch + 1 })
    }
}

impl Track {
    fn take(&mut self, seal: &Seal<'_>, name: &str, keys: &[VerificationKey]) -> Result<(), SealFault> {
        let found = seal.epoch;
        let expected = self.epoch.map_or(1, |epoch| epoch + 1);
        let may_begin = self.is_part && self.epoch.is_none();
        if found != expected && !may_begin && !(seal.is_replaced && found > expected) {
            return Err(SealFault::Epoch { expected, found });
        }
        if seal.is_replaced {
            self.key = keys.iter().find(|key| key.first_epoch() == found).map(VerificationKey::begin);
            self.lost = self.key.is_none();
        } else if self.key.is_none() && !self.lost {
            self.key = key_of(keys, found)?;
        }
        self.epoch = Some(found);
        match self.key.take() {
            Some(key) if seal.is_made_with(&key, name) => {
                self.checked += 1;
                self.key = Some(key.next());
                Ok(())
            }
            Some(_) => Err(SealFault::Mac { epoch: found }),
            None => {
                self.unchecked += 1;
                Ok(())
            }
        }
    }
}

/// The key of an epoch, made from the latest one that was given of an epoch before it.
fn key_of(keys: &[VerificationKey], epoch: u64) -> Result<Option<EpochKey>, SealFault> {
    let before = keys.iter().filter(|key| key.first_epoch() <= epoch).max_by_key(|key| key.first_epoch());
    let Some(first) = before else { return Ok(None) };
    if epoch - first.first_epoch() > MAX_STEPS {
        return Err(SealFault::Mac { epoch });
    }
    let mut key = first.begin();
    while key.epoch() < epoch {
        key = key.next();
    }
    Ok(Some(key))
}
