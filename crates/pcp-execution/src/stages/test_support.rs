//! Values that the tests of several stages need.

use pcp_core::{
    AppId, CapabilityDescriptor, CapabilityId, DetectionMethod, SignatureStatus, StabilityLevel, TrustLevel,
};

/// A capability of a verified manifest that accepts any object and returns anything.
pub(crate) fn capability(text: &str) -> CapabilityDescriptor {
    let id = CapabilityId::parse(text).unwrap();
    CapabilityDescriptor {
        app_id: AppId::parse(id.app()).unwrap(),
        domain: id.domain(),
        id,
        name: "".into(),
        description: "".into(),
        category: "".into(),
        input_schema: r#"{"type":"object"}"#.into(),
        output_schema: "true".into(),
        method: DetectionMethod::Desktop,
        stability: StabilityLevel::Stable,
        version: "1".into(),
        side_effects: true,
        confirmation_required: false,
        minimum_trust: TrustLevel::OBSERVE,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Verified,
        clear_parameters: Box::default(),
    }
}
