//! One group of a desktop entry: for each key that anybody asks for, the line that counts.

use super::entry::Rejection;
use super::fault::{Diagnostics, Fault};
use super::key::Key;
use super::line::{Line, Lines, is_key, translation};
use super::locale::{Locale, Rank, UNLOCALIZED};
use super::value;

/// Most keys of the main group, translations included: some ten times the largest entry found in a distribution.
pub const MAX_KEYS: usize = 4096;

#[derive(Debug, Clone, Copy)]
pub(super) struct Slot<'a> {
    pub(super) value: &'a [u8],
    pub(super) line: u32,
    rank: Rank,
}

/// The values of a group, as they stand in the file.
#[derive(Debug, Clone)]
pub(super) struct Slots<'a>([Option<Slot<'a>>; Key::COUNT]);

impl<'a> Slots<'a> {
    pub(super) const fn new() -> Self {
        Self([None; Key::COUNT])
    }

    pub(super) fn slot(&self, key: Key) -> Option<Slot<'a>> {
        self.0.get(key as usize).copied().flatten()
    }

    pub(super) fn raw(&self, key: Key) -> Option<&'a [u8]> {
        self.slot(key).map(|slot| slot.value)
    }

    /// The better translation counts, and of two equal lines the later one.
    fn put(&mut self, key: Key, slot: Slot<'a>, diagnostics: &mut Diagnostics) {
        let Some(place) = self.0.get_mut(key as usize) else { return };
        if place.is_some_and(|old| slot.rank == UNLOCALIZED && old.rank == UNLOCALIZED) {
            diagnostics.note(slot.line, Fault::Duplicate(key));
        }
        if place.is_none_or(|old| slot.rank >= old.rank) {
            *place = Some(slot);
        }
    }

    /// A value with a zero byte is none: neither a name nor an argument can hold it.
    pub(super) fn check(&mut self, diagnostics: &mut Diagnostics) {
        for (key, place) in Key::ALL.into_iter().zip(&mut self.0) {
            let Some(slot) = *place else { continue };
            value::faults(key, slot.value, |fault| {
                diagnostics.note(slot.line, fault);
                if matches!(fault, Fault::Nul(_)) {
                    *place = None;
                }
            });
        }
    }
}

/// Reads to the end of the group. The answer is the name of the next one.
pub(super) fn read_group<'a>(
    lines: &mut Lines<'a>,
    locale: Option<&Locale>,
    slots: &mut Slots<'a>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<&'a [u8]>, Rejection> {
    let mut keys = 0;
    while let Some(line) = lines.next() {
        let (key, value, rank) = match line {
            Line::Nothing => continue,
            Line::Group(name) => return Ok(Some(name)),
            Line::Bad(fault) => {
                diagnostics.note(lines.number, fault);
                continue;
            }
            Line::Pair { key, value } => (key, Some(value), UNLOCALIZED),
            Line::Localized { key, rest } => match locale {
                Some(locale) => match ranked(rest, locale) {
                    Ok((value, rank)) => (key, value, rank),
                    Err(fault) => {
                        diagnostics.note(lines.number, fault);
                        continue;
                    }
                },
                None => {
                    keys += lines.skip_translations(key);
                    (key, None, UNLOCALIZED)
                }
            },
        };
        keys += 1;
        if keys > MAX_KEYS {
            return Err(Rejection::TooManyKeys { limit: MAX_KEYS });
        }
        // A translation for somebody else costs no look at its key.
        let Some(value) = value else { continue };
        match Key::of(key) {
            Some(key) if rank == UNLOCALIZED || key.is_localized() => {
                slots.put(key, Slot { value, line: lines.number, rank }, diagnostics);
            }
            None if !is_key(key) => diagnostics.note(lines.number, Fault::BadKey),
            _ => {}
        }
    }
    Ok(None)
}

/// The value of a translation, if it fits, and how well it does.
fn ranked<'a>(rest: &'a [u8], locale: &Locale) -> Result<(Option<&'a [u8]>, Rank), Fault> {
    // Most are for other languages, which their first letters show.
    if !rest.get(1..).is_some_and(|of| of.starts_with(locale.language().as_bytes())) {
        return Ok((None, UNLOCALIZED));
    }
    let (of, value) = translation(rest).ok_or(Fault::BadKey)?;
    let rank = locale.rank(of);
    Ok((rank.map(|_| value), rank.unwrap_or(UNLOCALIZED)))
}
