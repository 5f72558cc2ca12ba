//! Finding text in notes, whatever its case.
//!
//! Nothing is indexed: a search reads notes until it has enough matches or has read its share of bytes, and
//! then says where to go on. So its time is bounded, whatever the store holds.

use super::{Store, file_name, read_note};
use crate::error::Error;
use crate::note::Note;

/// Longest text to look for, in characters: a sentence.
pub const MAX_QUERY_CHARS: usize = 200;
/// Most matches of one call.
pub const MAX_MATCHES: usize = 50;
/// Bytes of notes that one call reads: well under a second on the slowest board's eMMC.
pub const MAX_SEARCH_BYTES: usize = 32 * 1024 * 1024;
/// Characters of a snippet: one line of a terminal.
pub const SNIPPET_CHARS: usize = 80;

/// A note that has the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// The note.
    pub id: u64,
    /// Its title.
    pub title: String,
    /// What stands around the text; the beginning of the body if only the title has it.
    pub snippet: String,
}

/// What one call found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPage {
    /// The matches, by id.
    pub matches: Vec<Match>,
    /// The `after` to go on with; `None` when every note was looked at.
    pub next: Option<u64>,
}

impl Store {
    /// Looks for `query` in titles and bodies of the notes with an id above `after`.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a query that is blank or too long; those of [`Store::read`].
    pub fn search(&self, query: &str, after: u64, limit: usize) -> Result<SearchPage, Error> {
        self.search_within(query, after, limit, MAX_SEARCH_BYTES)
    }

    pub(super) fn search_within(
        &self,
        query: &str,
        after: u64,
        limit: usize,
        max_bytes: usize,
    ) -> Result<SearchPage, Error> {
        check_query(query)?;
        let query = fold(query);
        let limit = limit.clamp(1, MAX_MATCHES);
        let (mut matches, mut bytes, mut last) = (Vec::new(), 0, after);
        for id in self.notes.range(after.saturating_add(1)..).map(|(id, _)| *id) {
            if matches.len() == limit || bytes >= max_bytes {
                return Ok(SearchPage { matches, next: Some(last) });
            }
            let note = read_note(&self.notes_dir.join(file_name(id)))?;
            bytes += note.body.len() + note.header.title.len();
            last = id;
            if let Some(snippet) = snippet(&note, &query) {
                matches.push(Match { id, title: note.header.title, snippet });
            }
        }
        Ok(SearchPage { matches, next: None })
    }
}

/// Checks a query, as the capability's schema cannot: it may not be blank.
pub(crate) fn check_query(query: &str) -> Result<(), Error> {
    let chars = query.chars().count();
    if query.trim().is_empty() || chars > MAX_QUERY_CHARS {
        let why =
            format!("a query has 1 to {MAX_QUERY_CHARS} characters and is not blank; this one has {chars}");
        return Err(Error::parameter("/query", why));
    }
    Ok(())
}

fn snippet(note: &Note, query: &str) -> Option<String> {
    match find(&note.body, query) {
        Some(at) => Some(around(&note.body, at)),
        None => find(&note.header.title, query).map(|_| around(&note.body, 0)),
    }
}

/// Character by character, so that a place in the folded text can be found again in the text itself;
/// `str::to_lowercase` looks at neighbours and could not promise that.
fn fold(text: &str) -> String {
    if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        text.chars().flat_map(char::to_lowercase).collect()
    }
}

/// Where `text` has `query`, which is folded already.
fn find(text: &str, query: &str) -> Option<usize> {
    let at = fold(text).find(query)?;
    if text.is_ascii() {
        return Some(at);
    }
    let mut folded = 0;
    for (start, c) in text.char_indices() {
        folded += c.to_lowercase().map(char::len_utf8).sum::<usize>();
        if folded > at {
            return Some(start);
        }
    }
    None
}

/// [`SNIPPET_CHARS`] characters on one line around the byte `at`, a third of them before it.
fn around(text: &str, at: usize) -> String {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let mut lead: Vec<char> = before.chars().rev().take(SNIPPET_CHARS / 3).collect();
    lead.reverse();
    let cut_before = before.chars().nth(lead.len()).is_some();
    let room = SNIPPET_CHARS - lead.len();
    let cut_after = after.chars().nth(room).is_some();
    let piece: String = lead.into_iter().chain(after.chars().take(room)).collect();
    let line = piece.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{}{line}{}", if cut_before { "…" } else { "" }, if cut_after { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_is_found_whatever_its_case_and_shown_as_it_stands() {
        let table = [
            ("Buy MILK today", "milk", Some(4)),
            ("ÄPFEL und Öl", "öl", Some(11)),
            ("İstanbul Straße", "straße", Some(10)),
            ("ΟΔΟΣ", "οδοσ", Some(0)),
            ("nothing", "milk", None),
        ];
        for (text, query, at) in table {
            assert_eq!(find(text, &fold(query)), at, "{text}");
        }
    }

    #[test]
    fn a_snippet_is_one_line_around_the_place() {
        let text = format!("{}\nthe\tneedle\nis here {}", "a ".repeat(100), "b".repeat(100));
        let at = text.find("needle").unwrap();

        let snippet = around(&text, at);

        assert!(snippet.starts_with('…') && snippet.ends_with('…'), "{snippet}");
        assert!(snippet.contains("the needle is here bbb"), "{snippet}");
        assert!(snippet.chars().count() <= SNIPPET_CHARS + 2);
        assert_eq!(around("short", 0), "short");
        assert_eq!(around("", 0), "");
    }

    #[test]
    fn a_query_is_not_blank_and_within_its_limit() {
        assert!(check_query(&"x".repeat(MAX_QUERY_CHARS)).is_ok());
        for query in [String::new(), "  ".into(), "x".repeat(MAX_QUERY_CHARS + 1)] {
            assert!(check_query(&query).is_err());
        }
    }

    proptest! {
        #[test]
        fn a_place_that_is_found_is_a_place_of_the_text(text in "\\PC{0,60}", query in "\\PC{1,3}") {
            if let Some(at) = find(&text, &fold(&query)) {
                prop_assert!(text.is_char_boundary(at));
                let _ = around(&text, at);
            }
        }
    }
}
