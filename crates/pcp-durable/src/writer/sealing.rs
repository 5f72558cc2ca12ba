//! Where the writer's thread meets the seals: they begin a batch of their own, so that they cost no sync of theirs
//! but at the end of an epoch, and no record waits for them to find room.

use std::sync::PoisonError;

use super::commit::Committer;
use super::state::State;
use super::{Shared, Sync, Ticket, Writer};
use crate::line::Chain;
use crate::seal;
use crate::{Error, MAX_LINE_BYTES};

impl Committer {
    /// Puts the seals that are due at the beginning of the next batch, whose buffers are still empty.
    pub(super) fn send_seals(&mut self, names: &[String], state: &mut State) {
        let Some(sealer) = &mut self.sealer else { return };
        if std::mem::take(&mut state.seal_asked) {
            state.seal_refused = !sealer.ask();
        }
        if !sealer.seal_due() {
            return;
        }
        let heads: Vec<Chain> = self.tracks.iter().map(|track| track.durable).collect();
        for (at, trail) in
            state.trails.iter_mut().enumerate().filter(|(at, _)| sealer.wants(*at)).collect::<Vec<_>>()
        {
            // The ends of effects come first when space is short.
            let room = trail.space(Sync::Kept).min(MAX_LINE_BYTES);
            let sent = trail.append(room, |line| {
                seal::write(line, sealer.key(), names, at, &heads, sealer.reason());
            });
            match sent {
                Ok(chain) => {
                    trail.sync_wanted = chain.seq;
                    sealer.sent(at, chain);
                }
                Err(_) => sealer.put_off(),
            }
        }
    }

    /// After a batch: ends the epoch or moves the anchor if that is due.
    pub(super) fn seal_up(&mut self) {
        let Some(sealer) = &mut self.sealer else { return };
        for (at, track) in self.tracks.iter_mut().enumerate() {
            if track.journal.take_rotated() {
                sealer.rotated();
            }
            sealer.wrote(at, track.written, track.durable, track.overflow);
        }
        sealer.advance();
    }

    /// After the epoch has ended: tells who waits for it. Nothing happens without keys.
    pub(super) fn publish_seals(&self, shared: &Shared) {
        let Some(sealer) = &self.sealer else { return };
        let mut state = shared.lock();
        for (at, trail) in state.trails.iter_mut().enumerate() {
            trail.sealed = sealer.ended_by(at);
        }
        state.seal_refused |= sealer.is_put_off();
        drop(state);
        shared.done.notify_all();
    }

    /// Whether there is still something to seal before the thread ends.
    pub(super) fn closes_an_epoch(&mut self) -> bool {
        self.sealer.as_mut().is_some_and(|sealer| {
            sealer.close_up();
            sealer.seal_due()
        })
    }
}

impl Writer {
    /// Blocks until a durable record stands in an epoch that has ended. Without keys there is nothing to wait for.
    pub(crate) fn wait_sealed(&self, ticket: &Ticket) -> Result<(), Error> {
        let mut state = self.shared.lock();
        state.seal_refused = false;
        while state.is_sealing && state.trails[ticket.trail.0].sealed < ticket.seq {
            state.check_open()?;
            if state.seal_refused {
                let what = format!("record {} of trail {}", ticket.seq, self.shared.names[ticket.trail.0]);
                return Err(Error::NotChecked { what, why: "it could not be sealed".into() });
            }
            state.seal_asked = true;
            self.nudge(&mut state);
            state = self.shared.done.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }
}
