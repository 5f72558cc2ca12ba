//! Identifiers that cross a border: parsed once, small, and a bad one cannot exist.

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

use heapless::String as Inline;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::domain::Domain;
use crate::id_text::IdText;

/// Longest application id in bytes: a file name on every file system of the device.
pub const MAX_APP_ID_BYTES: usize = 255 - ".marker".len() - 1;
/// Longest capability id in bytes: the length limit of a D-Bus name, which authors already know.
pub const MAX_CAPABILITY_ID_BYTES: usize = 255;
/// Longest capability id that is held inline, so that the whole is 56 bytes; a longer one is shared.
const INLINE_CAPABILITY_ID_BYTES: usize = 54;

/// The category prefixes that stand for `app` (C58), resolved before any permission check.
pub const APP_ALIASES: [&str; 10] =
    ["mail", "editor", "browser", "calendar", "files", "media", "terminal", "office", "graphics", "chat"];

/// Why a text is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// Too long, or empty.
    #[error("{what} of {bytes} bytes is outside 1 to {limit} bytes")]
    Length {
        /// Which identifier.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The longest one.
        limit: usize,
    },
    /// A character, dot or prefix that is not allowed.
    #[error("{what} {text:?} is not allowed: {why}")]
    Shape {
        /// Which identifier.
        what: &'static str,
        /// The text, shortened to 80 characters.
        text: std::string::String,
        /// The rule that it breaks.
        why: &'static str,
    },
}

impl IdError {
    fn shape(what: &'static str, text: &str, why: &'static str) -> Self {
        Self::Shape { what, text: text.chars().take(80).collect(), why }
    }
}

fn check_segments(what: &'static str, text: &str) -> Result<(), IdError> {
    for segment in text.split('.') {
        let Some(first) = segment.bytes().next() else {
            return Err(IdError::shape(what, text, "a part between dots is empty"));
        };
        if !segment.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err(IdError::shape(
                what,
                text,
                "only ASCII letters, digits, '_', '-' and '.' may stand in it",
            ));
        }
        if first == b'-' {
            return Err(IdError::shape(what, text, "no part may begin with '-'"));
        }
    }
    Ok(())
}

/// An application's id: reverse-DNS-like, safe as a file name. Shared, because everything that an
/// application offers names it; no request parses one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AppId(Arc<str>);

impl AppId {
    /// Parses `text`. Refuses what could leave a directory, and the reserved id `pcpd` (the daemon's socket).
    ///
    /// # Errors
    /// [`IdError`] names the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        const WHAT: &str = "application id";
        if text.is_empty() || text.len() > MAX_APP_ID_BYTES {
            return Err(IdError::Length { what: WHAT, bytes: text.len(), limit: MAX_APP_ID_BYTES });
        }
        check_segments(WHAT, text)?;
        if text == "pcpd" {
            return Err(IdError::shape(WHAT, text, "the name belongs to the daemon"));
        }
        Ok(Self(text.into()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A capability's id, `{domain}.{app}.{action}`, in canonical form (R-005, R-006, C58).
///
/// The app part may itself contain dots: `app.org.xfce.mousepad.read` has app `org.xfce.mousepad`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CapabilityId(IdText<INLINE_CAPABILITY_ID_BYTES>);

impl CapabilityId {
    /// Parses `text`; a category prefix of [`APP_ALIASES`] becomes `app`.
    ///
    /// # Errors
    /// [`IdError`] names the rule.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        const WHAT: &str = "capability id";
        if text.is_empty() || text.len() > MAX_CAPABILITY_ID_BYTES {
            return Err(IdError::Length { what: WHAT, bytes: text.len(), limit: MAX_CAPABILITY_ID_BYTES });
        }
        check_segments(WHAT, text)?;
        let Some((first, rest)) = text.split_once('.') else {
            return Err(IdError::shape(WHAT, text, "it needs three parts: domain.app.action"));
        };
        let Some((app, action)) = rest.rsplit_once('.') else {
            return Err(IdError::shape(WHAT, text, "it needs three parts: domain.app.action"));
        };
        let domain = if APP_ALIASES.contains(&first) {
            Domain::App
        } else {
            first.parse().map_err(|_| {
                IdError::shape(
                    WHAT,
                    text,
                    "the first part is app, compositor, system or a category that stands for app",
                )
            })?
        };
        Self::from_parts(domain, app, action)
    }

    /// The id of an intent: its domain, target application and action.
    ///
    /// # Errors
    /// [`IdError`] when a part is malformed, the action contains a dot, or the whole is too long.
    pub fn from_parts(domain: Domain, app: &str, action: &str) -> Result<Self, IdError> {
        const WHAT: &str = "capability id";
        let bytes = domain.as_str().len() + app.len() + action.len() + 2;
        let too_long = IdError::Length { what: WHAT, bytes, limit: MAX_CAPABILITY_ID_BYTES };
        if bytes > MAX_CAPABILITY_ID_BYTES {
            return Err(too_long);
        }
        check_segments("application id", app)?;
        if action.contains('.') {
            return Err(IdError::shape("action", action, "it is one part and has no dot"));
        }
        check_segments("action", action)?;
        let mut id = Inline::<MAX_CAPABILITY_ID_BYTES>::new();
        for part in [domain.as_str(), ".", app, ".", action] {
            id.push_str(part).map_err(|_| too_long.clone())?;
        }
        Ok(Self(IdText::new(&id)))
    }

    /// The canonical text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The domain that the id is bound to.
    #[must_use]
    pub fn domain(&self) -> Domain {
        match self.as_str().as_bytes() {
            [b'a', ..] => Domain::App,
            [b'c', ..] => Domain::Compositor,
            _ => Domain::System,
        }
    }

    /// The app part, dots included.
    #[must_use]
    pub fn app(&self) -> &str {
        let start = self.domain().as_str().len() + 1;
        let text = self.as_str();
        let end = text.rfind('.').unwrap_or(text.len());
        text.get(start..end).unwrap_or_default()
    }

    /// The action: the last part.
    #[must_use]
    pub fn action(&self) -> &str {
        self.as_str().rsplit('.').next().unwrap_or_default()
    }
}

macro_rules! text_id {
    ($name:ident, $what:literal) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.as_str())
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::parse(text)
            }
        }
        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl serde::de::Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}
