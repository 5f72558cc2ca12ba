//! Where the fields of an ELF file stand, for both classes and both orders of bytes.

use std::borrow::Cow;

use super::{ElfError, Endian, PT_DYNAMIC, PT_INTERP, PT_LOAD};

/// The file header's fields, and how to read the others.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    pub(super) bits: u8,
    pub(super) endian: Endian,
    machine: u16,
    pub(super) headers_at: u64,
    pub(super) header_bytes: u16,
    pub(super) header_count: u16,
}

/// One program header.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segment {
    pub(super) kind: u32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) file_bytes: u64,
}

impl Segment {
    /// Whether anything of it is read.
    pub(super) fn matters(&self) -> bool {
        matches!(self.kind, PT_LOAD | PT_DYNAMIC | PT_INTERP)
    }

    /// Where in the file the byte of `address` stands, and how many bytes the segment has from there on.
    pub(super) fn place(&self, address: u64) -> Option<(u64, u64)> {
        let into = address.checked_sub(self.address)?;
        let rest = self.file_bytes.checked_sub(into).filter(|rest| *rest > 0)?;
        Some((self.offset.checked_add(into)?, rest))
    }
}

impl Layout {
    /// Reads the file header from the first bytes of a file.
    pub(super) fn read(head: &[u8], file_bytes: u64) -> Result<Self, ElfError> {
        let truncated = |bytes| ElfError::Truncated { what: "file header", offset: 0, bytes, file_bytes };
        let byte = |at: usize| head.get(at).copied().ok_or_else(|| truncated(16));
        let field = |what, value: u8, want| ElfError::Field { what, value: value.into(), want };
        let bits = match byte(4)? {
            1 => 32,
            2 => 64,
            other => return Err(field("class", other, "1 (32 bits) or 2 (64 bits) is expected")),
        };
        let endian = match byte(5)? {
            1 => Endian::Little,
            2 => Endian::Big,
            other => return Err(field("byte order", other, "1 (little) or 2 (big) is expected")),
        };
        let mut layout = Self { bits, endian, machine: 0, headers_at: 0, header_bytes: 0, header_count: 0 };
        let size = if bits == 64 { 64 } else { 52 };
        let head = head.get(..size).ok_or_else(|| truncated(size as u64))?;
        let half = |at| layout.half(head, at).unwrap_or_default();
        let (offset_at, size_at, want) = if bits == 64 { (32, 54, 56) } else { (28, 42, 32) };
        let (machine, header_bytes, header_count) = (half(18), half(size_at), half(size_at + 2));
        layout.headers_at = layout.word(head, offset_at).unwrap_or_default();
        (layout.machine, layout.header_bytes, layout.header_count) = (machine, header_bytes, header_count);
        if header_count > 0 && header_bytes != want {
            let want = if bits == 64 { "56 bytes are expected" } else { "32 bytes are expected" };
            return Err(ElfError::Field {
                what: "size of a program header",
                value: header_bytes.into(),
                want,
            });
        }
        Ok(layout)
    }

    /// One program header.
    pub(super) fn segment(&self, header: &[u8]) -> Option<Segment> {
        let kind = self.quad(header, 0)?;
        let (offset_at, address_at, size_at) = if self.bits == 64 { (8, 16, 32) } else { (4, 8, 16) };
        Some(Segment {
            kind,
            offset: self.word(header, offset_at)?,
            address: self.word(header, address_at)?,
            file_bytes: self.word(header, size_at)?,
        })
    }

    /// Bytes of an address, an offset or a size.
    pub(super) const fn word_bytes(&self) -> usize {
        if self.bits == 64 { 8 } else { 4 }
    }

    /// An address, an offset or a size.
    pub(super) fn word(&self, bytes: &[u8], at: usize) -> Option<u64> {
        if self.bits == 32 {
            return self.quad(bytes, at).map(u64::from);
        }
        let value = *bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.endian == Endian::Little {
            u64::from_le_bytes(value)
        } else {
            u64::from_be_bytes(value)
        })
    }

    fn quad(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let value = *bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.endian == Endian::Little {
            u32::from_le_bytes(value)
        } else {
            u32::from_be_bytes(value)
        })
    }

    fn half(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let value = *bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.endian == Endian::Little {
            u16::from_le_bytes(value)
        } else {
            u16::from_be_bytes(value)
        })
    }

    /// The machine in the words of `uname -m`; a number where it has no usual name.
    pub(super) fn machine(&self) -> Cow<'static, str> {
        let name = match (self.machine, self.bits, self.endian) {
            (3, _, _) => "i386",
            (8, 64, Endian::Little) => "mips64el",
            (8, 64, Endian::Big) => "mips64",
            (8, _, Endian::Little) => "mipsel",
            (8, _, Endian::Big) => "mips",
            (20, _, _) => "ppc",
            (21, _, Endian::Little) => "ppc64le",
            (21, _, Endian::Big) => "ppc64",
            (22, 64, _) => "s390x",
            (22, _, _) => "s390",
            (40, _, _) => "arm",
            (62, 32, _) => "x32",
            (62, _, _) => "x86_64",
            (183, _, _) => "aarch64",
            (243, 32, _) => "riscv32",
            (243, _, _) => "riscv64",
            (258, _, _) => "loongarch64",
            (other, _, _) => return format!("machine {other}").into(),
        };
        name.into()
    }
}
