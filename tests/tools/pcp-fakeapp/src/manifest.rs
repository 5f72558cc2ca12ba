//! Manifests for fake applications: built, signed, never read.

use pcp_core::AppId;
use pcp_trust::{CanonicalJson, Signer};
use serde_json::{Map, Value, json};

use crate::error::Error;

/// The id of the standard fake application.
pub const APP_ID: &str = "org.example.fake";

/// One capability to declare. The fields are public: a story changes what it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeCapability {
    /// The full id.
    pub id: String,
    /// Properties of the parameters; `behave` is added where `scriptable`.
    pub parameters: Map<String, Value>,
    /// The parameters that are required.
    pub required: Vec<String>,
    /// Properties of the result, all required.
    pub returns: Map<String, Value>,
    /// Whether invoking it has an effect.
    pub side_effects: bool,
    /// Whether a request may choose the behaviour by a member `behave`.
    pub scriptable: bool,
    /// Whether the author asks for confirmation.
    pub confirmation_required: bool,
    /// The least trust that a caller needs.
    pub auth_level: Option<String>,
    /// The capability that takes the effect back.
    pub inverse: Option<String>,
    /// Whether `validate_params` is to be asked.
    pub validates_params: bool,
}

impl FakeCapability {
    /// A capability with an effect, without parameters, that returns `{"done": true}`.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            parameters: Map::new(),
            required: Vec::new(),
            returns: object(json!({"done": {"type": "boolean"}})),
            side_effects: true,
            scriptable: true,
            confirmation_required: false,
            auth_level: None,
            inverse: None,
            validates_params: false,
        }
    }

    /// The same, changing nothing.
    #[must_use]
    pub fn read(id: impl Into<String>) -> Self {
        Self { side_effects: false, ..Self::new(id) }
    }

    /// Adds a required parameter.
    #[must_use]
    pub fn takes(mut self, name: &str, schema: Value) -> Self {
        self.parameters.insert(name.to_owned(), schema);
        self.required.push(name.to_owned());
        self
    }

    /// Says what it returns: the properties of an object, all required.
    ///
    /// A value that is no object means an object without properties.
    #[must_use]
    pub fn gives(mut self, properties: Value) -> Self {
        self.returns = object(properties);
        self
    }

    /// The last part of the id.
    #[must_use]
    pub fn action(&self) -> &str {
        self.id.rsplit('.').next().unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        let mut parameters = self.parameters.clone();
        if self.scriptable {
            let behave = json!({"type": "string", "maxLength": 120, "x-pcp-sensitive": false});
            parameters.insert("behave".to_owned(), behave);
        }
        let returned: Vec<&String> = self.returns.keys().collect();
        let mut capability = json!({
            "id": self.id,
            "name": self.action(),
            "description": "a capability of a fake application",
            "category": "test",
            "parameters": {"type": "object", "properties": parameters, "required": self.required,
                           "additionalProperties": false},
            "returns": {"type": "object", "properties": self.returns, "required": returned,
                        "additionalProperties": false},
            "side_effects": self.side_effects,
            "confirmation_required": self.confirmation_required,
        });
        if let Value::Object(members) = &mut capability {
            let optional = [("auth_level", &self.auth_level), ("inverse", &self.inverse)];
            for (name, text) in optional {
                if let Some(text) = text {
                    members.insert(name.to_owned(), json!(text));
                }
            }
            if self.validates_params {
                members.insert("validates_params".to_owned(), json!(true));
            }
        }
        capability
    }
}

fn object(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

/// A manifest to sign and install.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeManifest {
    /// Whose it is.
    pub app_id: AppId,
    /// Its version.
    pub version: String,
    /// What it declares.
    pub capabilities: Vec<FakeCapability>,
}

impl FakeManifest {
    /// A manifest that declares `capabilities`.
    #[must_use]
    pub fn new(app_id: AppId, capabilities: Vec<FakeCapability>) -> Self {
        Self { app_id, version: "1.0.0".to_owned(), capabilities }
    }

    /// The standard capabilities of an application: one of every kind that the gates know.
    #[must_use]
    pub fn standard(app_id: AppId) -> Self {
        let id = |action: &str| format!("app.{app_id}.{action}");
        let (number, text) =
            (json!({"type": "integer", "minimum": 0}), json!({"type": "string", "maxLength": 4096}));
        let with_id = json!({"id": number});
        let capabilities = vec![
            FakeCapability::read(id("get_value")).gives(json!({"value": text})),
            FakeCapability::new(id("set_value")).takes("value", text.clone()).gives(json!({"value": text})),
            FakeCapability::new(id("create")).gives(with_id.clone()),
            FakeCapability::new(id("delete")).takes("id", number.clone()).gives(with_id.clone()),
            FakeCapability::new(id("export"))
                .takes("id", number.clone())
                .gives(json!({"id": number, "content": text})),
            FakeCapability::new(id("frobnicate")),
            FakeCapability::read(id("status"))
                .takes("id", number.clone())
                .gives(json!({"id": number, "state": text})),
        ];
        Self::new(app_id, capabilities)
    }

    /// Changes the capability whose action is `action`; nothing if there is none.
    #[must_use]
    pub fn changing(mut self, action: &str, change: impl FnOnce(&mut FakeCapability)) -> Self {
        if let Some(capability) = self.capabilities.iter_mut().find(|found| found.action() == action) {
            change(capability);
        }
        self
    }

    /// The manifest without signature.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "app_id": self.app_id.as_str(),
            "version": self.version,
            "manifest_version": "1.0",
            "capabilities": self.capabilities.iter().map(FakeCapability::to_json).collect::<Vec<_>>(),
        })
    }

    /// The bytes of the file, signed by `signer`.
    ///
    /// # Errors
    /// [`Error::Manifest`] if what a story put into it cannot be signed.
    pub fn signed(&self, signer: &Signer) -> Result<Vec<u8>, Error> {
        let document = CanonicalJson::parse(self.to_json().to_string().as_bytes())
            .map_err(|error| Error::Manifest { path: self.app_id.as_str().into(), why: error.to_string() })?;
        Ok(document.signed_with(signer))
    }
}
