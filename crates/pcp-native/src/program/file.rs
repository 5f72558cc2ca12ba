//! The first bytes of a file, by which its kind is told.

use std::cell::RefCell;
use std::path::Path;

use super::root::{OpenError, Opened, Root};
use crate::desktop::StatKey;
use crate::elf::{Elf, ElfError, HEAD_BYTES, ReadAt, lossy};

/// The first bytes of an opened file. The room for them, and for what is read behind them, is taken once.
#[derive(Debug, Default)]
pub(crate) struct Head {
    bytes: Vec<u8>,
    /// Room for the tables of an ELF file.
    tables: Vec<u8>,
}

impl Head {
    /// Reads them from another file.
    pub(super) fn read(&mut self, opened: &Opened) -> std::io::Result<()> {
        self.bytes.resize(HEAD_BYTES, 0);
        let filled = fill(opened, &mut self.bytes)?;
        self.bytes.truncate(filled);
        Ok(())
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What the same file says about itself; `None` where it is no ELF file.
    pub(super) fn elf(&mut self, opened: &Opened) -> Option<Result<Elf, ElfError>> {
        Elf::is_elf(&self.bytes)
            .then(|| Elf::read_in(&opened.file, opened.bytes, &self.bytes, &mut self.tables))
    }

    /// The first `limit_bytes` of the same file as a text, read again only where these are not all of it.
    pub(super) fn text(&self, opened: &Opened, limit_bytes: usize) -> std::io::Result<String> {
        match self.bytes.len() as u64 == opened.bytes && self.bytes.len() <= limit_bytes {
            true => Ok(lossy(&self.bytes)),
            false => text(opened, limit_bytes),
        }
    }
}

/// The first `limit_bytes` of a text.
pub(super) fn text(opened: &Opened, limit_bytes: usize) -> std::io::Result<String> {
    let length = usize::try_from(opened.bytes).unwrap_or(limit_bytes).min(limit_bytes);
    let mut bytes = vec![0; length];
    let filled = fill(opened, &mut bytes)?;
    bytes.truncate(filled);
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

fn fill(opened: &Opened, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match opened.file.read_at(rest, filled as u64) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // A short read at the known end needs no second one to be believed.
        if filled as u64 >= opened.bytes {
            break;
        }
    }
    Ok(filled)
}

/// What a library says about itself; an error where it is not there or no ELF file.
pub(crate) fn read_elf(
    root: &Root,
    path: &Path,
    head: &RefCell<Head>,
) -> Result<(StatKey, Elf), Option<OpenError>> {
    let opened = root.open(path).map_err(Some)?;
    let mut own = head.take();
    own.read(&opened).map_err(|_| None)?;
    let elf = own.elf(&opened);
    head.replace(own);
    match elf {
        Some(Ok(elf)) => Ok((opened.stat, elf)),
        _ => Err(None),
    }
}
