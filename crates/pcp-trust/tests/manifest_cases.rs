//! Every manifest of `tests/stories/data/manifest`, judged against the answer written beside it.
#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use std::fs;
use std::path::{Path, PathBuf};

use pcp_core::AppId;
use pcp_trust::{CanonicalJson, ManifestVerdict, Signature, verify_manifest};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data/manifest")
}

fn cases() -> Vec<Value> {
    let expected: Value = serde_json::from_slice(&fs::read(folder().join("expected.json")).unwrap()).unwrap();
    assert_eq!(expected["format"], 1);
    expected["cases"].as_array().unwrap().clone()
}

fn bytes(case: &Value, member: &str) -> Vec<u8> {
    fs::read(folder().join(case[member].as_str().unwrap())).unwrap()
}

#[test]
fn every_case_has_the_outcome_and_reason_written_beside_it() {
    let cases = cases();
    assert_eq!(cases.len(), 21);
    for case in cases {
        let name = &case["case"];
        let expected = case["expected_app_id"].as_str().map(|id| AppId::parse(id).unwrap());
        let verdict = verify_manifest(&bytes(&case, "file"), expected.as_ref(), Some(&bytes(&case, "key")));
        let (outcome, reason) = match &verdict {
            ManifestVerdict::Verified(_) => ("verified", Value::Null),
            ManifestVerdict::Unsigned(_) => ("unsigned", Value::Null),
            ManifestVerdict::Rejected(rejection) => ("rejected", Value::from(rejection.reason())),
        };
        assert_eq!(case["outcome"], outcome, "{name}: {verdict:?}");
        assert_eq!(case["reason"], reason, "{name}: {verdict:?}");
    }
}

#[test]
fn the_canonical_form_and_the_signature_are_those_that_were_written() {
    let mut compared = 0;
    for case in cases() {
        let Ok(document) = CanonicalJson::parse(&bytes(&case, "file")) else { continue };
        if case.get("canonical").is_some() {
            assert_eq!(document.signed_bytes(), bytes(&case, "canonical"), "{}", case["case"]);
            let digest: String = document.sha256().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(digest, case["canonical_sha256"], "{}", case["case"]);
            compared += 1;
        }
        if let (Some(text), Some(hex)) = (document.signature(), case["signature_hex"].as_str()) {
            let signature = Signature::from_base64(text.as_str().unwrap()).unwrap();
            let written: String = signature.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(written, hex, "{}", case["case"]);
        }
    }
    assert_eq!(compared, 18, "all but the refused documents and the one that was changed after signing");
}
