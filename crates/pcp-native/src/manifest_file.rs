//! A manifest on disk, judged: read once, verified, held to what its application may declare.
//!
//! The daemon and `pcp-cli inspect manifest` come through the same function, so that what the one registers and
//! what the other reports cannot differ.

use std::path::Path;

use pcp_core::manifest::MAX_MANIFEST_BYTES;
use pcp_core::{AppId, CapabilityDescriptor, ManifestError};
use pcp_trust::keys::MAX_KEY_FILE_BYTES;
use pcp_trust::root_file::{FileRule, read_once};
use pcp_trust::{
    AppRegistration, CanonicalJson, CheckedManifest, Error, Keyring, ManifestVerdict, Signature,
    verify_manifest,
};

use crate::descriptor::descriptors;
use crate::report::{ManifestReport, Outcome};

/// Under what conditions a manifest is judged.
#[derive(Debug, Clone, Copy, Default)]
pub struct ManifestQuestion<'a> {
    /// The application it was looked up for.
    pub expected: Option<&'a AppId>,
    /// The content of that application's trusted key file.
    pub key: Option<&'a [u8]>,
    /// A prefix that the application's registration grants besides its own.
    pub prefix: Option<&'a str>,
}

/// The report on a manifest, and what it offers if it was verified.
#[must_use]
#[derive(Debug, Clone)]
pub struct JudgedManifest {
    /// What the manifest is and why.
    pub report: ManifestReport,
    /// The manifest itself with the bytes its signature is about, unless it was rejected.
    pub manifest: Option<CheckedManifest>,
    /// Its capabilities. Empty unless it was verified: only a signature makes Tier 1.
    pub capabilities: Vec<CapabilityDescriptor>,
}

/// Reads and judges the manifest of a registered application. The file must belong to `owner`, and no part of
/// its path may be a link.
pub fn load_manifest(app: &AppRegistration, keyring: &Keyring, owner: u32) -> JudgedManifest {
    let rule = FileRule { owner: Some(owner), max_bytes: MAX_MANIFEST_BYTES };
    let read = read_once(&app.manifest, rule).map_err(|error| (file_reason(&error), error));
    let read = read.and_then(|bytes| match keyring.read(&app.app_id) {
        Ok(key) => Ok((bytes, key)),
        Err(error) => Err(("bad-key-file", error)),
    });
    let mut judged = match read {
        Ok((bytes, key)) => {
            let prefix = app.prefix.as_deref();
            judge_manifest(
                &bytes,
                ManifestQuestion { expected: Some(&app.app_id), key: key.as_deref(), prefix },
            )
        }
        Err((reason, error)) => rejected(reason, &error),
    };
    judged.report.file = Some(app.manifest.display().to_string());
    judged.report.key = Some(keyring.path(&app.app_id).display().to_string());
    judged.report.expected_app_id = Some(app.app_id.to_string());
    judged
}

/// Reads and judges a manifest that a person named, with the key file they named. Whose files they are does not
/// matter: the answer is a report, and nothing is registered.
pub fn inspect_manifest(file: &Path, key: Option<&Path>, expected: Option<&AppId>) -> JudgedManifest {
    let rule = |max_bytes| FileRule { owner: None, max_bytes };
    let bytes = read_once(file, rule(MAX_MANIFEST_BYTES)).map_err(|error| (file_reason(&error), error));
    let key_bytes = key.map(|key| read_once(key, rule(MAX_KEY_FILE_BYTES))).transpose();
    let mut judged = match (bytes, key_bytes) {
        (Ok(bytes), Ok(key)) => {
            judge_manifest(&bytes, ManifestQuestion { expected, key: key.as_deref(), prefix: None })
        }
        (Err((reason, error)), _) => rejected(reason, &error),
        (_, Err(error)) => rejected("bad-key-file", &error),
    };
    judged.report.file = Some(file.display().to_string());
    judged.report.key = key.map(|key| key.display().to_string());
    judged.report.expected_app_id = expected.map(ToString::to_string);
    judged
}

