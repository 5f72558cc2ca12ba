//! The anchor: where every trail stood a moment ago, kept outside the trails.

use super::key::{EpochKey, mac};
use crate::line::Chain;

/// The first bytes of the file: what it is, and the version of its layout.
const MAGIC: &[u8; 8] = b"PCPANCH1";

/// Bytes of the MAC at the end.
const MAC_BYTES: usize = 32;

/// Heads of trails at one moment, bound to the epoch in which they were noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) epoch: u64,
    /// In the order of the trails.
    pub(crate) heads: Vec<Chain>,
}

impl Anchor {
    pub(crate) fn encode(key: &EpochKey, heads: &[Chain]) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAGIC.len() + 8 + heads.len() * 40 + MAC_BYTES);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&key.epoch().to_le_bytes());
        for head in heads {
            out.extend_from_slice(&head.seq.to_le_bytes());
            out.extend_from_slice(&head.hash);
        }
        let mac = mac(&key.of_anchor(), &[&out]);
        out.extend_from_slice(&mac);
        out
    }

    /// Reads an anchor that was made with this key or with the next one. `None`: nobody who had one made it.
    pub(crate) fn decode(bytes: &[u8], key: &EpochKey) -> Option<Self> {
        let (body, found) = bytes.split_last_chunk::<MAC_BYTES>()?;
        let rest = body.strip_prefix(MAGIC)?;
        let (epoch, mut rest) = rest.split_first_chunk()?;
        let epoch = u64::from_le_bytes(*epoch);
        let next = key.next();
        let key = [key, &next].into_iter().find(|key| key.epoch() == epoch)?;
        if mac(&key.of_anchor(), &[body]) != *found {
            return None;
        }
        let mut heads = Vec::new();
        while !rest.is_empty() {
            let (seq, more) = rest.split_first_chunk()?;
            let (hash, more) = more.split_first_chunk()?;
            heads.push(Chain { seq: u64::from_le_bytes(*seq), hash: *hash });
            rest = more;
        }
        Some(Self { epoch, heads })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchor_is_read_with_its_key_and_the_one_before_and_no_byte_of_it_may_change() {
        let key = EpochKey::new(3, [3; 32]);
        let heads = [Chain { seq: 9, hash: [9; 32] }, Chain::default()];
        let bytes = Anchor::encode(&key.next(), &heads);

        assert_eq!(Anchor::decode(&bytes, &key.next()), Anchor::decode(&bytes, &key));
        assert_eq!(Anchor::decode(&bytes, &key).unwrap().heads, heads);
        assert_eq!(Anchor::decode(&bytes, &key.next().next()), None, "an older key is gone");
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(Anchor::decode(&changed, &key), None, "byte {at}");
        }
        assert_eq!(Anchor::decode(&bytes[..bytes.len() - 1], &key), None);
    }
}
