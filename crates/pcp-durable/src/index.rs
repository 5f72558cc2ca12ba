//! The index beside a closed segment: what opening needs to know of it, and where each operation's last record
//! stands.
//!
//! It is a cache of what the segment says: bound to it by length and by the hash of its last line, with a
//! checksum over every part, made again from the segment whenever it does not fit, and never believed against
//! a line. `FORMAT.md` has the bytes.

use std::io;

use crate::disk::{Disk, DiskFile};
use crate::line::{Chain, Hash, Link, MAX_LINE_BYTES};
use crate::scan::read_at;
use crate::segment::Segment;

mod notes;
mod rows;

pub(crate) use notes::Notes;
pub(crate) use rows::Row;
use rows::{PAGE_BYTES, PAGE_ROWS, ROW_BYTES};

/// The first bytes of the file: what it is, and the version of its layout.
const MAGIC: &[u8; 8] = b"PCPINDX1";

/// Bytes before the loose ends.
const HEADER_BYTES: usize = 152;

/// Bytes of a checksum.
const CRC_BYTES: usize = 4;

/// Sixteen bytes of an operation id, which sort as the ids do.
pub(crate) type Id = [u8; 16];

/// What is known of a closed segment without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Length of the segment.
    pub(crate) bytes: u64,
    /// Where the chain stood before its first line.
    pub(crate) before: Chain,
    /// Where it stands after its last.
    pub(crate) after: Chain,
    /// Where the last line begins.
    pub(crate) last_at: u64,
    /// The latest wall time in it.
    pub(crate) latest_ms: u64,
    /// The lowest and the highest operation id in it; the reverse when there is none.
    pub(crate) ids: (Id, Id),
    /// Operations in it.
    pub(crate) rows: u32,
    /// Operations that begin or end in another segment.
    pub(crate) loose: u32,
}

impl Summary {
    /// Whether the operation may be in the segment.
    pub(crate) fn may_hold(&self, id: &Id) -> bool {
        (self.ids.0..=self.ids.1).contains(id)
    }

    fn head_bytes(&self) -> usize {
        HEADER_BYTES + self.loose as usize * ROW_BYTES + CRC_BYTES
    }

    /// Length of the index file.
    fn file_bytes(&self) -> u64 {
        let rows = self.rows as usize;
        (self.head_bytes() + rows * ROW_BYTES + rows.div_ceil(PAGE_ROWS) * CRC_BYTES) as u64
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(MAGIC);
        for number in [self.bytes, self.before.seq, self.after.seq, self.last_at, self.latest_ms] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.before.hash);
        out.extend_from_slice(&self.after.hash);
        out.extend_from_slice(&self.ids.0);
        out.extend_from_slice(&self.ids.1);
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.loose.to_le_bytes());
    }

    fn read(head: &[u8; HEADER_BYTES]) -> Option<Self> {
        let mut rest = head.strip_prefix(MAGIC)?;
        let mut long = || rest.split_off(..8).and_then(|part| part.try_into().ok()).map(u64::from_le_bytes);
        let (bytes, first, last, last_at, latest_ms) = (long()?, long()?, long()?, long()?, long()?);
        let mut hash = || rest.split_off(..32).and_then(|part| Hash::try_from(part).ok());
        let (before, after) = (hash()?, hash()?);
        let mut id = || rest.split_off(..16).and_then(|part| Id::try_from(part).ok());
        let ids = (id()?, id()?);
        let mut count = || rest.split_off(..4).and_then(|part| part.try_into().ok()).map(u32::from_le_bytes);
        let (rows, loose) = (count()?, count()?);
        let before = Chain { seq: first, hash: before };
        let after = Chain { seq: last, hash: after };
        Some(Self { bytes, before, after, last_at, latest_ms, ids, rows, loose })
    }
}