/// Judges the bytes of a manifest. The bytes that are verified are the bytes that are read.
pub fn judge_manifest(bytes: &[u8], question: ManifestQuestion<'_>) -> JudgedManifest {
    let (outcome, checked) = match verify_manifest(bytes, question.expected, question.key) {
        ManifestVerdict::Verified(checked) => (Outcome::Verified, checked),
        ManifestVerdict::Unsigned(checked) => (Outcome::Unsigned, checked),
        ManifestVerdict::Rejected(rejection) => {
            return with_facts(rejected(rejection.reason(), &rejection), bytes);
        }
    };
    let offered = check_scope(&checked, question.prefix).and_then(|()| match outcome {
        Outcome::Verified => descriptors(&checked),
        Outcome::Unsigned | Outcome::Rejected => Ok(Vec::new()),
    });
    let ids = checked.manifest.capabilities.iter().filter_map(|capability| capability.capability_id().ok());
    let ids = ids.map(|id| id.to_string()).collect();
    let mut judged = match offered {
        Ok(capabilities) => JudgedManifest { report: blank(outcome), manifest: Some(checked), capabilities },
        Err(rule) => rejected(rule.reason(), &rule),
    };
    judged.report.capabilities = ids;
    with_facts(judged, bytes)
}

/// Every declared id is the application's own, or stands under the prefix granted to it.
fn check_scope(checked: &CheckedManifest, granted: Option<&str>) -> Result<(), ManifestError> {
    let own = format!("app.{}", checked.app_id);
    for capability in &checked.manifest.capabilities {
        let id = capability.capability_id()?;
        let prefix = format!("{}.{}", id.domain(), id.app());
        if prefix != own && Some(prefix.as_str()) != granted {
            let prefix = granted.unwrap_or(&own).to_owned();
            return Err(ManifestError::Scope { id: id.to_string(), prefix });
        }
    }
    Ok(())
}

fn rejected(reason: &'static str, why: &dyn std::error::Error) -> JudgedManifest {
    let report =
        ManifestReport { reason: Some(reason), why: Some(why.to_string()), ..blank(Outcome::Rejected) };
    JudgedManifest { report, manifest: None, capabilities: Vec::new() }
}

fn blank(outcome: Outcome) -> ManifestReport {
    ManifestReport {
        file: None,
        key: None,
        expected_app_id: None,
        outcome,
        reason: None,
        why: None,
        app_id: None,
        version: None,
        manifest_version: None,
        canonical_sha256: None,
        signature_hex: None,
        capabilities: Vec::new(),
    }
}

/// Adds what can be read of the document whatever became of it: a rejected manifest should show what it claims.
fn with_facts(mut judged: JudgedManifest, bytes: &[u8]) -> JudgedManifest {
    let Ok(document) = CanonicalJson::parse(bytes) else { return judged };
    let text = |name: &str| Some(document.value().get(name)?.as_str()?.chars().take(SHOWN_CHARS).collect());
    let report = &mut judged.report;
    report.app_id = text("app_id");
    report.version = text("version");
    report.manifest_version = text("manifest_version");
    report.canonical_sha256 = Some(hex(&document.sha256()));
    let signature = document.signature().and_then(|value| value.as_str());
    report.signature_hex = signature
        .and_then(|text| Signature::from_base64(text).ok())
        .map(|signature| hex(&signature.to_bytes()));
    judged
}

/// Characters of an unchecked text that a report repeats: an id in full, not a flood.
const SHOWN_CHARS: usize = 256;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn file_reason(error: &Error) -> &'static str {
    match error {
        Error::FileTooLarge { .. } => "limit",
        Error::SymbolicLink { .. }
        | Error::NotRegular { .. }
        | Error::WrongOwner { .. }
        | Error::WritableByOthers { .. } => "bad-file",
        _ => "unreadable",
    }
}
