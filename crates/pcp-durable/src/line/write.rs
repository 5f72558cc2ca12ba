//! Writes one record straight into a buffer that already exists; never takes memory.

use super::{Chain, hash, number};
use crate::json::{self, JsonFault};

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

    /// A member's name up to its value, of which `opening` is what it always begins with: one look at the room for all.
    fn key(&mut self, key: &str, opening: &[u8]) {
        let before: &[u8] = if core::mem::replace(&mut self.comma, true) { b",\"" } else { b"\"" };
        if self.fault.is_some() {
            return;
        }
        if self.buffer.len() + before.len() + key.len() + 2 + opening.len() > self.limit {
            self.fault = Some(WriteFault::NoRoom);
            return;
        }
        for part in [before, key.as_bytes(), b"\":", opening] {
            self.buffer.extend_from_slice(part);
        }
    }

    /// A string. Everything that could end the line or fool a terminal is escaped.
    pub fn text(&mut self, key: &'static str, value: &str) -> &mut Self {
        self.key(key, b"\"");
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
        self.key(key, b"null");
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
        self.key(key, b"");
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
        self.key(key, b"\"");
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

    /// The member `mac`: what a key says of everything written so far.
    pub(crate) fn mac(&mut self, key: &[u8; 32]) -> &mut Self {
        let mac = crate::seal::mac(key, &[&self.buffer[self.start..]]);
        self.hex("mac", &mac)
    }

    /// `true` or `false`.
    pub fn truth(&mut self, key: &'static str, value: bool) -> &mut Self {
        self.key(key, if value { b"true" } else { b"false" });
        self
    }

    /// A value that already is JSON. It is checked and put on one line.
    pub fn json(&mut self, key: &'static str, value: &str) -> &mut Self {
        self.key(key, b"");
        if let Err(fault) = json::compact(value, json::MAX_DEPTH - 2, &mut |bytes| self.push(bytes))
            && self.fault.is_none()
        {
            self.fault = Some(WriteFault::NotJson(key, fault));
        }
        self
    }

    /// An object with its own members.
    pub fn object(&mut self, key: &str, members: impl FnOnce(&mut Self)) -> &mut Self {
        self.key(key, b"{");
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
