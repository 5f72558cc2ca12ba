//! Checks one JSON value and writes it compactly on one line, without taking memory.
//!
//! serde_json would allocate for nesting and lets line separators through; a record that must cost
//! nothing and stay on one line (R-164) needs neither.

use std::fmt;

/// Nesting the wire allows for parameters, and some for the record around them.
pub(crate) const MAX_DEPTH: u8 = 40;

/// Why a text is not one JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonFault {
    /// Byte offset of the first thing that is wrong.
    pub offset: usize,
    wanted: &'static str,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "expected {} at byte {}", self.wanted, self.offset)
    }
}

/// Bytes that may stop a run of text that is copied as it is: JSON's own, DEL, and the first bytes of
/// C1 controls (C2), U+061C (D8), U+200E…U+2069 (E2).
static STOPS: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[0x7f] = true;
    table[0xc2] = true;
    table[0xd8] = true;
    table[0xe2] = true;
    table
};

/// A character that a terminal or a line reader may act upon: DEL, C1, line separators, bidi controls.
/// Gives its length in UTF-8 and its code.
fn hazard(text: &[u8], at: usize) -> Option<(usize, u16)> {
    let follow = |n: usize| text.get(at + n).copied().unwrap_or(0);
    match text[at] {
        0x7f => Some((1, 0x7f)),
        0xc2 if follow(1) < 0xa0 => Some((2, u16::from(follow(1)))),
        0xd8 if follow(1) == 0x9c => Some((2, 0x061c)),
        0xe2 => {
            let code = 0x2000 | (u16::from(follow(1) & 0x3f) << 6) | u16::from(follow(2) & 0x3f);
            matches!(code, 0x200e | 0x200f | 0x2028..=0x202e | 0x2066..=0x2069).then_some((3, code))
        }
        _ => None,
    }
}

fn write_unicode(code: u16, sink: &mut dyn FnMut(&[u8])) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |shift: u16| HEX[usize::from((code >> shift) & 0xf)];
    sink(&[b'\\', b'u', digit(12), digit(8), digit(4), digit(0)]);
}

/// Writes text as the inside of a JSON string that no reader can mistake for a line end.
pub(crate) fn escape(text: &str, sink: &mut dyn FnMut(&[u8])) {
    let bytes = text.as_bytes();
    let (mut start, mut at) = (0, 0);
    while at < bytes.len() {
        let byte = bytes[at];
        if !STOPS[usize::from(byte)] {
            at += 1;
            continue;
        }
        let (length, code) = match (byte, hazard(bytes, at)) {
            (b'"' | b'\\' | 0..0x20, _) => (1, u16::from(byte)),
            (_, Some(found)) => found,
            (_, None) => {
                at += 1;
                continue;
            }
        };
        sink(&bytes[start..at]);
        match byte {
            b'"' => sink(b"\\\""),
            b'\\' => sink(b"\\\\"),
            b'\n' => sink(b"\\n"),
            b'\r' => sink(b"\\r"),
            b'\t' => sink(b"\\t"),
            _ => write_unicode(code, sink),
        }
        at += length;
        start = at;
    }
    sink(&bytes[start..]);
}

/// Checks that `text` is one JSON value and writes it without white space between tokens, with every
/// hazardous character escaped. On an error part of the value may have been written.
pub(crate) fn compact(text: &str, max_depth: u8, sink: &mut dyn FnMut(&[u8])) -> Result<(), JsonFault> {
    let mut reader = Reader { text: text.as_bytes(), at: 0, sink };
    reader.value(max_depth)?;
    reader.space();
    if reader.at == reader.text.len() { Ok(()) } else { Err(reader.wanted("the end")) }
}

/// Checks that a line is one JSON object; used on lines read back.
pub(crate) fn check(text: &str) -> Result<(), JsonFault> {
    compact(text, MAX_DEPTH, &mut |_| ())
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    sink: &'a mut dyn FnMut(&[u8]),
}

