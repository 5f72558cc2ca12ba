//! From a manifest's capability to the descriptor that the registry holds.

use std::sync::Arc;

use pcp_core::{
    CapabilityDescriptor, DetectionMethod, ManifestCapability, ManifestError, SignatureStatus, StabilityLevel,
};
use pcp_trust::CheckedManifest;
use serde_json::Value;

/// The schema member by which an author says whether a parameter's text is private (C5).
const SENSITIVE: &str = "x-pcp-sensitive";

/// The descriptors of a manifest whose signature was verified: typed, stable, executable at Tier 1 (R-016).
///
/// # Errors
/// The first rule that a capability breaks; [`CheckedManifest`]s break none.
pub fn descriptors(checked: &CheckedManifest) -> Result<Vec<CapabilityDescriptor>, ManifestError> {
    let version: Arc<str> = checked.manifest.version.as_str().into();
    let one = |capability: &ManifestCapability| {
        let id = capability.capability_id()?;
        Ok(CapabilityDescriptor {
            app_id: checked.app_id.clone(),
            domain: id.domain(),
            name: capability.name.as_str().into(),
            description: capability.description.as_str().into(),
            category: capability.category.as_str().into(),
            input_schema: capability.parameters.get().into(),
            output_schema: capability.returns.get().into(),
            method: DetectionMethod::Desktop,
            stability: StabilityLevel::Stable,
            version: Arc::clone(&version),
            side_effects: capability.side_effects,
            confirmation_required: capability.confirmation_required,
            minimum_trust: capability.minimum_trust()?,
            validates_params: capability.validates_params,
            executable: true,
            signature: SignatureStatus::Verified,
            clear_parameters: clear_parameters(capability.parameters.get()),
            id,
        })
    };
    checked.manifest.capabilities.iter().map(one).collect()
}

/// The top-level parameters whose text may stand in a record: one of a fixed list of words, or declared open.
/// `"x-pcp-sensitive": true` wins over both.
fn clear_parameters(schema: &str) -> Box<[Box<str>]> {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Box::default() };
    let clear = |schema: &Value| match schema.get(SENSITIVE) {
        Some(Value::Bool(sensitive)) => !sensitive,
        Some(_) => false,
        None => schema.get("enum").is_some_and(Value::is_array),
    };
    properties.iter().filter(|(_, schema)| clear(schema)).map(|(name, _)| name.as_str().into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_open_stands_in_a_record_in_clear() {
        let schema = r#"{"properties":{
            "mode":{"enum":["a","b"]}, "open":{"type":"string","x-pcp-sensitive":false},
            "text":{"type":"string"}, "secret":{"enum":["a"],"x-pcp-sensitive":true},
            "odd":{"enum":["a"],"x-pcp-sensitive":"no"}, "list":{"enum":"a"}, "any":true}}"#;
        let clear: Vec<_> = clear_parameters(schema).iter().map(ToString::to_string).collect();
        assert_eq!(clear, ["mode", "open"]);
        for schema in ["true", "{}", r#"{"properties":[]}"#] {
            assert!(clear_parameters(schema).is_empty());
        }
    }
}
