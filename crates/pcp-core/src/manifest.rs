//! The shape of a capability manifest and the rules it must keep (S0 "Manifest Signing and Trust", R-203).

use std::boxed::Box;
use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use thiserror::Error;

use crate::id::{AppId, CapabilityId, IdError};
use crate::principal::TrustLevel;

/// Largest manifest file in bytes: hundreds of capabilities with their schemas.
pub const MAX_MANIFEST_BYTES: usize = 256 * 1024;
/// Most capabilities of one application.
pub const MAX_CAPABILITIES_PER_APP: usize = 1024;
/// Longest name, category or version in bytes: one line on a terminal.
pub const MAX_LABEL_BYTES: usize = 256;
/// Longest description in bytes.
pub const MAX_DESCRIPTION_BYTES: usize = 4096;

/// What a Tier-1 application declares about itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapabilityManifest {
    /// The application's id; part of the path of its trusted key.
    pub app_id: String,
    /// The application's version, ordered by its numeric parts.
    pub version: String,
    /// The version of the manifest format, `digits.digits`.
    pub manifest_version: String,
    /// What the application offers.
    pub capabilities: Vec<ManifestCapability>,
    /// The events that the application publishes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ManifestEvent>,
    /// Ed25519 over the canonical form without this member, standard padded base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// One declared capability.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestCapability {
    /// Its id; aliases of `app` are accepted (C58).
    pub id: String,
    /// A short name.
    pub name: String,
    /// One sentence.
    #[serde(default)]
    pub description: String,
    /// The author's category word.
    #[serde(default)]
    pub category: String,
    /// JSON Schema of the parameters.
    pub parameters: Box<RawValue>,
    /// JSON Schema of the result.
    pub returns: Box<RawValue>,
    /// Whether invoking it changes anything.
    pub side_effects: bool,
    /// Whether the author asks for confirmation (tighten only).
    #[serde(default)]
    pub confirmation_required: bool,
    /// The least trust a caller needs (tighten only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_level: Option<String>,
    /// The capability that takes this one's effect back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverse: Option<String>,
    /// Whether the application's own `validate_params` is to be asked before the claim (R-228).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub validates_params: bool,
}

/// One declared event.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestEvent {
    /// Its name.
    pub name: String,
    /// One sentence.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Box<RawValue>>,
}

/// The rule that a manifest breaks. [`ManifestError::reason`] is the stable word.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// `app_id` is not usable as a file name.
    #[error("app_id: {0}")]
    AppId(IdError),
    /// The manifest is another application's.
    #[error("manifest is for application {found:?}, not for {expected}")]
    AppIdMismatch {
        /// The id it was looked up for.
        expected: String,
        /// The id it carries.
        found: String,
    },
    /// `manifest_version` is not `digits.digits`.
    #[error("manifest_version {0:?} is not ASCII digits, one dot, ASCII digits")]
    ManifestVersion(String),
    /// A text or list is empty where it may not be, or too long.
    #[error("{field} has {found}, outside {least} to {limit}")]
    Size {
        /// Which member.
        field: &'static str,
        /// Its bytes or elements.
        found: usize,
        /// The least.
        least: usize,
        /// The most.
        limit: usize,
    },
    /// A capability's id is malformed.
    #[error("capability {text:?}: {error}")]
    CapabilityId {
        /// The id as written.
        text: String,
        /// What is wrong with it.
        error: IdError,
    },
    /// The same id twice.
    #[error("capability {0} is declared twice")]
    Duplicate(String),
    /// A capability outside what the application may declare (R-222).
    #[error("capability {id} is outside {prefix}.*, which is all that this application may declare")]
    Scope {
        /// The capability.
        id: String,
        /// The prefix granted to the application.
        prefix: String,
    },
    /// `auth_level` is no known word (R-224).
    #[error("capability {id}: auth_level {word:?} is none of observe, user, elevated, system")]
    AuthLevel {
        /// The capability.
        id: String,
        /// The word.
        word: String,
    },
    /// A schema is no JSON object or boolean.
    #[error("capability {id}: {member} is no JSON Schema: an object or a boolean is needed")]
    Schema {
        /// The capability.
        id: String,
        /// `parameters` or `returns`.
        member: &'static str,
    },
}

impl ManifestError {
    /// The stable word of the rule, as in reports of `pcp-cli inspect manifest`.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::AppId(_) => "bad-app-id",
            Self::AppIdMismatch { .. } => "app-id-mismatch",
            Self::ManifestVersion(_) => "bad-manifest-version",
            Self::Size { .. } => "limit",
            Self::CapabilityId { .. } => "bad-capability-id",
            Self::Duplicate(_) => "duplicate-capability",
            Self::Scope { .. } => "manifest_scope",
            Self::AuthLevel { .. } => "bad-auth-level",
            Self::Schema { .. } => "bad-schema",
        }
    }
}