impl Reader<'_> {
    fn wanted(&self, wanted: &'static str) -> JsonFault {
        JsonFault { offset: self.at, wanted }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes one expected byte and passes it on.
    fn take(&mut self, byte: u8, wanted: &'static str) -> Result<(), JsonFault> {
        if self.peek() != Some(byte) {
            return Err(self.wanted(wanted));
        }
        self.at += 1;
        (self.sink)(&[byte]);
        Ok(())
    }

    fn value(&mut self, depth: u8) -> Result<(), JsonFault> {
        self.space();
        match self.peek() {
            Some(b'{') => self.list(depth, b'}', true),
            Some(b'[') => self.list(depth, b']', false),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.wanted("a value")),
        }
    }

    /// An object or an array: they differ in the keys and the closing byte.
    fn list(&mut self, depth: u8, close: u8, keys: bool) -> Result<(), JsonFault> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.wanted("less nesting"));
        };
        (self.sink)(&self.text[self.at..=self.at]);
        self.at += 1;
        self.space();
        if self.peek() == Some(close) {
            return self.take(close, "the closing bracket");
        }
        loop {
            if keys {
                self.space();
                self.string()?;
                self.space();
                self.take(b':', "a colon")?;
            }
            self.value(depth)?;
            self.space();
            if self.peek() == Some(close) {
                return self.take(close, "the closing bracket");
            }
            self.take(b',', "a comma or the closing bracket")?;
        }
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), JsonFault> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wanted("true, false or null"));
        }
        self.at += word.len();
        (self.sink)(word);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.wanted("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        (self.sink)(&self.text[start..self.at]);
        Ok(())
    }

    fn string(&mut self) -> Result<(), JsonFault> {
        self.take(b'"', "a string")?;
        let mut start = self.at;
        loop {
            let Some(byte) = self.peek() else {
                return Err(self.wanted("the closing quote"));
            };
            match byte {
                _ if !STOPS[usize::from(byte)] => self.at += 1,
                b'"' => break,
                0..0x20 => return Err(self.wanted("no control character")),
                b'\\' => {
                    (self.sink)(&self.text[start..self.at]);
                    self.escaped()?;
                    start = self.at;
                }
                _ => match hazard(self.text, self.at) {
                    None => self.at += 1,
                    Some((length, code)) => {
                        (self.sink)(&self.text[start..self.at]);
                        write_unicode(code, self.sink);
                        self.at += length;
                        start = self.at;
                    }
                },
            }
        }
        (self.sink)(&self.text[start..self.at]);
        self.take(b'"', "the closing quote")
    }

    /// One escape. Half of a surrogate pair would make the whole line unreadable for strict readers;
    /// it becomes U+FFFD.
    fn escaped(&mut self) -> Result<(), JsonFault> {
        let start = self.at;
        let mut whole = true;
        match self.text.get(self.at + 1).copied() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let first = self.code()?;
                self.at += 6;
                if matches!(first, 0xd800..0xe000) {
                    whole = first < 0xdc00 && matches!(self.code(), Ok(0xdc00..0xe000));
                    self.at += if whole { 6 } else { 0 };
                }
            }
            _ => return Err(self.wanted("an escape")),
        }
        (self.sink)(if whole { &self.text[start..self.at] } else { b"\\ufffd" });
        Ok(())
    }

    /// The code of the `\uXXXX` that stands here.
    fn code(&self) -> Result<u16, JsonFault> {
        let digits = match self.text.get(self.at..self.at + 6) {
            Some([b'\\', b'u', digits @ ..]) => digits,
            _ => return Err(self.wanted("four hexadecimal digits")),
        };
        digits.iter().try_fold(0_u16, |code, digit| {
            let value = char::from(*digit).to_digit(16).and_then(|value| u16::try_from(value).ok());
            value.map(|value| code << 4 | value).ok_or_else(|| self.wanted("four hexadecimal digits"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn compacted(text: &str) -> Result<String, JsonFault> {
        let mut out = Vec::new();
        compact(text, 4, &mut |bytes| out.extend_from_slice(bytes))?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn escaped(text: &str) -> String {
        let mut out = Vec::new();
        escape(text, &mut |bytes| out.extend_from_slice(bytes));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn values_lose_their_white_space_and_nothing_else() {
        let table = [
            (" { \"a\" : [ 1 , -0.5e+3 , true,false,\tnull ] }\r\n", "{\"a\":[1,-0.5e+3,true,false,null]}"),
            ("[]", "[]"),
            ("{ }", "{}"),
            ("\"\\u0041\\n\\/ü€😀\"", "\"\\u0041\\n\\/ü€😀\""),
            ("\"\\ud83d\\ude00\"", "\"\\ud83d\\ude00\""),
            ("\"\\ud83d x\"", "\"\\ufffd x\""),
            ("\"\\ude00\"", "\"\\ufffd\""),
            ("\"a\u{2028}b\u{85}\u{7f}\u{202e}\u{a0}\"", "\"a\\u2028b\\u0085\\u007f\\u202e\u{a0}\""),
            ("[[[[1]]]]", "[[[[1]]]]"),
        ];
        for (text, wanted) in table {
            assert_eq!(compacted(text).unwrap(), wanted);
        }
    }

    #[test]
    fn what_is_not_one_value_is_refused_with_its_place() {
        let table = [
            ("", 0),
            ("{", 1),
            ("[1,]", 3),
            ("[1 2]", 3),
            ("{\"a\"}", 4),
            ("{a:1}", 1),
            ("01", 1),
            ("1.", 2),
            ("-", 1),
            ("1e", 2),
            ("tru", 0),
            ("\"a", 2),
            ("\"\n\"", 1),
            ("\"\\x\"", 1),
            ("\"\\u12g4\"", 1),
            ("1 1", 2),
            ("[[[[[1]]]]]", 4),
            ("nul", 0),
            ("\u{feff}1", 0),
            ("NaN", 0),
        ];
        for (text, offset) in table {
            assert_eq!(compacted(text).unwrap_err().offset, offset, "{text:?}");
        }
    }

    #[test]
    fn no_escaped_text_holds_a_character_that_ends_a_line_or_turns_it_around() {
        let hazards = "\n\r\t\0\u{1b}[31m\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\
                       \u{202e}\u{2066}\u{2069}\"\\";

        let written = escaped(hazards);

        assert!(written.is_ascii() && written.bytes().all(|byte| byte >= 0x20), "{written}");
        assert_eq!(serde_json::from_str::<String>(&format!("\"{written}\"")).unwrap(), hazards);
    }

    proptest! {
        #[test]
        fn escaped_text_reads_back_as_itself(text in any::<String>()) {
            let written = format!("\"{}\"", escaped(&text));
            prop_assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
            prop_assert!(compacted(&written).is_ok());
        }

        #[test]
        fn both_json_readers_agree(text in "[\\[\\]{}:,\"\\\\0-9a-fu .eE+-]{0,12}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match compacted(&text) {
                Ok(written) => if let Ok(value) = theirs {
                    prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&written).unwrap(), value);
                },
                Err(_) => prop_assert!(theirs.is_err() || text.contains("[[[[")),
            }
        }
    }
}
