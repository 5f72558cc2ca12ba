//! Deletes segments that are neither wanted nor needed any more.

use pcp_core::Trail;

use crate::begin::Begin;
use crate::index::{Id, Summary};
use crate::writer::{Sync, TrailId};
use crate::{AuditLog, Error};

impl AuditLog {
    /// Deletes the oldest segments of trails that have more than `Limits::kept_segments`, as far as everything in them
    /// is older than the retention horizon: an id that is forgotten this way is too old to run. A segment with an
    /// operation whose id carries no time is kept, and so are all behind it. Gives how many were deleted.
    ///
    /// # Errors
    /// [`Error::Disk`] when a file cannot be removed; as [`crate::Writer::append`] and [`crate::Writer::wait`] when the
    /// record that says so cannot be written.
    pub fn retain(&self, wall_ms: u64) -> Result<usize, Error> {
        let limits = self.writer().limits();
        let Some(archive) = self.ledger().archive().filter(|_| limits.kept_segments > 0) else {
            return Ok(0);
        };
        let kept = usize::try_from(limits.kept_segments).unwrap_or(usize::MAX);
        let horizon = wall_ms.saturating_sub(u64::try_from(limits.retention.as_millis()).unwrap_or(u64::MAX));
        let mut deleted = 0;
        let mut marks = Vec::new();
        for trail in 0..Trail::ALL.len() {
            let past = archive.oldest(trail, kept, |summary| is_past(summary, horizon));
            let Some((number, last)) = past.last().map(|(number, summary)| (*number, summary.after)) else {
                continue;
            };
            let highest = past.iter().map(|(_, summary)| highest(summary)).max().unwrap_or_default();
            let forgotten = self.ledger().forget_to(highest);
            let begin = Begin { segment: number + 1, before: last, forgotten };
            let ticket = self.writer().append(TrailId(trail), Sync::Kept, |line| begin.write(line))?;
            marks.push((trail, ticket, past));
        }
        // Nobody but who has the key can say that a trail begins later: first the seals, then the deletion.
        for (_, ticket, _) in &marks {
            self.wait(ticket)?;
            self.writer().wait_sealed(ticket)?;
        }
        for (trail, _, past) in marks {
            for (number, _) in past {
                archive.delete(trail, number)?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }
}

fn highest(summary: &Summary) -> Id {
    if summary.rows == 0 { Id::default() } else { summary.ids.1 }
}

/// Whether everything in a segment is older than that.
fn is_past(summary: &Summary, horizon_ms: u64) -> bool {
    let has_no_undated = summary.rows == 0 || time_of(&summary.ids.0) > 0;
    has_no_undated && summary.latest_ms < horizon_ms && time_of(&highest(summary)) < horizon_ms
}

/// The time that an id carries.
fn time_of(id: &Id) -> u64 {
    id[..6].iter().fold(0, |time, byte| time << 8 | u64::from(*byte))
}
