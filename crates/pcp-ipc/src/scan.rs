//! JSON text without a tree: where a value ends, whether it is one, how deep it goes (RFC 8259).
//!
//! serde_json notes the nesting of what it skips on the heap, so that handing a nested value through would
//! cost an allocation per request, and it has no limit of depth there. Here the nesting is one machine word.

use crate::error::ReadError;

/// Deepest nesting of a payload: deeper than any schema in use, and it fits the word that records it (TH-05).
pub const MAX_DEPTH: u32 = 32;

/// A position in JSON text that only moves forward.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// Objects and arrays that are open around the position.
    pub(crate) depth: u32,
}

/// A string's text between its quotes, as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quoted<'a> {
    /// What stands between the quotes.
    pub(crate) inner: &'a str,
    /// Whether a backslash is in it, so that it is not the string itself.
    pub(crate) escaped: bool,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    pub(crate) fn fault(&self, what: &'static str) -> ReadError {
        ReadError::new(what, self.at)
    }

    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(crate) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\t' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes `byte` if it is next, after space.
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.skip_space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    pub(crate) fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), ReadError> {
        if self.take(byte) { Ok(()) } else { Err(self.fault(what)) }
    }

    /// Nothing but space may follow.
    pub(crate) fn end(&mut self) -> Result<(), ReadError> {
        self.skip_space();
        if self.at == self.text.len() { Ok(()) } else { Err(self.fault("bytes after the object")) }
    }

    /// Opens one more level.
    pub(crate) fn enter(&mut self) -> Result<(), ReadError> {
        if self.depth == MAX_DEPTH {
            return Err(self.fault("nested deeper than 32 levels"));
        }
        self.depth += 1;
        Ok(())
    }

    // What the readers of all payloads share is one function each: inlined, it would be there once for each field.

    /// Opens an object or array.
    pub(crate) fn open(&mut self, byte: u8, what: &'static str) -> Result<(), ReadError> {
        self.expect(byte, what)?;
        self.enter()
    }

    /// Whether another member follows; its name is next then. `first` until one was there.
    #[inline(never)]
    pub(crate) fn member(&mut self, first: &mut bool) -> Result<bool, ReadError> {
        if self.take(b'}') {
            return Ok(false);
        }
        if !core::mem::take(first) {
            // Space is passed already.
            if self.peek() != Some(b',') {
                return Err(self.fault("an object is not closed"));
            }
            self.at += 1;
            self.skip_space();
        }
        if self.peek() == Some(b'"') { Ok(true) } else { Err(self.fault("a member has no name")) }
    }

    /// Between a member's name and its value.
    pub(crate) fn colon(&mut self) -> Result<(), ReadError> {
        self.expect(b':', "a member has no colon")
    }

    /// Whether another element follows. `first` until one was there.
    #[inline(never)]
    pub(crate) fn element(&mut self, first: &mut bool) -> Result<bool, ReadError> {
        if self.take(b']') {
            return Ok(false);
        }
        if !core::mem::take(first) {
            self.expect(b',', "an array is not closed")?;
        }
        Ok(true)
    }

    /// Passes one value of any kind and gives its text.
    #[inline(never)]
    pub(crate) fn value(&mut self) -> Result<&'a str, ReadError> {
        self.skip_space();
        let begin = self.at;
        let outside = self.depth;
        // One bit for each open level, the innermost lowest: 1 for an object, 0 for an array.
        let mut open = 0u32;
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'{') => {
                    self.at += 1;
                    self.enter()?;
                    if self.take(b'}') {
                        self.depth -= 1;
                    } else {
                        open = open << 1 | 1;
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.at += 1;
                    self.enter()?;
                    if self.take(b']') {
                        self.depth -= 1;
                    } else {
                        open <<= 1;
                        continue;
                    }
                }
                Some(b'"') => drop(self.string()?),
                Some(b'-' | b'0'..=b'9') => drop(self.number()?),
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return Err(self.fault("a value is missing")),
            }
            loop {
                if self.depth == outside {
                    return Ok(self.since(begin));
                }
                let object = open & 1 == 1;
                if self.take(b',') {
                    if object {
                        self.key()?;
                    }
                    break;
                }
                self.expect(if object { b'}' } else { b']' }, "an object or array is not closed")?;
                open >>= 1;
                self.depth -= 1;
            }
        }
    }

    fn key(&mut self) -> Result<(), ReadError> {
        self.skip_space();
        self.string()?;
        self.colon()
    }

    /// Passes a string.
    #[inline(never)]
    pub(crate) fn string(&mut self) -> Result<Quoted<'a>, ReadError> {
        if self.peek() != Some(b'"') {
            return Err(self.fault("a string is missing"));
        }
        self.at += 1;
        let begin = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_prefix(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.peek() {
                Some(b'"') => {
                    let inner = self.since(begin);
                    self.at += 1;
                    return Ok(Quoted { inner, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => return Err(self.fault("a control character stands in a string")),
                None => return Err(self.fault("a string is not closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<(), ReadError> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let digits = self.text.as_bytes().get(self.at + 1..self.at + 5);
                if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                    return Err(self.fault("an escape is not four hexadecimal digits"));
                }
                self.at += 5;
                Ok(())
            }
            _ => Err(self.fault("an escape is unknown")),
        }
    }

    /// Passes a number and gives its text.
    #[inline(never)]
    pub(crate) fn number(&mut self) -> Result<&'a str, ReadError> {
        let begin = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.fault("a number has no digits")),
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
        Ok(self.since(begin))
    }

    fn digits(&mut self) -> Result<(), ReadError> {
        let begin = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == begin { Err(self.fault("a number has no digits")) } else { Ok(()) }
    }

    /// Passes `true`, `false` or `null`.
    pub(crate) fn word(&mut self, word: &'static str) -> Result<(), ReadError> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(self.fault("a value is missing"));
        }
        self.at += word.len();
        Ok(())
    }

    fn since(&self, begin: usize) -> &'a str {
        self.text.get(begin..self.at).unwrap_or_default()
    }
}

