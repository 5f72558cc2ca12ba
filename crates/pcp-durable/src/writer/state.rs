//! What producers and the writer thread share under one lock.

use std::collections::VecDeque;
use std::task::Waker;

use super::{Sync, Ticket, TrailStatus};
use crate::Error;
use crate::line::{Chain, Hash, LineWriter, WriteFault};

/// Dropped records that are remembered, so that who still waits for one is told: all that two buffers of the
/// shortest lines hold.
const DROPPED_LIMIT: usize = 4096;

/// Somebody who waits for a record.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) waker: Waker,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) trails: Vec<TrailState>,
    pub(super) waiters: Vec<Waiter>,
    /// Who waits for room in a buffer; woken when the thread has taken what was in it.
    pub(super) rooms: Vec<Waker>,
    pub(super) fenced: Option<Error>,
    /// No more records are taken.
    pub(super) closing: bool,
    /// The thread has ended.
    pub(super) closed: bool,
    /// The thread waits on its condition variable, and nobody has woken it yet.
    pub(super) sleeping: bool,
    /// The thread has noticed unsynced records and will write them in time.
    pub(super) gathering: bool,
    /// There are keys, so that everything is sealed in time.
    pub(super) is_sealing: bool,
    /// Somebody waits for the end of the epoch.
    pub(super) seal_asked: bool,
    /// The end of the epoch was put off.
    pub(super) seal_refused: bool,
    /// Somebody was refused for lack of space: look whether it came back.
    pub(super) probe: bool,
}

impl State {
    pub(super) fn new(trails: Vec<TrailState>, waiting: usize, is_sealing: bool) -> Self {
        Self {
            trails,
            waiters: Vec::with_capacity(waiting),
            rooms: Vec::with_capacity(waiting),
            fenced: None,
            closing: false,
            closed: false,
            sleeping: false,
            gathering: false,
            is_sealing,
            seal_asked: false,
            seal_refused: false,
            probe: false,
        }
    }

    /// Whether records are taken.
    pub(super) fn check_open(&self) -> Result<(), Error> {
        match &self.fenced {
            Some(fence) => Err(fence.clone()),
            None if self.closing || self.closed => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Whether records on their way can still arrive.
    pub(super) fn check_alive(&self) -> Result<(), Error> {
        match &self.fenced {
            Some(fence) => Err(fence.clone()),
            None if self.closed => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Synced records on their way.
    pub(super) fn waiting(&self) -> usize {
        self.trails.iter().map(|trail| trail.sync_pending + trail.sync_writing).sum()
    }
}

#[derive(Debug)]
pub(super) struct TrailState {
    /// The last record appended.
    pub(super) chain: Chain,
    /// Number of the last record known to be durable.
    pub(super) durable: u64,
    /// Number of the last seal; everything before it is anchored as well.
    pub(super) sealed: u64,
    /// Everything up to this number shall become durable.
    pub(super) sync_wanted: u64,
    /// Lines that wait for the writer.
    pub(super) pending: Vec<u8>,
    /// Bytes the writer is busy with.
    pub(super) writing: usize,
    pub(super) sync_pending: usize,
    pub(super) sync_writing: usize,
    /// The reserve could not be kept up.
    pub(super) full: bool,
    /// Space known to be left when `full`.
    pub(super) reserve_left: u64,
    dropped: VecDeque<(u64, Hash)>,
    dropped_count: u64,
    /// Highest number that was ever dropped.
    dropped_to: u64,
}

impl TrailState {
    pub(super) fn new(chain: Chain, pending_bytes: usize, full: bool, reserve_left: u64) -> Self {
        Self {
            chain,
            durable: chain.seq,
            sealed: 0,
            sync_wanted: chain.seq,
            pending: Vec::with_capacity(pending_bytes),
            writing: 0,
            sync_pending: 0,
            sync_writing: 0,
            full,
            reserve_left,
            dropped: VecDeque::new(),
            dropped_count: 0,
            dropped_to: 0,
        }
    }

    /// Bytes a record of this kind may take, as far as the disk goes.
    pub(super) fn space(&self, sync: Sync) -> usize {
        if !self.full {
            return usize::MAX;
        }
        let outstanding = (self.pending.len() + self.writing) as u64;
        let left = self.reserve_left.saturating_sub(outstanding).saturating_sub(sync.kept_bytes());
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Writes a record behind the pending ones.
    pub(super) fn append(
        &mut self,
        limit: usize,
        members: impl FnOnce(&mut LineWriter<'_>),
    ) -> Result<Chain, WriteFault> {
        let mut line = LineWriter::begin(&mut self.pending, limit, &self.chain, self.durable);
        members(&mut line);
        self.chain = line.seal()?;
        if self.chain.seq <= self.dropped_to {
            // The very same record once more: whoever waits for the first one may have this one.
            let Chain { seq, hash } = self.chain;
            self.dropped.retain(|record| *record != (seq, hash));
        }
        Ok(self.chain)
    }

    /// Notes the kind of the record just appended; gives the bytes that wait.
    pub(super) fn note(&mut self, sync: Sync) -> usize {
        if sync.is_synced() {
            self.sync_wanted = self.chain.seq;
            self.sync_pending += 1;
        }
        self.pending.len()
    }

    /// Takes everything after `kept` back: there was no space for it. `lost` holds its lines as far as the
    /// writer had them.
    pub(super) fn rewind(&mut self, kept: Chain, lost: &[u8]) {
        let Self { pending, dropped, .. } = self;
        let lines = lost.split(|byte| *byte == b'\n').chain(pending.split(|byte| *byte == b'\n'));
        for (line, seq) in lines.filter(|line| !line.is_empty()).zip(kept.seq + 1..) {
            if dropped.len() == DROPPED_LIMIT {
                dropped.pop_front();
            }
            dropped.push_back((seq, crate::line::hash(line)));
            self.dropped_count += 1;
            self.dropped_to = self.dropped_to.max(seq);
        }
        self.pending.clear();
        self.chain = kept;
        self.sync_wanted = self.sync_wanted.min(kept.seq);
        self.sync_pending = 0;
    }

    pub(super) fn was_dropped(&self, ticket: &Ticket) -> bool {
        ticket.seq <= self.dropped_to
            && self.dropped.iter().any(|(seq, hash)| *seq == ticket.seq && *hash == ticket.hash)
    }

    pub(super) fn status(&self) -> TrailStatus {
        TrailStatus {
            appended: self.chain.seq,
            durable: self.durable,
            full: self.full,
            dropped: self.dropped_count,
        }
    }
}
