//! What was seen of one window: elements with short tags, and everything that a target is fenced with.

use core::fmt;
use std::collections::HashSet;
use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::PROTOCOL_VERSION;
use super::action::{ActionName, REDACTED};
use super::canonical::canonical_hash;
use super::identifier::Sha256Hash;
use super::target::SemanticTargetRef;
use super::wire::Wire as _;
use crate::words::words;

/// Most elements of one observation.
pub const MAX_ELEMENTS: usize = 4_096;
/// Longest observation in bytes.
pub const MAX_OBSERVATION_BYTES: usize = 2 * 1024 * 1024;
/// Longest life of an observation in milliseconds.
pub const MAX_OBSERVATION_MS: i64 = 30_000;
/// Longest role of an element and name of a backend, in bytes.
const MAX_ROLE_BYTES: usize = 128;
/// Longest name of an element in bytes.
const MAX_NAME_BYTES: usize = 1_024;
/// Longest generation of a process in bytes.
const MAX_PROCESS_GENERATION_BYTES: usize = 256;
/// Longest id of a window or document in bytes.
const MAX_WINDOW_ID_BYTES: usize = 512;
/// Most digits of a tag.
const MAX_TAG_DIGITS: usize = 4;

words! {
    /// What observes.
    ObservationBackend: "observation backend" {
        /// The accessibility tree.
        Accessibility = "accessibility",
        /// A document of a browser.
        Dom = "dom",
        /// An application's own socket: a word of ours, which S3 does not have.
        Application = "application",
    }
}

/// One observation of one window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SemanticObservation {
    /// 2.
    pub protocol_version: u16,
    /// Its name.
    pub observation_id: Sha256Hash,
    /// How many observations there were, from 1.
    pub generation: u64,
    /// Where it comes from.
    pub provenance: SemanticProvenance,
    /// When, in Unix milliseconds.
    pub observed_at_ms: i64,
    /// Until when its targets hold, in Unix milliseconds; at most 30 s later.
    pub expires_at_ms: i64,
    /// Whether there was more.
    pub truncated: bool,
    /// At most 4 096.
    pub elements: Vec<SemanticElement>,
}

/// Where an observation comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SemanticProvenance {
    /// What kind of backend.
    pub backend: ObservationBackend,
    /// Which one.
    pub backend_name: String,
    /// Whose window.
    pub process_id: u32,
    /// Which life of that process id.
    pub process_generation: String,
    /// Which window.
    pub window_id: String,
    /// Which document, of a browser only.
    pub document_id: Option<String>,
    /// The displays' arrangement.
    pub display_geometry_hash: Sha256Hash,
}

/// One element. Its `Debug` keeps its name to itself.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SemanticElement {
    /// `e` and a number.
    pub tag: String,
    /// Its id, in this observation alone.
    pub element_id: Sha256Hash,
    /// The element around it.
    pub parent_id: Option<Sha256Hash>,
    /// What it looks like.
    pub fingerprint_hash: Sha256Hash,
    /// What it is.
    pub role: String,
    /// What it says it is.
    pub name: Option<String>,
    /// Where it is.
    pub bounds: Option<Bounds>,
    /// What may be done with it.
    pub actionability: Actionability,
}

impl fmt::Debug for SemanticElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SemanticElement")
            .field("tag", &self.tag)
            .field("role", &self.role)
            .field("name", &self.name.as_ref().map(|_| REDACTED))
            .field("actionability", &self.actionability)
            .finish_non_exhaustive()
    }
}

/// A rectangle on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// From the left.
    pub x: i32,
    /// From the top.
    pub y: i32,
    /// More than 0.
    pub width: u32,
    /// More than 0.
    pub height: u32,
}

/// What is known of an element's readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Actionability {
    /// It is shown.
    pub visible: bool,
    /// It can be used.
    pub enabled: bool,
    /// It is one element and no other.
    pub unambiguous: bool,
    /// It was the same twice.
    pub stable: bool,
    /// Events reach it.
    pub receives_events: bool,
    /// It can be activated.
    pub invokable: bool,
    /// Its value can be set.
    pub editable: bool,
}

