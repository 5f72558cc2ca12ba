//! The thread `pcpd-journal`: takes what has gathered, writes it, syncs once, tells everybody.

use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::Shared;
use super::state::State;
use crate::Error;
use crate::journal::{Cause, Journal};
use crate::line::{Chain, Link, hash};
use crate::seal::Sealer;

/// What the thread knows of one trail.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) journal: Journal,
    /// Lines being written; swapped with the trail's pending buffer.
    batch: Vec<u8>,
    /// The last record of the batch.
    batch_end: Chain,
    /// The last record in the file.
    pub(super) written: Chain,
    /// The last record known to be durable.
    pub(super) durable: Chain,
    /// The batch is to be synced.
    sync: bool,
    /// Whole lines of the batch that were written.
    accepted: usize,
    /// The reserve stands behind everything written.
    spacious: bool,
    /// There was no space for some of the batch.
    pub(super) overflow: bool,
}

#[derive(Debug)]
pub(super) struct Committer {
    shared: Arc<Shared>,
    pub(super) tracks: Vec<Track>,
    /// Ends epochs, if there are keys.
    pub(super) sealer: Option<Sealer>,
    /// Wakers to be called once the lock is released.
    ready: Vec<Waker>,
}

impl Committer {
    pub(super) fn new(shared: Arc<Shared>, journals: Vec<Journal>, sealer: Option<Sealer>) -> Self {
        let state = shared.lock();
        let track = |(journal, trail): (Journal, &super::TrailState)| Track {
            journal,
            batch: Vec::with_capacity(shared.limits.pending_bytes),
            batch_end: trail.chain,
            written: trail.chain,
            durable: trail.chain,
            sync: false,
            accepted: 0,
            spacious: !trail.full,
            overflow: false,
        };
        let tracks = journals.into_iter().zip(&state.trails).map(track).collect();
        drop(state);
        let ready = Vec::with_capacity(shared.limits.waiting);
        Self { shared, tracks, sealer, ready }
    }

    pub(super) fn run(mut self) {
        // However this thread ends, nobody may wait for it for ever.
        let _farewell = Farewell(self.shared.clone());
        while self.collect() {
            let outcome = self.write();
            let fenced = outcome.is_err();
            self.publish(outcome);
            if fenced {
                break;
            }
            self.seal_up();
            let shared = self.shared.clone();
            self.publish_seals(&shared);
        }
    }

