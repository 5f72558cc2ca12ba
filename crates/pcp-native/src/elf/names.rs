//! The strings that a dynamic table points at, with as few and as small reads as they allow.
//!
//! The string table itself has no limit, because it is never read whole: a browser's has megabytes. What is read is.

use super::dynamic::Dynamic;
use super::layout::Segment;
use super::{Elf, ElfError, MAX_NAME_BYTES, MAX_SEARCH_PATH_BYTES, PT_LOAD, ReadAt, Source, lossy};

/// Names that begin within so many bytes of each other come with one read: four pages.
const MAX_SPAN_BYTES: u64 = 16 * 1024;

/// The string table's place in the file.
struct Table {
    offset: u64,
    bytes: u64,
}

/// Fills in the names and the search path.
pub(super) fn read<R: ReadAt + ?Sized>(
    source: &Source<'_, R>,
    dynamic: &Dynamic,
    segments: &[Segment],
    elf: &mut Elf,
    buffer: &mut Vec<u8>,
) -> Result<(), ElfError> {
    if dynamic.needed.is_empty() && dynamic.search_path().is_none() {
        return Ok(());
    }
    let table = table(source.file_bytes, dynamic, segments)?;
    needed(source, &table, dynamic, elf, buffer)?;
    let Some(at) = dynamic.search_path() else { return Ok(()) };
    let limit = MAX_SEARCH_PATH_BYTES;
    if at >= table.bytes {
        elf.skipped.push(format!("search path at {at} is beyond the string table of {} bytes", table.bytes));
        return Ok(());
    }
    let bytes = (table.bytes - at).min(limit as u64 + 1);
    let text = source.take("search path", table.offset + at, bytes, buffer)?;
    match text.iter().position(|byte| *byte == 0).and_then(|end| text.get(..end)) {
        Some(path) => {
            let path = String::from_utf8_lossy(path);
            elf.runpath = path.split(':').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        }
        None => elf.skipped.push(format!("search path at {at} does not end within {limit} bytes")),
    }
    Ok(())
}

/// Finds the string table: its address lies in the part of a loaded segment that comes from the file.
fn table(file_bytes: u64, dynamic: &Dynamic, segments: &[Segment]) -> Result<Table, ElfError> {
    let address = dynamic.strings_at.unwrap_or_default();
    let mut loaded = segments.iter().filter(|segment| segment.kind == PT_LOAD);
    let Some((offset, rest)) = loaded.find_map(|segment| segment.place(address)) else {
        let want = "an address within a loaded part of the file is expected";
        return Err(ElfError::Field { what: "address of the string table", value: address, want });
    };
    let (what, bytes) = ("string table", dynamic.strings_bytes);
    if bytes > rest {
        return Err(ElfError::TooLarge { what: "string table", unit: "bytes", value: bytes, limit: rest });
    }
    match offset.checked_add(bytes) {
        Some(end) if end <= file_bytes => Ok(Table { offset, bytes }),
        _ => Err(ElfError::Truncated { what, offset, bytes, file_bytes }),
    }
}

fn needed<R: ReadAt + ?Sized>(
    source: &Source<'_, R>,
    table: &Table,
    dynamic: &Dynamic,
    elf: &mut Elf,
    buffer: &mut Vec<u8>,
) -> Result<(), ElfError> {
    let mut order: Vec<(u64, usize)> = dynamic.needed.iter().copied().zip(0..).collect();
    order.sort_unstable();
    let mut names: Vec<Result<String, &'static str>> = vec![Err("is beyond the string table"); order.len()];
    let mut rest = order.as_slice();
    while let Some(&(first, _)) = rest.first().filter(|(at, _)| *at < table.bytes) {
        let together = rest.partition_point(|(at, _)| *at < table.bytes && at - first < MAX_SPAN_BYTES);
        let (group, after) = rest.split_at_checked(together).unwrap_or((rest, &[]));
        let last = group.last().map_or(first, |(at, _)| *at);
        let end = last.saturating_add(MAX_NAME_BYTES as u64 + 1).min(table.bytes);
        let text = source.take("names of libraries", table.offset + first, end - first, buffer)?;
        for (at, index) in group {
            let from = usize::try_from(at - first).ok().and_then(|from| text.get(from..)).unwrap_or_default();
            if let Some(name) = names.get_mut(*index) {
                *name = one(from);
            }
        }
        rest = after;
    }
    elf.needed.reserve_exact(names.len());
    for (name, at) in names.into_iter().zip(&dynamic.needed) {
        match name {
            Ok(name) => elf.needed.push(name),
            Err(why) => elf.skipped.push(format!("needed library at {at} of {} bytes {why}", table.bytes)),
        }
    }
    Ok(())
}

/// The name at the beginning of `text`.
fn one(text: &[u8]) -> Result<String, &'static str> {
    let text = text.get(..=MAX_NAME_BYTES).unwrap_or(text);
    let end = text.iter().position(|byte| *byte == 0);
    match end.and_then(|end| text.get(..end)) {
        Some([]) => Err("is empty"),
        Some(name) => Ok(lossy(name)),
        None if text.len() > MAX_NAME_BYTES => Err("is longer than 255 bytes"),
        None => Err("does not end within the string table"),
    }
}
