//! Identifiers and hashes as protocol v2 writes them: a narrow alphabet, and lower-case hexadecimal.

use core::fmt;
use std::string::String;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use super::invalid::InvalidRequest;
use crate::id::ActionHash;

/// Longest identifier in bytes, as in S3's reference.
pub const MAX_IDENTIFIER_BYTES: usize = 256;
/// Hexadecimal digits of a SHA-256.
pub(super) const HASH_DIGITS: usize = 64;

/// Whether `text` is an identifier: 1 to 256 bytes of `A-Z a-z 0-9 - _ :`. A dot is none of them, so that an
/// application's id is no identifier as it stands.
///
/// # Errors
/// The length, or where the first other byte is; never the text, which may name a person.
pub(super) fn check_identifier(field: &'static str, text: &str) -> Result<(), InvalidRequest> {
    if text.is_empty() || text.len() > MAX_IDENTIFIER_BYTES {
        return Err(InvalidRequest::IdentifierLength { field, bytes: text.len() });
    }
    let other = |byte: u8| !(byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':'));
    match text.bytes().position(other) {
        Some(at) => Err(InvalidRequest::IdentifierCharacter { field, at }),
        None => Ok(()),
    }
}

/// Whether `text` is an identifier of protocol v2, for whoever needs no reason.
#[must_use]
pub fn is_identifier(text: &str) -> bool {
    check_identifier("", text).is_ok()
}

/// Whether `text` is 64 lower-case hexadecimal digits.
///
/// # Errors
/// The member and its length.
pub(super) fn check_hash(field: &'static str, text: &str) -> Result<(), InvalidRequest> {
    match Sha256Hash::parse(text) {
        Some(_) => Ok(()),
        None => Err(InvalidRequest::Hash { field, characters: text.chars().count() }),
    }
}

/// A SHA-256, in JSON 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sha256Hash([u8; 32]);

impl Sha256Hash {
    /// Sixty-four zeros: what a report says where there is nothing to hash.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Takes the 32 bytes as they are.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads 64 lower-case hexadecimal digits, the only spelling.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: &[u8; HASH_DIGITS] = text.as_bytes().try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = (lower_digit(*high)? << 4) | lower_digit(*low)?;
        }
        Some(Self(bytes))
    }
}

const fn lower_digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Sha256Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sha256Hash({self})")
    }
}

impl From<Sha256Hash> for ActionHash {
    fn from(hash: Sha256Hash) -> Self {
        Self::from_bytes(hash.0)
    }
}

impl From<ActionHash> for Sha256Hash {
    fn from(hash: ActionHash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl Serialize for Sha256Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Sha256Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom("not 64 lower-case hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_has_1_to_256_bytes_of_a_narrow_alphabet() {
        let longest = "a".repeat(MAX_IDENTIFIER_BYTES);
        for good in ["a", "op-1", "A:b_c-9", &longest] {
            assert_eq!(check_identifier("f", good), Ok(()), "{good}");
        }
        let length = |bytes| InvalidRequest::IdentifierLength { field: "f", bytes };
        let character = |at| InvalidRequest::IdentifierCharacter { field: "f", at };
        let long = "a".repeat(MAX_IDENTIFIER_BYTES + 1);
        let table = [
            ("", length(0)),
            (&long, length(257)),
            ("org.example", character(3)),
            ("a b", character(1)),
            ("ab\u{fc}", character(2)),
            ("a\n", character(1)),
            ("a\0", character(1)),
            ("a/b", character(1)),
        ];
        for (bad, error) in table {
            assert_eq!(check_identifier("f", bad), Err(error), "{bad}");
        }
    }

    #[test]
    fn a_hash_has_one_spelling() {
        let hash = Sha256Hash::of(b"abc");
        let text = hash.to_string();
        assert_eq!(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Sha256Hash::parse(&text), Some(hash));
        for bad in [&text[1..], &text.to_uppercase(), &format!("{text}0"), &text.replace('b', "g"), ""] {
            assert_eq!(Sha256Hash::parse(bad), None, "{bad}");
        }
        assert_eq!(ActionHash::from(hash).to_string(), text);
    }
}