    /// Waits for work and takes it. False: there is none left and there will be none.
    fn collect(&mut self) -> bool {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        let mut since: Option<Instant> = None;
        loop {
            if is_urgent(&state, shared.limits.pending_bytes) {
                break;
            }
            if state.closing {
                // Everything pending has asked for nothing: it is still written and synced.
                let finished = state.trails.iter().all(|trail| trail.durable == trail.chain.seq);
                state.trails.iter_mut().for_each(|trail| trail.sync_wanted = trail.chain.seq);
                if finished && !self.closes_an_epoch() {
                    return false;
                }
                break;
            }
            let due = self.sealer.as_ref().and_then(Sealer::due_in);
            if due.is_some_and(|left| left.is_zero()) {
                break;
            }
            state.gathering = state.trails.iter().any(|trail| !trail.pending.is_empty());
            state.sleeping = true;
            if state.gathering {
                let begun = *since.get_or_insert_with(Instant::now);
                let left = shared.limits.lazy_delay.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    break;
                }
                state = wait(&shared, state, due.map_or(left, |due| due.min(left)));
            } else if let Some(due) = due {
                state = wait(&shared, state, due);
            } else {
                state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        (state.sleeping, state.gathering, state.probe) = (false, false, false);
        for (track, trail) in self.tracks.iter_mut().zip(&mut state.trails) {
            std::mem::swap(&mut track.batch, &mut trail.pending);
            track.batch_end = trail.chain;
            track.sync = trail.sync_wanted > trail.durable;
            trail.writing = track.batch.len();
            trail.sync_writing = std::mem::take(&mut trail.sync_pending);
        }
        self.send_seals(&shared.names, &mut state);
        // The buffers are empty again.
        self.ready.append(&mut state.rooms);
        drop(state);
        self.ready.drain(..).for_each(Waker::wake);
        true
    }

    /// Writes every batch, then syncs the files that somebody waits for.
    fn write(&mut self) -> Result<(), Error> {
        for track in &mut self.tracks {
            let bytes = track.batch.len();
            track.spacious = track.journal.secure(bytes as u64);
            track.overflow = false;
            track.accepted = match track.journal.write(&track.batch) {
                Ok(()) => bytes,
                Err(stopped) => match stopped.cause {
                    Cause::Full => {
                        (track.overflow, track.spacious) = (true, false);
                        stopped.accepted
                    }
                    fatal @ Cause::Fatal { .. } => return Err(fence(fatal)),
                },
            };
            track.written = match track.overflow {
                false => track.batch_end,
                true => last_line(&track.batch[..track.accepted]).unwrap_or(track.written),
            };
        }
        for track in &mut self.tracks {
            if track.sync && track.durable.seq < track.written.seq {
                track.journal.sync().map_err(fence)?;
                track.durable = track.written;
            }
        }
        Ok(())
    }

    fn publish(&mut self, outcome: Result<(), Error>) {
        let mut state = self.shared.lock();
        for (track, trail) in self.tracks.iter_mut().zip(&mut state.trails) {
            if outcome.is_ok() {
                trail.durable = track.durable.seq;
                trail.full = !track.spacious;
                trail.reserve_left = track.journal.reserve_left();
                if track.overflow {
                    trail.rewind(track.written, &track.batch[track.accepted..]);
                }
            }
            track.batch.clear();
            (trail.writing, trail.sync_writing) = (0, 0);
        }
        if let Err(error) = outcome {
            state.fenced.get_or_insert(error);
        }
        self.ready.clear();
        let State { waiters, trails, fenced, .. } = &mut *state;
        waiters.retain_mut(|waiter| {
            let trail = &trails[waiter.ticket.trail.0];
            let settled = fenced.is_some()
                || waiter.ticket.seq <= trail.durable
                || waiter.ticket.seq > trail.chain.seq
                || trail.was_dropped(&waiter.ticket);
            if settled {
                self.ready.push(waiter.waker.clone());
            }
            !settled
        });
        drop(state);
        self.shared.done.notify_all();
        self.ready.drain(..).for_each(Waker::wake);
    }
}

/// Says that the thread has ended and wakes everybody who waits.
#[derive(Debug)]
struct Farewell(Arc<Shared>);

impl Drop for Farewell {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.closed = true;
        let (waiters, rooms) = (std::mem::take(&mut state.waiters), std::mem::take(&mut state.rooms));
        drop(state);
        self.0.done.notify_all();
        waiters.into_iter().map(|waiter| waiter.waker).chain(rooms).for_each(Waker::wake);
    }
}

fn wait<'a>(shared: &Shared, state: MutexGuard<'a, State>, left: Duration) -> MutexGuard<'a, State> {
    shared.work.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
}

fn is_urgent(state: &State, pending_bytes: usize) -> bool {
    state.probe
        || state.seal_asked
        || state
            .trails
            .iter()
            .any(|trail| trail.sync_wanted > trail.durable || trail.pending.len() >= pending_bytes / 4)
}

fn fence(cause: Cause) -> Error {
    match cause {
        Cause::Fatal { action, name, source } => Error::Fenced { action, name, cause: Arc::new(source) },
        // Only writing can find the disk full in a way that leaves the file whole.
        Cause::Full => Error::Closed,
    }
}

/// Where the chain stands after the last of these whole lines.
fn last_line(lines: &[u8]) -> Option<Chain> {
    let lines = lines.strip_suffix(b"\n")?;
    let line = lines.rsplit(|byte| *byte == b'\n').next()?;
    let link = Link::read(line).ok()?;
    Some(Chain { seq: link.seq, hash: hash(line) })
}
