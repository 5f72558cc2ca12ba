//! Puts a signature into a manifest's text and leaves every other byte where it was.
//!
//! An author's layout and order of members are theirs; the signature is about the canonical form, whatever the
//! layout. The text is known to be one JSON object here: `pcp-trust` has read it.

use std::ops::Range;

use pcp_trust::canonical::SIGNATURE_MEMBER;

/// The text with `signature` as its top-level signature, `None` when the text is no object.
pub(crate) fn with_signature(text: &str, signature: &str) -> Option<String> {
    let layout = Layout::of(text)?;
    let mut signed = String::with_capacity(text.len() + signature.len() + 64);
    match layout.signature {
        Some(value) => {
            signed.push_str(text.get(..value.start)?);
            push_string(&mut signed, signature);
            signed.push_str(text.get(value.end..)?);
        }
        None => {
            signed.push_str(text.get(..layout.end)?);
            signed.push_str(if layout.members == 0 { "" } else { "," });
            signed.push_str(text.get(layout.before_name)?);
            push_string(&mut signed, SIGNATURE_MEMBER);
            signed.push_str(text.get(layout.after_name)?);
            push_string(&mut signed, signature);
            signed.push_str(text.get(layout.end..)?);
        }
    }
    Some(signed)
}

/// Base64 and a plain name need no escapes.
fn push_string(text: &mut String, plain: &str) {
    text.push('"');
    text.push_str(plain);
    text.push('"');
}

/// What the top level of the text looks like.
#[derive(Debug, Default)]
struct Layout {
    /// The signature's value, where there is one.
    signature: Option<Range<usize>>,
    members: usize,
    /// White space before the first name.
    before_name: Range<usize>,
    /// Colon and white space after the first name.
    after_name: Range<usize>,
    /// Behind the last value, or behind the opening brace.
    end: usize,
}

impl Layout {
    fn of(text: &str) -> Option<Self> {
        let mut cursor = Cursor { bytes: text.as_bytes(), at: 0 };
        cursor.white();
        cursor.take(b'{')?;
        let mut layout = Self { end: cursor.at, ..Self::default() };
        loop {
            let before = cursor.at..cursor.white();
            if cursor.take(b'}').is_some() {
                return Some(layout);
            }
            let name = cursor.at..cursor.value()?;
            let colon = cursor.at;
            cursor.white();
            cursor.take(b':')?;
            let after = colon..cursor.white();
            let value = cursor.at..cursor.value()?;
            if layout.members == 0 {
                (layout.before_name, layout.after_name) = (before, after);
            }
            layout.members += 1;
            layout.end = value.end;
            let name = serde_json::from_str::<String>(text.get(name)?).ok()?;
            if name == SIGNATURE_MEMBER {
                layout.signature = Some(value);
            }
            cursor.white();
            // Either a comma or the brace that the next round takes.
            let _ = cursor.take(b',');
        }
    }
}

/// Steps over valid JSON.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek() == Some(byte)).then(|| self.at += 1)
    }

    /// Passes white space and gives where it ends.
    fn white(&mut self) -> usize {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.at
    }

    /// Passes one value and gives where it ends.
    fn value(&mut self) -> Option<usize> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                _ if depth > 0 => self.at += 1,
                _ => {
                    while !matches!(
                        self.peek(),
                        None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')
                    ) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return Some(self.at);
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.take(b'"')?;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcp_trust::CanonicalJson;

    #[test]
    fn a_signature_is_added_in_the_layout_of_the_author() {
        let table = [
            ("{\"a\":1}", "{\"a\":1,\"signature\":\"S\"}"),
            ("{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"signature\": \"S\"\n}\n"),
            ("{ \"a\" : {\"signature\":2} }", "{ \"a\" : {\"signature\":2}, \"signature\" : \"S\" }"),
            ("{\t\"a\\\"}\":\"}\\\\\"}", "{\t\"a\\\"}\":\"}\\\\\",\t\"signature\":\"S\"}"),
        ];
        for (text, signed) in table {
            assert_eq!(with_signature(text, "S").as_deref(), Some(signed));
        }
    }

    #[test]
    fn an_older_signature_is_replaced_where_it_stands() {
        let table = [
            (
                "{\"signature\": \"old\",\r\n \"a\":[1,{\"b\":\"]\"}]}",
                "{\"signature\": \"S\",\r\n \"a\":[1,{\"b\":\"]\"}]}",
            ),
            ("{\"a\":-1.5e3,\"sig\\u006eature\":null}", "{\"a\":-1.5e3,\"sig\\u006eature\":\"S\"}"),
        ];
        for (text, signed) in table {
            assert_eq!(with_signature(text, "S").as_deref(), Some(signed));
        }
    }

    #[test]
    fn what_is_no_object_gets_no_signature() {
        for text in ["", "[]", "1", "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":]"] {
            assert_eq!(with_signature(text, "S"), None, "{text}");
        }
    }

    #[test]
    fn the_signed_bytes_are_the_same_before_and_after() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/stories/data/manifest/files");
        let mut seen = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read(file.unwrap().path()).unwrap();
            let Ok(before) = CanonicalJson::parse(&text) else { continue };
            let signed = with_signature(std::str::from_utf8(&text).unwrap(), "S").unwrap();
            let after = CanonicalJson::parse(signed.as_bytes()).unwrap();
            assert_eq!(before.signed_bytes(), after.signed_bytes());
            assert_eq!(after.signature().unwrap(), "S");
            seen += 1;
        }
        assert!(seen > 10, "{seen}");
    }
}
