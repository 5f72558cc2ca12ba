//! Takes records from any thread, puts them in order, and says when they are durable.
//!
//! The place of a record in its chain is fixed under one lock when it is appended, so its hash is known at
//! once. One thread, `pcpd-journal`, writes whatever has gathered and syncs once for all of it. Nothing
//! waits for memory: every buffer and list has its full size from the start and refuses what is beyond.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::Error;
use crate::journal::{Cut, RESERVE_BYTES, SEGMENT_BYTES};
use crate::ledger::RETENTION;
use crate::line::{Chain, Hash, LineWriter, MAX_LINE_BYTES, WriteFault};

mod commit;
mod open;
mod room;
mod sealing;
mod state;

use state::{State, TrailState, Waiter};

/// Records of one trail that may wait for the writer: a second of a thousand records each.
pub const PENDING_BYTES: usize = 256 * 1024;

/// Synced records that may be on their way to the medium: four times the effects a daemon has in flight.
pub const MAX_WAITING: usize = 256;

/// What the end of an effect adds to the members of its claim: some 400 bytes.
const MAX_END_BYTES: usize = 1024;

/// Part of the reserve that lazy records leave to all others: reads go on unrecorded before refusals do.
const KEPT_FROM_LAZY_BYTES: u64 = RESERVE_BYTES / 4 * 3;

/// Part of the reserve that everything leaves to the ends of effects.
const KEPT_FOR_ENDS_BYTES: u64 = RESERVE_BYTES / 4;

/// How long an unsynced record may gather company before it is written: the most that a killed process
/// loses of them.
pub const LAZY_DELAY: Duration = Duration::from_millis(10);

/// Records of all trails behind their last seals that end an epoch: some twelve megabytes. Ending one takes four syncs.
pub const SEAL_RECORDS: u64 = 16_384;

/// How old the first record behind the last seals gets: whoever takes the device over can change what is younger.
pub const SEAL_INTERVAL: Duration = Duration::from_mins(1);

/// Durable records that the anchor may lag behind: a sync each that many records, which a busy disk does not notice.
pub const ANCHOR_RECORDS: u64 = 4096;

/// How long the anchor may lag behind a durable record: one sync a second at most, none when nothing happens.
pub const ANCHOR_DELAY: Duration = Duration::from_secs(1);

/// Sizes and times of a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// See [`SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// See [`PENDING_BYTES`].
    pub pending_bytes: usize,
    /// See [`MAX_WAITING`].
    pub waiting: usize,
    /// See [`LAZY_DELAY`].
    pub lazy_delay: Duration,
    /// See [`RETENTION`]. The ledger goes by it.
    pub retention: Duration,
    /// Segments of a trail that are kept whatever their age, the open one included; 0: all.
    pub kept_segments: u32,
    /// See [`SEAL_RECORDS`].
    pub seal_records: u64,
    /// See [`SEAL_INTERVAL`].
    pub seal_interval: Duration,
    /// See [`ANCHOR_RECORDS`].
    pub anchor_records: u64,
    /// See [`ANCHOR_DELAY`].
    pub anchor_delay: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            segment_bytes: SEGMENT_BYTES,
            pending_bytes: PENDING_BYTES,
            waiting: MAX_WAITING,
            lazy_delay: LAZY_DELAY,
            retention: RETENTION,
            kept_segments: 0,
            seal_records: SEAL_RECORDS,
            seal_interval: SEAL_INTERVAL,
            anchor_records: ANCHOR_RECORDS,
            anchor_delay: ANCHOR_DELAY,
        }
    }
}

/// How urgent a record is, and who gets the last of the space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Written soon, synced when something else is. Refused first.
    Lazy,
    /// As lazy, but may use the reserve of a full disk: that something was refused.
    Kept,
    /// Synced, and an effect will follow: refused as soon as the reserve is touched, so that the end
    /// of the effect can still be written.
    Claim,
    /// Synced; may use everything: how an effect ended.
    Now,
}

