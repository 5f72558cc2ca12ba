//! Where a capability's row is: a hash table of row numbers, built once per snapshot.
//!
//! The ids stand in the rows' descriptors, so the table is four bytes a slot. Hashes are kept in the rows: a new
//! snapshot hashes only what is new.

/// An unused slot; no row has this number, because a registry holds fewer.
const EMPTY: u32 = u32::MAX;

/// Row numbers by hash, with linear probing at most half full.
#[derive(Debug, Default)]
pub(crate) struct Index {
    slots: Box<[u32]>,
}

impl Index {
    /// The table of `hashes`, one per row in the order of the rows.
    pub(crate) fn build(hashes: impl ExactSizeIterator<Item = u32>) -> Self {
        let mut slots = vec![EMPTY; (hashes.len() * 2).next_power_of_two()].into_boxed_slice();
        let mask = slots.len() - 1;
        for (row, hash) in (0_u32..).zip(hashes) {
            let mut at = hash as usize & mask;
            while slots.get(at).is_some_and(|slot| *slot != EMPTY) {
                at = (at + 1) & mask;
            }
            if let Some(slot) = slots.get_mut(at) {
                *slot = row;
            }
        }
        Self { slots }
    }

    /// The first row of this hash's run that `is_it` accepts.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            match self.slots.get(at) {
                None | Some(&EMPTY) => return None,
                Some(&row) if is_it(row) => return Some(row),
                Some(_) => at = (at + 1) & mask,
            }
        }
    }

    /// What the table takes in memory.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

    use super::*;

    #[allow(clippy::cast_possible_truncation, reason = "a hash is cut short on purpose")]
    fn hash(n: usize) -> u32 {
        BuildHasherDefault::<DefaultHasher>::new().hash_one(n) as u32
    }

    #[test]
    fn an_empty_table_and_a_full_run_are_searched_to_their_end() {
        assert_eq!(Index::default().find(7, |_| true), None);
        assert_eq!(Index::build([].into_iter()).find(7, |_| true), None);
        let same = Index::build([3_u32; 8].into_iter());
        assert_eq!(same.find(3, |row| row == 7), Some(7));
        assert_eq!(same.find(3, |row| row == 8), None);
    }

    /// counted, not timed, so that a busy machine changes nothing.
    #[test]
    fn a_lookup_among_all_that_fit_looks_at_less_than_twice_the_rows_of_one_among_a_hundred() {
        let looks = |entries: usize| {
            let hashes: Vec<u32> = (0..entries).map(hash).collect();
            let index = Index::build(hashes.iter().copied());
            let mut looks = 0_usize;
            for (row, hash) in (0_u32..).zip(&hashes) {
                let found = index.find(*hash, |candidate| {
                    looks += 1;
                    candidate == row
                });
                assert_eq!(found, Some(row));
            }
            looks * 100 / entries
        };
        let (few, most, beyond) = (looks(100), looks(crate::MAX_CAPABILITIES), looks(100_000));
        assert!(most < 2 * few && beyond < 2 * few, "{few} {most} {beyond} looks per 100 lookups");
    }
}
