//! The manifest, its schemas, the documented examples and the program agree.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use pcp_core::{
    ActionClass, AppId, CapabilityId, CapabilityManifest, CapabilityResult, Domain, IntentClassifier,
    InvocationContext, ManifestCapability, Modality, OperationId, PcpServer, Tier, TrustLevel,
};
use pcp_notes::{ACTIONS, APP_ID, NotesServer, Store};
use pcp_trust::{CanonicalJson, ManifestVerdict, Signer, verify_manifest};
use serde_json::{Value, json};

const MANIFEST: &str = include_str!("../manifest.json");
const README: &str = include_str!("../README.md");

fn manifest() -> CapabilityManifest {
    serde_json::from_str(MANIFEST).unwrap()
}

fn capability(action: &str) -> ManifestCapability {
    let id = format!("app.{APP_ID}.{action}");
    manifest().capabilities.into_iter().find(|capability| capability.id == id).unwrap()
}

fn schema(text: &str) -> jsonschema::Validator {
    let schema: Value = serde_json::from_str(text).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn server() -> (tempfile::TempDir, NotesServer) {
    let space = tempfile::tempdir().unwrap();
    let store = Store::open(&space.path().join("data")).unwrap();
    let server = NotesServer::with_clock(MANIFEST.to_owned(), store, || 1_700_000_000_000).unwrap();
    (space, server)
}

fn context() -> InvocationContext {
    InvocationContext {
        operation_id: OperationId::parse("0191e7a0-0000-7000-8000-000000000001").unwrap(),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Current,
        tier: Tier::One,
        budget_ms: 5000,
    }
}

async fn invoke(server: &NotesServer, action: &str, params: &str) -> CapabilityResult {
    let id = CapabilityId::parse(&format!("app.{APP_ID}.{action}")).unwrap();
    server.invoke(&id, &context(), params).await
}

/// The lines of the README's example block: action and parameters.
fn examples() -> Vec<(&'static str, &'static str)> {
    let block = README.split("```example\n").nth(1).unwrap().split("```").next().unwrap();
    block.lines().map(|line| line.split_once(' ').unwrap()).collect()
}

#[test]
fn the_manifest_keeps_the_rules_and_verifies_once_it_is_signed() {
    let app_id = AppId::parse(APP_ID).unwrap();
    assert_eq!(manifest().check(Some(&app_id)).unwrap(), app_id);
    manifest().check_scope(&format!("app.{APP_ID}")).unwrap();
    let signer = Signer::from_secret_bytes(&[5; 32]);
    let signed = CanonicalJson::parse(MANIFEST.as_bytes()).unwrap().signed_with(&signer);
    let verdict = verify_manifest(&signed, Some(&app_id), Some(&signer.verifier().to_bytes()));
    assert!(matches!(verdict, ManifestVerdict::Verified(_)), "{verdict:?}");
}

#[test]
fn exactly_the_declared_capabilities_are_served() {
    let declared: Vec<String> = manifest().capabilities.into_iter().map(|capability| capability.id).collect();
    let served: Vec<String> = ACTIONS.iter().map(|action| format!("app.{APP_ID}.{action}")).collect();
    assert_eq!(declared, served);
}

#[test]
fn the_words_of_the_actions_give_the_classes_that_the_readme_promises() {
    for (action, class, side_effects) in [
        ("list", ActionClass::Read, false),
        ("search", ActionClass::Read, false),
        ("read", ActionClass::Read, false),
        ("create", ActionClass::Activate, true),
        ("edit", ActionClass::InputText, true),
        ("delete", ActionClass::Delete, true),
        ("restore", ActionClass::Activate, true),
        ("export", ActionClass::Send, true),
    ] {
        let capability = capability(action);
        let id = capability.capability_id().unwrap();
        assert_eq!(IntentClassifier.classify(&id).gate_class, class, "{action}");
        assert_eq!(capability.side_effects, side_effects, "{action}");
    }
}

#[test]
fn a_deletion_names_its_inverse_which_takes_the_same_parameters() {
    assert_eq!(capability("delete").inverse.as_deref(), Some("app.org.portal.notes.restore"));
    assert_eq!(capability("delete").parameters.get(), capability("restore").parameters.get());
}

#[test]
fn only_texts_that_are_no_content_may_stand_in_the_trail() {
    for capability in manifest().capabilities {
        let schema: Value = serde_json::from_str(capability.parameters.get()).unwrap();
        for (name, member) in schema["properties"].as_object().unwrap() {
            let clear = member.get("x-pcp-sensitive") == Some(&json!(false));
            assert_eq!(clear, name == "format", "{}: {name}", capability.id);
        }
    }
}

#[tokio::test]
async fn every_documented_example_fits_its_schema_and_so_does_its_result() {
    let (_space, server) = server();
    let mut seen = BTreeSet::new();
    for (action, params) in examples() {
        let capability = capability(action);
        let value: Value = serde_json::from_str(params).unwrap();
        assert!(schema(capability.parameters.get()).is_valid(&value), "{action} {params}");

        let result = invoke(&server, action, params).await;

        assert!(result.success, "{action} {params}: {result:?}");
        let data: Value = serde_json::from_str(&result.data_json.unwrap()).unwrap();
        assert!(schema(capability.returns.get()).is_valid(&data), "{action} {params}: {data}");
        seen.insert(action);
    }
    assert_eq!(seen, ACTIONS.into_iter().collect());
}

#[test]
fn the_schemas_and_the_limits_of_the_program_are_the_same() {
    let at = |action: &str, pointer: &str| {
        let capability = capability(action);
        let schema: Value = serde_json::from_str(capability.parameters.get()).unwrap();
        schema.pointer(pointer).and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok())
    };
    for action in ["create", "edit"] {
        assert_eq!(at(action, "/properties/title/maxLength"), Some(pcp_notes::MAX_TITLE_CHARS));
        assert_eq!(at(action, "/properties/body/maxLength"), Some(pcp_notes::MAX_BODY_BYTES));
    }
    assert_eq!(at("list", "/properties/limit/maximum"), Some(pcp_notes::MAX_PAGE));
    assert_eq!(at("search", "/properties/limit/maximum"), Some(pcp_notes::MAX_MATCHES));
    assert_eq!(at("search", "/properties/query/maxLength"), Some(pcp_notes::MAX_QUERY_CHARS));
}