/// One window that can be observed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurfaceDescriptor {
    /// 2.
    pub protocol_version: u16,
    /// The window, opaque.
    pub surface: SurfaceRef,
    /// Who sees it.
    pub backend: String,
    /// Whose window.
    pub process_id: u32,
    /// Which life of that process id.
    pub process_generation: String,
    /// Which window.
    pub window_id: String,
    /// The displays' arrangement.
    pub display_geometry_hash: Sha256Hash,
    /// Where it is.
    pub bounds: Option<Bounds>,
}

/// A window's opaque name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurfaceRef {
    /// 64 hexadecimal digits.
    pub id: Sha256Hash,
}

/// The rule that an observation breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InvalidObservation {
    /// A member outside its bounds.
    #[error("{field} of the observation is outside its bounds")]
    Bound {
        /// The member.
        field: &'static str,
    },
    /// A member of an element outside its bounds.
    #[error("{field} of element {at} is outside its bounds")]
    Element {
        /// Which element, from 0.
        at: usize,
        /// The member.
        field: &'static str,
    },
    /// More elements than there may be.
    #[error("{elements} elements exceed the limit of {MAX_ELEMENTS}")]
    TooManyElements {
        /// How many.
        elements: usize,
    },
    /// Longer than it may be.
    #[error("{bytes} bytes exceed the {MAX_OBSERVATION_BYTES}-byte limit")]
    TooLarge {
        /// Its length.
        bytes: usize,
    },
}

/// Why an element cannot be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotActionable {
    /// No element has this tag.
    #[error("no element has this tag")]
    Missing,
    /// It is not shown.
    #[error("the element is hidden")]
    Hidden,
    /// It cannot be used.
    #[error("the element is disabled")]
    Disabled,
    /// It is changing.
    #[error("the element is unstable")]
    Unstable,
    /// It is not one element.
    #[error("the element is ambiguous")]
    Ambiguous,
    /// It has no activation.
    #[error("the element has no activation")]
    NotInvokable,
    /// Its value cannot be set.
    #[error("the element's value cannot be set")]
    NotEditable,
    /// No event reaches it.
    #[error("no event reaches the element")]
    Unreachable,
}

impl SemanticObservation {
    /// Hash of where and when: what ties a target to this observation.
    #[must_use]
    pub fn provenance_hash(&self) -> Sha256Hash {
        canonical_hash(&Value::Array(std::vec![
            self.protocol_version.into(),
            self.observation_id.to_value(),
            self.generation.into(),
            self.provenance.to_value(),
            self.observed_at_ms.into(),
            self.expires_at_ms.into(),
        ]))
    }

    /// The id of the element that the backend calls `backend_id`.
    #[must_use]
    pub fn element_id(observation_id: &Sha256Hash, backend_id: &str) -> Sha256Hash {
        let mut hash = Sha256::new();
        hash.update(std::string::ToString::to_string(observation_id));
        hash.update([0]);
        hash.update(backend_id);
        Sha256Hash::from_bytes(hash.finalize().into())
    }

    /// The target of a tag, fenced with all that this observation knows.
    ///
    /// # Errors
    /// [`NotActionable::Missing`].
    pub fn target(&self, tag: &str) -> Result<SemanticTargetRef, NotActionable> {
        use std::string::ToString as _;
        let element = self.elements.iter().find(|element| element.tag == tag);
        let element = element.ok_or(NotActionable::Missing)?;
        Ok(SemanticTargetRef {
            observation_id: self.observation_id.to_string(),
            provenance_hash: self.provenance_hash().to_string(),
            element_id: element.element_id.to_string(),
            fingerprint_hash: element.fingerprint_hash.to_string(),
            generation: self.generation,
        })
    }

