//! What opening a sealed log looks out for: the last seal of every trail, and that no trail ends before its anchor.

use std::sync::Arc;

use super::line::epoch_of;
use super::sealer::Sealer;
use super::vault::{Vault, VaultState};
use super::{SealFault, check::ANCHOR};
use crate::Error;
use crate::disk::Disk;
use crate::line::Chain;
use crate::scan::{Line, Scanner};
use crate::segment;
use crate::writer::Limits;

/// Watches the lines that opening reads.
#[derive(Debug)]
pub(crate) struct Lookout {
    disk: Arc<dyn Disk>,
    state: VaultState,
    names: Vec<String>,
    /// Epoch and number of the last seal of each trail.
    sealed: Vec<Option<(u64, u64)>>,
}

impl Lookout {
    /// Reads the key and the anchor.
    pub(crate) fn open(disk: Arc<dyn Disk>, names: &[&str]) -> Result<Self, Error> {
        let state = Vault::new(disk.clone()).open()?;
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        if state.anchor.heads.len() != names.len() {
            return Err(Error::Anchor { file: ANCHOR.to_owned(), epoch: state.key.epoch() });
        }
        Ok(Self { disk, state, sealed: vec![None; names.len()], names })
    }

    /// How many records a trail is known to have.
    pub(crate) fn anchored(&self, trail: usize) -> u64 {
        self.state.anchor.heads[trail].seq
    }

    /// Looks at a line of a trail.
    pub(crate) fn see(&mut self, trail: usize, line: &Line<'_>) -> Result<(), Error> {
        if let Some(epoch) = epoch_of(line.bytes) {
            self.sealed[trail] = Some((epoch, line.link.seq));
        }
        let head = self.state.anchor.heads[trail];
        if head.seq == line.link.seq && head.hash != line.hash {
            return Err(line.fault(SealFault::Other { witness: ANCHOR.to_owned() }));
        }
        Ok(())
    }

    /// Takes the key up, unless a trail ends too early.
    pub(crate) fn begin(
        mut self,
        disk: &dyn Disk,
        chains: &[Chain],
        begins: &[u64],
        limits: Limits,
    ) -> Result<Sealer, Error> {
        for (at, chain) in chains.iter().enumerate() {
            let named = self.state.anchor.heads[at].seq;
            if begins[at] > named {
                // Who deleted the oldest segments anchored the record of it first.
                return Err(self.begin_is_not_anchored(at, disk)?);
            }
            if chain.seq < named {
                return Err(cut_short(disk, &self.names[at], chain.seq, named, ANCHOR)?);
            }
            if self.sealed[at].is_none() && self.state.key.epoch() > 1 {
                self.look_back(at, disk)?;
            }
        }
        Sealer::begin(self.disk, self.state, chains, &self.sealed, limits)
    }

    fn begin_is_not_anchored(&self, trail: usize, disk: &dyn Disk) -> Result<Error, Error> {
        let segments = segment::list(disk, &self.names[trail])?;
        let seq = segment::start(disk, &segments)?.seq + 1;
        let file = segments.first().map_or_else(String::new, |segment| segment.name.clone());
        Ok(Error::Seal { file, line: 1, offset: 0, seq, fault: SealFault::Begin })
    }

    /// Looks for the last seal in closed segments: a crash came between the segment and its first line.
    fn look_back(&mut self, trail: usize, disk: &dyn Disk) -> Result<(), Error> {
        for segment in segment::list(disk, &self.names[trail])?.iter().rev().skip(1) {
            let opened = disk.open(&segment.name);
            let file = opened.map_err(|source| Error::file("open", &segment.name, source))?;
            let mut scanner = Scanner::lone(segment.name.clone(), file);
            while let Some(line) = scanner.next()? {
                if let Some(epoch) = epoch_of(line.bytes) {
                    self.sealed[trail] = Some((epoch, line.link.seq));
                }
            }
            if self.sealed[trail].is_some() {
                break;
            }
        }
        Ok(())
    }
}

/// Says where a trail ends that should go on.
pub(crate) fn cut_short(
    disk: &dyn Disk,
    trail: &str,
    last: u64,
    named: u64,
    witness: &str,
) -> Result<Error, Error> {
    let segments = segment::list(disk, trail)?;
    let file = segments.last().map_or_else(|| trail.to_owned(), |segment| segment.name.clone());
    let size = disk.open(&file).and_then(|file| file.size());
    let offset = size.map_err(|source| Error::file("measure", &file, source))?;
    Ok(Error::CutShort { file, offset, last, named, witness: witness.to_owned() })
}
