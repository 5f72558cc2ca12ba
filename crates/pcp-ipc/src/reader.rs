//! Serde's view of a payload: objects are objects, strings are borrowed, embedded JSON is not looked into.
//!
//! Stricter than serde_json where a second spelling of one message would otherwise pass (an array for a struct),
//! and it takes no memory unless a string has an escape (R-131).

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

use crate::embedded::EMBEDDED;
use crate::error::ReadError;
use crate::scan::{Quoted, Scanner};

/// Reads `text` as exactly one object.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ReadError> {
    let mut reader = Reader(Scanner::new(text));
    let value = T::deserialize(&mut reader).map_err(|error| error.or_at(reader.0.at()))?;
    reader.0.end()?;
    Ok(value)
}

struct Reader<'a>(Scanner<'a>);

impl<'de> Reader<'de> {
    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.open(b'{', "an object is missing")?;
        let value = visitor.visit_map(Members { reader: self, first: true })?;
        self.0.depth -= 1;
        Ok(value)
    }

    fn array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.open(b'[', "an array is missing")?;
        let value = visitor.visit_seq(Elements { reader: self, first: true })?;
        self.0.depth -= 1;
        Ok(value)
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.skip_space();
        let begin = self.0.at();
        let quoted = self.0.string()?;
        let result = if quoted.escaped {
            visitor.visit_string(unescape(quoted, begin)?)
        } else {
            visitor.visit_borrowed_str(quoted.inner)
        };
        result.map_err(|error: ReadError| error.or_at(begin))
    }

    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, ReadError> {
        let begin = self.0.at();
        let text = self.0.number()?;
        let result = if let Ok(value) = text.parse::<u64>() {
            visitor.visit_u64(value)
        } else if let Ok(value) = text.parse::<i64>() {
            visitor.visit_i64(value)
        } else {
            visitor.visit_f64(text.parse().map_err(|_| ReadError::new("a number is unreadable", begin))?)
        };
        result.map_err(|error: ReadError| error.or_at(begin))
    }
}

