//! The application: does what its script says, and counts.

use std::collections::BTreeMap;
use std::future::pending;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pcp_core::{
    AppId, BoxFuture, CapabilityFailure, CapabilityId, CapabilityManifest, CapabilityResult, ErrorCode,
    EventSink, InvalidParams, InvocationContext, PcpError, PcpServer, StateSource,
};
use serde_json::{Value, json};

use crate::effects::EffectLog;
use crate::error::Error;
use crate::script::{Act, Script};

/// Most event subscriptions held: one per connection of the daemon.
pub const MAX_SUBSCRIPTIONS: usize = 16;

struct Subscription {
    topics: Vec<String>,
    sink: EventSink,
}

/// What the application knows: enough to answer every capability of the standard manifest.
#[derive(Debug, Default)]
struct Model {
    value: String,
    last_id: u64,
}

/// The fake application.
pub struct FakeApp {
    app_id: AppId,
    manifest: String,
    /// The declared capabilities; whether each has effects.
    declared: BTreeMap<CapabilityId, bool>,
    effects: EffectLog,
    script: Script,
    model: Mutex<Model>,
    subscriptions: Mutex<Vec<Subscription>>,
}

impl std::fmt::Debug for FakeApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FakeApp")
            .field("app_id", &self.app_id)
            .field("script", &self.script)
            .finish_non_exhaustive()
    }
}

impl FakeApp {
    /// An application that serves `manifest` byte for byte, counts in the file `effects` and obeys `script`.
    ///
    /// The manifest may be anybody's and wrongly signed: a story may be about that.
    ///
    /// # Errors
    /// [`Error::Manifest`] if it is no manifest at all, [`Error::File`] if the effects cannot be counted.
    pub fn new(app_id: AppId, manifest: String, effects: &Path, script: Script) -> Result<Self, Error> {
        let refuse = |why: String| Error::Manifest { path: app_id.as_str().into(), why };
        let parsed: CapabilityManifest =
            serde_json::from_str(&manifest).map_err(|error| refuse(error.to_string()))?;
        let declared = parsed
            .capabilities
            .iter()
            .map(|capability| Ok((capability.capability_id()?, capability.side_effects)))
            .collect::<Result<_, pcp_core::ManifestError>>()
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Self {
            app_id,
            manifest,
            declared,
            effects: EffectLog::open(effects)?,
            script,
            model: Mutex::default(),
            subscriptions: Mutex::default(),
        })
    }

    async fn perform(
        &self,
        capability: &CapabilityId,
        context: &InvocationContext,
        params: &str,
    ) -> CapabilityResult {
        if let Err(error) = self.effects.invoked(context.operation_id, capability) {
            return CapabilityResult::refused(ErrorCode::ExecutionFailed, format!("cannot count: {error}"));
        }
        let Some(has_effect) = self.declared.get(capability).copied() else {
            let message = format!("capability {capability} is not declared");
            return CapabilityResult::refused(ErrorCode::CapabilityNotFound, message);
        };
        let (params, script) = match self.read(params) {
            Ok(read) => read,
            Err(message) => return CapabilityResult::refused(ErrorCode::InvalidParameters, message),
        };
        if !script.delay.is_zero() {
            tokio::time::sleep(script.delay).await;
        }
        match script.act {
            Act::HangBefore => return pending().await,
            Act::Refuse(code) => return CapabilityResult::refused(code, "the script says so"),
            _ => {}
        }
        if has_effect && let Err(error) = self.effects.record(context.operation_id, capability) {
            return failed(ErrorCode::ExecutionFailed, format!("the effect may be uncounted: {error}"));
        }
        let data =
            self.model.lock().unwrap_or_else(PoisonError::into_inner).answer(capability.action(), &params);
        if has_effect {
            self.publish(capability);
        }
        match script.act {
            Act::HangAfter => pending().await,
            Act::DieAfterEffect => die().await,
            Act::Fail(code) => failed(code, "the script says so".to_owned()),
            Act::WrongResult => CapabilityResult::ok(r#"{"undeclared":"by the manifest"}"#),
            _ => CapabilityResult {
                state_source: script.state_source,
                ..CapabilityResult::ok(data.to_string())
            },
        }
    }

    /// The parameters, and the script as they change it.
    fn read(&self, params: &str) -> Result<(Value, Script), String> {
        let params: Value = serde_json::from_str(params).map_err(|error| error.to_string())?;
        let script = match params.get("behave").and_then(Value::as_str) {
            Some(words) => self.script.clone().with(words).map_err(|error| error.to_string())?,
            None => self.script.clone(),
        };
        Ok((params, script))
    }

    /// Tells subscribers of the topic `effect`.
    fn publish(&self, capability: &CapabilityId) {
        let event = json!({"capability": capability.as_str()}).to_string();
        let subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        for Subscription { topics, sink } in subscriptions.iter() {
            if topics.iter().any(|topic| topic == "effect") {
                sink("effect", &event);
            }
        }
    }
}