text_id!(AppId, "an application id");
text_id!(CapabilityId, "a capability id");

/// A request's id: a UUID of version 7, so that ids are ordered by time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId([u8; 16]);

impl OperationId {
    /// Builds an id from the wall clock (Unix milliseconds, 48 bits) and ten bytes of entropy.
    #[must_use]
    pub fn from_parts(unix_ms: u64, entropy: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&unix_ms.to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&entropy);
        bytes[6] = (bytes[6] & 0x0f) | 0x70;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        Self(bytes)
    }

    /// Parses the hyphenated form, either case.
    ///
    /// # Errors
    /// [`IdError`] when it is no UUID of version 7.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        const WHAT: &str = "operation id";
        let bad = |why| IdError::shape(WHAT, text, why);
        if text.len() != 36 {
            return Err(bad("a UUID has 36 characters"));
        }
        let mut bytes = [0_u8; 16];
        let mut nibbles = 0_usize;
        for (at, byte) in text.bytes().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return Err(bad("a UUID is written 8-4-4-4-12"));
                }
                continue;
            }
            let digit = (byte as char).to_digit(16).ok_or_else(|| bad("a UUID has hexadecimal digits"))?;
            let digit = u8::try_from(digit).map_err(|_| bad("a UUID has hexadecimal digits"))?;
            let slot = bytes.get_mut(nibbles / 2).ok_or_else(|| bad("a UUID is written 8-4-4-4-12"))?;
            *slot = (*slot << 4) | digit;
            nibbles += 1;
        }
        if bytes[6] >> 4 != 7 || bytes[8] >> 6 != 0b10 {
            return Err(bad("it must be a UUID of version 7, which carries its time"));
        }
        Ok(Self(bytes))
    }

    /// The time that the id carries, in Unix milliseconds.
    #[must_use]
    pub fn unix_ms(self) -> u64 {
        self.0[..6].iter().fold(0, |ms, byte| (ms << 8) | u64::from(*byte))
    }

    /// The sixteen bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The hyphenated lower-case form, without allocating.
    #[must_use]
    pub fn to_text(self) -> Inline<36> {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = Inline::new();
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                let _ = text.push('-');
            }
            let _ = text.push(DIGITS[usize::from(byte >> 4)] as char);
            let _ = text.push(DIGITS[usize::from(byte & 15)] as char);
        }
        text
    }
}

impl fmt::Debug for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperationId({})", self.to_text())
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_text())
    }
}

impl FromStr for OperationId {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::parse(text)
    }
}

/// What an operation id is bound to: SHA-256 over the caller, the capability and the exact parameter bytes.
///
/// Each part is preceded by its length as eight little-endian bytes, so that no two different requests give the
/// same input: `"pcp-intent-1"`, the caller's uid as four little-endian bytes, the canonical capability id, the
/// parameter text as sent. The caller is part of it, so that nobody learns how another's operation ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ActionHash([u8; 32]);

