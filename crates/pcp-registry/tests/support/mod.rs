//! Applications and capabilities to fill a registry with.

use std::sync::Arc;

use pcp_core::{
    AdapterState, AppEntry, AppId, CapabilityDescriptor, CapabilityId, DetectionMethod, SignatureStatus,
    StabilityLevel, TrustLevel,
};
use pcp_registry::Change;

pub(crate) fn app_id(text: &str) -> AppId {
    AppId::parse(text).unwrap()
}

pub(crate) fn id(text: &str) -> CapabilityId {
    CapabilityId::parse(text).unwrap()
}

pub(crate) fn capability(text: &str, app: &str, method: DetectionMethod) -> CapabilityDescriptor {
    let id = id(text);
    let text = |text: String| -> Arc<str> { text.into() };
    CapabilityDescriptor {
        app_id: app_id(app),
        domain: id.domain(),
        name: text(format!("Name of {}", id.action())),
        description: text(format!("What {} of {} does for people", id.action(), id.app())),
        id,
        category: text("editor".to_owned()),
        input_schema: text(r#"{"type":"object","properties":{"text":{"type":"string"}}}"#.to_owned()),
        output_schema: text(r#"{"type":"object","properties":{"found":{"type":"integer"}}}"#.to_owned()),
        method,
        stability: StabilityLevel::Stable,
        version: text("1.0".to_owned()),
        side_effects: false,
        confirmation_required: false,
        minimum_trust: TrustLevel::USER,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Verified,
        clear_parameters: Box::default(),
    }
}

pub(crate) fn entry(id: &str) -> AppEntry {
    AppEntry {
        id: app_id(id),
        version: "1.0".into(),
        method: DetectionMethod::Desktop,
        signature: SignatureStatus::Verified,
        problem: None,
        declared: None,
        capabilities: [].into(),
    }
}

pub(crate) fn app(id: &str, capabilities: &[CapabilityDescriptor]) -> Change {
    Change::App { entry: entry(id), capabilities: capabilities.to_vec(), adapter_state: AdapterState::Ready }
}

/// `count` applications with `each` capabilities.
pub(crate) fn applications(count: usize, each: usize) -> impl Iterator<Item = Change> {
    (0..count).map(move |n| {
        let name = format!("org.example{}.app{n}", n % 7);
        let one = |k: usize| capability(&format!("app.{name}.read_{k}"), &name, DetectionMethod::Desktop);
        app(&name, &(0..each).map(one).collect::<Vec<_>>())
    })
}