impl Model {
    /// Does `action` and gives its declared result.
    fn answer(&mut self, action: &str, params: &Value) -> Value {
        let id = params.get("id").and_then(Value::as_u64).unwrap_or_default();
        match action {
            "get_value" => json!({"value": self.value}),
            "set_value" => {
                params.get("value").and_then(Value::as_str).unwrap_or_default().clone_into(&mut self.value);
                json!({"value": self.value})
            }
            "create" => {
                self.last_id += 1;
                json!({"id": self.last_id})
            }
            "delete" => json!({"id": id}),
            "export" => json!({"id": id, "content": self.value}),
            "status" => json!({"id": id, "state": "ready"}),
            _ => json!({"done": true}),
        }
    }
}

impl PcpServer for FakeApp {
    fn app_id(&self) -> &AppId {
        &self.app_id
    }

    fn manifest(&self) -> &str {
        &self.manifest
    }

    fn invoke<'a>(
        &'a self,
        capability: &'a CapabilityId,
        context: &'a InvocationContext,
        params: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(self.perform(capability, context, params))
    }

    fn validate_params<'a>(
        &'a self,
        _capability: &'a CapabilityId,
        params: &'a str,
    ) -> BoxFuture<'a, Result<(), InvalidParams>> {
        Box::pin(async move {
            let invalid = |pointer, message| Err(InvalidParams { pointer, message });
            match self.read(params) {
                Ok((_, Script { reject: Some(pointer), .. })) => {
                    invalid(pointer, "the script says so".to_owned())
                }
                Ok(_) => Ok(()),
                Err(message) => invalid("/behave".to_owned(), message),
            }
        })
    }

    fn subscribe_events(&self, topics: &[String], sink: EventSink) -> Result<(), PcpError> {
        let mut subscriptions = self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner);
        if subscriptions.len() >= MAX_SUBSCRIPTIONS {
            let message = format!("{MAX_SUBSCRIPTIONS} subscriptions are held, the limit");
            return Err(PcpError::new(ErrorCode::LimitReached, message));
        }
        subscriptions.push(Subscription { topics: topics.to_vec(), sink });
        Ok(())
    }

    /// Answers every topic, and always from the application's own model: what a second question is for (R-229).
    fn query_dynamic_state<'a>(
        &'a self,
        topic: &'a str,
        _arguments: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(async move {
            let model = self.model.lock().unwrap_or_else(PoisonError::into_inner);
            let data = json!({"topic": topic, "value": model.value, "last_id": model.last_id});
            CapabilityResult::ok(data.to_string())
        })
    }
}

/// A failure that certifies nothing.
fn failed(code: ErrorCode, message: String) -> CapabilityResult {
    let error = CapabilityFailure { code, message, no_effect: false };
    CapabilityResult { success: false, data_json: None, error: Some(error), state_source: StateSource::Rust }
}

/// As a crash or the kernel's memory killer would end it: no destructor, no reply.
async fn die() -> CapabilityResult {
    let _ = kill(Pid::this(), Signal::SIGKILL);
    pending().await
}
