//! Reading strictly: one text has one meaning, and every byte of it counts.
//!
//! Serde alone takes an array for a struct, and where it buffers it takes names that come twice. So the text is read as
//! JSON first, each name once, and the typed value is made of that by [`Wire`], so that nothing the sender wrote is left
//! out of what is hashed.

use core::fmt;
use std::borrow::ToOwned as _;
use std::string::{String, ToString as _};
use std::vec::Vec;

use serde::Deserializer;
use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Number, Value};
use thiserror::Error;

use super::wire::Wire;

/// Names that serde_json itself gives a meaning to: a value under one of them could be read a second time.
const RESERVED_PREFIX: &str = "$serde_json::private::";
const DUPLICATE: &str = "a name comes twice";
const RESERVED: &str = "a name is reserved";

/// What is wrong with a text. It never quotes the text, which may be somebody's own words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// No JSON.
    #[error("not JSON")]
    Syntax,
    /// The text ends too early.
    #[error("the text ends too early")]
    Ends,
    /// A name comes twice in one object.
    #[error("a name comes twice in one object")]
    DuplicateKey,
    /// A name that readers give a meaning of their own.
    #[error("a name is reserved")]
    ReservedKey,
    /// A member that the protocol does not know.
    #[error("a member that the protocol does not know")]
    UnknownKey,
    /// A member is missing.
    #[error("member {0} is missing")]
    MissingKey(String),
    /// A word that is none of the closed set.
    #[error("a kind that the protocol does not know")]
    UnknownKind,
    /// A value of another type, or outside of it.
    #[error("a value is of another type")]
    Type,
    /// Another spelling of what the protocol writes otherwise: an array for an object, a member of another kind.
    #[error("not the spelling of the protocol")]
    Spelling,
}

/// Why a text was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Longer than any honest one.
    #[error("{bytes} bytes exceed the {limit}-byte limit")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Not what the protocol writes.
    #[error("malformed: {0}")]
    Malformed(Fault),
}

impl From<Fault> for ReadError {
    fn from(fault: Fault) -> Self {
        Self::Malformed(fault)
    }
}

/// Reads exactly one value of a type of the protocol.
///
/// # Errors
/// [`ReadError`].
pub fn read<T: Wire>(bytes: &[u8], limit: usize) -> Result<T, ReadError> {
    if bytes.len() > limit {
        return Err(ReadError::TooLarge { bytes: bytes.len(), limit });
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let text = Strict.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value));
    let text = text.map_err(|error| fault_of_text(&error))?;
    Ok(T::of_value(&text)?)
}

/// Reads a JSON value of somebody else inside a typed one, each name once.
pub(super) fn strict_value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Strict.deserialize(deserializer)
}

fn fault_of_text(error: &serde_json::Error) -> Fault {
    let text = error.to_string();
    match error.classify() {
        _ if text.starts_with(DUPLICATE) => Fault::DuplicateKey,
        _ if text.starts_with(RESERVED) => Fault::ReservedKey,
        Category::Eof => Fault::Ends,
        Category::Syntax | Category::Data | Category::Io => Fault::Syntax,
    }
}

/// Builds a value and stops where a name comes twice.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
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

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if name.starts_with(RESERVED_PREFIX) {
                return Err(de::Error::custom(RESERVED));
            }
            if members.contains_key(&name) {
                return Err(de::Error::custom(DUPLICATE));
            }
            members.insert(name, access.next_value_seed(self)?);
        }
        Ok(Value::Object(members))
    }
}
