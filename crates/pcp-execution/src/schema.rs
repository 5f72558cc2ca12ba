//! Parameters against the capability's JSON Schema, before any claim (R-228).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pcp_core::{CapabilityDescriptor, CapabilityId};

use crate::json_schema::JsonSchema;
use crate::one_reading;

/// Most compiled schemas kept: the capabilities in use at one time, at about 10 KiB each.
pub const MAX_COMPILED_SCHEMAS: usize = 256;
/// Deepest nesting of parameters (TH-05).
pub const MAX_DEPTH: usize = 32;
/// Most values in one parameter object (TH-05).
pub const MAX_NODES: usize = 4096;
/// Most parameter objects remembered as fitting: a poller repeats the same few requests.
const MAX_REMEMBERED: usize = 64;

/// Where and why parameters do not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParameters {
    /// JSON pointer (RFC 6901) to the value; empty for the whole object.
    pub pointer: String,
    /// What is wrong, without the value.
    pub message: String,
}

impl fmt::Display for InvalidParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(f, "the parameters: {}", self.message),
            pointer => write!(f, "parameter {pointer}: {}", self.message),
        }
    }
}

struct Compiled {
    text: Arc<str>,
    stamp: u64,
    validator: Arc<JsonSchema>,
}

#[derive(Default)]
struct Cache {
    compiled: HashMap<CapabilityId, Compiled>,
    stamps: u64,
    remembered: heapless::Vec<(u64, [u8; 32]), MAX_REMEMBERED>,
    oldest: usize,
}

/// Compiles schemas on first use and remembers what fitted, so that a repeated read parses nothing twice.
#[derive(Default)]
pub struct ParameterSchemas {
    cache: Mutex<Cache>,
}

impl fmt::Debug for ParameterSchemas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParameterSchemas").finish_non_exhaustive()
    }
}

impl ParameterSchemas {
    /// Checks that `schema` is a JSON Schema that can be used here: every keyword known, no remote references, linear-time patterns.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check_schema(schema: &str) -> Result<(), String> {
        compile(schema).map(drop)
    }

    /// Checks `parameters` (whose SHA-256 is `sha256`) against the capability's schema.
    ///
    /// # Errors
    /// [`InvalidParameters`] names the first value that does not fit; it never repeats the value.
    pub fn check(
        &self,
        capability: &CapabilityDescriptor,
        parameters: &str,
        sha256: &[u8; 32],
    ) -> Result<(), InvalidParameters> {
        if !parameters.trim_start().starts_with('{') {
            let message = "parameters are one JSON object".into();
            return Err(InvalidParameters { pointer: String::new(), message });
        }
        self.fits(&capability.id, &capability.input_schema, parameters, sha256)
    }

    /// Checks any JSON text (whose SHA-256 is `sha256`) against `schema`, kept compiled under `id`.
    ///
    /// # Errors
    /// As [`ParameterSchemas::check`].
    pub fn fits(
        &self,
        id: &CapabilityId,
        schema: &Arc<str>,
        json: &str,
        sha256: &[u8; 32],
    ) -> Result<(), InvalidParameters> {
        let whole = |message: String| InvalidParameters { pointer: String::new(), message };
        let (stamp, validator) = {
            let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            let found = cache
                .validator(id, schema)
                .map_err(|error| whole(format!("its schema is unusable: {error}")))?;
            if cache.remembered.contains(&(found.0, *sha256)) {
                return Ok(());
            }
            found
        };
        check_shape(json).map_err(whole)?;
        let value = one_reading::parse(json).map_err(|error| whole(format!("no JSON: {error}")))?;
        validator.validate(&value).map_err(|violation| InvalidParameters {
            pointer: violation.pointer,
            message: violation.message,
        })?;
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.remember((stamp, *sha256));
        Ok(())
    }
}

impl Cache {
    fn validator(&mut self, id: &CapabilityId, schema: &Arc<str>) -> Result<(u64, Arc<JsonSchema>), String> {
        if let Some(held) = self.compiled.get(id)
            && held.text == *schema
        {
            return Ok((held.stamp, held.validator.clone()));
        }
        let validator = Arc::new(compile(schema)?);
        if self.compiled.len() >= MAX_COMPILED_SCHEMAS {
            self.compiled.clear();
        }
        self.stamps += 1;
        let (text, stamp) = (schema.clone(), self.stamps);
        self.compiled.insert(id.clone(), Compiled { text, stamp, validator: validator.clone() });
        Ok((stamp, validator))
    }

    fn remember(&mut self, fitted: (u64, [u8; 32])) {
        if self.remembered.push(fitted).is_err()
            && let Some(slot) = self.remembered.get_mut(self.oldest)
        {
            *slot = fitted;
            self.oldest = (self.oldest + 1) % MAX_REMEMBERED;
        }
    }
}

fn compile(schema: &str) -> Result<JsonSchema, String> {
    let schema: serde_json::Value =
        serde_json::from_str(schema).map_err(|error| format!("no JSON: {error}"))?;
    JsonSchema::compile(&schema).map_err(|error| error.to_string())
}

