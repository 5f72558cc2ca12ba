//! The lines of a desktop entry, each looked at once and none copied.

use memchr::{memchr, memchr2};

use super::fault::Fault;

/// Longest line that is read, in bytes: several times the longest list of MIME types, which is the longest there is.
pub const MAX_LINE_BYTES: usize = 32 * 1024;

/// One line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// `[name]`
    Group(&'a [u8]),
    /// `key=value`
    Pair { key: &'a [u8], value: &'a [u8] },
    /// `key[locale]=value`
    Localized { key: &'a [u8], locale: &'a [u8], value: &'a [u8] },
    /// Empty, or a comment.
    Nothing,
    /// Against the format.
    Bad(Fault),
}

/// The lines of a file, one at a time.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    rest: &'a [u8],
    /// The number of the line that was read last, from one.
    pub(super) number: u32,
    /// The first line that ended in CR LF.
    pub(super) carriage_return: Option<u32>,
}

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl<'a> Lines<'a> {
    /// The lines of `bytes`, and whether a byte-order mark stood before them.
    pub(super) fn of(bytes: &'a [u8]) -> (Self, bool) {
        let without = bytes.strip_prefix(BYTE_ORDER_MARK);
        (Self { rest: without.unwrap_or(bytes), number: 0, carriage_return: None }, without.is_some())
    }

    #[inline]
    fn cut(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        self.number = self.number.saturating_add(1);
        let Some(end) = memchr(b'\n', self.rest) else { return Some(std::mem::take(&mut self.rest)) };
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        Some(line)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    #[inline]
    fn next(&mut self) -> Option<Line<'a>> {
        let mut line = self.cut()?;
        if let [before @ .., b'\r'] = line {
            self.carriage_return.get_or_insert(self.number);
            line = before;
        }
        if line.len() > MAX_LINE_BYTES {
            return Some(Line::Bad(Fault::LineTooLong { bytes: line.len(), limit: MAX_LINE_BYTES }));
        }
        Some(match line.first() {
            None | Some(b'#') => Line::Nothing,
            Some(b'[') => group(line),
            Some(byte) if byte.is_ascii_whitespace() => indented(line.trim_ascii_start()),
            Some(_) => pair(line),
        })
    }
}

/// Space before a line is not in the specification; what follows it is read as usual.
fn indented(line: &[u8]) -> Line<'_> {
    match line.first() {
        None | Some(b'#') => Line::Nothing,
        Some(b'[') => group(line),
        Some(_) => pair(line),
    }
}

fn group(line: &[u8]) -> Line<'_> {
    let name = line.trim_ascii_end().strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    match name {
        Some(name) if memchr2(b'[', b']', name).is_none() => Line::Group(name),
        _ => Line::Bad(Fault::BadGroup),
    }
}

#[inline]
fn pair(line: &[u8]) -> Line<'_> {
    let Some(at) = memchr2(b'=', b'[', line) else { return Line::Bad(Fault::NotAPair) };
    let (key, rest) = line.split_at(at);
    if rest.first() == Some(&b'=') {
        let value = rest.get(1..).unwrap_or_default().trim_ascii_start();
        return Line::Pair { key: key.trim_ascii_end(), value };
    }
    let Some(end) = memchr(b'=', rest) else { return Line::Bad(Fault::NotAPair) };
    let (bracket, value) = rest.split_at(end);
    let value = value.get(1..).unwrap_or_default().trim_ascii_start();
    let bracket = bracket.trim_ascii_end();
    match bracket.get(1..bracket.len().saturating_sub(1)) {
        Some(locale) if bracket.last() == Some(&b']') => Line::Localized { key, locale, value },
        _ => Line::Bad(Fault::BadKey),
    }
}

/// Whether a key has only the characters that keys have.
pub(super) fn is_key(key: &[u8]) -> bool {
    !key.is_empty() && key.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<Line<'_>> {
        Lines::of(bytes).0.collect()
    }

    #[test]
    fn every_kind_of_line_is_told_apart() {
        let pair = |key: &'static str, value: &'static str| Line::Pair {
            key: key.as_bytes(),
            value: value.as_bytes(),
        };
        let table: [(&str, Line<'_>); 14] = [
            ("[Desktop Entry]", Line::Group(b"Desktop Entry")),
            ("[Desktop Entry] ", Line::Group(b"Desktop Entry")),
            ("[a[b]", Line::Bad(Fault::BadGroup)),
            ("[open", Line::Bad(Fault::BadGroup)),
            ("# comment = no key", Line::Nothing),
            ("", Line::Nothing),
            ("  \t", Line::Nothing),
            ("Name=a=b", pair("Name", "a=b")),
            ("Name = a ", pair("Name", "a ")),
            ("  Name=a", pair("Name", "a")),
            ("Name[de]=b[c]=d", Line::Localized { key: b"Name", locale: b"de", value: b"b[c]=d" }),
            ("Name[de=b", Line::Bad(Fault::BadKey)),
            ("no pair", Line::Bad(Fault::NotAPair)),
            ("Name=", pair("Name", "")),
        ];
        for (text, wanted) in table {
            let found = lines(text.as_bytes());
            assert_eq!(found.first().copied().unwrap_or(Line::Nothing), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_line_at_the_limit_is_read_and_one_byte_more_is_not() {
        let line = |bytes: usize| [b"K=".as_slice(), &vec![b'x'; bytes - 2]].concat();
        assert!(matches!(lines(&line(MAX_LINE_BYTES))[..], [Line::Pair { .. }]));
        let fault = Fault::LineTooLong { bytes: MAX_LINE_BYTES + 1, limit: MAX_LINE_BYTES };
        assert_eq!(lines(&line(MAX_LINE_BYTES + 1)), [Line::Bad(fault)]);
    }

    #[test]
    fn marks_and_carriage_returns_are_noticed_and_kept_out_of_values() {
        let (mut lines, marked) = Lines::of(b"\xef\xbb\xbfA=1\nB=2\r\n");
        assert!(marked);
        assert_eq!(lines.next(), Some(Line::Pair { key: b"A", value: b"1" }));
        assert_eq!(lines.carriage_return, None);
        assert_eq!(lines.next(), Some(Line::Pair { key: b"B", value: b"2" }));
        assert_eq!((lines.carriage_return, lines.next()), (Some(2), None));
    }
}
