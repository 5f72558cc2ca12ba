//! The canonical form of S3: members sorted by the bytes of their names, no white space, hashed with SHA-256.
//!
//! It is not RFC 8785, which `pcp-trust` writes for manifests: names are sorted by their UTF-8 bytes and not by UTF-16
//! units, and a number is written as serde_json writes it (`1e+21`, `2.0`, every digit of an integer of 64 bits).
//! Nothing is normalised: two texts that look alike and differ in bytes have two hashes.

use std::string::String;
use std::vec::Vec;

use serde::Serialize;
use serde_json::Value;

use super::identifier::Sha256Hash;

/// The canonical form of `value`.
#[must_use]
pub fn canonical_bytes(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(value, &mut out);
    out
}

/// SHA-256 over the canonical form of `value`.
#[must_use]
pub fn canonical_hash(value: &Value) -> Sha256Hash {
    Sha256Hash::of(&canonical_bytes(value))
}

/// Sorted here and not left to the map, whose order another crate's feature could change.
fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => write_scalar(value, out),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| name.as_bytes());
            out.push(b'{');
            for (at, (name, member)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_scalar(name, out);
                out.push(b':');
                write_value(member, out);
            }
            out.push(b'}');
        }
    }
}

#[expect(clippy::expect_used, reason = "a vector takes every byte, and a scalar is always JSON")]
fn write_scalar<T: Serialize + ?Sized>(scalar: &T, out: &mut Vec<u8>) {
    serde_json::to_writer(out, scalar).expect("a scalar is JSON");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn canonical(text: &str) -> String {
        String::from_utf8(canonical_bytes(&serde_json::from_str(text).unwrap())).unwrap()
    }

    #[test]
    fn names_are_sorted_by_their_bytes_and_not_by_utf_16() {
        // U+1F600 is two units from d83d in UTF-16, before U+FB33; in UTF-8 it comes after it.
        let text = "{\"\u{1f600}\":1,\"\u{fb33}\":2,\"b\":3,\"B\":4,\"\":5,\"a\":{\"d\":1,\"c\":2}}";
        assert_eq!(
            canonical(text),
            "{\"\":5,\"B\":4,\"a\":{\"c\":2,\"d\":1},\"b\":3,\"\u{fb33}\":2,\"\u{1f600}\":1}"
        );
    }

    #[test]
    fn strings_are_escaped_only_where_json_must() {
        let table = [
            (r#""\u0068\u00e9llo""#, "\"h\u{e9}llo\""),
            (r#""a\/b""#, "\"a/b\""),
            (r#""\u0008\u0009\u000a\u000c\u000d""#, r#""\b\t\n\f\r""#),
            (r#""\u0000\u001F\u007f""#, "\"\\u0000\\u001f\u{7f}\""),
            (r#""\"\\""#, r#""\"\\""#),
            (r#""\ud83d\ude00""#, "\"\u{1f600}\""),
            (r#""\u2028""#, "\"\u{2028}\""),
        ];
        for (text, expected) in table {
            assert_eq!(canonical(text), expected);
        }
    }

    #[test]
    fn numbers_are_the_shortest_text_that_reads_back() {
        let table = [
            ("1e21", "1e+21"),
            ("2.50", "2.5"),
            ("1", "1"),
            ("1.0", "1.0"),
            ("-0", "-0.0"),
            ("-0.0", "-0.0"),
            ("1e2", "100.0"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("18446744073709551616", "1.8446744073709552e+19"),
            ("9007199254740993", "9007199254740993"),
            ("0.1", "0.1"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("1e15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("0.0001", "0.0001"),
            ("0.00001", "0.00001"),
            ("0.000001", "1e-6"),
            ("1e-7", "1e-7"),
        ];
        for (text, expected) in table {
            assert_eq!(canonical(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_that_was_written_is_read_as_the_same_number(bits in any::<u64>()) {
            let number = f64::from_bits(bits);
            prop_assume!(number.is_finite());
            let text = canonical_bytes(&Value::from(number));
            let back: f64 = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(back.to_bits(), bits);
        }
    }
}