impl CapabilityManifest {
    /// Checks every rule that needs nothing but the manifest itself, and gives its application id.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self, expected: Option<&AppId>) -> Result<AppId, ManifestError> {
        let app_id = AppId::parse(&self.app_id).map_err(ManifestError::AppId)?;
        if let Some(expected) = expected.filter(|expected| **expected != app_id) {
            return Err(ManifestError::AppIdMismatch {
                expected: expected.to_string(),
                found: self.app_id.clone(),
            });
        }
        if !is_manifest_version(&self.manifest_version) {
            return Err(ManifestError::ManifestVersion(self.manifest_version.clone()));
        }
        size("version", self.version.len(), 1, MAX_LABEL_BYTES)?;
        size("capabilities", self.capabilities.len(), 0, MAX_CAPABILITIES_PER_APP)?;
        size("events", self.events.len(), 0, MAX_CAPABILITIES_PER_APP)?;
        let mut seen = std::collections::BTreeSet::new();
        for capability in &self.capabilities {
            let id = capability.check()?;
            if !seen.insert(id.clone()) {
                return Err(ManifestError::Duplicate(id.to_string()));
            }
        }
        Ok(app_id)
    }

    /// Checks that every declared id stands under `prefix` after alias resolution (R-222); the default
    /// prefix of an application is `app.{app_id}`.
    ///
    /// # Errors
    /// [`ManifestError::Scope`] names the first id outside.
    pub fn check_scope(&self, prefix: &str) -> Result<(), ManifestError> {
        for capability in &self.capabilities {
            let id = capability.capability_id()?;
            let inside = id.as_str().strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.'));
            // The action is one part: `app.a.b.read` is not `app.a`'s.
            if !inside || id.as_str().len() - id.action().len() - 1 != prefix.len() {
                return Err(ManifestError::Scope { id: id.to_string(), prefix: prefix.into() });
            }
        }
        Ok(())
    }
}

impl ManifestCapability {
    /// The canonical id.
    ///
    /// # Errors
    /// [`ManifestError::CapabilityId`].
    pub fn capability_id(&self) -> Result<CapabilityId, ManifestError> {
        CapabilityId::parse(&self.id)
            .map_err(|error| ManifestError::CapabilityId { text: self.id.chars().take(80).collect(), error })
    }

    /// The least trust that a caller needs.
    ///
    /// # Errors
    /// [`ManifestError::AuthLevel`] for a word outside the table.
    pub fn minimum_trust(&self) -> Result<TrustLevel, ManifestError> {
        match TrustLevel::from_auth_level(self.auth_level.as_deref()) {
            Some(trust) => Ok(trust),
            None => Err(ManifestError::AuthLevel {
                id: self.id.clone(),
                word: self.auth_level.clone().unwrap_or_default(),
            }),
        }
    }

    fn check(&self) -> Result<CapabilityId, ManifestError> {
        let id = self.capability_id()?;
        size("name", self.name.len(), 1, MAX_LABEL_BYTES)?;
        size("description", self.description.len(), 0, MAX_DESCRIPTION_BYTES)?;
        size("category", self.category.len(), 0, MAX_LABEL_BYTES)?;
        self.minimum_trust()?;
        for (member, schema) in [("parameters", &self.parameters), ("returns", &self.returns)] {
            if !matches!(schema.get().as_bytes().first(), Some(b'{' | b't' | b'f')) {
                return Err(ManifestError::Schema { id: id.to_string(), member });
            }
        }
        Ok(id)
    }
}

fn size(field: &'static str, found: usize, least: usize, limit: usize) -> Result<(), ManifestError> {
    if (least..=limit).contains(&found) {
        Ok(())
    } else {
        Err(ManifestError::Size { field, found, least, limit })
    }
}

/// `^\d+\.\d+$` over the whole value, with ASCII digits.
fn is_manifest_version(text: &str) -> bool {
    text.len() <= MAX_LABEL_BYTES
        && text.split_once('.').is_some_and(|(major, minor)| {
            [major, minor].iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(id: &str, extra: &str) -> CapabilityManifest {
        serde_json::from_str(&format!(
            r#"{{"app_id":"org.example.notes","version":"1","manifest_version":"1.0","capabilities":[{{"id":"{id}",
               "name":"n","parameters":{{}},"returns":true,"side_effects":false{extra}}}]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn a_manifest_may_declare_only_its_own_ids() {
        let prefix = "app.org.example.notes";
        assert!(manifest("editor.org.example.notes.read", "").check_scope(prefix).is_ok());
        for id in [
            "system.power.shutdown",
            "app.org.example.notes2.read",
            "app.org.example.read",
            "app.org.example.notes.sub.read",
        ] {
            let error = manifest(id, "").check_scope(prefix).unwrap_err();
            assert_eq!(error.reason(), "manifest_scope", "{id}");
        }
    }

    #[test]
    fn an_unknown_auth_level_and_a_malformed_id_make_the_manifest_invalid() {
        assert_eq!(
            manifest("app.x.read", r#","auth_level":"root""#).check(None).unwrap_err().reason(),
            "bad-auth-level"
        );
        assert_eq!(manifest("read", "").check(None).unwrap_err().reason(), "bad-capability-id");
        assert!(manifest("app.x.read", r#","auth_level":"elevated""#).check(None).is_ok());
    }

    #[test]
    fn the_manifest_version_is_two_runs_of_ascii_digits() {
        for (text, good) in [
            ("1.0", true),
            ("10.22", true),
            ("1", false),
            ("1.0\n", false),
            ("1.0.0", false),
            ("١.٠", false),
            (".1", false),
            ("1.", false),
            ("", false),
        ] {
            assert_eq!(is_manifest_version(text), good, "{text:?}");
        }
    }

    #[test]
    fn unknown_members_are_refused() {
        assert!(
            serde_json::from_str::<CapabilityManifest>(
                r#"{"app_id":"a","version":"1","manifest_version":"1.0","capabilities":[],"x":1}"#
            )
            .is_err()
        );
    }
}
