//! What a reader demands of a line.
//!
//! `{"seq":N,"prev":"<64 hex>","synced":M,` the caller's members `,"crc":"<8 hex>"}` LF. `FORMAT.md` has the
//! bytes.

use std::fmt;
use std::io::BufRead as _;

use sha2::{Digest, Sha256};

use crate::json::{self, JsonFault};

mod write;

pub use write::LineWriter;
pub(crate) use write::WriteFault;

/// Longest line, its LF included. A request's parameters are at most 16 KiB; escaping may triple them.
pub const MAX_LINE_BYTES: usize = 64 * 1024;

/// Bytes of `,"crc":"xxxxxxxx"}`.
pub(crate) const TAIL_BYTES: usize = 18;

/// A SHA-256 value.
pub type Hash = [u8; 32];

/// Where a trail stands: its last line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Sequence number of the last line; 0 before the first.
    pub seq: u64,
    /// SHA-256 of the last line without its LF; zeros before the first.
    pub hash: Hash,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineFault {
    /// The file ends before the line does.
    Unfinished,
    /// Longer than [`MAX_LINE_BYTES`].
    TooLong,
    /// Holds zeros: written space that was never filled.
    Hole,
    /// Does not begin or end as R-158 says.
    Shape,
    /// The checksum is wrong.
    Crc,
    /// Is not UTF-8 text.
    Text,
    /// Is not JSON.
    Json(JsonFault),
    /// The number is not the next one.
    Sequence {
        /// Number it should have.
        expected: u64,
        /// Number it has.
        found: u64,
    },
    /// `prev` is not the hash of the line before.
    Chain,
}

impl fmt::Display for LineFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfinished => write!(out, "the file ends inside this line"),
            Self::TooLong => write!(out, "longer than the {MAX_LINE_BYTES}-byte limit"),
            Self::Hole => write!(out, "zero bytes inside the line"),
            Self::Shape => write!(out, "does not begin with seq, prev, synced and end with crc"),
            Self::Crc => write!(out, "checksum does not match"),
            Self::Text => write!(out, "not UTF-8"),
            Self::Json(fault) => write!(out, "not JSON: {fault}"),
            Self::Sequence { expected, found } => {
                write!(out, "sequence number {found} where {expected} was expected")
            }
            Self::Chain => write!(out, "does not follow from the line before it"),
        }
    }
}

/// The members every line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Number of the line in its trail, from 1.
    pub seq: u64,
    /// Hash of the line before.
    pub prev: Hash,
    /// Highest number known to be on the medium when this line was made. Recovery uses it to tell the
    /// hole a power cut leaves from damage to records that were already safe.
    pub synced: u64,
}

impl Link {
    /// Reads the link of a line without its LF and checks shape and checksum, not the chain.
    ///
    /// # Errors
    /// What is wrong with the line.
    pub fn read(line: &[u8]) -> Result<Self, LineFault> {
        if line.contains(&0) {
            return Err(LineFault::Hole);
        }
        let rest = line.strip_prefix(b"{\"seq\":").ok_or(LineFault::Shape)?;
        let (seq, rest) = number(rest)?;
        let rest = rest.strip_prefix(b",\"prev\":\"").ok_or(LineFault::Shape)?;
        let (prev, rest) = rest.split_at_checked(64).ok_or(LineFault::Shape)?;
        let prev = unhex(prev).ok_or(LineFault::Shape)?;
        let rest = rest.strip_prefix(b"\",\"synced\":").ok_or(LineFault::Shape)?;
        let (synced, rest) = number(rest)?;
        if rest.first() != Some(&b',') || rest.len() < TAIL_BYTES {
            return Err(LineFault::Shape);
        }
        let (body, tail) = line.split_at(line.len() - TAIL_BYTES);
        let crc = tail.strip_prefix(b",\"crc\":\"").and_then(|tail| tail.strip_suffix(b"\"}"));
        let crc: [u8; 4] = crc.and_then(unhex).ok_or(LineFault::Shape)?;
        if crc32fast::hash(body) != u32::from_be_bytes(crc) {
            return Err(LineFault::Crc);
        }
        // A mark at or beyond the line itself could vouch for damage; no writer makes one.
        if seq == 0 || synced >= seq {
            return Err(LineFault::Shape);
        }
        Ok(Self { seq, prev, synced })
    }
}

impl Chain {
    /// Checks that a line (without its LF) is whole and follows this one, and steps on to it.
    ///
    /// # Errors
    /// What is wrong with the line; the chain stays where it was.
    pub fn follow(&mut self, line: &[u8]) -> Result<Link, LineFault> {
        let link = Link::read(line)?;
        let expected = self.seq + 1;
        if link.seq != expected {
            return Err(LineFault::Sequence { expected, found: link.seq });
        }
        if link.prev != self.hash {
            return Err(LineFault::Chain);
        }
        let text = std::str::from_utf8(line).map_err(|_| LineFault::Text)?;
        json::check(text).map_err(LineFault::Json)?;
        *self = Self { seq: link.seq, hash: hash(line) };
        Ok(link)
    }
}