impl ActionHash {
    /// The hash of an intent.
    #[must_use]
    pub fn of_intent(caller_uid: u32, capability: &CapabilityId, parameters: &str) -> Self {
        let mut hash = Sha256::new();
        let caller = caller_uid.to_le_bytes();
        for part in [&b"pcp-intent-1"[..], &caller, capability.as_str().as_bytes(), parameters.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// Takes a stored hash back.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for ActionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActionHash({self})")
    }
}

impl fmt::Display for ActionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_capability_id_has_three_parts_and_its_app_may_have_dots() {
        let table = [
            ("app.mail.search", Domain::App, "mail", "search"),
            ("editor.org.xfce.mousepad.read", Domain::App, "org.xfce.mousepad", "read"),
            ("compositor.surface.move", Domain::Compositor, "surface", "move"),
            ("system.network.wifi.connect", Domain::System, "network.wifi", "connect"),
        ];
        for (text, domain, app, action) in table {
            let id = CapabilityId::parse(text).unwrap();
            assert_eq!((id.domain(), id.app(), id.action()), (domain, app, action), "{text}");
        }
    }

    #[test]
    fn a_category_prefix_is_an_alias_of_app_and_the_canonical_form_is_kept() {
        for alias in APP_ALIASES {
            let id = CapabilityId::parse(&format!("{alias}.x.read")).unwrap();
            assert_eq!(id.as_str(), "app.x.read");
        }
    }

    #[test]
    fn malformed_capability_ids_are_refused_with_the_rule() {
        let long = format!("app.{}.x", "a".repeat(260));
        for text in [
            "",
            "a.b",
            "app.read",
            "app..read",
            ".app.x.read",
            "app.x.read.",
            "kernel.x.read",
            "app.x/y.read",
            "app.ü.read",
            "app.x.-y",
            long.as_str(),
        ] {
            assert!(CapabilityId::parse(text).is_err(), "{text}");
        }
        let error = CapabilityId::parse("a.b").unwrap_err().to_string();
        assert_eq!(error, "capability id \"a.b\" is not allowed: it needs three parts: domain.app.action");
    }

    #[test]
    fn hostile_application_ids_are_refused_before_any_path_is_built() {
        let long = "a".repeat(MAX_APP_ID_BYTES + 1);
        for text in [
            "",
            ".",
            "..",
            "../../etc/x",
            "a/b",
            "a\0b",
            ".hidden",
            "a..b",
            "a.",
            "-rf",
            "a.-b",
            "pcpd",
            "ünïcode",
            "a b",
            long.as_str(),
        ] {
            assert!(AppId::parse(text).is_err(), "{text:?}");
        }
        assert!(AppId::parse(&"a".repeat(MAX_APP_ID_BYTES)).is_ok());
        assert!(AppId::parse("org.example.notes-2_x").is_ok());
    }

    #[test]
    fn an_operation_id_carries_its_time_and_has_one_form() {
        let id = OperationId::from_parts(1_780_000_000_123, [0xff; 10]);
        assert_eq!(id.unix_ms(), 1_780_000_000_123);
        assert_eq!(OperationId::parse(&id.to_text()).unwrap(), id);
        assert_eq!(OperationId::parse(&id.to_text().to_uppercase()).unwrap(), id);
        for text in
            ["", "0190", "c232ab00-9414-11ec-b3c8-9f68deced846", "0190f5a0-0000-7000-0000-000000000000"]
        {
            assert!(OperationId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_action_hash_separates_its_parts() {
        let of = |uid, id: &str, parameters| {
            ActionHash::of_intent(uid, &CapabilityId::parse(id).unwrap(), parameters)
        };
        let hash = |id: &str, parameters| of(1000, id, parameters);
        assert_ne!(of(1000, "app.a.read", "{}"), of(1001, "app.a.read", "{}"));
        assert_ne!(hash("app.a.read", "{}"), hash("app.a.read", "{} "));
        assert_ne!(hash("app.a.read", "{}"), hash("app.b.read", "{}"));
        assert_eq!(
            hash("app.a.read", "{}").to_string(),
            "6b0a12a48faa45e48bd474e083b35191a2a3d8bad9e60f07509b8a024b14ad03"
        );
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused_and_never_panics(text in ".{0,300}") {
            let _ = CapabilityId::parse(&text);
            let _ = AppId::parse(&text);
            let _ = OperationId::parse(&text);
        }

        #[test]
        fn parts_and_text_agree(app in "[a-z][a-z0-9_]{0,20}(\\.[a-z][a-z0-9_]{0,10}){0,3}", action in "[a-z_]{1,20}") {
            let id = CapabilityId::from_parts(Domain::System, &app, &action).unwrap();
            prop_assert_eq!(id.app(), app.as_str());
            prop_assert_eq!(id.action(), action.as_str());
            prop_assert_eq!(CapabilityId::parse(id.as_str()).unwrap(), id);
        }
    }
}
