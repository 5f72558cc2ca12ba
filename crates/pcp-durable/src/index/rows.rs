//! One operation in the index of a segment: 24 bytes.

use super::Id;

/// Bytes of a row.
pub(crate) const ROW_BYTES: usize = 24;

/// Rows under one checksum: as many as fit a page of the memory they are read into.
pub(crate) const PAGE_ROWS: usize = 170;

/// Bytes of a full page with its checksum.
pub(crate) const PAGE_BYTES: usize = PAGE_ROWS * ROW_BYTES + 4;

/// The segment holds the operation's intent record.
const BEGINS: u32 = 1 << 31;

/// The operation's last record in the segment is its terminal.
const ENDS: u32 = 1 << 30;

/// Where an operation's last record in a segment stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    /// The operation.
    pub(crate) id: Id,
    /// Where the record begins in the segment.
    pub(crate) offset: u32,
    /// Length of its line without the LF, and the two marks.
    length: u32,
}

impl Row {
    pub(crate) fn new(id: Id, offset: u32, length: u16, is_end: bool) -> Self {
        Self { id, offset, length: u32::from(length) | if is_end { ENDS } else { BEGINS } }
    }

    /// Length of the record's line without its LF.
    pub(crate) const fn length(&self) -> usize {
        (self.length & 0xffff) as usize
    }

    /// The segment holds the operation's intent record.
    pub(crate) const fn begins(&self) -> bool {
        self.length & BEGINS != 0
    }

    /// The record is the operation's terminal.
    pub(crate) const fn ends(&self) -> bool {
        self.length & ENDS != 0
    }

    /// The operation begins or ends in another segment.
    pub(crate) const fn is_loose(&self) -> bool {
        self.begins() != self.ends()
    }

    /// A later record of the same operation and segment.
    pub(super) const fn followed_by(self, later: Self) -> Self {
        Self { length: later.length | (self.length & BEGINS), ..later }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id);
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
    }

    pub(super) fn read(bytes: &[u8; ROW_BYTES]) -> Self {
        let mut row = Self { id: [0; 16], offset: 0, length: 0 };
        let mut numbers = [[0; 4]; 2];
        row.id.copy_from_slice(&bytes[..16]);
        numbers[0].copy_from_slice(&bytes[16..20]);
        numbers[1].copy_from_slice(&bytes[20..]);
        (row.offset, row.length) = (u32::from_le_bytes(numbers[0]), u32::from_le_bytes(numbers[1]));
        row
    }
}
