//! The dynamic table: which strings of the file are names of libraries and search paths.

use super::layout::Layout;
use super::{ElfError, MAX_NEEDED, USUAL_NEEDED};

const DT_NULL: u64 = 0;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;

/// The entries that matter here; names are offsets into the string table.
#[derive(Debug, Clone, Default)]
pub(super) struct Dynamic {
    pub(super) needed: Vec<u64>,
    pub(super) strings_at: Option<u64>,
    pub(super) strings_bytes: u64,
    rpath: Option<u64>,
    runpath: Option<u64>,
}

impl Dynamic {
    /// Reads a table up to its end mark.
    pub(super) fn read(table: &[u8], layout: &Layout) -> Result<Self, ElfError> {
        let mut dynamic = Self { needed: Vec::with_capacity(USUAL_NEEDED), ..Self::default() };
        let size = layout.word_bytes();
        for entry in table.chunks_exact(2 * size) {
            let (Some(tag), Some(value)) = (layout.word(entry, 0), layout.word(entry, size)) else { break };
            match tag {
                DT_NULL => break,
                DT_NEEDED if dynamic.needed.len() == MAX_NEEDED => {
                    let limit = MAX_NEEDED as u64;
                    return Err(ElfError::TooLarge {
                        what: "list of needed libraries",
                        unit: "entries",
                        value: limit + 1,
                        limit,
                    });
                }
                DT_NEEDED => dynamic.needed.push(value),
                DT_STRTAB => dynamic.strings_at = Some(value),
                DT_STRSZ => dynamic.strings_bytes = value,
                DT_RPATH => dynamic.rpath = Some(value),
                DT_RUNPATH => dynamic.runpath = Some(value),
                _ => {}
            }
        }
        Ok(dynamic)
    }

    /// The search path: the older kind counts only where the newer one is absent.
    pub(super) fn search_path(&self) -> Option<u64> {
        self.runpath.or(self.rpath)
    }
}
