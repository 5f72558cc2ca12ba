//! One trail's files: opened with every line checked, appended to, rotated, synced.
//!
//! A [`Journal`] belongs to one thread and knows bytes of whole lines only; the writer in front of it
//! makes them. What it promises is order: a segment is synced before the next one exists, so only the
//! last one can have a torn tail.

use std::io;
use std::sync::Arc;

use crate::Error;
use crate::disk::{Disk, DiskFile, is_full};
use crate::line::Chain;
use crate::scan::{Line, Scanner};
use crate::segment::{self, Segment};
use crate::shelf::Shelf;

mod open;

pub(crate) use open::Seen;

/// A segment is closed when the next line would make it longer: some ten thousand records, small
/// enough to copy and to check at once.
pub const SEGMENT_BYTES: u64 = 8 * 1024 * 1024;

/// Space kept ahead of the last line, so that a full disk can still be told about (TH-20).
pub const RESERVE_BYTES: u64 = 256 * 1024;

/// Space is reserved in steps, so that not every batch costs a call.
const RESERVE_STEP_BYTES: u64 = 128 * 1024;

/// What recovery cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The segment.
    pub file: String,
    /// The first line that was lost; nobody had been told it was durable.
    pub line: u64,
    /// Where it began.
    pub offset: u64,
    /// How many bytes were cut.
    pub bytes: u64,
}

/// Why writing stopped, and how many bytes of whole lines were taken before.
#[derive(Debug)]
pub(crate) struct Stopped {
    pub(crate) accepted: usize,
    pub(crate) cause: Cause,
}

/// Why a journal could not do its work.
#[derive(Debug)]
pub(crate) enum Cause {
    /// No space; the file ends with a whole line and writing may go on later.
    Full,
    /// The file's state is unknown from here on: never write to it again.
    Fatal { action: &'static str, name: String, source: io::Error },
}

/// The append side of one trail.
#[derive(Debug)]
pub(crate) struct Journal {
    disk: Arc<dyn Disk>,
    trail: String,
    segment: Segment,
    file: Box<dyn DiskFile>,
    size: u64,
    /// End of the space reserved in the current file.
    reserved: u64,
    segment_bytes: u64,
    /// Number of the record that names the beginning of a trail whose oldest segments are deleted; 0: none are.
    begins_by: u64,
    /// A segment was closed since somebody asked.
    rotated: bool,
    /// Where closed segments go, if anybody looks for operations in them.
    shelf: Option<Shelf>,
}

impl Journal {
    /// Appends whole lines, rotating between them.
    pub(crate) fn write(&mut self, lines: &[u8]) -> Result<(), Stopped> {
        let mut done = 0;
        while done < lines.len() {
            let rest = &lines[done..];
            let mut fit = whole_lines(rest, self.segment_bytes.saturating_sub(self.size));
            if fit == 0 && self.size > 0 {
                match self.rotate() {
                    Ok(true) => continue,
                    // No space for a new segment: the old one and its reserve go on.
                    Ok(false) => fit = rest.len(),
                    Err(cause) => return Err(Stopped { accepted: done, cause }),
                }
            }
            if fit == 0 {
                fit = first_line(rest);
            }
            match self.put(&rest[..fit]) {
                Ok(()) => done += fit,
                Err(stopped) => {
                    return Err(Stopped { accepted: done + stopped.accepted, cause: stopped.cause });
                }
            }
        }
        Ok(())
    }

    /// Makes every line written so far durable.
    pub(crate) fn sync(&mut self) -> Result<(), Cause> {
        self.file.sync_data().map_err(|source| self.fatal("sync", source))
    }

    /// Sees to it that `bytes` can be written and the reserve still stands behind them. False: it cannot.
    pub(crate) fn secure(&mut self, bytes: u64) -> bool {
        let wanted = self.size + bytes + RESERVE_BYTES;
        if self.reserved >= wanted {
            return true;
        }
        let end = wanted + RESERVE_STEP_BYTES;
        match reserve(&mut *self.file, self.size, end - self.size) {
            Ok(()) => {
                self.reserved = end;
                true
            }
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.disk.remaining_bytes().is_ok_and(|left| left >= bytes + RESERVE_BYTES)
            }
            Err(_) => false,
        }
    }

