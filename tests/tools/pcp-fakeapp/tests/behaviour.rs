//! Every behaviour through the trait, with the file of effects as the witness.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Waker};

use pcp_core::{
    ActionClass, AppId, CapabilityId, CapabilityManifest, CapabilityResult, Domain, ErrorCode, Gate,
    IntentClassifier, InvocationContext, Modality, OperationId, PcpServer, StateSource, Tier, TrustLevel,
};
use pcp_fakeapp::{
    APP_ID, FakeApp, FakeManifest, MAX_SUBSCRIPTIONS, Script, count, effects, invocations_file,
};
use serde_json::{Value, json};

struct Fake {
    _space: tempfile::TempDir,
    log: PathBuf,
    app: FakeApp,
}

fn app_id() -> AppId {
    AppId::parse(APP_ID).unwrap()
}

fn fake(script: Script) -> Fake {
    let space = tempfile::tempdir().unwrap();
    let log = space.path().join("effects.log");
    let manifest = FakeManifest::standard(app_id()).to_json().to_string();
    let app = FakeApp::new(app_id(), manifest, &log, script).unwrap();
    Fake { _space: space, log, app }
}

fn id(action: &str) -> CapabilityId {
    CapabilityId::parse(&format!("app.{APP_ID}.{action}")).unwrap()
}

fn operation() -> OperationId {
    OperationId::from_parts(1_700_000_000_000, [7; 10])
}

fn context() -> InvocationContext {
    InvocationContext {
        operation_id: operation(),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Current,
        tier: Tier::One,
        budget_ms: 5000,
    }
}

impl Fake {
    /// What an invocation answers when nothing is waited for; `None` if it does not answer.
    fn invoke(&self, action: &str, params: &Value) -> Option<CapabilityResult> {
        let (capability, context, params) = (id(action), context(), params.to_string());
        let mut answer = pin!(self.app.invoke(&capability, &context, &params));
        // Polled more than once: a wait that ends by itself would be seen.
        (0..3).find_map(|_| match answer.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            std::task::Poll::Ready(result) => Some(result),
            std::task::Poll::Pending => None,
        })
    }

    fn effects(&self) -> usize {
        count(&self.log, operation()).unwrap()
    }
}

#[test]
fn each_behaviour_has_its_answer_and_its_count() {
    // behaviour, effects, success, error with its certificate; `None`: no answer
    let failed = Some((false, Some((ErrorCode::NotFound, false))));
    let refused = Some((false, Some((ErrorCode::NotFound, true))));
    let table = [
        ("succeed", 1, Some((true, None))),
        ("hang_before", 0, None),
        ("hang_after", 1, None),
        ("fail:not_found", 1, failed),
        ("fail:not_found:no_effect", 0, refused),
        ("wrong_result", 1, Some((true, None))),
        ("delay:5,hang_before,delay:0", 0, None),
    ];
    for (behave, effects, answer) in table {
        // Given by the flags and by the request, it is the same.
        let by_flag = fake(Script::default().with(behave).unwrap());
        let by_request = fake(Script::default());
        for (fake, params) in [(by_flag, json!({})), (by_request, json!({"behave": behave}))] {
            let result = fake.invoke("create", &params);
            let found = result
                .map(|result| (result.success, result.error.map(|error| (error.code, error.no_effect))));
            assert_eq!(found, answer, "{behave}");
            assert_eq!(fake.effects(), effects, "{behave}");
            assert_eq!(count(&invocations_file(&fake.log), operation()).unwrap(), 1, "{behave}");
        }
    }
}

#[test]
fn reads_are_invocations_and_no_effects() {
    let fake = fake(Script::default());
    assert!(fake.invoke("get_value", &json!({})).unwrap().success);
    assert!(fake.invoke("status", &json!({"id": 3})).unwrap().success);
    assert_eq!(fake.effects(), 0);
    assert_eq!(count(&invocations_file(&fake.log), operation()).unwrap(), 2);
}

