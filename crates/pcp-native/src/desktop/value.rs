//! Values as the specification escapes them: `\s \n \t \r \\`, and `\;` inside lists.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::fault::Fault;
use super::key::Key;

/// Most elements of one list: the longest lists of MIME types have some two hundred.
pub const MAX_LIST_ITEMS: usize = 1024;

/// A text value. Borrowed where nothing has to change.
pub(super) fn text(value: &[u8]) -> Cow<'_, str> {
    if memchr(b'\\', value).is_none() { plain(value) } else { unescape(value, false) }
}

/// The elements of a list. The separator after the last one adds none.
pub(super) fn list(value: &[u8]) -> Vec<Cow<'_, str>> {
    Items { rest: value }.take(MAX_LIST_ITEMS).collect()
}

/// Whether the value means true. `1` is what the format once had.
pub(super) fn flag(value: &[u8]) -> bool {
    matches!(value.trim_ascii(), b"true" | b"1")
}

/// Bytes without escapes. What is a text already, as nearly every value is, is borrowed after one look.
fn plain(value: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(value).map_or_else(|_| String::from_utf8_lossy(value), Cow::Borrowed)
}

fn unescape(value: &[u8], in_list: bool) -> Cow<'_, str> {
    let mut plain = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = memchr(b'\\', rest) {
        let (before, escape) = rest.split_at(at);
        plain.extend_from_slice(before);
        match escape.get(1).and_then(|byte| meaning(*byte, in_list)) {
            Some(byte) => plain.push(byte),
            None => plain.extend_from_slice(escape.get(..2).unwrap_or(escape)),
        }
        rest = escape.get(2..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    let lossy = |error: std::string::FromUtf8Error| String::from_utf8_lossy(error.as_bytes()).into_owned();
    Cow::Owned(String::from_utf8(plain).unwrap_or_else(lossy))
}

const fn meaning(byte: u8, in_list: bool) -> Option<u8> {
    match byte {
        b's' => Some(b' '),
        b'n' => Some(b'\n'),
        b't' => Some(b'\t'),
        b'r' => Some(b'\r'),
        b'\\' => Some(b'\\'),
        b';' if in_list => Some(b';'),
        _ => None,
    }
}

struct Items<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Items<'a> {
    type Item = Cow<'a, str>;

    fn next(&mut self) -> Option<Cow<'a, str>> {
        if self.rest.is_empty() {
            return None;
        }
        let (mut at, mut escaped) = (0, false);
        while let Some(found) = memchr2(b';', b'\\', self.rest.get(at..).unwrap_or_default()) {
            at += found;
            if self.rest.get(at) == Some(&b';') {
                let (item, rest) = self.rest.split_at(at);
                self.rest = rest.get(1..).unwrap_or_default();
                return Some(decode(item, escaped));
            }
            (at, escaped) = (at + 2, true);
        }
        Some(decode(std::mem::take(&mut self.rest), escaped))
    }
}

fn decode(item: &[u8], escaped: bool) -> Cow<'_, str> {
    if escaped { unescape(item, true) } else { plain(item) }
}

/// What is wrong with the value of a key, whoever will ask for it.
pub(super) fn faults(key: Key, value: &[u8], mut note: impl FnMut(Fault)) {
    // Almost every value is plain, and one look without a branch shows it.
    let odd = value.iter().fold(false, |odd, byte| odd | (*byte == 0) | (*byte == b'\\') | !byte.is_ascii());
    if odd {
        if std::str::from_utf8(value).is_err() {
            note(Fault::NotUtf8(key));
        }
        if memchr(0, value).is_some() {
            note(Fault::Nul(key));
        }
        if has_unknown_escape(value, key.is_list()) {
            note(Fault::UnknownEscape(key));
        }
    }
    if key.is_flag() && !matches!(value.trim_ascii(), b"true" | b"false" | b"1" | b"0") {
        note(Fault::NotABoolean(key));
    }
    if key.is_list() && value.len() > MAX_LIST_ITEMS && (Items { rest: value }).count() > MAX_LIST_ITEMS {
        note(Fault::ListTooLong { key, limit: MAX_LIST_ITEMS });
    }
}

fn has_unknown_escape(value: &[u8], in_list: bool) -> bool {
    let mut rest = value;
    while let Some(at) = memchr(b'\\', rest) {
        if rest.get(at + 1).and_then(|byte| meaning(*byte, in_list)).is_none() {
            return true;
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_once_and_unknown_ones_are_kept() {
        let table = [
            (r"Tab\tand\sspace", "Tab\tand space"),
            (r"a\\nb", r"a\nb"),
            (r"a\;b\q", r"a\;b\q"),
            (r"end\", r"end\"),
            ("plain", "plain"),
        ];
        for (raw, wanted) in table {
            assert_eq!(text(raw.as_bytes()), wanted, "{raw}");
        }
        assert!(matches!(text(b"plain"), Cow::Borrowed(_)));
        assert_eq!(text(b"Caf\xe9\\n"), "Caf\u{fffd}\n");
    }

    #[test]
    fn lists_end_with_or_without_a_separator_and_hold_escaped_ones() {
        let table: [(&str, &[&str]); 7] = [
            (r"semi\;colon;plain;", &["semi;colon", "plain"]),
            ("a;b", &["a", "b"]),
            ("a;", &["a"]),
            ("", &[]),
            ("a;;b;", &["a", "", "b"]),
            (r"a\\;b", &[r"a\", "b"]),
            (r"a\", &[r"a\"]),
        ];
        for (raw, wanted) in table {
            assert_eq!(list(raw.as_bytes()), wanted, "{raw}");
        }
    }

    #[test]
    fn a_list_at_the_limit_is_whole_and_one_element_more_is_dropped_and_said() {
        let raw = |items: usize| "x;".repeat(items);
        for (items, said) in [(MAX_LIST_ITEMS, 0), (MAX_LIST_ITEMS + 1, 1)] {
            let raw = raw(items);
            let mut faults_found = 0;
            faults(Key::MimeType, raw.as_bytes(), |_| faults_found += 1);
            assert_eq!((list(raw.as_bytes()).len(), faults_found), (MAX_LIST_ITEMS, said));
        }
    }

    #[test]
    fn only_true_and_its_old_form_are_true() {
        for (raw, wanted) in [("true", true), ("1", true), ("true ", true), ("false", false), ("True", false)]
        {
            assert_eq!(flag(raw.as_bytes()), wanted, "{raw}");
        }
    }
}
