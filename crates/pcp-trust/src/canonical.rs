//! JSON that means the same to every reader, as the exact bytes that are signed (RFC 8785).
//!
//! The writer is a library; the reader is the point of this file. A signature over canonical bytes protects
//! only what every parser reads alike, so a document is refused whenever two sound parsers could differ
//! (R-204, RELIABILITY TH-17): repeated names, numbers a double cannot hold exactly, nesting some stacks do
//! not survive, anything after the end. Start with [`CanonicalJson::parse`].

use std::cell::RefCell;

use serde::de::DeserializeSeed as _;
use serde_json::{Number, Value};
use sha2::{Digest as _, Sha256};

use crate::ed25519::Signer;
use crate::error::Error;
use crate::strict_json::Strict;

/// Bytes of a document that is to be signed or verified. A manifest with 200 capabilities and full schemas has
/// about 150 KiB; one frame of the wire protocol carries 1 MiB.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;
/// Levels of objects and arrays inside each other. Real schemas need about ten; every level is a stack frame
/// in every reader of the document, and some readers are small.
pub const MAX_DEPTH: usize = 32;
/// The largest integer whose neighbours a double can tell apart (RFC 7493 2.2). Beyond it two readers may hold
/// different numbers for the same digits.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
/// The top-level member that is not part of what it signs.
pub const SIGNATURE_MEMBER: &str = "signature";

/// A JSON object together with the bytes its signature is about.
#[derive(Debug, Clone, PartialEq)]
pub struct CanonicalJson {
    unsigned: Value,
    signature: Option<Value>,
    signed_bytes: Vec<u8>,
}

impl CanonicalJson {
    /// Reads one object by the rules of [`parse`], takes the top-level `signature` out and writes the rest in
    /// canonical form. Members of that name deeper down stay.
    ///
    /// # Errors
    /// Those of [`parse`], and [`Error::Malformed`] if the document is no object.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let Value::Object(mut members) = parse(bytes)? else {
            return Err(Error::Malformed { detail: "the document is not an object".to_owned() });
        };
        let signature = members.remove(SIGNATURE_MEMBER);
        let unsigned = Value::Object(members);
        let signed_bytes = canonical_bytes(&unsigned)?;
        Ok(Self { unsigned, signature, signed_bytes })
    }

    /// The document without its signature.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.unsigned
    }

    /// The `signature` member as it stood in the document, whatever its type.
    #[must_use]
    pub fn signature(&self) -> Option<&Value> {
        self.signature.as_ref()
    }

    /// The bytes a signature of this document is about (S0 `canonical_json()`).
    #[must_use]
    pub fn signed_bytes(&self) -> &[u8] {
        &self.signed_bytes
    }

    /// SHA-256 of the signed bytes: names the document whatever its layout on disk.
    #[must_use]
    pub fn sha256(&self) -> [u8; 32] {
        Sha256::digest(&self.signed_bytes).into()
    }

    /// The document in canonical form with `signer`'s signature in it; an older signature is replaced.
    #[must_use]
    pub fn signed_with(&self, signer: &Signer) -> Vec<u8> {
        let signature = signer.sign(&self.signed_bytes).to_base64();
        let mut signed = self.unsigned.clone();
        if let Value::Object(members) = &mut signed {
            members.insert(SIGNATURE_MEMBER.to_owned(), Value::String(signature));
        }
        // The rest was written once already and a string is always writable.
        canonical_bytes(&signed).unwrap_or_default()
    }
}

/// Reads one JSON value that every reader reads alike.
///
/// # Errors
/// [`Error::DocumentTooLarge`], [`Error::DuplicateKey`], [`Error::TooDeep`], [`Error::NumberOutOfRange`], or
/// [`Error::Malformed`] for anything that is not exactly one JSON text in UTF-8.
pub fn parse(bytes: &[u8]) -> Result<Value, Error> {
    if bytes.len() > MAX_DOCUMENT_BYTES {
        return Err(Error::DocumentTooLarge { size: bytes.len(), limit: MAX_DOCUMENT_BYTES });
    }
    let refusal = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict::new(&refusal).deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    value.map_err(|error| {
        refusal.into_inner().unwrap_or_else(|| Error::Malformed { detail: error.to_string() })
    })
}

