//! JSON of somebody else inside a payload: handed through byte for byte, looked into by nobody on the way.

use core::fmt;

use serde::de::Visitor;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::error::{Error, ReadError};
use crate::scan::Scanner;

/// The name by which the reader of payloads knows that a value is to be passed and not read.
pub(crate) const EMBEDDED: &str = "pcp embedded json";

/// The text of one JSON value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// The object without members.
    pub const EMPTY_OBJECT: Self = Self("{}");

    /// Takes text that has to be exactly one JSON value, such as what an application returned.
    ///
    /// # Errors
    /// [`Error::Payload`] says where it is none, or that it is nested deeper than a payload may be.
    pub fn parse(text: &'a str) -> Result<Self, Error> {
        let fault = |error: ReadError| Error::Payload { message_type: "embedded JSON", error };
        let mut scanner = Scanner::new(text);
        // The value will stand inside a payload's object.
        scanner.enter().map_err(fault)?;
        let value = scanner.value().map_err(fault)?;
        scanner.end().map_err(fault)?;
        Ok(Self(value))
    }

    /// Takes text that is known to be one JSON value: it came out of a payload or from a serializer.
    ///
    /// Text that is none would make the whole payload unreadable; a build with debug assertions stops there.
    #[must_use]
    pub fn from_checked(text: &'a str) -> Self {
        debug_assert!(Self::parse(text).is_ok(), "not one JSON value: {text:.80}");
        Self(text)
    }

    /// The text.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }

    /// Whether the value is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Raw;
        impl<'de> Visitor<'de> for Raw {
            type Value = Json<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON value")
            }
            fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Json<'de>, E> {
                Ok(Json(text))
            }
            // serde_json and others do not know the name and hand over their own reader.
            fn visit_newtype_struct<D: Deserializer<'de>>(self, other: D) -> Result<Json<'de>, D::Error> {
                <&RawValue>::deserialize(other).map(|raw| Json(raw.get()))
            }
        }
        deserializer.deserialize_newtype_struct(EMBEDDED, Raw)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(self.0).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_value_is_taken() {
        for good in ["{}", " [1] ", "\"x\"", "null", "-0.5e7"] {
            assert_eq!(Json::parse(good).unwrap().as_str(), good.trim());
        }
        for bad in ["", "{} {}", "{\"a\":1,}", "nul", "\"\u{1}\"", "01"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_value_that_would_be_too_deep_inside_a_payload_is_refused_here() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Json::parse(&nested(31)).is_ok());
        assert!(Json::parse(&nested(32)).is_err());
    }

    #[test]
    fn serde_json_reads_and_writes_it_too() {
        let json: Json<'_> = serde_json::from_str("{\"a\": 1}").unwrap();
        assert_eq!(json.as_str(), "{\"a\": 1}");
        assert_eq!(serde_json::to_string(&json).unwrap(), "{\"a\": 1}");
    }
}
