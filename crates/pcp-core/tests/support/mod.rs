//! The golden vectors of protocol v2, and requests changed in one place.

use pcp_core::v2::{ActionRequest, InvalidRequest, ValidRequest};
use serde_json::Value;

/// The measured vectors.
pub(crate) fn vectors() -> Value {
    let text = include_str!("../../../../tests/stories/data/protocol/vectors.json");
    serde_json::from_str(text).unwrap()
}

/// The request of a vector.
pub(crate) fn request(name: &str) -> Value {
    let vectors = vectors();
    let found = vectors["vectors"].as_array().unwrap().iter().find(|vector| vector["name"] == name);
    found.unwrap()["request"].clone()
}

/// Reads a request and applies the rules, as a door does.
pub(crate) fn judge(text: &str) -> Result<ValidRequest, InvalidRequest> {
    ActionRequest::parse(text.as_bytes()).and_then(ValidRequest::new)
}

/// `value` with the member at `pointer` replaced, or put in.
pub(crate) fn with(mut value: Value, pointer: &str, member: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap()[name] = member;
    value
}

/// `value` without the member at `pointer`.
#[allow(dead_code, reason = "not every test file takes one out")]
pub(crate) fn without(mut value: Value, pointer: &str) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    value.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).unwrap();
    value
}
