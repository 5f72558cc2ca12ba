//! The visitor that builds a JSON value and stops where two readers could differ.

use std::cell::RefCell;
use std::fmt;

use serde::de::{self, Deserialize as _, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::canonical::{deeper, safe};
use crate::error::Error;

/// Names that serde_json itself gives a meaning to: a value under one of them would be parsed a second time.
const RESERVED_PREFIX: &str = "$serde_json::private::";

/// Builds a [`Value`] and says in `refusal` why it stopped; serde's own errors carry only text.
#[derive(Clone, Copy)]
pub(crate) struct Strict<'a> {
    depth: usize,
    refusal: &'a RefCell<Option<Error>>,
}

impl<'a> Strict<'a> {
    /// A reader of one value; why it stopped, if it did, is in `refusal` afterwards.
    pub(crate) fn new(refusal: &'a RefCell<Option<Error>>) -> Self {
        Self { depth: 0, refusal }
    }
    fn refuse<E: de::Error>(&self, error: Error) -> E {
        let text = error.to_string();
        *self.refusal.borrow_mut() = Some(error);
        E::custom(text)
    }

    fn inner<E: de::Error>(&self) -> Result<Self, E> {
        match deeper(self.depth) {
            Ok(depth) => Ok(Self { depth, refusal: self.refusal }),
            Err(error) => Err(self.refuse(error)),
        }
    }

    fn number<E: de::Error>(&self, number: Number) -> Result<Value, E> {
        match safe(&number) {
            Ok(_) => Ok(Value::Number(number)),
            Err(error) => Err(self.refuse(error)),
        }
    }

    fn key_allowed<E: de::Error>(&self, members: &Map<String, Value>, key: &str) -> Result<(), E> {
        if members.contains_key(key) {
            return Err(self.refuse(Error::DuplicateKey { key: shortened(key) }));
        }
        if key.starts_with(RESERVED_PREFIX) {
            let detail = format!("the name {:?} is reserved", shortened(key));
            return Err(self.refuse(Error::Malformed { detail }));
        }
        Ok(())
    }
}

/// Characters of a name that an error shows: enough to find it, too few to flood a log.
const SHOWN_KEY_CHARS: usize = 64;

fn shortened(key: &str) -> String {
    key.chars().take(SHOWN_KEY_CHARS).collect()
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
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

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        self.number(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        self.number(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        match Number::from_f64(value) {
            Some(number) => self.number(number),
            None => Err(self.refuse(Error::NumberOutOfRange { number: value.to_string() })),
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut members = Map::new();
        while let Some(key) = access.next_key_seed(Key)? {
            self.key_allowed(&members, &key)?;
            let value = access.next_value_seed(inner)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        String::deserialize(deserializer)
    }
}
