//! The header of a frame: magic, version, type, payload length, checksum.
//!
//! The bytes are what postcard writes for a struct of these five fields: each `u32` a varint, seven bits a
//! byte, low bits first. They are read and written here by hand because postcard accepts a number in more
//! than one spelling, and two spellings of one frame would let a bit flip go unseen. The tests hold
//! every header against postcard.

use crate::error::ProtocolError;

/// First field of every header: the letters P, C, P and a zero byte, as a number.
pub const MAGIC: u32 = 0x5043_5000;

/// The one protocol version there is.
pub const VERSION: u32 = 1;

/// Longest varint of a `u32`, in bytes: five times seven bits hold 32.
const MAX_VARINT_BYTES: usize = 5;

/// Shortest header, in bytes: five for the magic and one for each other field.
pub const MIN_HEADER_BYTES: usize = 9;

/// Longest header, in bytes: five for each field but the version, which is known and takes one.
pub const MAX_HEADER_BYTES: usize = 21;

/// What stands before a payload. Magic and version are checked on reading and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamHeader {
    /// The number of the message type; it may be unknown to this version.
    pub discriminant: u32,
    /// Bytes of payload that follow the header.
    pub payload_len: u32,
    /// CRC-32 (IEEE) of the payload.
    pub checksum: u32,
}

impl StreamHeader {
    /// Writes the header at the front of `out` and says how many bytes it took.
    pub(crate) fn write(&self, out: &mut [u8; MAX_HEADER_BYTES]) -> usize {
        let mut at = 0;
        for value in [MAGIC, VERSION, self.discriminant, self.payload_len, self.checksum] {
            at = write_varint(value, out, at);
        }
        at
    }

    /// Reads a header from the front of `bytes`, giving it and its length.
    ///
    /// `Ok(None)` means that the bytes so far are right but do not hold a whole header.
    pub(crate) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, ProtocolError> {
        let mut at = 0;
        let mut next = |field| -> Result<Option<u32>, ProtocolError> {
            match read_varint(bytes.get(at..).unwrap_or_default(), field)? {
                Some((value, used)) => {
                    at += used;
                    Ok(Some(value))
                }
                None => Ok(None),
            }
        };
        let Some(magic) = next("magic")? else { return Ok(None) };
        if magic != MAGIC {
            return Err(ProtocolError::BadMagic { found: magic });
        }
        let Some(version) = next("version")? else { return Ok(None) };
        if version != VERSION {
            return Err(ProtocolError::UnsupportedVersion { found: version });
        }
        let Some(discriminant) = next("message type")? else { return Ok(None) };
        let Some(payload_len) = next("payload_len")? else { return Ok(None) };
        let Some(checksum) = next("checksum")? else { return Ok(None) };
        Ok(Some((Self { discriminant, payload_len, checksum }, at)))
    }
}

/// Appends one varint at `at` and gives the position after it.
#[allow(clippy::cast_possible_truncation, reason = "masked to seven bits")]
fn write_varint(mut value: u32, out: &mut [u8; MAX_HEADER_BYTES], mut at: usize) -> usize {
    while value > 0x7f {
        out[at] = (value & 0x7f) as u8 | 0x80;
        value >>= 7;
        at += 1;
    }
    out[at] = value as u8;
    at + 1
}

/// Reads one varint in its only allowed spelling: no more than 32 bits, no needless last byte.
fn read_varint(bytes: &[u8], field: &'static str) -> Result<Option<(u32, usize)>, ProtocolError> {
    let mut value = 0u32;
    for (index, &byte) in bytes.iter().take(MAX_VARINT_BYTES).enumerate() {
        let last = index == MAX_VARINT_BYTES - 1;
        if last && byte > 0x0f {
            return Err(ProtocolError::BadVarint { field });
        }
        value |= u32::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            if byte == 0 && index > 0 {
                return Err(ProtocolError::BadVarint { field });
            }
            return Ok(Some((value, index + 1)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::*;

    /// The header as the documents describe it, for postcard to write.
    #[derive(Serialize, Deserialize)]
    struct Postcard {
        magic: u32,
        version: u8,
        discriminant: u32,
        payload_len: u32,
        checksum: u32,
    }

    fn written(header: StreamHeader) -> Vec<u8> {
        let mut out = [0; MAX_HEADER_BYTES];
        let used = header.write(&mut out);
        out[..used].to_vec()
    }

    proptest! {
        #[test]
        fn a_header_is_what_postcard_writes(discriminant: u32, payload_len: u32, checksum: u32) {
            let by_hand = written(StreamHeader { discriminant, payload_len, checksum });
            let by_postcard = postcard::to_allocvec(&Postcard {
                magic: MAGIC, version: 1, discriminant, payload_len, checksum,
            }).unwrap();
            prop_assert_eq!(&by_hand, &by_postcard);
            prop_assert!((MIN_HEADER_BYTES..=MAX_HEADER_BYTES).contains(&by_hand.len()));
        }

        #[test]
        fn a_header_read_back_is_the_header_written(discriminant: u32, payload_len: u32, checksum: u32) {
            let header = StreamHeader { discriminant, payload_len, checksum };
            let bytes = written(header);
            prop_assert_eq!(StreamHeader::read(&bytes).unwrap(), Some((header, bytes.len())));
            for cut in 0..bytes.len() {
                prop_assert_eq!(StreamHeader::read(&bytes[..cut]).unwrap(), None);
            }
        }

        #[test]
        fn bytes_that_are_read_are_the_only_spelling(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
            let mut prefixed = written(StreamHeader { discriminant: 0, payload_len: 0, checksum: 0 })[..6].to_vec();
            prefixed.extend_from_slice(&bytes);
            if let Ok(Some((header, used))) = StreamHeader::read(&prefixed) {
                prop_assert_eq!(written(header), &prefixed[..used]);
            }
        }
    }

    #[test]
    fn numbers_in_another_spelling_are_refused() {
        let table: &[(&str, &[u8])] = &[
            ("zero in two bytes", &[0x80, 0x00]),
            ("one in three bytes", &[0x81, 0x80, 0x00]),
            ("33 bits", &[0xff, 0xff, 0xff, 0xff, 0x1f]),
            ("six bytes", &[0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
            ("endless", &[0x80; 12]),
        ];
        for (what, bytes) in table {
            assert!(
                matches!(read_varint(bytes, "x"), Err(ProtocolError::BadVarint { field: "x" })),
                "{what} was accepted"
            );
        }
        assert_eq!(read_varint(&[0xff, 0xff, 0xff, 0xff, 0x0f], "x").unwrap(), Some((u32::MAX, 5)));
    }
}
