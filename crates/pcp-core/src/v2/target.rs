//! What an action is aimed at: one element of one observation.

use std::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::identifier::check_hash;
use super::invalid::InvalidRequest;

/// The target of an action. Only [`TargetRef::Element`] is ever acted on; the two others are read so that they
/// can be refused by name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TargetRef {
    /// A place on a screen.
    Coordinates {
        /// From the left.
        x: Number,
        /// From the top.
        y: Number,
        /// The display.
        display_id: String,
        /// The displays' arrangement.
        display_geometry_hash: String,
        /// The picture it was found in.
        snapshot_id: String,
        /// What the picture showed.
        snapshot_content_hash: String,
    },
    /// An element of one observation.
    Element {
        /// The element and everything that fences it.
        target: SemanticTargetRef,
    },
    /// Nothing.
    None {},
}

impl TargetRef {
    /// The word of its kind.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Coordinates { .. } => "coordinates",
            Self::Element { .. } => "element",
            Self::None {} => "none",
        }
    }

    /// The element.
    ///
    /// # Errors
    /// [`InvalidRequest::Target`] when it is none.
    pub const fn element(&self) -> Result<&SemanticTargetRef, InvalidRequest> {
        match self {
            Self::Element { target } => Ok(target),
            Self::Coordinates { .. } | Self::None {} => Err(InvalidRequest::Target { kind: self.kind() }),
        }
    }
}

/// One element of one observation, bound to all that was true of it. Opaque to whoever asks: it is taken from
/// [`SemanticObservation::target`](super::SemanticObservation::target) and handed back.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SemanticTargetRef {
    /// The observation.
    pub observation_id: String,
    /// Hash of the observation's origin: backend, process and its generation, window, displays, times.
    pub provenance_hash: String,
    /// The element, in this observation alone.
    pub element_id: String,
    /// What the element looked like.
    pub fingerprint_hash: String,
    /// The observation's generation, from 1.
    pub generation: u64,
}

impl SemanticTargetRef {
    pub(super) fn validate(&self) -> Result<(), InvalidRequest> {
        check_hash("target.target.observation_id", &self.observation_id)?;
        check_hash("target.target.provenance_hash", &self.provenance_hash)?;
        check_hash("target.target.element_id", &self.element_id)?;
        check_hash("target.target.fingerprint_hash", &self.fingerprint_hash)?;
        if self.generation == 0 { Err(InvalidRequest::Generation) } else { Ok(()) }
    }
}
