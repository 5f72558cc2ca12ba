//! From a frame to a typed payload and back: the one place where JSON of the wire becomes a value.

use core::fmt;

use pcp_stream::{Frame, ProtocolError, StreamMessageType, encode_with};
use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::embedded::Json;
use crate::error::{Error, cut};
use crate::reader::read;

/// A message's content. Its `type` member is a [`Tag`], so that no two payloads can be read as each other.
pub trait Payload: Serialize {
    /// The type of the frame it travels in.
    const TYPE: StreamMessageType;

    /// The member that is appended as it is, so that nobody reads through it again on the way out.
    fn embedded(&self) -> Option<(&'static str, Json<'_>)> {
        None
    }

    /// Appends the payload's JSON to `out`.
    ///
    /// # Errors
    /// [`Error::Write`]; `out` may hold a part then.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        serde_json::to_writer(&mut *out, self)
            .map_err(|error| Error::Write { what: Self::TYPE.name(), problem: cut(error) })?;
        if let Some((name, json)) = self.embedded() {
            // The object has its `type` member at least, so that a comma is right.
            out.pop();
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            out.extend_from_slice(json.as_str().as_bytes());
            out.push(b'}');
        }
        Ok(())
    }

    /// Appends a whole frame to `out`; on an error `out` is as it was before.
    ///
    /// # Errors
    /// [`Error::Write`], or [`ProtocolError::FrameTooLarge`].
    fn write_frame(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        encode_with(Self::TYPE, out, |out| self.write(out))
    }
}

/// Reads a frame's payload as `P`.
///
/// # Errors
/// [`Error::NotText`] or [`Error::Payload`].
///
/// # Panics
/// Never: a frame of another type is refused by the `type` member.
pub fn read_payload<'a, P: Payload + Deserialize<'a>>(payload: &'a [u8]) -> Result<P, Error> {
    let message_type = P::TYPE.name();
    let text = core::str::from_utf8(payload)
        .map_err(|error| Error::NotText { message_type, at: error.valid_up_to() })?;
    read(text).map_err(|error| Error::Payload { message_type, error })
}

/// Checks that a Ping or Pong carries nothing.
///
/// # Errors
/// [`Error::NotEmpty`].
pub fn read_empty(frame: Frame<'_>) -> Result<(), Error> {
    if frame.payload.is_empty() {
        return Ok(());
    }
    Err(Error::NotEmpty { message_type: frame.message_type.name(), bytes: frame.payload.len() })
}

/// Appends a frame without payload: Ping or Pong.
pub(crate) fn write_nothing(_: &mut Vec<u8>) -> Result<(), ProtocolError> {
    Ok(())
}

/// The member `type` of a payload: the name of the message type with number `N`, and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tag<const N: u32>;

impl<const N: u32> Tag<N> {
    fn name() -> &'static str {
        StreamMessageType::from_discriminant(N).map_or("", StreamMessageType::name)
    }
}

impl<const N: u32> Serialize for Tag<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::name())
    }
}

impl<'de, const N: u32> Deserialize<'de> for Tag<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name<const N: u32>;
        impl<const N: u32> Visitor<'_> for Name<N> {
            type Value = Tag<N>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "the message type {:?}", Tag::<N>::name())
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Tag<N>, E> {
                if text == Tag::<N>::name() {
                    Ok(Tag)
                } else {
                    Err(E::invalid_value(Unexpected::Str(text), &self))
                }
            }
        }
        deserializer.deserialize_str(Name::<N>)
    }
}

/// Declares a word that is written as one of a closed set.
macro_rules! wire_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// The spelling on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}
pub(crate) use wire_words;

/// Operation ids as text, through serde and without memory of their own.
pub(crate) mod operation_id {
    use pcp_core::OperationId;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::text::Text;

    pub(crate) fn serialize<S: Serializer>(id: &OperationId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&id.to_text())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OperationId, D::Error> {
        OperationId::parse(&Text::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
