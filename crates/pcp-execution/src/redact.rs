//! Parameters as they may stand in a record: shaped like the request, with its texts replaced by hashes (C5).

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

/// Most bytes of parameters in one record; whatever is beyond is covered by the hash alone.
pub const MAX_RECORDED_PARAMETERS_BYTES: usize = 4096;
/// Longest text that is written in clear, in bytes; a longer one is content rather than a choice.
const MAX_CLEAR_BYTES: usize = 64;

/// What of a capability's declaration may stand in a record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Declared<'a> {
    /// The schema of the parameters, as the manifest has it; empty where there is none.
    pub(crate) schema: &'a str,
    /// Names of the parameters whose texts are written in clear.
    pub(crate) clear: &'a [Box<str>],
}

/// Writes `parameters` to `out`: numbers, booleans and null as they are, texts in clear only where the
/// schema says so, everything else as `sha256:…`. A name that the schema does not know is content, too.
///
/// Allocates nothing beyond `out` unless a name is written with escapes.
pub(crate) fn redact(parameters: &str, declared: Declared<'_>, out: &mut String) {
    out.clear();
    out.push('{');
    let mut json = serde_json::Deserializer::from_str(parameters);
    let complete = Members { declared, out }.deserialize(&mut json).unwrap_or(false);
    if !complete {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str("\"_cut\":true");
    }
    out.push('}');
}

struct Members<'o, 'c> {
    declared: Declared<'c>,
    out: &'o mut String,
}

impl<'de> DeserializeSeed<'de> for Members<'_, '_> {
    /// Whether everything fitted.
    type Value = bool;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Members<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a parameter object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let mut complete = true;
        while let Some(Name(name)) = map.next_key::<Name<'_>>()? {
            let value: &RawValue = map.next_value()?;
            if self.out.len() + name.len() + 2 * MAX_CLEAR_BYTES + 128 > MAX_RECORDED_PARAMETERS_BYTES {
                complete = false;
                continue;
            }
            if self.out.len() > 1 {
                self.out.push(',');
            }
            let known = is_plain(&name) && self.declared.knows(&name);
            if known {
                let _ = write!(self.out, "\"{name}\":");
            } else {
                let _ = write!(self.out, "\"sha256:{}\":", Hex(name.as_bytes()));
            }
            let text = value.get();
            let scalar = !matches!(text.as_bytes().first(), Some(b'"' | b'{' | b'['));
            let clear =
                self.declared.clear.iter().any(|clear| **clear == *name) && text.len() <= MAX_CLEAR_BYTES;
            if scalar && text.len() <= MAX_CLEAR_BYTES || clear && text.starts_with('"') {
                self.out.push_str(text);
            } else {
                let _ = write!(self.out, "\"sha256:{}\"", Hex(text.as_bytes()));
            }
        }
        Ok(complete)
    }
}

impl Declared<'_> {
    /// Whether the name stands in the schema: then it is public, and no content of a request.
    fn knows(&self, name: &str) -> bool {
        let quote = |at: Option<usize>| at.and_then(|at| self.schema.as_bytes().get(at)) == Some(&b'"');
        let quoted = |at: usize| quote(at.checked_sub(1)) && quote(at.checked_add(name.len()));
        self.schema.match_indices(name).any(|(at, _)| quoted(at))
    }
}

/// A name that needs no escape: a short ASCII identifier.
fn is_plain(name: &str) -> bool {
    name.len() <= MAX_CLEAR_BYTES
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.'))
}

struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Borrowed)
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Sha256::digest(self.0).iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"properties":{"id":{},"on":{},"format":{},"body":{},"deep":{},"A":{}}}"#;

    fn redacted(parameters: &str, clear: &[&str]) -> String {
        let clear: Vec<Box<str>> = clear.iter().map(|&name| name.into()).collect();
        let mut out = String::new();
        redact(parameters, Declared { schema: SCHEMA, clear: &clear }, &mut out);
        assert!(serde_json::from_str::<serde_json::Value>(&out).unwrap().is_object(), "{out}");
        out
    }

    #[test]
    fn texts_are_hashed_and_choices_numbers_and_flags_stay() {
        let out = redacted(
            r#"{"id":7,"on":true,"format":"text","body":"CANARY","deep":{"x":"CANARY"}}"#,
            &["format"],
        );
        assert!(!out.contains("CANARY"), "{out}");
        assert!(out.starts_with(r#"{"id":7,"on":true,"format":"text","body":"sha256:"#), "{out}");
    }

    #[test]
    fn a_name_that_may_be_content_is_hashed_too() {
        for name in ["CANARY with spaces", "CANARY-4711", "properties\\\":{\\\"CANARY", "CANARY\\u0041"] {
            let out = redacted(&format!(r#"{{"{name}":1,"A":2}}"#), &[]);
            assert!(!out.contains("CANARY") && out.contains("\"A\":2"), "{out}");
        }
        assert!(!redacted(r#"{"orma":1,"":2}"#, &[]).contains("orma"), "a part of a known name is not known");
    }

    #[test]
    fn a_clear_parameter_with_a_long_text_is_hashed() {
        let out = redacted(&format!(r#"{{"format":"{}"}}"#, "x".repeat(65)), &["format"]);
        assert!(out.contains("sha256:"), "{out}");
    }

    #[test]
    fn what_does_not_fit_is_marked_and_the_record_stays_bounded() {
        let members: Vec<String> = (0..500).map(|n| format!("\"name{n}\":{n}")).collect();
        let out = redacted(&format!("{{{}}}", members.join(",")), &[]);
        assert!(
            out.len() <= MAX_RECORDED_PARAMETERS_BYTES && out.ends_with("\"_cut\":true}"),
            "{}",
            out.len()
        );
    }

    #[test]
    fn parameters_that_are_no_object_leave_a_mark_and_no_text() {
        for text in ["[\"CANARY\"]", "\"CANARY\"", "{\"a\":", ""] {
            assert!(!redacted(text, &[]).contains("CANARY"), "{text}");
        }
    }
}