fn unescape(quoted: Quoted<'_>, at: usize) -> Result<String, ReadError> {
    serde_json::from_str(&format!("\"{}\"", quoted.inner))
        .map_err(|_| ReadError::new("an escape is no character", at))
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.skip_space();
        match self.0.peek() {
            Some(b'{') => self.object(visitor),
            Some(b'[') => self.array(visitor),
            Some(b'"') => self.string(visitor),
            Some(b't') => {
                self.0.word("true")?;
                visitor.visit_bool(true)
            }
            Some(b'f') => {
                self.0.word("false")?;
                visitor.visit_bool(false)
            }
            Some(b'n') => {
                self.0.word("null")?;
                visitor.visit_unit()
            }
            _ => self.number(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.object(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.object(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.skip_space();
        if self.0.peek() == Some(b'n') {
            self.0.word("null")?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if name == EMBEDDED {
            visitor.visit_borrowed_str(self.0.value()?)
        } else {
            visitor.visit_newtype_struct(self)
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        // An enum on the wire is one word.
        self.0.skip_space();
        let begin = self.0.at();
        let quoted = self.0.string()?;
        if quoted.escaped {
            return Err(ReadError::new("a word is written with an escape", begin));
        }
        visitor
            .visit_enum(BorrowedStrDeserializer::new(quoted.inner))
            .map_err(|error: ReadError| error.or_at(begin))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.0.value()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct identifier
    }
}

struct Members<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl<'de> MapAccess<'de> for Members<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        if self.reader.0.member(&mut self.first)? {
            seed.deserialize(&mut *self.reader).map(Some)
        } else {
            Ok(None)
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        self.reader.0.colon()?;
        seed.deserialize(&mut *self.reader)
    }
}

struct Elements<'r, 'de> {
    reader: &'r mut Reader<'de>,
    first: bool,
}

impl<'de> SeqAccess<'de> for Elements<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        if self.reader.0.element(&mut self.first)? {
            seed.deserialize(&mut *self.reader).map(Some)
        } else {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, Text};

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer<'a> {
        #[serde(borrow)]
        text: Text<'a>,
        #[serde(borrow, default)]
        inner: Option<Inner<'a>>,
        #[serde(borrow, default)]
        raw: Option<Json<'a>>,
        #[serde(default)]
        numbers: Vec<u32>,
        #[serde(default)]
        flag: bool,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner<'a> {
        #[serde(borrow)]
        word: Text<'a>,
    }

    #[test]
    fn an_object_is_read_with_its_embedded_json_untouched() {
        let text = r#" { "raw" : {"a": [1, {"b":"\u00e9"}]} , "text":"a\nb","inner":{"word":"w"},"numbers":[1 , 2],"flag":true} "#;
        let outer: Outer<'_> = read(text).unwrap();
        assert_eq!(outer.text.as_str(), "a\nb");
        assert_eq!(outer.raw.unwrap().as_str(), r#"{"a": [1, {"b":"\u00e9"}]}"#);
        assert_eq!(outer.inner.unwrap().word.as_str(), "w");
        assert_eq!((outer.numbers, outer.flag), (vec![1, 2], true));
    }

    #[test]
    fn absent_and_null_are_the_same() {
        let absent: Outer<'_> = read(r#"{"text":"t"}"#).unwrap();
        let null: Outer<'_> = read(r#"{"text":"t","inner":null,"raw":null}"#).unwrap();
        assert_eq!(absent, null);
    }

    #[test]
    fn what_is_not_exactly_one_object_of_the_schema_is_refused() {
        let table = [
            ("", "an object is missing at byte 0"),
            ("[]", "an object is missing at byte 0"),
            (r#""text""#, "an object is missing at byte 0"),
            (r#"["t"]"#, "an object is missing at byte 0"),
            (r#"{"text":"t"} x"#, "bytes after the object at byte 13"),
            (r#"{"text":"t"}{"text":"t"}"#, "bytes after the object at byte 12"),
            (r#"{"text":"t",}"#, "a member has no name at byte 12"),
            (r#"{"text":"t" "flag":true}"#, "an object is not closed at byte 12"),
            (r#"{"text":"t","flag" true}"#, "a member has no colon at byte 19"),
            (r#"{"text":"t","inner":["w"]}"#, "an object is missing at byte 20"),
            (r#"{"text":"t","text":"u"}"#, "duplicate field `text` at byte 18"),
            (
                r#"{"text":"t","x":1}"#,
                "unknown field `x`, expected one of `text`, `inner`, `raw`, `numbers`, `flag` at byte 12",
            ),
            (r#"{"text":"t","inner":{"word":"w","y":{}}}"#, "unknown field `y`, expected `word` at byte 32"),
            (r#"{"flag":true}"#, "missing field `text` at byte 13"),
            (r#"{"text":1}"#, "invalid type: integer `1`, expected a string at byte 8"),
            (r#"{"text":"t","numbers":[1,]}"#, "a number has no digits at byte 25"),
            (
                r#"{"text":"t","numbers":[4294967296]}"#,
                "invalid value: integer `4294967296`, expected u32 at byte 23",
            ),
            (r#"{"text":"\ud800"}"#, "an escape is no character at byte 8"),
            (r#"{"text":"t","raw":tru}"#, "a value is missing at byte 18"),
            (r#"{"text":"t""#, "an object is not closed at byte 11"),
        ];
        for (text, wanted) in table {
            assert_eq!(read::<Outer<'_>>(text).unwrap_err().to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn depth_counts_from_the_object_itself() {
        let nested =
            |levels: usize| format!(r#"{{"text":"t","raw":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(read::<Outer<'_>>(&nested(31)).is_ok());
        assert!(read::<Outer<'_>>(&nested(32)).is_err());
    }
}
