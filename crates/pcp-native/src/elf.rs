//! What an ELF file asks the loader for, read with three small reads (R-022; System V gABI, chapter 5).
//!
//! Follows the program headers as the loader does and never the section headers, which may be absent or lie. Every
//! offset and size is checked against the file before memory is taken. It opens nothing (`program` does) and knows
//! no toolkit (`toolkit` does). Start with [`Elf::read`].

mod dynamic;
mod layout;
mod names;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use serde::Serialize;
use thiserror::Error;

use dynamic::Dynamic;
use layout::{Layout, Segment};

/// Bytes that one read at the beginning of a file brings: a page, and in nearly every program the whole table of
/// program headers with it.
pub const HEAD_BYTES: usize = 4096;
/// Largest table of program headers in bytes: what Linux accepts when it starts a program.
pub const MAX_PROGRAM_HEADER_BYTES: u64 = 64 * 1024;
/// Largest dynamic table in bytes: 4096 entries of 64 bits; the largest programs have a hundred.
pub const MAX_DYNAMIC_BYTES: u64 = 64 * 1024;
/// Most libraries that a file may need: ten times what the largest office program needs.
pub const MAX_NEEDED: usize = 512;
/// Longest name of a needed library in bytes: the longest file name of Linux.
pub const MAX_NAME_BYTES: usize = 255;
/// Longest search path and longest name of a loader in bytes: the longest path of Linux.
pub const MAX_SEARCH_PATH_BYTES: usize = 4096;

/// Segments that matter of nearly every program: four that are loaded, the dynamic table, the loader's name.
const USUAL_SEGMENTS: usize = 6;
/// Needed libraries of most programs.
const USUAL_NEEDED: usize = 16;

const MAGIC: [u8; 4] = *b"\x7fELF";
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;

/// Why a file that begins like ELF is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The file promises bytes that it does not have.
    #[error("{what} at offset {offset} with {bytes} bytes ends beyond the file of {file_bytes} bytes")]
    Truncated {
        /// What was to be read.
        what: &'static str,
        /// Where it begins.
        offset: u64,
        /// How long it says it is.
        bytes: u64,
        /// How long the file is.
        file_bytes: u64,
    },
    /// A table is larger than any real program's.
    #[error("{what} of {value} {unit} exceeds the limit of {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// What is counted.
        unit: &'static str,
        /// How large it says it is.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// A field has a value that the format does not know.
    #[error("{what} is {value}; {want}")]
    Field {
        /// Which field.
        what: &'static str,
        /// Its value.
        value: u64,
        /// What is expected.
        want: &'static str,
    },
    /// The file could not be read.
    #[error("cannot read {what} at offset {offset}: {error}")]
    Read {
        /// What was to be read.
        what: &'static str,
        /// Where it begins.
        offset: u64,
        /// The system's word.
        error: io::ErrorKind,
    },
}

/// Bytes that can be read at an offset: a file, or bytes in memory.
pub trait ReadAt {
    /// Reads from `offset` into `buffer`; fewer bytes than asked for only at the end.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let bytes = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..bytes), rest.get(..bytes)) {
            to.copy_from_slice(from);
        }
        Ok(bytes)
    }
}

/// The order of the bytes in a file's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Endian {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

/// What an ELF file says about itself. The names are those of the test data's `expected.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Elf {
    /// 32 or 64.
    pub bits: u8,
    /// The order of its bytes.
    pub endian: Endian,
    /// The machine it is for.
    pub machine: Cow<'static, str>,
    /// Whether it has a dynamic table.
    pub dynamic: bool,
    /// The libraries it needs, in order.
    pub needed: Vec<String>,
    /// Where the loader looks for them first, as written in the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runpath: Vec<String>,
    /// The loader it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loader: Option<String>,
    /// Entries that were left out, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

impl Elf {
    /// Whether a file that begins with `head` calls itself ELF.
    #[must_use]
    pub fn is_elf(head: &[u8]) -> bool {
        head.starts_with(&MAGIC)
    }

    /// Reads what a file of `file_bytes` bytes says. `head` are its first bytes, at most [`HEAD_BYTES`] of them.
    ///
    /// # Errors
    /// [`ElfError`] names the field, the value and the limit.
    pub fn read<R: ReadAt + ?Sized>(file: &R, file_bytes: u64, head: &[u8]) -> Result<Self, ElfError> {
        Self::read_in(file, file_bytes, head, &mut Vec::new())
    }