/// The index file as bytes. `rows` are sorted, each id once.
pub(crate) fn encode(summary: &Summary, rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::with_capacity(usize::try_from(summary.file_bytes()).unwrap_or(0));
    summary.write(&mut out);
    rows.iter().filter(|row| row.is_loose()).for_each(|row| row.write(&mut out));
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    for page in rows.chunks(PAGE_ROWS) {
        let start = out.len();
        page.iter().for_each(|row| row.write(&mut out));
        let crc = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
    out
}

/// Writes the index of a segment in place of any other. What is left after a failure is no index.
pub(crate) fn store(disk: &dyn Disk, segment: &Segment, bytes: &[u8]) -> io::Result<()> {
    let name = segment.index_name();
    let written = create(disk, &name).and_then(|mut file| write_all(&mut *file, bytes));
    if written.is_err() {
        drop(disk.remove(&name));
    }
    written
}

/// Makes an empty file in place of any other.
pub(crate) fn create(disk: &dyn Disk, name: &str) -> io::Result<Box<dyn DiskFile>> {
    match disk.create(name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            disk.remove(name)?;
            disk.create(name)
        }
        other => other,
    }
}

/// Appends all of it.
pub(crate) fn write_all(file: &mut dyn DiskFile, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.append(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The index of a segment that follows `before`, if there is one and it fits: its summary and its loose ends.
pub(crate) fn load(disk: &dyn Disk, segment: &Segment, before: Chain) -> Option<(Summary, Vec<Row>)> {
    let file = disk.open(&segment.index_name()).ok()?;
    let size = file.size().ok()?;
    let mut head = [0; HEADER_BYTES];
    read_exact(&*file, 0, &mut head)?;
    let summary = Summary::read(&head)?;
    if summary.before != before || summary.loose > summary.rows || summary.file_bytes() != size {
        return None;
    }
    let mut rest = vec![0; summary.head_bytes() - HEADER_BYTES];
    read_exact(&*file, HEADER_BYTES as u64, &mut rest)?;
    let (loose, crc) = rest.split_last_chunk::<CRC_BYTES>()?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    hasher.update(loose);
    if hasher.finalize() != u32::from_le_bytes(*crc) || !fits(disk, segment, &summary)? {
        return None;
    }
    Some((summary, loose.as_chunks().0.iter().map(Row::read).collect()))
}

/// Whether the segment has the length and the last line that the summary says.
fn fits(disk: &dyn Disk, segment: &Segment, summary: &Summary) -> Option<bool> {
    let file = disk.open(&segment.name).ok()?;
    let length = usize::try_from(summary.bytes.checked_sub(summary.last_at)?).ok()?;
    if file.size().ok()? != summary.bytes || length > MAX_LINE_BYTES {
        return Some(false);
    }
    let mut line = vec![0; length];
    read_exact(&*file, summary.last_at, &mut line)?;
    let line = line.strip_suffix(b"\n")?;
    let link = Link::read(line).ok()?;
    Some(link.seq == summary.after.seq && crate::line::hash(line) == summary.after.hash)
}

/// Where the operation's last record in the segment stands; `Err` when the index does not say.
pub(crate) fn find(
    disk: &dyn Disk,
    segment: &Segment,
    summary: &Summary,
    id: &Id,
) -> Result<Option<Row>, Unusable> {
    let file = disk.open(&segment.index_name()).map_err(|_| Unusable)?;
    let rows = summary.rows as usize;
    let (mut low, mut high) = (0, rows.div_ceil(PAGE_ROWS));
    let mut buffer = [0; PAGE_BYTES];
    while low < high {
        let page = low.midpoint(high);
        let count = PAGE_ROWS.min(rows - page * PAGE_ROWS);
        let bytes = &mut buffer[..count * ROW_BYTES + CRC_BYTES];
        read_exact(&*file, (summary.head_bytes() + page * PAGE_BYTES) as u64, bytes).ok_or(Unusable)?;
        let (body, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or(Unusable)?;
        if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
            return Err(Unusable);
        }
        let page_rows = body.as_chunks::<ROW_BYTES>().0;
        match page_rows.binary_search_by(|row| row[..16].cmp(id)) {
            Ok(at) => return Ok(Some(Row::read(&page_rows[at]))),
            Err(0) => high = page,
            Err(at) if at == count => low = page + 1,
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// The index cannot be read or is damaged: the segment itself must be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unusable;

/// Fills `into`; `None` when the file is shorter or cannot be read.
pub(crate) fn read_exact(file: &dyn DiskFile, mut offset: u64, mut into: &mut [u8]) -> Option<()> {
    while !into.is_empty() {
        match read_at(file, offset, into).ok()? {
            0 => return None,
            count => {
                into = &mut into[count..];
                offset += count as u64;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests;
