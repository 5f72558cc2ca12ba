//! What a journal does for the ledger: it takes notes of every line, and when a segment is closed it puts the
//! index beside it. Nothing here can harm the trail: an index that cannot be written is done without.

use std::sync::Arc;

use crate::disk::Disk;
use crate::index::{self, Id, Notes, Row};
use crate::ledger::OperationLedger;
use crate::line::Chain;
use crate::segment::Segment;

/// The place of one trail in a ledger's archive.
#[derive(Debug)]
pub(crate) struct Shelf {
    ledger: Arc<OperationLedger>,
    trail: usize,
    notes: Notes,
}

impl Shelf {
    pub(crate) fn new(ledger: Arc<OperationLedger>, trail: usize) -> Self {
        Self { ledger, trail, notes: Notes::new() }
    }

    /// Nothing up to this operation is known any more unless it is found.
    pub(crate) fn forget_to(&self, id: Id) {
        self.ledger.forget_to(id);
    }

    /// Takes whole lines that now stand at the end of the segment.
    pub(crate) fn note(&mut self, lines: &[u8]) {
        self.notes.take(lines);
    }

    /// Takes one line without its LF.
    pub(crate) fn note_line(&mut self, line: &[u8]) {
        self.notes.take_line(line);
    }

    /// Believes the index of a closed segment if it fits what is there: where the chain stands behind it, and
    /// what began or ended elsewhere.
    pub(crate) fn recall(
        &self,
        disk: &dyn Disk,
        segment: &Segment,
        before: Chain,
    ) -> Option<(Chain, Vec<Row>)> {
        let (summary, loose) = index::load(disk, segment, before)?;
        self.ledger.shelve(self.trail, segment.number, summary, true);
        Some((summary.after, loose))
    }

    /// Closes a segment with the notes that were taken; gives what began or ended elsewhere.
    pub(crate) fn close(&mut self, disk: &dyn Disk, segment: &Segment) -> Vec<Row> {
        let Some((summary, mut rows)) = self.notes.close() else { return Vec::new() };
        let indexed = index::store(disk, segment, &index::encode(&summary, &rows)).is_ok();
        self.ledger.shelve(self.trail, segment.number, summary, indexed);
        self.ledger.settle(rows.iter().filter(|row| row.ends()).map(|row| row.id));
        rows.retain(Row::is_loose);
        rows
    }
}
