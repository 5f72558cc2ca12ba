//! Patterns as JSON Schema means them (ECMA-262, unicode mode) in the words of `regex-lite`.
//!
//! Where both read the same text differently it is rewritten, or refused when there is nothing to rewrite it to:
//! a pattern that silently means something else lets through what its author shut out.

use std::iter::Peekable;
use std::str::Chars;

/// White space of ECMA-262, as the inside of a class: Unicode's spaces, and the byte order mark.
const SPACE: &str =
    r"\t-\r\x20\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
/// Every other character. Spelled out, because a class cannot hold a negated one.
const NOT_SPACE: &str = r"\x00-\x08\x0e-\x1f\x21-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}";
/// The dot: all but the four line ends.
const DOT: &str = r"[^\n\r\x{2028}\x{2029}]";

/// Rewrites `pattern`.
///
/// # Errors
/// What in it has no meaning in ECMA-262, or another one than it seems.
pub(super) fn translate(pattern: &str) -> Result<String, &'static str> {
    let mut translation = Translation {
        rest: pattern.chars().peekable(),
        text: String::new(),
        in_class: false,
        range_open: false,
    };
    while let Some(char) = translation.rest.next() {
        translation.take(char)?;
    }
    Ok(translation.text)
}

struct Translation<'p> {
    rest: Peekable<Chars<'p>>,
    text: String,
    in_class: bool,
    /// The last character was the bare `-` of a class, so the next one may end a range.
    range_open: bool,
}

impl Translation<'_> {
    fn take(&mut self, char: char) -> Result<(), &'static str> {
        let range_open = std::mem::take(&mut self.range_open);
        match char {
            '\\' => return self.escape(range_open),
            '[' if self.in_class => self.text.push_str(r"\["),
            '[' => return self.open_class(),
            ']' if self.in_class => {
                self.in_class = false;
                self.text.push(']');
            }
            '.' if !self.in_class => self.text.push_str(DOT),
            '(' if !self.in_class => return self.open_group(),
            char => {
                self.range_open = self.in_class && char == '-';
                self.text.push(char);
            }
        }
        Ok(())
    }

    fn open_class(&mut self) -> Result<(), &'static str> {
        self.in_class = true;
        self.text.push('[');
        if let Some(negation) = self.rest.next_if_eq(&'^') {
            self.text.push(negation);
        }
        if self.rest.peek() == Some(&']') {
            return Err("an empty class matches nothing; leave it out");
        }
        if self.rest.next_if_eq(&'-').is_some() {
            if self.rest.peek() == Some(&'-') {
                return Err("a range from - is not implemented; escape the dash");
            }
            self.text.push('-');
        }
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), &'static str> {
        self.text.push('(');
        if self.rest.next_if_eq(&'?').is_some() {
            self.text.push('?');
            if !matches!(self.rest.peek(), Some(':' | '=' | '!' | '<')) {
                return Err("flags and (?P<name>) are not ECMA-262");
            }
        }
        Ok(())
    }

    fn escape(&mut self, range_open: bool) -> Result<(), &'static str> {
        let Some(char) = self.rest.next() else { return Err("ends in a lone backslash") };
        match char {
            's' => self.space(SPACE, range_open),
            'S' => self.space(NOT_SPACE, range_open),
            'A' | 'z' | 'a' | 'U' | '<' | '>' => Err(r"\A, \z, \a, \U, \< and \> are not ECMA-262"),
            'b' | 'x' if self.rest.peek() == Some(&'{') => Err(r"\b{ and \x{ are not ECMA-262"),
            char => {
                self.text.push('\\');
                self.text.push(char);
                Ok(())
            }
        }
    }

    fn space(&mut self, ranges: &str, range_open: bool) -> Result<(), &'static str> {
        if !self.in_class {
            self.text.extend(["[", ranges, "]"]);
            return Ok(());
        }
        let mut ahead = self.rest.clone();
        if range_open || (ahead.next() == Some('-') && ahead.next() != Some(']')) {
            return Err(r"\s and \S cannot be the end of a range");
        }
        self.text.push_str(ranges);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        regex_lite::Regex::new(&translate(pattern).unwrap()).unwrap().is_match(text)
    }

    #[test]
    fn the_same_text_means_what_ecma_262_says() {
        for (pattern, text, fits) in [
            ("^.$", "\r", false),
            ("^.$", "\u{2028}", false),
            ("^.$", "\u{85}", true),
            ("^[.]$", "a", false),
            (r"^\.$", "a", false),
            (r"^\s$", "\u{a0}", true),
            (r"^\s$", "\u{feff}", true),
            (r"^\s$", "\u{b}", true),
            (r"^\S$", "\u{a0}", false),
            (r"^[\s\S]$", "\n", true),
            (r"^[\s\S]$", "\u{feff}", true),
            (r"^[^\s]$", "\u{3000}", false),
            (r"^[\S]$", "x", true),
            (r"^\d$", "\u{661}", false),
            (r"^\w$", "é", false),
            ("^[[a]$", "[", true),
            ("^[[:alpha:]]$", "a]", true),
            ("^[-a]$", "-", true),
            ("^[a-]$", "-", true),
            (r"^[-\s]$", "-", true),
            (r"^[\s-]$", "-", true),
            (r"^[a\-\s]$", " ", true),
            ("^a$", "a\n", false),
            ("^(?<name>a)(?:b)$", "ab", true),
            (r"^\u0041\u{42}\x43$", "ABC", true),
            ("b", "abc", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text:?}");
        }
    }

    #[test]
    fn the_space_classes_part_all_characters() {
        for char in '\0'..=char::MAX {
            let space = char.is_whitespace() && char != '\u{85}' || char == '\u{feff}';
            // Every character near an edge of a class, and a sample of the rest.
            if space || u32::from(char) < 0x3100 || u32::from(char) % 251 == 0 {
                let text = char.to_string();
                assert_eq!((matches(r"\s", &text), matches(r"\S", &text)), (space, !space), "{char:?}");
            }
        }
    }

    #[test]
    fn what_is_not_ecma_262_is_refused() {
        for pattern in [
            "(?i)a",
            "(?P<n>a)",
            "(?x:a b)",
            r"\Aa",
            r"a\z",
            r"\a",
            r"\U00000041",
            r"\<a",
            r"a\>",
            r"\b{start}",
            r"\x{41}",
            "[]a]",
            "[^]",
            "[--a]",
            r"[a-\s]",
            r"[\s-a]",
            r"[\S-a]",
            "a\\",
        ] {
            assert!(translate(pattern).is_err(), "{pattern}");
        }
    }
}