/// SHA-256 of a line without its LF.
pub(crate) fn hash(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
}

/// Where the first LF stands.
pub(crate) fn line_end(text: &[u8]) -> Option<usize> {
    // The library's own search, which a loop over bytes does not come near.
    let through = (&mut &*text).skip_until(b'\n').ok()?;
    through.checked_sub(1).filter(|end| text[*end] == b'\n')
}

/// A decimal number without needless zeros, and what follows it.
fn number(text: &[u8]) -> Result<(u64, &[u8]), LineFault> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    if length == 0 || (length > 1 && digits[0] == b'0') {
        return Err(LineFault::Shape);
    }
    let value = digits
        .iter()
        .try_fold(0_u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
    value.map(|value| (value, rest)).ok_or(LineFault::Shape)
}

/// What follows `seq`, `prev` and `synced` in a line, its comma included; nothing is checked.
pub(crate) fn members(line: &[u8]) -> Option<&[u8]> {
    const PREV_BYTES: usize = ",\"prev\":\"".len() + 64;
    let (_, rest) = after_number(line.strip_prefix(b"{\"seq\":")?)?;
    Some(after_number(rest.get(PREV_BYTES..)?.strip_prefix(b"\",\"synced\":")?)?.1)
}

/// As [`number`], for what was checked before.
pub(crate) fn after_number(text: &[u8]) -> Option<(u64, &[u8])> {
    number(text).ok()
}

/// Lower-case hexadecimal digits of exactly N bytes.
pub(crate) fn unhex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    if text.len() != 2 * N {
        return None;
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(chain: &Chain, members: impl FnOnce(&mut LineWriter<'_>)) -> (Vec<u8>, Chain) {
        let mut buffer = Vec::with_capacity(MAX_LINE_BYTES);
        let mut writer = LineWriter::begin(&mut buffer, MAX_LINE_BYTES, chain, 0);
        members(&mut writer);
        let next = writer.seal().unwrap();
        (buffer, next)
    }

    #[test]
    fn a_line_follows_the_one_before_it() {
        let mut chain = Chain::default();
        let (first, end) = line(&chain, |line| {
            line.text("kind", "a\nb").object("o", |o| {
                o.truth("t", true).number("n", u64::MAX).json("j", "[ 1 ]");
            });
        });
        assert!(first.starts_with(b"{\"seq\":1,\"prev\":\"0000"));
        assert!(first.ends_with(b"\"}\n"));

        let link = chain.follow(&first[..first.len() - 1]).unwrap();

        assert_eq!((link.seq, link.synced), (1, 0));
        assert_eq!(chain, end);
        let (second, _) = line(&chain, |_| {});
        assert_eq!(chain.follow(&second[..second.len() - 1]).unwrap().prev, end.hash);
    }

    #[test]
    fn every_changed_byte_of_a_line_is_noticed() {
        let (whole, _) = line(&Chain::default(), |line| {
            line.text("kind", "read");
        });
        let whole = &whole[..whole.len() - 1];
        for at in 0..whole.len() {
            for flip in [0x01, 0x20, 0x80] {
                let mut changed = whole.to_vec();
                changed[at] ^= flip;
                assert!(Chain::default().follow(&changed).is_err(), "byte {at} ^ {flip:#x}");
            }
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_written_and_one_more_byte_is_not() {
        let (small, _) = line(&Chain::default(), |line| {
            line.text("t", "");
        });
        let room = MAX_LINE_BYTES - small.len();
        for (extra, fits) in [(0, true), (1, false)] {
            let mut buffer = Vec::with_capacity(2 * MAX_LINE_BYTES);
            let mut writer = LineWriter::begin(&mut buffer, MAX_LINE_BYTES, &Chain::default(), 0);
            writer.text("t", &"x".repeat(room + extra));
            assert_eq!(writer.seal().is_ok(), fits);
            assert_eq!(buffer.len(), if fits { MAX_LINE_BYTES } else { 0 });
        }
    }

    #[test]
    fn a_raw_member_that_is_not_json_spoils_the_line_and_leaves_nothing() {
        let mut buffer = Vec::with_capacity(MAX_LINE_BYTES);
        let mut writer = LineWriter::begin(&mut buffer, MAX_LINE_BYTES, &Chain::default(), 0);
        writer.json("params", "{\"a\":1}\n{\"seq\":2}");

        assert!(matches!(writer.seal(), Err(WriteFault::NotJson("params", _))));
        assert!(buffer.is_empty());
    }

    #[test]
    fn a_mark_that_vouches_for_its_own_line_is_refused() {
        let mut buffer = Vec::with_capacity(MAX_LINE_BYTES);
        LineWriter::begin(&mut buffer, MAX_LINE_BYTES, &Chain::default(), 1).seal().unwrap();

        assert_eq!(Link::read(&buffer[..buffer.len() - 1]), Err(LineFault::Shape));
    }
}
