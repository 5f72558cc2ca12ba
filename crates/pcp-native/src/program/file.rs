//! The first bytes of a file, by which its kind is told.

use std::path::Path;

use super::root::{OpenError, Opened, Root};
use crate::elf::{Elf, HEAD_BYTES, ReadAt};

/// The first bytes of an opened file.
pub(super) struct Head {
    bytes: [u8; HEAD_BYTES],
    filled: usize,
}

impl Head {
    pub(super) fn read(opened: &Opened) -> std::io::Result<Self> {
        let mut head = Self { bytes: [0; HEAD_BYTES], filled: 0 };
        head.filled = fill(opened, &mut head.bytes)?;
        Ok(head)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.filled).unwrap_or_default()
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

/// What a library says about itself; `None` where it is not there or no ELF file.
pub(crate) fn read_elf(root: &Root, path: &Path) -> Result<Elf, Option<OpenError>> {
    let opened = root.open(path).map_err(Some)?;
    let head = Head::read(&opened).map_err(|_| None)?;
    if !Elf::is_elf(head.bytes()) {
        return Err(None);
    }
    Elf::read(&opened.file, opened.bytes, head.bytes()).map_err(|_| None)
}
