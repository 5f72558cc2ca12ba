//! Where the writer's thread meets the seals: they begin a batch of their own, so that they cost no sync of theirs
//! but at the end of an epoch, and no record waits for them to find room.

use super::Sync;
use super::commit::Committer;
use super::state::State;
use crate::MAX_LINE_BYTES;
use crate::line::Chain;
use crate::seal;

impl Committer {
    /// Puts the seals that are due at the beginning of the next batch, whose buffers are still empty.
    pub(super) fn send_seals(&mut self, names: &[String], state: &mut State) {
        let Some(sealer) = self.sealer.as_mut().filter(|sealer| sealer.seal_due()) else { return };
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

    /// Whether there is still something to seal before the thread ends.
    pub(super) fn closes_an_epoch(&mut self) -> bool {
        self.sealer.as_mut().is_some_and(|sealer| {
            sealer.close_up();
            sealer.seal_due()
        })
    }
}
