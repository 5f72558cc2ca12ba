//! Reads a trail line by line in bounded memory and checks every line as it passes.
//!
//! The one reader behind opening, verifying, showing and answering offline. It never skips: the first
//! bad line is the end, named by file, line and offset.

use std::io;

use crate::Error;
use crate::disk::{Disk, DiskFile};
use crate::line::{Chain, LineFault, Link, MAX_LINE_BYTES, line_end};
use crate::seal::SealFault;
use crate::segment::Segment;

/// Read buffer: the longest line and as much again, so that a line is always contiguous.
const BUFFER_BYTES: usize = 2 * MAX_LINE_BYTES;

/// A line that passed every check.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// The segment it stands in.
    pub file: &'a str,
    /// Line in that file, from 1.
    pub number: u64,
    /// Where it begins in that file.
    pub offset: u64,
    /// The text without its LF.
    pub bytes: &'a [u8],
    /// The members every line has.
    pub link: Link,
    /// SHA-256 of `bytes`.
    pub hash: [u8; 32],
}

impl Line<'_> {
    /// The error that this line is wrong.
    pub(crate) fn fault(&self, fault: SealFault) -> Error {
        let (file, line, offset) = (self.file.to_owned(), self.number, self.offset);
        Error::Seal { file, line, offset, seq: self.link.seq, fault }
    }
}

/// Reads on after a signal; every other error is the caller's.
pub(crate) fn read_at(file: &dyn DiskFile, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match file.read_at(offset, into) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[derive(Debug)]
struct Current {
    name: String,
    file: Box<dyn DiskFile>,
    /// Where the next read begins.
    read: u64,
    /// The line being looked at.
    number: u64,
    offset: u64,
}

/// A reader over the segments of one trail.
#[derive(Debug)]
pub(crate) struct Scanner<'d> {
    disk: Option<&'d dyn Disk>,
    rest: std::vec::IntoIter<Segment>,
    current: Option<Current>,
    chain: Chain,
    /// The first line may have any number: a single later segment is being read.
    adopt: bool,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl<'d> Scanner<'d> {
    /// Reads a whole trail.
    pub(crate) fn over(disk: &'d dyn Disk, segments: Vec<Segment>) -> Self {
        // What cannot be read now is named when it is read.
        let start = crate::segment::start(disk, &segments).unwrap_or_default();
        Self::behind(disk, segments, start)
    }

    /// Reads segments of a trail that follow what stands before them.
    pub(crate) fn behind(disk: &'d dyn Disk, segments: Vec<Segment>, chain: Chain) -> Self {
        Self {
            disk: Some(disk),
            rest: segments.into_iter(),
            current: None,
            chain,
            adopt: false,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
        }
    }

    /// Reads one file, which may be a later segment of a trail.
    pub(crate) fn lone(name: String, file: Box<dyn DiskFile>) -> Self {
        let current = Current { name, file, read: 0, number: 0, offset: 0 };
        Self {
            disk: None,
            rest: Vec::new().into_iter(),
            current: Some(current),
            chain: Chain::default(),
            adopt: true,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
        }
    }

    /// Where the trail stands after the lines read so far.
    pub(crate) fn chain(&self) -> Chain {
        self.chain
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, Error> {
        let length = loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(None);
            }
            match line_end(&self.buffer[self.start..self.end]) {
                Some(length) if length < MAX_LINE_BYTES => break length,
                Some(_) => return Err(self.damaged(LineFault::TooLong)),
                None if self.end - self.start >= MAX_LINE_BYTES => {
                    return Err(self.damaged(LineFault::TooLong));
                }
                None => {}
            }
            if self.fill()? == 0 {
                if self.end > self.start {
                    return Err(self.damaged(LineFault::Unfinished));
                }
                self.current = None;
            }
        };
        self.check(length)
    }

    fn check(&mut self, length: usize) -> Result<Option<Line<'_>>, Error> {
        let (start, end) = (self.start, self.start + length);
        if self.adopt {
            let link = Link::read(&self.buffer[start..end]).map_err(|fault| self.damaged(fault))?;
            if link.seq > 1 {
                self.chain = Chain { seq: link.seq - 1, hash: link.prev };
            }
            self.adopt = false;
        }
        let followed = self.chain.follow(&self.buffer[start..end]);
        let link = followed.map_err(|fault| self.damaged(fault))?;
        self.start = end + 1;
        let hash = self.chain.hash;
        let Some(current) = &mut self.current else { return Ok(None) };
        let offset = current.offset;
        current.number += 1;
        current.offset += length as u64 + 1;
        let bytes = &self.buffer[start..end];
        Ok(Some(Line { file: &current.name, number: current.number, offset, bytes, link, hash }))
    }

    fn open_next(&mut self) -> Result<bool, Error> {
        let (Some(disk), Some(segment)) = (self.disk, self.rest.next()) else { return Ok(false) };
        let opened = disk.open(&segment.name);
        let file = opened.map_err(|source| Error::file("open", &segment.name, source))?;
        self.current = Some(Current { name: segment.name, file, read: 0, number: 0, offset: 0 });
        (self.start, self.end) = (0, 0);
        Ok(true)
    }

    fn fill(&mut self) -> Result<usize, Error> {
        let Some(current) = &mut self.current else { return Ok(0) };
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = read_at(&*current.file, current.read, &mut self.buffer[self.end..]);
        let count = read.map_err(|source| Error::file("read", &current.name, source))?;
        self.end += count;
        current.read += count as u64;
        Ok(count)
    }

    fn damaged(&self, fault: LineFault) -> Error {
        let (file, line, offset) = match &self.current {
            Some(current) => (current.name.clone(), current.number + 1, current.offset),
            None => (String::new(), 0, 0),
        };
        Error::Damaged { file, line, offset, fault }
    }
}
