//! The keyed hash of an id: what an application may choose freely must not slow the others' lookups down.
//!
//! Multiplies 16 bytes at a time and folds the product, as wyhash and foldhash do, under a key that each registry
//! draws. SipHash, the standard library's, took a third of a
//! lookup: 1.4 times a plain map, where 1.2 is the goal and this gives 1.05 (registry-snapshot.md).

use std::hash::{BuildHasher, RandomState};

/// A registry's own hash function.
#[derive(Debug, Clone)]
pub(crate) struct KeyedHash {
    seed: u64,
    key: u64,
}

impl Default for KeyedHash {
    fn default() -> Self {
        let random = RandomState::new();
        // Odd, so that no key is zero.
        Self { seed: random.hash_one(0_u8), key: random.hash_one(1_u8) | 1 }
    }
}

impl KeyedHash {
    /// The hash of a text.
    #[inline]
    pub(crate) fn of(&self, text: &str) -> u32 {
        let bytes = text.as_bytes();
        // Multiplied, so that no letter of the text can stand in for the length.
        let mut state = self.seed ^ (bytes.len() as u64).wrapping_mul(self.key);
        let (blocks, rest) = bytes.as_chunks::<16>();
        for block in blocks {
            state = self.mix(state, block);
        }
        if !rest.is_empty() {
            // The last 16 bytes, whether or not a block has had some of them; less than 16 are filled up.
            let mut short = [0; 16];
            let end = bytes.last_chunk::<16>().unwrap_or_else(|| {
                short.iter_mut().zip(rest).for_each(|(slot, byte)| *slot = *byte);
                &short
            });
            state = self.mix(state, end);
        }
        u32::try_from(state >> u32::BITS).unwrap_or_default()
    }

    #[inline]
    fn mix(&self, state: u64, block: &[u8; 16]) -> u64 {
        let halves = u128::from_le_bytes(*block);
        let [low, high] = [halves & u128::from(u64::MAX), halves >> u64::BITS];
        let product = (low ^ u128::from(state)).wrapping_mul(high ^ u128::from(self.key));
        u64::try_from((product >> u64::BITS) ^ (product & u128::from(u64::MAX))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn texts_of_every_length_that_differ_in_one_byte_differ_in_their_hash() {
        let hash = KeyedHash { seed: 0x1234_5678_9abc_def0, key: 0x9e37_79b9_7f4a_7c15 };
        let mut seen = HashSet::new();
        let mut texts = 0;
        for length in 0..=64 {
            for at in 0..length.max(1) {
                for letter in ['a', 'b'] {
                    let text: String = (0..length).map(|n| if n == at { letter } else { '-' }).collect();
                    seen.insert(hash.of(&text));
                    texts += 1;
                }
            }
        }
        // The empty text was counted twice.
        assert_eq!(seen.len(), texts - 1);
    }

    #[test]
    fn two_registries_hash_differently() {
        assert_ne!(KeyedHash::default().of("app.a.read"), KeyedHash::default().of("app.a.read"));
    }

    /// As even as chance: of 2^15 ids that differ in a number, the fullest of 2^10 groups has far less than twice its share.
    #[test]
    fn ids_that_differ_in_a_number_spread_evenly_over_the_low_and_the_high_bits() {
        let hash = KeyedHash { seed: 7, key: 0x9e37_79b9_7f4a_7c15 };
        let (mut low, mut high) = ([0_u32; 1024], [0_u32; 1024]);
        for n in 0..1 << 15 {
            let hash = hash.of(&format!("app.org.vendor{}.Application{n}.read", n % 40));
            low[hash as usize & 1023] += 1;
            high[(hash >> 22) as usize] += 1;
        }
        for groups in [low, high] {
            assert!(groups.iter().all(|count| (8..64).contains(count)), "{groups:?}");
        }
    }
}
