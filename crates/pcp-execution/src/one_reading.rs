//! JSON that every reader reads alike: what is checked here is what the application will see (TH-17).
//!
//! The bytes go on to the application as they came. A member given twice is the first to one parser and the last to
//! another, and `serde_json` parses the text under its own private names a second time; both would have something
//! else checked than is carried out.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Names to which `serde_json` itself gives a meaning.
const RESERVED_PREFIX: &str = "$serde_json::private::";

/// Reads one JSON value. The error never repeats a name or a value, which may be content.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut json = serde_json::Deserializer::from_str(text);
    OneReading.deserialize(&mut json).and_then(|value| json.end().map(|()| value)).map_err(|e| e.to_string())
}

struct OneReading;

impl<'de> DeserializeSeed<'de> for OneReading {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneReading {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is out of range"))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(Self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom("a member is there twice"));
            }
            if name.starts_with(RESERVED_PREFIX) {
                return Err(A::Error::custom("a member has a name that is reserved"));
            }
            let value = map.next_value_seed(Self)?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_two_readers_would_read_differently_is_refused_without_repeating_it() {
        let table = [
            (r#"{"a":1,"a":2}"#, "twice"),
            (r#"{"a":1,"\u0061":2}"#, "twice"),
            (r#"[{"x":{"a":1,"b":2,"a":1}}]"#, "twice"),
            (r#"{"$serde_json::private::RawValue":"{\"CANARY\":1}"}"#, "reserved"),
            (r#"{"x":{"$serde_json::private::Number":"CANARY"}}"#, "reserved"),
            ("{} {}", "trailing"),
            ("1e999", "out of range"),
        ];
        for (text, why) in table {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why) && !error.contains("CANARY"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn everything_else_is_read_as_serde_json_reads_it(text in r#"[\[\]{}a",:0-9.eE\\u+ntruefalsl-]{0,24}"#) {
            let plain = serde_json::from_str::<Value>(&text);
            match parse(&text) {
                Ok(value) => prop_assert_eq!(value, plain.unwrap()),
                Err(why) => prop_assert!(plain.is_err() || why.contains("twice"), "{}: {}", text, why),
            }
        }
    }
}