    /// [`Self::read`] with room that is used for every file.
    pub(crate) fn read_in<R: ReadAt + ?Sized>(
        file: &R,
        file_bytes: u64,
        head: &[u8],
        buffer: &mut Vec<u8>,
    ) -> Result<Self, ElfError> {
        let source = Source { file, file_bytes, head };
        let layout = Layout::read(head, file_bytes)?;
        let mut elf = Self {
            bits: layout.bits,
            endian: layout.endian,
            machine: layout.machine(),
            dynamic: false,
            needed: Vec::new(),
            runpath: Vec::new(),
            loader: None,
            skipped: Vec::new(),
        };
        let segments = segments(&source, &layout, buffer)?;
        if let Some(interp) = segments.iter().find(|segment| segment.kind == PT_INTERP) {
            elf.loader = loader(&source, interp, buffer)?;
        }
        // There may be one only; of several the loader takes the last.
        let Some(table) = segments.iter().rfind(|segment| segment.kind == PT_DYNAMIC) else { return Ok(elf) };
        elf.dynamic = true;
        if table.file_bytes == 0 {
            return Ok(elf);
        }
        let limit = MAX_DYNAMIC_BYTES;
        if table.file_bytes > limit {
            return Err(ElfError::TooLarge {
                what: "dynamic table",
                unit: "bytes",
                value: table.file_bytes,
                limit,
            });
        }
        let bytes = source.take("dynamic table", table.offset, table.file_bytes, buffer)?;
        let dynamic = Dynamic::read(bytes, &layout)?;
        names::read(&source, &dynamic, &segments, &mut elf, buffer)?;
        Ok(elf)
    }
}

/// The file with what was already read of it.
struct Source<'a, R: ?Sized> {
    file: &'a R,
    file_bytes: u64,
    head: &'a [u8],
}

impl<R: ReadAt + ?Sized> Source<'_, R> {
    /// `bytes` bytes at `offset`, from the head where they stand there. The caller has checked that `bytes` is within
    /// its limit.
    fn take<'b>(
        &'b self,
        what: &'static str,
        offset: u64,
        bytes: u64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], ElfError> {
        let truncated = ElfError::Truncated { what, offset, bytes, file_bytes: self.file_bytes };
        let end = offset.checked_add(bytes).filter(|end| *end <= self.file_bytes);
        let (Some(end), Ok(length)) = (end, usize::try_from(bytes)) else { return Err(truncated) };
        let in_head = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        if let Some(found) = in_head.and_then(|(start, end)| self.head.get(start..end)) {
            return Ok(found);
        }
        // What was read before is written over: only what the room grows by is cleared.
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..length).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset.saturating_add(filled as u64)) {
                Ok(0) => return Err(truncated),
                Ok(more) => filled += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ElfError::Read { what, offset, error: error.kind() }),
            }
        }
        Ok(buffer.get(..length).unwrap_or_default())
    }
}

/// The segments that matter here: what is loaded, the dynamic table, the loader's name.
fn segments<R: ReadAt + ?Sized>(
    source: &Source<'_, R>,
    layout: &Layout,
    buffer: &mut Vec<u8>,
) -> Result<Vec<Segment>, ElfError> {
    let bytes = u64::from(layout.header_count) * u64::from(layout.header_bytes);
    if bytes > MAX_PROGRAM_HEADER_BYTES {
        let limit = MAX_PROGRAM_HEADER_BYTES;
        return Err(ElfError::TooLarge {
            what: "table of program headers",
            unit: "bytes",
            value: bytes,
            limit,
        });
    }
    if bytes == 0 {
        return Ok(Vec::new());
    }
    let table = source.take("table of program headers", layout.headers_at, bytes, buffer)?;
    let headers = table.chunks_exact(usize::from(layout.header_bytes));
    let mut segments = Vec::with_capacity(USUAL_SEGMENTS);
    segments.extend(headers.filter_map(|header| layout.segment(header)).filter(Segment::matters));
    Ok(segments)
}

/// The name of the loader.
fn loader<R: ReadAt + ?Sized>(
    source: &Source<'_, R>,
    interp: &Segment,
    buffer: &mut Vec<u8>,
) -> Result<Option<String>, ElfError> {
    let limit = MAX_SEARCH_PATH_BYTES as u64;
    if interp.file_bytes > limit {
        return Err(ElfError::TooLarge {
            what: "loader's name",
            unit: "bytes",
            value: interp.file_bytes,
            limit,
        });
    }
    if interp.file_bytes == 0 {
        return Ok(None);
    }
    let bytes = source.take("loader's name", interp.offset, interp.file_bytes, buffer)?;
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok((!name.is_empty()).then(|| lossy(name)))
}

/// Bytes as a text. What is one already, as nearly everything is, is copied as a whole.
pub(crate) fn lossy(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}
