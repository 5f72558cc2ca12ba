//! The key of an epoch, and the one step it can take.

use std::fmt;
use std::str::FromStr;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::line::{Hash, unhex};

/// Longest text of a verification key: its word, twenty digits, 64 hexadecimal digits and two colons.
pub const KEY_TEXT_BYTES: usize = WORD.len() + 20 + 64 + 2;

/// What the text of a verification key begins with: what it is, and the version of the scheme.
const WORD: &str = "pcp-seal-1";

/// HMAC-SHA256 over parts that are put one behind the other.
pub(crate) fn mac(key: &[u8; 32], parts: &[&[u8]]) -> Hash {
    // A key shorter than the block of the hash is filled up with zeros (RFC 2104).
    let mut block = [0; 64];
    block[..32].copy_from_slice(key);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    block.fill(0);
    std::hint::black_box(&block);
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// The key that seals one epoch. What it sealed cannot be made with the key of a later one.
pub(crate) struct EpochKey {
    epoch: u64,
    secret: [u8; 32],
}

impl EpochKey {
    pub(crate) fn new(epoch: u64, secret: [u8; 32]) -> Self {
        Self { epoch, secret }
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The key of the epoch after this one.
    pub(crate) fn next(&self) -> Self {
        Self { epoch: self.epoch + 1, secret: mac(&self.secret, &[b"pcp-seal-1 next"]) }
    }

    /// The key under which a trail is sealed.
    pub(crate) fn of_trail(&self, trail: &str) -> [u8; 32] {
        mac(&self.secret, &[b"pcp-seal-1 trail ", trail.as_bytes()])
    }

    /// The key under which the anchor stands.
    pub(crate) fn of_anchor(&self) -> [u8; 32] {
        mac(&self.secret, &[b"pcp-seal-1 anchor"])
    }

    fn copy(&self) -> Self {
        Self { epoch: self.epoch, secret: self.secret }
    }
}

impl Drop for EpochKey {
    /// Whoever reads the memory later finds no old key in it.
    fn drop(&mut self) {
        self.secret.fill(0);
        std::hint::black_box(&self.secret);
    }
}

impl fmt::Debug for EpochKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EpochKey").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// The first key of a sealing: every later one follows from it. It is printed once and kept off the device.
#[derive(Debug)]
pub struct VerificationKey(EpochKey);

impl VerificationKey {
    pub(crate) fn new(epoch: u64, secret: [u8; 32]) -> Self {
        Self(EpochKey::new(epoch, secret))
    }

    /// The first epoch that it can check.
    #[must_use]
    pub fn first_epoch(&self) -> u64 {
        self.0.epoch
    }

    pub(crate) fn begin(&self) -> EpochKey {
        self.0.copy()
    }

    /// The text that is printed once: `pcp-seal-1:EPOCH:64 hexadecimal digits`.
    #[must_use]
    pub fn to_text(&self) -> String {
        use fmt::Write as _;
        let mut text = format!("{WORD}:{}:", self.0.epoch);
        for byte in &self.0.secret {
            // A string takes whatever is written.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }
}

impl Clone for VerificationKey {
    fn clone(&self) -> Self {
        Self(self.0.copy())
    }
}

impl FromStr for VerificationKey {
    type Err = crate::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let read = || {
            let (word, rest) = text.trim().split_once(':')?;
            let (epoch, digits) = rest.split_once(':')?;
            let epoch: u64 = epoch.parse().ok().filter(|epoch| *epoch > 0)?;
            (word == WORD).then_some(())?;
            Some(Self::new(epoch, unhex(digits.as_bytes())?))
        };
        read().ok_or(crate::Error::NotAKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_is_that_of_rfc_4231() {
        // Test case 2 has a key of four bytes, which zeros fill up in the same way.
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        let wanted =
            unhex(b"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843").unwrap_or([0; 32]);

        assert_eq!(mac(&key, &[b"what do ya want ", b"for nothing?"]), wanted);
    }

    #[test]
    fn the_text_of_a_key_is_read_back_and_nothing_else_is() {
        let key = VerificationKey::new(7, [0xab; 32]);
        let text = key.to_text();
        let again: VerificationKey = text.parse().unwrap();

        assert_eq!((again.first_epoch(), again.to_text()), (7, text.clone()));
        assert!(text.len() <= KEY_TEXT_BYTES);
        for wrong in ["", "pcp-seal-1:7:ab", &text.replace("seal-1", "seal-2"), &text.replace(":7:", ":0:")] {
            assert!(wrong.parse::<VerificationKey>().is_err(), "{wrong}");
        }
        assert!(!format!("{key:?}").contains("171"), "no secret is printed by accident");
    }

    #[test]
    fn a_key_goes_on_and_trails_and_anchor_have_keys_of_their_own() {
        let first = EpochKey::new(1, [1; 32]);
        let second = first.next();
        let keys = [
            *first.secret(),
            *second.secret(),
            first.of_trail("application"),
            first.of_trail("system"),
            first.of_anchor(),
        ];

        assert_eq!(second.epoch(), 2);
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key));
        }
    }
}
