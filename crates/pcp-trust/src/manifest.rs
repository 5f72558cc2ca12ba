//! From the bytes of a manifest and of a key file to one verdict (S0 `verify_with()`, R-203..R-207).
//!
//! What the manifest says is read out of the canonical bytes, the very bytes the signature is about: no second
//! reading of the file can find anything else in it (R-209).

use pcp_core::manifest::MAX_MANIFEST_BYTES;
use pcp_core::{AppId, CapabilityManifest, ManifestError};
use serde_json::Value;

use crate::canonical::CanonicalJson;
use crate::ed25519::{Signature, Verifier};
use crate::error::Error;

/// A manifest that keeps every rule of its format, with the bytes its author signed or would sign.
#[derive(Debug, Clone)]
pub struct CheckedManifest {
    /// The application's id, parsed.
    pub app_id: AppId,
    /// What it declares. Schemas are compact JSON text.
    pub manifest: CapabilityManifest,
    /// The canonical form without the signature.
    pub signed_bytes: Vec<u8>,
}

/// What became of a manifest.
#[must_use]
#[derive(Debug)]
pub enum ManifestVerdict {
    /// The trusted key of its application signed it.
    Verified(CheckedManifest),
    /// It has no signature: readable, but never Tier 1 (R-016, C26).
    Unsigned(CheckedManifest),
    /// It counts for nothing.
    Rejected(Rejection),
}

/// Why a manifest counts for nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The bytes are no document that every reader reads alike.
    #[error(transparent)]
    Document(Error),
    /// The document is no manifest: a member is missing, unknown or of another type.
    #[error("not a manifest: {0}")]
    Shape(String),
    /// A rule of the format is broken.
    #[error(transparent)]
    Rule(Box<ManifestError>),
    /// It is signed, but root trusts no key for its application.
    #[error("no key is trusted for {0}: put its public key into the keyring")]
    NoTrustedKey(Box<AppId>),
    /// The trusted key file holds no usable key.
    #[error(transparent)]
    Key(Error),
    /// The signature is malformed or not the trusted key's over these bytes.
    #[error(transparent)]
    Signature(Error),
}

impl Rejection {
    /// The stable word for reports, events and `pcp-cli inspect manifest`.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Document(Error::DuplicateKey { .. }) => "duplicate-key",
            Self::Document(Error::DocumentTooLarge { .. } | Error::TooDeep { .. }) => "limit",
            Self::Document(Error::NumberOutOfRange { .. }) => "bad-number",
            Self::Document(_) | Self::Shape(_) => "malformed",
            Self::Rule(rule) => rule.reason(),
            Self::NoTrustedKey(_) => "no-trusted-key",
            Self::Key(Error::KeyWeak) => "weak-key",
            Self::Key(_) => "bad-key-file",
            Self::Signature(_) => "bad-signature",
        }
    }
}

/// Judges a manifest. `expected` is the application it was looked up for, `key` the content of that
/// application's trusted key file (`None`: there is no such file).
pub fn verify_manifest(bytes: &[u8], expected: Option<&AppId>, key: Option<&[u8]>) -> ManifestVerdict {
    match judge(bytes, expected, key) {
        Ok(verdict) => verdict,
        Err(rejection) => ManifestVerdict::Rejected(rejection),
    }
}

fn judge(bytes: &[u8], expected: Option<&AppId>, key: Option<&[u8]>) -> Result<ManifestVerdict, Rejection> {
    if bytes.len() > MAX_MANIFEST_BYTES {
        let error = Error::DocumentTooLarge { size: bytes.len(), limit: MAX_MANIFEST_BYTES };
        return Err(Rejection::Document(error));
    }
    let document = CanonicalJson::parse(bytes).map_err(Rejection::Document)?;
    let checked = read(&document, expected)?;
    let Some(signature) = document.signature() else { return Ok(ManifestVerdict::Unsigned(checked)) };
    let key = key.ok_or_else(|| Rejection::NoTrustedKey(Box::new(checked.app_id.clone())))?;
    let verifier = Verifier::from_bytes(key).map_err(Rejection::Key)?;
    let signature = match signature {
        Value::String(text) => Signature::from_base64(text),
        _ => Err(Error::SignatureForm { length: 0 }),
    };
    signature
        .and_then(|signature| verifier.verify(document.signed_bytes(), &signature))
        .map_err(Rejection::Signature)?;
    Ok(ManifestVerdict::Verified(checked))
}