    /// Number of the record by which the trail begins later than with its first one; 0 if it does not.
    pub(crate) fn begins_by(&self) -> u64 {
        self.begins_by
    }

    /// Whether a segment was closed since the last time this was asked.
    pub(crate) fn take_rotated(&mut self) -> bool {
        std::mem::take(&mut self.rotated)
    }

    /// Bytes that can still be written when the disk is full.
    pub(crate) fn reserve_left(&self) -> u64 {
        self.reserved.saturating_sub(self.size)
    }

    /// Goes on in a new segment. False: there is no space for one.
    fn rotate(&mut self) -> Result<bool, Cause> {
        self.sync()?;
        let next = Segment::new(&self.trail, self.segment.number + 1);
        let created = match self.disk.create(&next.name) {
            // Left over from a rotation that found no space.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.disk.open(&next.name),
            other => other,
        };
        let mut file = match created {
            Ok(file) => file,
            Err(error) if is_full(&error) || error.kind() == io::ErrorKind::Interrupted => return Ok(false),
            Err(source) => return Err(Cause::Fatal { action: "create", name: next.name, source }),
        };
        let ahead = RESERVE_BYTES + RESERVE_STEP_BYTES;
        let reserved = match reserve(&mut *file, 0, ahead) {
            Ok(()) => ahead,
            Err(error) if error.kind() == io::ErrorKind::Unsupported => 0,
            Err(_) => {
                // An empty segment that stays behind is found again above, or by the next open.
                drop(self.disk.remove(&next.name));
                return Ok(false);
            }
        };
        self.disk.sync_dir().map_err(|source| self.fatal("sync the directory of", source))?;
        // Gives back the old segment's reserve; if that fails, only space is lost.
        drop(self.file.truncate(self.size));
        let closed = std::mem::replace(&mut self.segment, next);
        (self.file, self.size, self.reserved, self.rotated) = (file, 0, reserved, true);
        if let Some(shelf) = &mut self.shelf {
            shelf.close(&*self.disk, &closed);
        }
        Ok(true)
    }

    /// Appends to the current file. On a full disk the file is cut back to its last whole line.
    fn put(&mut self, lines: &[u8]) -> Result<(), Stopped> {
        let mut done = 0;
        while done < lines.len() {
            match self.file.append(&lines[done..]) {
                Ok(0) => {
                    let cause = self.fatal("write", io::ErrorKind::WriteZero.into());
                    return Err(Stopped { accepted: 0, cause });
                }
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_full(&error) => return Err(self.retreat(lines, done)),
                Err(source) => {
                    return Err(Stopped { accepted: 0, cause: self.fatal("write", source) });
                }
            }
        }
        self.keep(lines);
        Ok(())
    }

    /// Counts lines that stand in the file now.
    fn keep(&mut self, lines: &[u8]) {
        self.size += lines.len() as u64;
        if let Some(shelf) = &mut self.shelf {
            shelf.note(lines);
        }
    }

    fn retreat(&mut self, lines: &[u8], done: usize) -> Stopped {
        let whole = whole_lines(&lines[..done], u64::MAX);
        let size = self.size + whole as u64;
        match self.file.truncate(size) {
            Ok(()) => {
                self.keep(&lines[..whole]);
                self.reserved = size;
                Stopped { accepted: whole, cause: Cause::Full }
            }
            Err(source) => Stopped { accepted: 0, cause: self.fatal("cut back", source) },
        }
    }

    fn fatal(&self, action: &'static str, source: io::Error) -> Cause {
        Cause::Fatal { action, name: self.segment.name.clone(), source }
    }
}

fn reserve(file: &mut dyn DiskFile, offset: u64, bytes: u64) -> io::Result<()> {
    loop {
        match file.reserve(offset, bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Bytes of the whole lines at the beginning of `lines` that fit in `room`.
fn whole_lines(lines: &[u8], room: u64) -> usize {
    let room = usize::try_from(room).unwrap_or(usize::MAX).min(lines.len());
    lines[..room].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
}

fn first_line(lines: &[u8]) -> usize {
    lines.iter().position(|byte| *byte == b'\n').map_or(lines.len(), |end| end + 1)
}
