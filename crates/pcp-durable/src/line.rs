//! One record as one line: who writes it, and what a reader demands of it.
//!
//! `{"seq":N,"prev":"<64 hex>","synced":M,` the caller's members `,"crc":"<8 hex>"}` LF. `FORMAT.md` has the
//! bytes. [`LineWriter`] writes straight into a buffer that already exists; it never takes memory.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::json::{self, JsonFault};

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
pub struct Envelope {
    /// Number of the line in its trail, from 1.
    pub seq: u64,
    /// Hash of the line before.
    pub prev: Hash,
    /// Highest number known to be on the medium when this line was made. Recovery uses it to tell the
    /// hole a power cut leaves from damage to records that were already safe.
    pub synced: u64,
}

impl Envelope {
    /// Reads the envelope of a line without its LF and checks shape and checksum, not the chain.
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
    pub fn follow(&mut self, line: &[u8]) -> Result<Envelope, LineFault> {
        let envelope = Envelope::read(line)?;
        let expected = self.seq + 1;
        if envelope.seq != expected {
            return Err(LineFault::Sequence { expected, found: envelope.seq });
        }
        if envelope.prev != self.hash {
            return Err(LineFault::Chain);
        }
        let text = std::str::from_utf8(line).map_err(|_| LineFault::Text)?;
        json::check(text).map_err(LineFault::Json)?;
        *self = Self { seq: envelope.seq, hash: hash(line) };
        Ok(envelope)
    }
}

pub(crate) fn hash(line: &[u8]) -> Hash {
    Sha256::digest(line).into()
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

/// Why a record did not become a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFault {
    /// It did not fit.
    NoRoom,
    /// A raw member was not JSON.
    NotJson(&'static str, JsonFault),
}

/// Writes one record's members into a buffer.
///
/// Members come out in the order of the calls. What does not fit is noted and reported at the end, so
/// that the code that describes a record needs no error handling.
#[derive(Debug)]
pub struct LineWriter<'a> {
    buffer: &'a mut Vec<u8>,
    start: usize,
    /// Absolute end of the room in the buffer.
    limit: usize,
    fault: Option<WriteFault>,
    /// A comma is due before the next member.
    comma: bool,
    sealed: bool,
}

impl<'a> LineWriter<'a> {
    /// Begins the line after `chain` at the end of `buffer`, which must already have the capacity.
    pub(crate) fn begin(buffer: &'a mut Vec<u8>, limit: usize, chain: &Chain, synced: u64) -> Self {
        let start = buffer.len();
        let limit = limit.min(buffer.capacity());
        let mut line = Self { buffer, start, limit, fault: None, comma: false, sealed: false };
        line.push(b"{");
        line.number("seq", chain.seq + 1).hex("prev", &chain.hash).number("synced", synced);
        line
    }

    /// Ends the line and gives where the chain stands now.
    pub(crate) fn seal(mut self) -> Result<Chain, WriteFault> {
        let crc = crc32fast::hash(&self.buffer[self.start..]);
        self.hex("crc", &crc.to_be_bytes());
        self.push(b"}\n");
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.sealed = true;
        let line = &self.buffer[self.start..self.buffer.len() - 1];
        let (seq, _) = number(&line[b"{\"seq\":".len()..]).unwrap_or_default();
        Ok(Chain { seq, hash: hash(line) })
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.fault.is_none() {
            if self.buffer.len() + bytes.len() > self.limit {
                self.fault = Some(WriteFault::NoRoom);
            } else {
                self.buffer.extend_from_slice(bytes);
            }
        }
    }

    fn key(&mut self, key: &'static str) {
        if self.comma {
            self.push(b",");
        }
        self.comma = true;
        self.push(b"\"");
        self.push(key.as_bytes());
        self.push(b"\":");
    }

    /// A string. Everything that could end the line or fool a terminal is escaped.
    pub fn text(&mut self, key: &'static str, value: &str) -> &mut Self {
        self.key(key);
        self.push(b"\"");
        json::escape(value, &mut |bytes| self.push(bytes));
        self.push(b"\"");
        self
    }

    /// A string, or `null`.
    pub fn maybe_text(&mut self, key: &'static str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(key, value),
            None => self.null(key),
        }
    }

    /// `null`.
    pub fn null(&mut self, key: &'static str) -> &mut Self {
        self.key(key);
        self.push(b"null");
        self
    }

    /// Members taken as they stand from a line that was checked when it was read.
    pub(crate) fn members_of_line(&mut self, members: &[u8]) -> &mut Self {
        self.push(b",");
        self.push(members);
        self
    }

    /// A whole number.
    pub fn number(&mut self, key: &'static str, value: u64) -> &mut Self {
        self.key(key);
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value;
        loop {
            at -= 1;
            digits[at] = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
        self
    }

    /// Bytes as lower-case hexadecimal digits in a string.
    pub fn hex(&mut self, key: &'static str, bytes: &[u8]) -> &mut Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.key(key);
        self.push(b"\"");
        for chunk in bytes.chunks(32) {
            let mut digits = [0; 64];
            for (pair, byte) in digits.chunks_exact_mut(2).zip(chunk) {
                pair[0] = HEX[usize::from(byte >> 4)];
                pair[1] = HEX[usize::from(byte & 0xf)];
            }
            self.push(&digits[..2 * chunk.len()]);
        }
        self.push(b"\"");
        self
    }

    /// `true` or `false`.
    pub fn truth(&mut self, key: &'static str, value: bool) -> &mut Self {
        self.key(key);
        self.push(if value { b"true" } else { b"false" });
        self
    }

    /// A value that already is JSON. It is checked and put on one line.
    pub fn json(&mut self, key: &'static str, value: &str) -> &mut Self {
        self.key(key);
        if let Err(fault) = json::compact(value, json::MAX_DEPTH - 2, &mut |bytes| self.push(bytes))
            && self.fault.is_none()
        {
            self.fault = Some(WriteFault::NotJson(key, fault));
        }
        self
    }

    /// An object with its own members.
    pub fn object(&mut self, key: &'static str, members: impl FnOnce(&mut Self)) -> &mut Self {
        self.key(key);
        self.push(b"{");
        self.comma = false;
        members(self);
        self.comma = true;
        self.push(b"}");
        self
    }
}

impl Drop for LineWriter<'_> {
    /// A line that was not sealed (a fault, a panic in the description) leaves nothing behind.
    fn drop(&mut self) {
        if !self.sealed {
            self.buffer.truncate(self.start);
        }
    }
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

        let envelope = chain.follow(&first[..first.len() - 1]).unwrap();

        assert_eq!((envelope.seq, envelope.synced), (1, 0));
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

        assert_eq!(Envelope::read(&buffer[..buffer.len() - 1]), Err(LineFault::Shape));
    }
}
