//! Room for records that nobody waits for: a slow disk slows down who asks, and loses no record.

use std::task::{Context, Poll};

use super::{Sync, TrailId, Writer};

impl Writer {
    /// Ready once the longest record of this kind finds room among those that wait for the disk, or waiting
    /// would not help: the store is fenced, or too many wait already.
    ///
    /// Who appends right after that, on the thread that alone appends, is not refused for [`crate::Error::Backlog`].
    pub fn poll_room(&self, trail: TrailId, sync: Sync, cx: &mut Context<'_>) -> Poll<()> {
        let limits = &self.shared.limits;
        let mut state = self.shared.lock();
        let limit = limits.pending_bytes * sync.quarters() / 4;
        let crowded = state.trails[trail.0].pending.len() + sync.line_bytes() > limit;
        if !crowded || state.check_open().is_err() {
            return Poll::Ready(());
        }
        if !state.rooms.iter().any(|waiting| waiting.will_wake(cx.waker())) {
            if state.rooms.len() >= limits.waiting {
                return Poll::Ready(());
            }
            state.rooms.push(cx.waker().clone());
        }
        self.nudge(&mut state);
        Poll::Pending
    }
}