fn read(document: &CanonicalJson, expected: Option<&AppId>) -> Result<CheckedManifest, Rejection> {
    let signed_bytes = document.signed_bytes().to_vec();
    let manifest: CapabilityManifest =
        serde_json::from_slice(&signed_bytes).map_err(|error| Rejection::Shape(error.to_string()))?;
    let app_id = manifest.check(expected).map_err(|rule| Rejection::Rule(Box::new(rule)))?;
    Ok(CheckedManifest { app_id, manifest, signed_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ed25519::Signer;

    const PLAIN: &str = r#"{"app_id":"org.example.notes","version":"1.0","manifest_version":"1.0","capabilities":[
        {"id":"app.org.example.notes.read","name":"Read","parameters":{"b":1,"a":2},"returns":true,"side_effects":false}]}"#;

    fn signer() -> Signer {
        Signer::from_secret_bytes(&[3; 32])
    }

    fn signed(text: &str) -> Vec<u8> {
        CanonicalJson::parse(text.as_bytes()).unwrap().signed_with(&signer())
    }

    fn reason(bytes: &[u8], key: Option<&[u8]>) -> &'static str {
        match verify_manifest(bytes, None, key) {
            ManifestVerdict::Verified(_) => "verified",
            ManifestVerdict::Unsigned(_) => "unsigned",
            ManifestVerdict::Rejected(rejection) => rejection.reason(),
        }
    }

    #[test]
    fn what_is_read_is_what_was_signed() {
        let key = signer().verifier().to_bytes();
        let ManifestVerdict::Verified(checked) = verify_manifest(&signed(PLAIN), None, Some(&key)) else {
            panic!("not verified");
        };
        assert_eq!(checked.app_id.as_str(), "org.example.notes");
        assert_eq!(checked.manifest.capabilities[0].parameters.get(), r#"{"a":2,"b":1}"#);
        assert_eq!(checked.signed_bytes, CanonicalJson::parse(PLAIN.as_bytes()).unwrap().signed_bytes());
    }

    #[test]
    fn signing_again_replaces_the_signature() {
        let once = signed(PLAIN);
        assert_eq!(CanonicalJson::parse(&once).unwrap().signed_with(&signer()), once);
    }

    #[test]
    fn each_fault_has_its_reason() {
        let key = signer().verifier().to_bytes();
        let key = Some(&key[..]);
        let with = |from: &str, to: &str| signed(&PLAIN.replacen(from, to, 1));
        let unsigned = |text: &str| text.as_bytes().to_vec();
        let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(40), "]".repeat(40));
        let table = [
            ("verified", signed(PLAIN), key),
            ("unsigned", unsigned(PLAIN), key),
            ("unsigned", unsigned(PLAIN), None),
            ("no-trusted-key", signed(PLAIN), None),
            ("bad-key-file", signed(PLAIN), Some(&[1; 31][..])),
            ("bad-signature", unsigned(&PLAIN.replacen('{', r#"{"signature":"","#, 1)), key),
            ("bad-signature", unsigned(&PLAIN.replacen('{', r#"{"signature":null,"#, 1)), key),
            ("bad-signature", unsigned(&PLAIN.replacen('{', r#"{"signature":[],"#, 1)), key),
            ("malformed", unsigned("[]"), key),
            ("malformed", unsigned("{}"), key),
            ("malformed", with("\"version\"", "\"verzion\""), key),
            ("malformed", with("\"name\"", "\"color\":\"x\",\"name\""), key),
            ("malformed", with("false", "\"no\""), key),
            ("limit", unsigned(&deep), key),
            ("limit", vec![b' '; MAX_MANIFEST_BYTES + 1], key),
            ("malformed", vec![b' '; MAX_MANIFEST_BYTES], key),
            ("bad-number", unsigned(&PLAIN.replacen("\"b\":1", "\"b\":1e40", 1)), key),
            ("bad-capability-id", with("app.org.example.notes.read", "read"), key),
            ("bad-auth-level", with("\"side_effects\"", "\"auth_level\":\"root\",\"side_effects\""), key),
        ];
        for (expected, bytes, key) in table {
            assert_eq!(
                reason(&bytes, key),
                expected,
                "{}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
            );
        }
    }
}
