//! What changed of a capability, field by field.

use core::fmt;

use pcp_core::diff::{CapabilityChange, ChangedField, FieldChange, FieldValue};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::bounded;
use crate::text::Text;

/// Fields that one change may name: more than a capability has.
const MAX_FIELDS: usize = 32;
/// Texts that one value may hold: more than a schema has parameters.
const MAX_VALUE_TEXTS: usize = 4096;

/// A capability that is still offered and is not what it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityChangeData<'a> {
    /// The capability.
    #[serde(borrow)]
    pub id: Text<'a>,
    /// What changed.
    #[serde(borrow, deserialize_with = "bounded::list::<_, _, MAX_FIELDS>")]
    pub fields: Vec<FieldData<'a>>,
}

/// One field, before and now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldData<'a> {
    /// Which.
    pub field: ChangedField,
    /// What it was.
    #[serde(borrow)]
    pub old: ValueData<'a>,
    /// What it is now.
    #[serde(borrow)]
    pub new: ValueData<'a>,
}

/// What a field held: `null`, a text, yes or no, a number, or texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueData<'a> {
    /// Nothing.
    Absent,
    /// A text; a schema is one, too.
    Text(Text<'a>),
    /// Yes or no.
    Flag(bool),
    /// A number.
    Number(u64),
    /// Several texts.
    Texts(Vec<Text<'a>>),
}

impl<'a> From<&'a CapabilityChange> for CapabilityChangeData<'a> {
    fn from(change: &'a CapabilityChange) -> Self {
        Self { id: change.id.as_str().into(), fields: change.fields.iter().map(FieldData::from).collect() }
    }
}

impl<'a> From<&'a FieldChange> for FieldData<'a> {
    fn from(change: &'a FieldChange) -> Self {
        Self { field: change.field, old: (&change.old).into(), new: (&change.new).into() }
    }
}

impl<'a> From<&'a FieldValue> for ValueData<'a> {
    fn from(value: &'a FieldValue) -> Self {
        match value {
            FieldValue::Absent => Self::Absent,
            FieldValue::Text(text) => Self::Text((&**text).into()),
            FieldValue::Flag(flag) => Self::Flag(*flag),
            FieldValue::Number(number) => Self::Number(*number),
            FieldValue::Texts(texts) => Self::Texts(texts.iter().map(|text| (&**text).into()).collect()),
        }
    }
}

impl Serialize for ValueData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_unit(),
            Self::Text(text) => text.serialize(serializer),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Number(number) => serializer.serialize_u64(*number),
            Self::Texts(texts) => texts.serialize(serializer),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for ValueData<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Value;
        impl<'de> Visitor<'de> for Value {
            type Value = ValueData<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, a string, a boolean, a number or a list of strings")
            }
            fn visit_unit<E>(self) -> Result<ValueData<'de>, E> {
                Ok(ValueData::Absent)
            }
            fn visit_bool<E>(self, flag: bool) -> Result<ValueData<'de>, E> {
                Ok(ValueData::Flag(flag))
            }
            fn visit_u64<E>(self, number: u64) -> Result<ValueData<'de>, E> {
                Ok(ValueData::Number(number))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<ValueData<'de>, E> {
                Ok(ValueData::Text(text.into()))
            }
            fn visit_str<E>(self, text: &str) -> Result<ValueData<'de>, E> {
                Ok(ValueData::Text(text.to_owned().into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<ValueData<'de>, A::Error> {
                let items = serde::de::value::SeqAccessDeserializer::new(items);
                bounded::list::<_, _, MAX_VALUE_TEXTS>(items).map(ValueData::Texts)
            }
        }
        deserializer.deserialize_any(Value)
    }
}