/// Depth and number of values, from the bytes alone: before any tree is built.
fn check_shape(json: &str) -> Result<(), String> {
    let (mut depth, mut nodes, mut in_text, mut escaped) = (0_usize, 1_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' | b':' => nodes += 1,
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        if nodes > MAX_NODES {
            return Err(format!("more than {MAX_NODES} values"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::test_support::capability;
    use sha2::{Digest, Sha256};

    fn check(schemas: &ParameterSchemas, schema: &str, parameters: &str) -> Result<(), InvalidParameters> {
        let mut descriptor = capability("app.x.read");
        descriptor.input_schema = schema.into();
        schemas.check(&descriptor, parameters, &Sha256::digest(parameters.as_bytes()).into())
    }

    #[test]
    fn a_value_that_does_not_fit_is_named_by_its_pointer_and_not_repeated() {
        let schemas = ParameterSchemas::default();
        let schema = r#"{"type":"object","properties":{"id":{"type":"integer","minimum":1}},"required":["id"],"additionalProperties":false}"#;
        assert_eq!(check(&schemas, schema, r#"{"id":1}"#), Ok(()));
        let error = check(&schemas, schema, r#"{"id":"CANARY"}"#).unwrap_err();
        assert_eq!(error.pointer, "/id");
        assert!(!error.to_string().contains("CANARY"), "{error}");
        assert!(check(&schemas, schema, "{}").is_err());
        assert!(check(&schemas, schema, r#"{"id":1,"more":2}"#).is_err());
        assert!(check(&schemas, schema, "[1]").is_err());
    }

    #[test]
    fn what_is_checked_is_what_the_application_will_read() {
        let schemas = ParameterSchemas::default();
        let schema = r#"{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}"#;
        for text in [r#"{"id":"x","id":1}"#, r#"{"$serde_json::private::RawValue":"{\"id\":1}"}"#] {
            let error = check(&schemas, schema, text).unwrap_err();
            assert!(error.message.starts_with("no JSON: a member"), "{text}: {error}");
        }
    }

    #[test]
    fn what_fitted_one_schema_is_not_taken_for_fitting_another() {
        let schemas = ParameterSchemas::default();
        assert_eq!(check(&schemas, r#"{"type":"object"}"#, r#"{"id":1}"#), Ok(()));
        assert_eq!(check(&schemas, r#"{"type":"object"}"#, r#"{"id":1}"#), Ok(()));
        assert!(check(&schemas, r#"{"required":["x"]}"#, r#"{"id":1}"#).is_err());
    }

    #[test]
    fn the_whole_of_json_schema_counts() {
        let schemas = ParameterSchemas::default();
        let schema = r##"{"$defs":{"short":{"type":"string","pattern":"^[a-z]{1,3}$"}},"anyOf":[{"properties":{"a":{"$ref":"#/$defs/short"}},"required":["a"]},{"required":["b"]}]}"##;
        assert_eq!(check(&schemas, schema, r#"{"a":"abc"}"#), Ok(()));
        assert_eq!(check(&schemas, schema, r#"{"b":1}"#), Ok(()));
        assert!(check(&schemas, schema, r#"{"a":"abcd"}"#).is_err());
    }

    #[test]
    fn deep_and_wide_parameters_are_refused_before_a_tree_is_built() {
        let schemas = ParameterSchemas::default();
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(check(&schemas, "{}", &deep).unwrap_err().message.contains("32 levels"));
        let wide = format!("{{\"a\":[{}1]}}", "1,".repeat(MAX_NODES));
        assert!(check(&schemas, "{}", &wide).unwrap_err().message.contains("4096 values"));
        assert_eq!(check(&schemas, "{}", r#"{"a":"[[[[,,,,\"{{"}"#), Ok(()));
    }

    #[test]
    fn a_schema_that_reaches_out_is_refused() {
        for schema in [
            r#"{"$ref":"http://example.org/s.json"}"#,
            r#"{"$ref":"file:///etc/passwd"}"#,
            r#"{"type":7}"#,
            "{",
        ] {
            assert!(ParameterSchemas::check_schema(schema).is_err(), "{schema}");
        }
        assert!(ParameterSchemas::check_schema("true").is_ok());
    }

    #[test]
    fn the_caches_stay_at_their_limits() {
        let schemas = ParameterSchemas::default();
        for n in 0..(MAX_COMPILED_SCHEMAS + 10) {
            let mut descriptor = capability(&format!("app.x.read_{n}"));
            descriptor.input_schema = "{}".into();
            let parameters = format!("{{\"n\":{n}}}");
            schemas.check(&descriptor, &parameters, &Sha256::digest(parameters.as_bytes()).into()).unwrap();
        }
        let cache = schemas.cache.lock().unwrap();
        assert!(cache.compiled.len() <= MAX_COMPILED_SCHEMAS);
        assert_eq!(cache.remembered.len(), MAX_REMEMBERED);
    }
}
