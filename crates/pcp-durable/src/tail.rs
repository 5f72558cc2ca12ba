//! Tells the tail a power cut leaves from damage to records that were safe.
//!
//! A cut may leave the last line unfinished, or, because blocks reach the medium in any order, a hole of
//! zeros with later lines behind it. A hole is only believed where nothing behind it vouches (by its
//! `synced` mark) that the lost line had already been synced; everything else is damage and stays.

use std::io;

use crate::disk::DiskFile;
use crate::line::{Link, MAX_LINE_BYTES};
use crate::scan::read_at;

/// Whether the bytes from `offset` on, where line `seq` should begin, may be cut off.
pub(crate) fn is_torn(file: &dyn DiskFile, offset: u64, seq: u64) -> io::Result<bool> {
    let mut pieces = Pieces { file, at: offset, piece: Vec::with_capacity(MAX_LINE_BYTES) };
    let mut hole = false;
    loop {
        match pieces.next()? {
            None => return Ok(true),
            // Only a hole may be longer than a line.
            Some(Piece { zeros: true, .. }) => hole = true,
            Some(Piece { too_long: true, .. }) => return Ok(false),
            Some(Piece { finished: false, .. }) => {}
            Some(Piece { finished: true, .. }) => match Link::read(&pieces.piece) {
                Ok(link) if hole && link.seq > seq && link.synced < seq => {}
                _ => return Ok(false),
            },
        }
    }
}

pub(crate) struct Piece {
    zeros: bool,
    too_long: bool,
    finished: bool,
}

/// What stands between line ends, read in bounded memory.
pub(crate) struct Pieces<'a> {
    pub(crate) file: &'a dyn DiskFile,
    pub(crate) at: u64,
    pub(crate) piece: Vec<u8>,
}

impl Pieces<'_> {
    /// Goes on to the next one, which then is `piece`.
    pub(crate) fn next(&mut self) -> io::Result<Option<Piece>> {
        self.piece.clear();
        let mut found = Piece { zeros: false, too_long: false, finished: false };
        let mut chunk = [0; 4096];
        let begin = self.at;
        while !found.finished {
            let count = read_at(self.file, self.at, &mut chunk)?;
            if count == 0 {
                break;
            }
            let end = chunk[..count].iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(count)];
            found.finished = end.is_some();
            found.zeros |= part.contains(&0);
            if self.piece.len() + part.len() < MAX_LINE_BYTES {
                self.piece.extend_from_slice(part);
            } else {
                found.too_long = true;
            }
            self.at += part.len() as u64 + u64::from(found.finished);
        }
        Ok((self.at > begin).then_some(found))
    }
}