impl Sync {
    /// Share of the buffer and of the waiting list this kind may fill, in quarters.
    const fn quarters(self) -> usize {
        match self {
            Self::Lazy => 2,
            Self::Kept | Self::Claim => 3,
            Self::Now => 4,
        }
    }

    const fn is_synced(self) -> bool {
        matches!(self, Self::Claim | Self::Now)
    }

    /// Longest line of this kind. A claim leaves room for what its end will add to it.
    const fn line_bytes(self) -> usize {
        match self {
            Self::Claim => MAX_LINE_BYTES - MAX_END_BYTES,
            _ => MAX_LINE_BYTES,
        }
    }

    /// Part of the reserve this kind must leave alone.
    const fn kept_bytes(self) -> u64 {
        match self {
            Self::Claim => u64::MAX,
            Self::Lazy => KEPT_FROM_LAZY_BYTES,
            Self::Kept => KEPT_FOR_ENDS_BYTES,
            Self::Now => 0,
        }
    }
}

/// One of a writer's trails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TrailId(pub(crate) usize);

/// A record that has its place in the chain and is on its way to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a record is durable only after its ticket was waited for"]
pub struct Ticket {
    /// Its trail.
    pub trail: TrailId,
    /// Its number there.
    pub seq: u64,
    /// SHA-256 of its line.
    pub hash: Hash,
}

/// What opening a trail found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where the trail stands.
    pub chain: Chain,
    /// The torn tail that was cut off, if there was one.
    pub cut: Option<Cut>,
}

/// How a trail is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailStatus {
    /// Number of the last record appended.
    pub appended: u64,
    /// Number of the last record known to be durable.
    pub durable: u64,
    /// The disk is full: claims are refused.
    pub full: bool,
    /// Records that were appended and then dropped because the disk was full.
    pub dropped: u64,
}

#[derive(Debug)]
struct Shared {
    names: Vec<String>,
    limits: Limits,
    state: Mutex<State>,
    /// The writer thread waits here for records.
    work: Condvar,
    /// Blocking callers wait here for the writer thread.
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete or undone by a drop, so a panic leaves it usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The group-commit writer of one directory.
#[derive(Debug)]
pub struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// The trail of this name.
    #[must_use]
    pub fn trail(&self, name: &str) -> Option<TrailId> {
        self.shared.names.iter().position(|known| known == name).map(TrailId)
    }