/// Writes `value` in canonical form.
///
/// # Errors
/// [`Error::NumberOutOfRange`] or [`Error::TooDeep`]: such a value has no form that every reader agrees on.
pub fn canonical_bytes(value: &Value) -> Result<Vec<u8>, Error> {
    check(value, 0)?;
    serde_json_canonicalizer::to_vec(value).map_err(|error| Error::Malformed { detail: error.to_string() })
}

fn check(value: &Value, depth: usize) -> Result<(), Error> {
    match value {
        Value::Number(number) => safe(number).map(|_| ()),
        Value::Array(items) => {
            let depth = deeper(depth)?;
            items.iter().try_for_each(|item| check(item, depth))
        }
        Value::Object(members) => {
            let depth = deeper(depth)?;
            members.values().try_for_each(|member| check(member, depth))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => Ok(()),
    }
}

pub(crate) fn deeper(depth: usize) -> Result<usize, Error> {
    if depth == MAX_DEPTH { Err(Error::TooDeep { limit: MAX_DEPTH }) } else { Ok(depth + 1) }
}

pub(crate) fn safe(number: &Number) -> Result<&Number, Error> {
    let exact = if let Some(integer) = number.as_i128() {
        integer.unsigned_abs() <= u128::from(MAX_SAFE_INTEGER)
    } else {
        // A double at or above 2^53 has no fraction, so it stands for an integer that is beyond the limit.
        number.as_f64().is_some_and(|float| float.abs() < 9_007_199_254_740_992.0)
    };
    if exact { Ok(number) } else { Err(Error::NumberOutOfRange { number: number.to_string() }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(canonical_bytes(&parse(text.as_bytes()).unwrap()).unwrap()).unwrap()
    }

    #[test]
    fn the_examples_of_rfc_8785_come_out_byte_for_byte() {
        let input = r#"{"numbers":[333333333.33333329,1E15,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let output = concat!(
            r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1000000000000000,4.5,0.002,1e-27],"#,
            r#""string":"€$\u000f\nA'B\"\\\\\"/"}"#
        );
        assert_eq!(canonical(input), output);
    }

    #[test]
    fn names_are_sorted_by_utf_16_units() {
        let input = r#"{"\u20ac":1,"\r":2,"\ufb33":3,"1":4,"\ud83d\ude00":5,"\u0080":6,"\u00f6":7}"#;
        assert_eq!(
            canonical(input),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        type Matches = fn(&Error) -> bool;
        let duplicate: Matches = |e| matches!(e, Error::DuplicateKey { .. });
        let number: Matches = |e| matches!(e, Error::NumberOutOfRange { .. });
        let malformed: Matches = |e| matches!(e, Error::Malformed { .. });
        let table: &[(&[u8], Matches)] = &[
            (br#"{"a":1,"a":1}"#, duplicate),
            (br#"{"a":1,"\u0061":2}"#, duplicate),
            (br#"{"x":[{"b":{"c":1,"d":2,"c":3}}]}"#, duplicate),
            (b"9007199254740992", number),
            (b"-9007199254740992", number),
            (b"9007199254740993.0", number),
            (b"18446744073709551616", number),
            (b"1e300", number),
            (b"1e999", malformed),
            (b"NaN", malformed),
            (b"-Infinity", malformed),
            (br#"{"a":1} {"#, malformed),
            (b"1 2", malformed),
            (b"", malformed),
            (b"{\"a\":1,}", malformed),
            (b"[1,]", malformed),
            (b"01", malformed),
            (b"'a'", malformed),
            (b"{a:1}", malformed),
            (b"// c\n1", malformed),
            (b"\xEF\xBB\xBF{}", malformed),
            (b"\"\xC0\xAF\"", malformed),
            (b"\"\xED\xA0\x80\"", malformed),
            (br#""\ud800""#, malformed),
            (br#""\ude00\ud83d""#, malformed),
            (b"\"a\nb\"", malformed),
            (b"\"a\0b\"", malformed),
            (br#"{"$serde_json::private::RawValue":"{}"}"#, malformed),
        ];
        for (bytes, expected) in table {
            let error = parse(bytes).unwrap_err();
            assert!(expected(&error), "{}: {error:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn the_largest_safe_integers_pass() {
        assert_eq!(canonical("[9007199254740991,-9007199254740991]"), "[9007199254740991,-9007199254740991]");
        assert_eq!(canonical("[-0, 0.0, 1.0, 1e2, 1e-05, 1e-07]"), "[0,0,1,100,0.00001,1e-7]");
    }

    #[test]
    fn nesting_is_refused_one_level_past_the_limit() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        parse(nested(MAX_DEPTH).as_bytes()).unwrap();
        for levels in [MAX_DEPTH + 1, 200, 400_000] {
            let error = parse(nested(levels).as_bytes()).unwrap_err();
            assert!(matches!(error, Error::TooDeep { limit: MAX_DEPTH }), "{levels}: {error:?}");
        }
        let objects = format!("{}1{}", r#"{"a":"#.repeat(MAX_DEPTH + 1), "}".repeat(MAX_DEPTH + 1));
        assert!(matches!(parse(objects.as_bytes()), Err(Error::TooDeep { .. })));
    }

    #[test]
    fn a_document_one_byte_past_the_limit_is_refused_unread() {
        let quoted = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        parse(quoted(MAX_DOCUMENT_BYTES).as_bytes()).unwrap();
        let error = parse(quoted(MAX_DOCUMENT_BYTES + 1).as_bytes()).unwrap_err();
        assert!(matches!(error, Error::DocumentTooLarge { size, .. } if size == MAX_DOCUMENT_BYTES + 1));
    }

    #[test]
    fn a_value_with_an_inexact_number_has_no_canonical_form() {
        for value in
            [serde_json::json!(u64::MAX), serde_json::json!([{"a": i64::MIN}]), serde_json::json!(1e16)]
        {
            assert!(matches!(canonical_bytes(&value), Err(Error::NumberOutOfRange { .. })), "{value}");
        }
    }

    #[test]
    fn only_the_top_level_signature_is_taken_out() {
        let json = CanonicalJson::parse(br#"{"signature":"s","b":{"signature":1},"a":[]}"#).unwrap();
        assert_eq!(json.signature(), Some(&Value::from("s")));
        assert_eq!(json.signed_bytes(), br#"{"a":[],"b":{"signature":1}}"#);
        assert_eq!(json.value(), &serde_json::json!({"a": [], "b": {"signature": 1}}));
    }

    #[test]
    fn a_signed_document_is_an_object() {
        for text in ["[]", "null", "1", "\"a\""] {
            assert!(matches!(CanonicalJson::parse(text.as_bytes()), Err(Error::Malformed { .. })), "{text}");
        }
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-(1_i64 << 53) + 1..1_i64 << 53).prop_map(Value::from),
            any::<f64>().prop_filter("safe", |x| x.abs() < 9e15).prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(".{0,6}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_canonical_form_is_a_fixed_point_however_the_text_was_laid_out(value in json()) {
            let bytes = canonical_bytes(&value).unwrap();
            let pretty = serde_json::to_vec_pretty(&value).unwrap();
            prop_assert_eq!(canonical_bytes(&parse(&bytes).unwrap()).unwrap(), bytes.clone());
            prop_assert_eq!(canonical_bytes(&parse(&pretty).unwrap()).unwrap(), bytes);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = CanonicalJson::parse(&bytes);
        }
    }
}