/// How many bytes at the front are neither quote, backslash nor control character.
///
/// Eight at a time in one word, which is fast at every level of optimisation; a string of a few kilobytes is
/// most of what a request costs to read.
fn plain_prefix(bytes: &[u8]) -> usize {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // Taking away sets the top bit of a byte below what is taken; a byte above 0x7f is never special, and its
    // own top bit masks it. A borrow reaches the next byte only from one that is special itself.
    const fn is_plain(word: u64) -> bool {
        let control = word.wrapping_sub(each(0x20));
        let quote = (word ^ each(b'"')).wrapping_sub(each(1));
        let backslash = (word ^ each(b'\\')).wrapping_sub(each(1));
        (control | quote | backslash) & !word & each(0x80) == 0
    }
    let (words, _) = bytes.as_chunks::<8>();
    let special = words.iter().position(|word| !is_plain(u64::from_ne_bytes(*word)));
    let at = 8 * special.unwrap_or(words.len());
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// Whether the scanner takes the whole text as one value.
    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.value().is_ok() && scanner.end().is_ok()
    }

    fn serde_json_accepts(text: &str) -> bool {
        serde_json::from_str::<&RawValue>(text).is_ok()
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            ]
        })
        .prop_map(|value| value.to_string())
    }

    proptest! {
        #[test]
        fn json_is_passed_whole_and_byte_for_byte(text in json()) {
            let padded = format!(" \n{text}\t ");
            prop_assert_eq!(Scanner::new(&padded).value().unwrap(), text.as_str());
            prop_assert!(accepts(&padded));
        }

        #[test]
        fn text_that_serde_json_refuses_is_refused(text in json(), at: prop::sample::Index, with in "[\\x00-\\x7f]{0,2}") {
            let at = (0..=at.index(text.len() + 1)).rev().find(|at| text.is_char_boundary(*at)).unwrap();
            let next = (at + 1..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            let changed = format!("{}{with}{}", &text[..at], &text[next..]);
            prop_assert_eq!(accepts(&changed), serde_json_accepts(&changed), "{:?}", changed);
        }

        #[test]
        fn short_texts_are_judged_as_serde_json_judges_them(text in "[\\[\\]{},:\"\\\\0-2eE.+\\-tfnrulasu /\\x01]{0,10}") {
            prop_assert_eq!(accepts(&text), serde_json_accepts(&text), "{:?}", text);
        }

        #[test]
        fn a_plain_prefix_ends_at_the_first_special_byte(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let wanted = bytes.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(bytes.len());
            prop_assert_eq!(plain_prefix(&bytes), wanted);
        }
    }

    #[test]
    fn thirty_two_levels_pass_and_one_more_does_not() {
        for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
            let nested = |levels| format!("{}1{}", open.repeat(levels), close.repeat(levels));
            assert!(accepts(&nested(32)));
            let error = Scanner::new(&nested(33)).value().unwrap_err();
            assert!(error.to_string().starts_with("nested deeper than 32 levels"), "{error}");
        }
        assert!(!accepts(&"[".repeat(1_000_000)));
    }
}
