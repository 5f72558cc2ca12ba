//! What a power cut may leave of a file.

use std::collections::BTreeMap;

use super::{FileState, State};

/// A file under a new name.
#[derive(Debug)]
pub(super) struct Renamed {
    /// Its old name, and how it was then.
    pub(super) from: (String, FileState),
    /// Its new name, and what stood there before.
    pub(super) to: (String, Option<FileState>),
}

impl State {
    /// The files under their new or, for the last so many renames, their old names.
    pub(super) fn names_after_power_loss(&self, dice: &mut Dice) -> BTreeMap<String, FileState> {
        let mut files = self.files.clone();
        for Renamed { from, to } in self.renamed.iter().rev().take_while(|_| dice.one_in(2)) {
            files.remove(&to.0);
            files.insert(from.0.clone(), from.1.clone());
            if let Some(before) = &to.1 {
                files.insert(to.0.clone(), before.clone());
            }
        }
        files
    }
}

impl FileState {
    pub(super) fn settled(content: Vec<u8>) -> Self {
        Self { durable: content.clone(), reserved: content.len(), entered: true, live: content }
    }

    /// The durable prefix and some of what followed: nothing, a prefix, or scattered blocks with
    /// zeros between them (a size written before its data).
    pub(super) fn survivor(&self, dice: &mut Dice) -> Vec<u8> {
        let synced = self.durable.len();
        let appended = self.live.get(..synced) == Some(&self.durable[..]);
        if !appended {
            // Cut back without a sync: either view may come back.
            return if dice.one_in(2) { self.durable.clone() } else { self.live.clone() };
        }
        let rest = self.live.len() - synced;
        let mut image = self.live.clone();
        match dice.below(4) {
            0 => image.truncate(synced),
            1 => image.truncate(synced + dice.below(rest + 1)),
            way => {
                let block = [1, 64, 512, 4096][dice.below(4)];
                let keep_one_in = if way == 2 { 2 } else { 4 };
                // Blocks are aligned in the file, as the medium's are.
                let mut at = synced;
                while at < image.len() {
                    let end = image.len().min((at / block + 1) * block);
                    if !dice.one_in(keep_one_in) {
                        image[at..end].fill(0);
                    }
                    at = end;
                }
                image.truncate(synced + dice.below(rest + 1));
            }
        }
        image
    }
}

/// xorshift64*: repeatable, and one dependency fewer.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or(0) % limit.max(1)
    }

    pub(super) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}
