//! What a manifest file turned out to be, for people and programs.

use pcp_core::SignatureStatus;
use serde::Serialize;

/// The three things a manifest can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// Signed by the trusted key of its application.
    Verified,
    /// Without a signature.
    Unsigned,
    /// Counts for nothing.
    Rejected,
}

impl Outcome {
    /// The word that descriptors and `app show` carry.
    #[must_use]
    pub const fn signature_status(self) -> SignatureStatus {
        match self {
            Self::Verified => SignatureStatus::Verified,
            Self::Unsigned => SignatureStatus::Unsigned,
            Self::Rejected => SignatureStatus::Invalid,
        }
    }
}

/// A manifest's outcome with the facts it rests on. The names are those of the test data's `expected.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ManifestReport {
    /// The manifest as it was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The key file, if one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The application it was looked up for, if for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_app_id: Option<String>,
    /// What it is.
    pub outcome: Outcome,
    /// The stable word of why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The same in a sentence, with the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The application it names, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<String>,
    /// The application's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The version of the manifest format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_version: Option<String>,
    /// SHA-256 of the canonical form without the signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canonical_sha256: Option<String>,
    /// The signature, if there is a well-formed one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature_hex: Option<String>,
    /// The declared ids in canonical form.
    pub capabilities: Vec<String>,
}
