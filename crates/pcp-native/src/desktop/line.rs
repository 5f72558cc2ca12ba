//! The lines of a desktop entry, each looked at once and none copied.

use memchr::{Memchr, memchr_iter, memchr2};

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
    /// `key[locale]=value`, the rest from the bracket on for [`translation`] to divide.
    Localized { key: &'a [u8], rest: &'a [u8] },
    /// Empty, or a comment.
    Nothing,
    /// Against the format.
    Bad(Fault),
}

/// The lines of a file, one at a time.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    bytes: &'a [u8],
    /// Where the next line begins.
    start: usize,
    ends: Memchr<'a>,
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
        let bytes = without.unwrap_or(bytes);
        let ends = memchr_iter(b'\n', bytes);
        (Self { bytes, start: 0, ends, number: 0, carriage_return: None }, without.is_some())
    }

    /// Passes over the translations of `key` that follow: they stand together, up to a hundred of them.
    /// The answer is how many there were.
    #[inline]
    pub(super) fn skip_translations(&mut self, key: &[u8]) -> usize {
        let mut count = 0;
        while let Some(rest) = self.bytes.get(self.start..)
            && rest.get(key.len()) == Some(&b'[')
            && rest.starts_with(key)
        {
            self.cut();
            count += 1;
        }
        count
    }

    #[inline]
    fn cut(&mut self) -> Option<&'a [u8]> {
        let (start, end) = (self.start, self.ends.next().unwrap_or(self.bytes.len()));
        self.start = end + 1;
        self.number = self.number.saturating_add(1);
        self.bytes.get(start..end).filter(|_| start < self.bytes.len())
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
    // Keys are short: a plain loop is done before a vector search has begun.
    let Some(at) = line.iter().position(|byte| matches!(byte, b'=' | b'[')) else {
        return Line::Bad(Fault::NotAPair);
    };
    let (key, rest) = line.split_at(at);
    match rest.split_first() {
        Some((b'=', value)) => Line::Pair { key: key.trim_ascii_end(), value: value.trim_ascii_start() },
        _ => Line::Localized { key, rest },
    }
}

/// The locale and the value of a translation, from its bracket on.
pub(super) fn translation(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = rest.strip_prefix(b"[")?;
    let (locale, rest) = rest.split_at(rest.iter().position(|byte| matches!(byte, b']' | b'='))?);
    let value = rest.strip_prefix(b"]")?.trim_ascii_start().strip_prefix(b"=")?;
    Some((locale, value.trim_ascii_start()))
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
            ("Name[de]=b[c]=d", Line::Localized { key: b"Name", rest: b"[de]=b[c]=d" }),
            ("Name[de", Line::Localized { key: b"Name", rest: b"[de" }),
            ("no pair", Line::Bad(Fault::NotAPair)),
            ("Name=", pair("Name", "")),
        ];
        for (text, wanted) in table {
            let found = lines(text.as_bytes());
            assert_eq!(found.first().copied().unwrap_or(Line::Nothing), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_translation_is_divided_into_locale_and_value() {
        let table: [(&str, Option<(&str, &str)>); 6] = [
            ("[de]=b[c]=d", Some(("de", "b[c]=d"))),
            ("[sr@Latn] = x", Some(("sr@Latn", "x"))),
            ("[]=x", Some(("", "x"))),
            ("[de=b]=c", None),
            ("[de", None),
            ("[de]b=c", None),
        ];
        for (rest, wanted) in table {
            let wanted = wanted.map(|(locale, value)| (locale.as_bytes(), value.as_bytes()));
            assert_eq!(translation(rest.as_bytes()), wanted, "{rest}");
        }
    }

    #[test]
    fn translations_are_passed_over_together_and_nothing_else_with_them() {
        let text = b"Name[a]=1\nName[b]=2\nName[c]=3\r\nNameX=4\nName[d]=5";
        let mut lines = Lines::of(text).0;
        assert!(matches!(lines.next(), Some(Line::Localized { .. })));
        assert_eq!((lines.skip_translations(b"Name"), lines.number), (2, 3));
        assert_eq!(lines.next(), Some(Line::Pair { key: b"NameX", value: b"4" }));
        assert_eq!((lines.skip_translations(b"Name"), lines.number), (1, 5));
        assert_eq!((lines.skip_translations(b"Name"), lines.next()), (0, None));
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