    /// Puts a record at the end of a trail. Never blocks on the disk and takes no memory.
    ///
    /// # Errors
    /// [`Error::is_unavailable`] when it cannot be kept; [`Error::LineTooLong`] and [`Error::NotJson`] when
    /// it is no record.
    pub fn append(
        &self,
        trail: TrailId,
        sync: Sync,
        members: impl FnOnce(&mut LineWriter<'_>),
    ) -> Result<Ticket, Error> {
        let shared = &*self.shared;
        let mut state = shared.lock();
        state.check_open()?;
        let waiting_limit = shared.limits.waiting * sync.quarters() / 4;
        if sync.is_synced() && state.waiting() >= waiting_limit {
            return Err(Error::TooManyWaiting { limit: waiting_limit });
        }
        let limit = shared.limits.pending_bytes * sync.quarters() / 4;
        let record = &mut state.trails[trail.0];
        let waiting = record.pending.len();
        let space = record.space(sync);
        let longest = sync.line_bytes();
        let chain = match record.append(limit.min(waiting + space.min(longest)), members) {
            Ok(chain) => chain,
            Err(WriteFault::NotJson(member, fault)) => return Err(Error::NotJson { member, fault }),
            Err(WriteFault::NoRoom) if space < longest => {
                // Look again for space: what came back serves the next record.
                state.probe = true;
                self.nudge(&mut state);
                return Err(Error::Full { trail: shared.names[trail.0].clone() });
            }
            Err(WriteFault::NoRoom) if waiting + longest <= limit => {
                return Err(Error::LineTooLong { limit: longest });
            }
            Err(WriteFault::NoRoom) => {
                return Err(Error::Backlog { trail: shared.names[trail.0].clone(), waiting, limit });
            }
        };
        let pending = record.note(sync);
        if sync.is_synced() || !state.gathering || pending >= shared.limits.pending_bytes / 4 {
            self.nudge(&mut state);
        }
        Ok(Ticket { trail, seq: chain.seq, hash: chain.hash })
    }

    /// Ready once the record is on the medium, or certainly will not be said to be. Asking for an unsynced
    /// record makes it a synced one.
    pub fn poll_durable(&self, ticket: &Ticket, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut state = self.shared.lock();
        if let Some(verdict) = self.verdict(&mut state, ticket) {
            return Poll::Ready(verdict);
        }
        if let Some(waiter) = state.waiters.iter_mut().find(|waiter| waiter.ticket == *ticket) {
            waiter.waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        if state.waiters.len() >= self.shared.limits.waiting {
            return Poll::Ready(Err(Error::TooManyWaiting { limit: self.shared.limits.waiting }));
        }
        state.waiters.push(Waiter { ticket: *ticket, waker: cx.waker().clone() });
        Poll::Pending
    }

    /// Waits until the record is on the medium.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]: nobody can say that it is.
    pub async fn durable(&self, ticket: Ticket) -> Result<(), Error> {
        std::future::poll_fn(|cx| self.poll_durable(&ticket, cx)).await
    }

    /// Blocks until the record is on the medium.
    ///
    /// # Errors
    /// As [`Writer::durable`].
    pub fn wait(&self, ticket: &Ticket) -> Result<(), Error> {
        let mut state = self.shared.lock();
        loop {
            if let Some(verdict) = self.verdict(&mut state, ticket) {
                return verdict;
            }
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks until everything appended so far, to every trail, is on the medium.
    ///
    /// # Errors
    /// As [`Writer::durable`].
    pub fn flush(&self) -> Result<(), Error> {
        let tickets: Vec<Ticket> = {
            let state = self.shared.lock();
            let last = |(index, trail): (usize, &TrailState)| Ticket {
                trail: TrailId(index),
                seq: trail.chain.seq,
                hash: trail.chain.hash,
            };
            state.trails.iter().enumerate().map(last).collect()
        };
        tickets.iter().try_for_each(|ticket| self.wait(ticket))
    }

    pub(crate) fn limits(&self) -> Limits {
        self.shared.limits
    }

    /// How a trail is doing.
    #[must_use]
    pub fn status(&self, trail: TrailId) -> TrailStatus {
        self.shared.lock().trails[trail.0].status()
    }

    /// The first failure that ended all writing, if there was one.
    #[must_use]
    pub fn fence(&self) -> Option<Error> {
        self.shared.lock().fenced.clone()
    }

    /// Writes and syncs what is there and ends the thread. Dropping does the same, silently.
    ///
    /// # Errors
    /// [`Error::Fenced`] when that was not possible.
    pub fn close(mut self) -> Result<(), Error> {
        self.stop();
        self.fence().map_or(Ok(()), Err)
    }

    fn stop(&mut self) {
        let mut state = self.shared.lock();
        state.closing = true;
        self.nudge(&mut state);
        drop(state);
        if let Some(thread) = self.thread.take() {
            // A panic in the thread has already been reported by the panic hook.
            drop(thread.join());
        }
    }

    /// What is known of a record; `None` while it is on its way.
    fn verdict(&self, state: &mut State, ticket: &Ticket) -> Option<Result<(), Error>> {
        let index = ticket.trail.0;
        // A number that the chain has not reached (again) can only be that of a dropped record.
        if ticket.seq > state.trails[index].chain.seq || state.trails[index].was_dropped(ticket) {
            return Some(Err(Error::Full { trail: self.shared.names[index].clone() }));
        }
        if ticket.seq <= state.trails[index].durable {
            return Some(Ok(()));
        }
        if let Err(error) = state.check_alive() {
            return Some(Err(error));
        }
        if state.trails[index].sync_wanted < ticket.seq {
            state.trails[index].sync_wanted = ticket.seq;
            self.nudge(state);
        }
        None
    }

    /// Wakes the writer thread if it sleeps.
    fn nudge(&self, state: &mut State) {
        if std::mem::take(&mut state.sleeping) {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}
