//! The closed segments of all trails, and how an operation is found in them.
//!
//! In memory is one summary for a segment. An index says where an operation's record stands; the answer is
//! read off the record itself, and a segment whose index is missing or wrong is read line by line.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Error;
use crate::disk::Disk;
use crate::index::{self, Id, Row, Summary};
use crate::line::{Hash, Link, hash};
use crate::record::Record;
use crate::scan::Scanner;
use crate::segment::Segment;

/// A closed segment.
#[derive(Clone, Copy, Debug)]
struct Closed {
    number: u32,
    summary: Summary,
    /// Its index lies beside it.
    indexed: bool,
}

/// The last record of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its line without the LF. [`Record::read`] reads it.
    pub(crate) line: Vec<u8>,
    /// SHA-256 of the line.
    pub(crate) hash: Hash,
    /// It is the operation's terminal.
    pub(crate) is_end: bool,
}

#[derive(Debug)]
struct Shelf {
    trail: String,
    closed: Mutex<Vec<Closed>>,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, Vec<Closed>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The closed segments of the trails of one disk.
#[derive(Debug)]
pub(crate) struct Archive {
    disk: Arc<dyn Disk>,
    shelves: Vec<Shelf>,
}

impl Archive {
    /// Knows no segment yet.
    pub(crate) fn new(disk: Arc<dyn Disk>, trails: &[&str]) -> Self {
        let shelf = |trail: &&str| Shelf { trail: (*trail).to_owned(), closed: Mutex::default() };
        Self { disk, shelves: trails.iter().map(shelf).collect() }
    }

    /// Puts a closed segment behind the others of its trail.
    pub(crate) fn put(&self, trail: usize, number: u32, summary: Summary, indexed: bool) {
        self.shelves[trail].lock().push(Closed { number, summary, indexed });
    }

    /// Closed segments, and how many of them have no index.
    pub(crate) fn count(&self) -> (usize, usize) {
        self.shelves.iter().fold((0, 0), |(all, bare), shelf| {
            let closed = shelf.lock();
            (all + closed.len(), bare + closed.iter().filter(|segment| !segment.indexed).count())
        })
    }

    /// The oldest closed segments of a trail, up to the first that is wanted or without which there would be fewer than
    /// `kept`, the open one included.
    pub(crate) fn oldest(
        &self,
        trail: usize,
        kept: usize,
        is_past: impl Fn(&Summary) -> bool,
    ) -> Vec<(u32, Summary)> {
        let closed = self.shelves[trail].lock();
        let spare = (closed.len() + 1).saturating_sub(kept);
        let oldest = closed.iter().take(spare).take_while(|closed| is_past(&closed.summary));
        oldest.map(|closed| (closed.number, closed.summary)).collect()
    }

    /// Forgets a closed segment and removes its files.
    pub(crate) fn delete(&self, trail: usize, number: u32) -> Result<(), Error> {
        let shelf = &self.shelves[trail];
        shelf.lock().retain(|closed| closed.number != number);
        let segment = Segment::new(&shelf.trail, number);
        // An index that stays behind belongs to no segment and is never looked at.
        drop(self.disk.remove(&segment.index_name()));
        let removed = self.disk.remove(&segment.name).and_then(|()| self.disk.sync_dir());
        removed.map_err(|source| Error::file("delete", &segment.name, source))
    }

    /// The highest operation id in any closed segment.
    pub(crate) fn highest(&self) -> Option<Id> {
        let highest = |shelf: &Shelf| shelf.lock().iter().map(|closed| closed.summary.ids.1).max();
        self.shelves.iter().filter_map(highest).max().filter(|id| *id != Id::default())
    }

    /// The last record of an operation in any closed segment.
    ///
    /// # Errors
    /// [`Error::Damaged`] or [`Error::Disk`] when a segment that may hold it cannot be read.
    pub(crate) fn find(&self, id: &Id) -> Result<Option<Found>, Error> {
        let mut begun = None;
        for (trail, shelf) in self.shelves.iter().enumerate() {
            let holders: Vec<Closed> =
                shelf.lock().iter().filter(|closed| closed.summary.may_hold(id)).copied().collect();
            for closed in holders.iter().rev() {
                match self.find_in(trail, closed, id)? {
                    Some(found) if found.is_end => return Ok(Some(found)),
                    Some(found) => begun = begun.or(Some(found)),
                    None => {}
                }
            }
        }
        Ok(begun)
    }

    fn find_in(&self, trail: usize, closed: &Closed, id: &Id) -> Result<Option<Found>, Error> {
        let shelf = &self.shelves[trail];
        let segment = Segment::new(&shelf.trail, closed.number);
        if closed.indexed {
            match find_by_index(&*self.disk, &segment, &closed.summary, id) {
                Ok(found) => return Ok(found),
                Err(index::Unusable) => {
                    // The next opening makes it again.
                    drop(self.disk.remove(&segment.index_name()));
                    let mut known = shelf.lock();
                    if let Some(it) = known.iter_mut().find(|it| it.number == closed.number) {
                        it.indexed = false;
                    }
                }
            }
        }
        find_by_reading(&*self.disk, segment, &closed.summary, id)
    }
}

/// Finds the record by the index of its segment, and holds it against what the index says.
pub(crate) fn find_by_index(
    disk: &dyn Disk,
    segment: &Segment,
    summary: &Summary,
    id: &Id,
) -> Result<Option<Found>, index::Unusable> {
    let Some(row) = index::find(disk, segment, summary, id)? else { return Ok(None) };
    let file = disk.open(&segment.name).map_err(|_| index::Unusable)?;
    let line = read_row(&*file, &row).ok_or(index::Unusable)?;
    if !is_record_of(&line, id, row.ends()) {
        return Err(index::Unusable);
    }
    Ok(Some(Found { hash: hash(&line), is_end: row.ends(), line }))
}

/// The line that a row names, if there stands one.
pub(crate) fn read_row(file: &dyn crate::disk::DiskFile, row: &Row) -> Option<Vec<u8>> {
    let mut line = vec![0; row.length()];
    index::read_exact(file, row.offset.into(), &mut line)?;
    Link::read(&line).ok()?;
    Some(line)
}

/// Finds the record by reading the segment with every line checked.
fn find_by_reading(
    disk: &dyn Disk,
    segment: Segment,
    summary: &Summary,
    id: &Id,
) -> Result<Option<Found>, Error> {
    let mut scanner = Scanner::behind(disk, vec![segment], summary.before);
    let mut found = None;
    while let Some(line) = scanner.next()? {
        let is_end = is_record_of(line.bytes, id, true);
        if is_end || is_record_of(line.bytes, id, false) {
            found = Some(Found { line: line.bytes.to_vec(), hash: line.hash, is_end });
        }
    }
    Ok(found)
}

fn is_record_of(line: &[u8], id: &Id, is_end: bool) -> bool {
    Record::read(line).is_some_and(|record| {
        record.kind == if is_end { "terminal" } else { "intent" }
            && record.operation().is_some_and(|operation| operation.as_bytes() == id)
    })
}