    /// Applies the bounds.
    ///
    /// # Errors
    /// [`InvalidObservation`] names the first that is broken.
    pub fn validate(&self) -> Result<(), InvalidObservation> {
        let life = self.expires_at_ms.checked_sub(self.observed_at_ms);
        let checks = [
            (self.protocol_version == PROTOCOL_VERSION, "protocol_version"),
            (self.generation > 0, "generation"),
            (life.is_some_and(|life| (0..=MAX_OBSERVATION_MS).contains(&life)), "expires_at_ms"),
        ];
        if let Some((_, field)) = checks.into_iter().find(|(holds, _)| !holds) {
            return Err(InvalidObservation::Bound { field });
        }
        self.provenance.validate()?;
        if self.elements.len() > MAX_ELEMENTS {
            return Err(InvalidObservation::TooManyElements { elements: self.elements.len() });
        }
        let (mut tags, mut ids) = (HashSet::new(), HashSet::new());
        for (at, element) in self.elements.iter().enumerate() {
            element.validate().map_err(|field| InvalidObservation::Element { at, field })?;
            if !tags.insert(element.tag.as_str()) {
                return Err(InvalidObservation::Element { at, field: "tag" });
            }
            if !ids.insert(element.element_id) {
                return Err(InvalidObservation::Element { at, field: "element_id" });
            }
        }
        let bytes = serde_json::to_vec(self).map_or(usize::MAX, |text| text.len());
        if bytes > MAX_OBSERVATION_BYTES { Err(InvalidObservation::TooLarge { bytes }) } else { Ok(()) }
    }
}

impl SemanticProvenance {
    fn validate(&self) -> Result<(), InvalidObservation> {
        let within = |text: &str, most: usize| (1..=most).contains(&text.len());
        let document = match (&self.document_id, self.backend) {
            (None, _) => true,
            (Some(id), ObservationBackend::Dom) => within(id, MAX_WINDOW_ID_BYTES),
            (Some(_), ObservationBackend::Accessibility | ObservationBackend::Application) => false,
        };
        let checks = [
            (within(&self.backend_name, MAX_ROLE_BYTES), "provenance.backend_name"),
            (self.process_id > 0, "provenance.process_id"),
            (within(&self.process_generation, MAX_PROCESS_GENERATION_BYTES), "provenance.process_generation"),
            (within(&self.window_id, MAX_WINDOW_ID_BYTES), "provenance.window_id"),
            (document, "provenance.document_id"),
        ];
        let broken = checks.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, field)| Err(InvalidObservation::Bound { field }))
    }
}

impl SemanticElement {
    fn validate(&self) -> Result<(), &'static str> {
        let digits = self.tag.strip_prefix('e').unwrap_or_default();
        let number =
            (1..=MAX_TAG_DIGITS).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
        let name = self.name.as_ref().is_none_or(|name| {
            (1..=MAX_NAME_BYTES).contains(&name.len())
                && !name.chars().any(char::is_control)
                && !name.trim().is_empty()
        });
        let checks = [
            (number, "tag"),
            ((1..=MAX_ROLE_BYTES).contains(&self.role.len()), "role"),
            (name, "name"),
            (self.bounds.is_none_or(|bounds| bounds.width > 0 && bounds.height > 0), "bounds"),
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, field)| Err(field))
    }

    /// Whether `action` can be done to it, by what was observed.
    ///
    /// # Errors
    /// [`NotActionable`].
    pub fn admits(&self, action: ActionName) -> Result<(), NotActionable> {
        let ready = &self.actionability;
        let own = match action {
            ActionName::Invoke => (ready.invokable, NotActionable::NotInvokable),
            ActionName::SetValue => (ready.editable, NotActionable::NotEditable),
            _ => (ready.receives_events, NotActionable::Unreachable),
        };
        let checks = [
            (ready.visible, NotActionable::Hidden),
            (ready.enabled, NotActionable::Disabled),
            (ready.stable, NotActionable::Unstable),
            (ready.unambiguous, NotActionable::Ambiguous),
            own,
        ];
        checks.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, why)| Err(why))
    }
}
