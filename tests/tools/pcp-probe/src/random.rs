//! Numbers that look random and are the same for the same seed, so that every failure can be had again.

/// SplitMix64: one word of state, every seed is as good as another.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of `seed`.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub const fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.word() % limit.max(1) as u64).unwrap_or(0)
    }

    /// A byte.
    pub const fn byte(&mut self) -> u8 {
        self.word().to_le_bytes()[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let some = |seed| std::array::from_fn::<u64, 8, _>(|_| 0).map(|_| Random::new(seed).word());
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
        // The first number of seed 0 in the algorithm's reference.
        assert_eq!(Random::new(0).word(), 0xe220_a839_7b1d_cdaf);
    }
}