#[test]
fn every_standard_capability_answers_what_its_manifest_declares_unless_told_otherwise() {
    let fake = fake(Script::default());
    let manifest: CapabilityManifest = serde_json::from_str(fake.app.manifest()).unwrap();
    let actions: Vec<&str> = manifest.capabilities.iter().filter_map(|c| c.id.rsplit('.').next()).collect();
    assert_eq!(actions, ["get_value", "set_value", "create", "delete", "export", "frobnicate", "status"]);
    for capability in &manifest.capabilities {
        let id = capability.capability_id().unwrap();
        let params = match id.action() {
            "set_value" => json!({"value": "v"}),
            "delete" | "export" | "status" => json!({"id": 1}),
            _ => json!({}),
        };
        let fits = |schema: &str, value: &Value| {
            jsonschema::draft202012::is_valid(&serde_json::from_str(schema).unwrap(), value)
        };
        assert!(fits(capability.parameters.get(), &params), "{id}");

        let right = fake.invoke(id.action(), &params).unwrap().data_json.unwrap();
        let mut wrong = params.clone();
        wrong["behave"] = json!("wrong_result");
        assert!(fits(capability.parameters.get(), &wrong), "{id}");
        let wrong = fake.invoke(id.action(), &wrong).unwrap().data_json.unwrap();

        assert!(fits(capability.returns.get(), &serde_json::from_str(&right).unwrap()), "{id}: {right}");
        assert!(!fits(capability.returns.get(), &serde_json::from_str(&wrong).unwrap()), "{id}: {wrong}");
    }
    let missing = manifest.capabilities.iter().find(|c| c.id.ends_with(".status")).unwrap();
    let schema = serde_json::from_str(missing.parameters.get()).unwrap();
    assert!(!jsonschema::draft202012::is_valid(&schema, &json!({})), "status needs an id");
}

#[test]
fn the_standard_manifest_has_one_capability_of_every_kind_that_the_gates_know() {
    let manifest: CapabilityManifest =
        serde_json::from_value(FakeManifest::standard(app_id()).to_json()).unwrap();
    for (action, class, gate) in [
        ("get_value", ActionClass::Read, Gate::Allow),
        ("set_value", ActionClass::InputText, Gate::Allow),
        ("create", ActionClass::Activate, Gate::Allow),
        ("delete", ActionClass::Delete, Gate::Confirm),
        ("export", ActionClass::Send, Gate::Confirm),
        ("frobnicate", ActionClass::Unknown, Gate::Confirm),
        ("status", ActionClass::Read, Gate::Allow),
    ] {
        let capability = manifest.capabilities.iter().find(|c| c.id.ends_with(action)).unwrap();
        let effective = IntentClassifier.classify(&id(action)).effective(!capability.side_effects);
        assert_eq!((effective, effective.gate()), (class, gate), "{action}");
    }
}

#[test]
fn a_result_says_the_source_that_the_script_says_and_state_is_always_the_models_own() {
    for (word, source) in [
        ("rust", StateSource::Rust),
        ("renderer", StateSource::Renderer),
        ("stale", StateSource::Stale),
        ("none", StateSource::Unknown),
    ] {
        let fake = fake(Script::default().with(&format!("state:{word}")).unwrap());
        assert_eq!(fake.invoke("get_value", &json!({})).unwrap().state_source, source);
        let mut state = pin!(fake.app.query_dynamic_state("value", "{}"));
        let std::task::Poll::Ready(state) = state.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("no answer");
        };
        assert_eq!(state.state_source, StateSource::Rust);
    }
}

#[test]
fn parameters_are_rejected_where_the_script_says() {
    let fake = fake(Script::default().with("reject:/value").unwrap());
    let (capability, params) = (id("set_value"), json!({"value": "v"}).to_string());
    let mut judged = pin!(fake.app.validate_params(&capability, &params));
    let std::task::Poll::Ready(judged) = judged.as_mut().poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("no answer");
    };
    assert_eq!(judged.unwrap_err().pointer, "/value");
    assert_eq!(effects(&fake.log).unwrap(), []);
}

#[test]
fn what_is_not_declared_or_not_understood_is_refused_without_effect() {
    let fake = fake(Script::default());
    for (action, params, code) in [
        ("fly", json!({}), ErrorCode::CapabilityNotFound),
        ("create", json!({"behave": "fly"}), ErrorCode::InvalidParameters),
    ] {
        let error = fake.invoke(action, &params).unwrap().error.unwrap();
        assert_eq!((error.code, error.no_effect), (code, true));
    }
    assert_eq!(fake.effects(), 0);
}

#[test]
fn subscribers_hear_of_effects_and_their_number_is_limited() {
    let fake = fake(Script::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    for _ in 0..MAX_SUBSCRIPTIONS {
        let heard = Arc::clone(&heard);
        let sink = move |topic: &str, data: &str| heard.lock().unwrap().push(format!("{topic} {data}"));
        fake.app.subscribe_events(&["effect".into()], Box::new(sink)).unwrap();
    }
    let error = fake.app.subscribe_events(&["effect".into()], Box::new(|_, _| {})).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitReached);

    fake.invoke("get_value", &json!({}));
    fake.invoke("create", &json!({}));

    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), MAX_SUBSCRIPTIONS);
    assert_eq!(heard[0], r#"effect {"capability":"app.org.example.fake.create"}"#);
}
