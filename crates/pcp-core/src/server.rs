//! What a Tier-1 application implements (S0 "Core Trait Hierarchy", R-010).

use core::future::Future;
use core::pin::Pin;
use std::boxed::Box;
use std::string::String;

use crate::capability::CapabilityResult;
use crate::error::{ErrorCode, PcpError};
use crate::id::{AppId, CapabilityId};
use crate::principal::InvocationContext;

/// A future behind a pointer: what lets one socket serve any application.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Takes an application's events: a topic and its JSON text.
pub type EventSink = Box<dyn Fn(&str, &str) + Send + Sync>;

/// A parameter object that the application itself refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParams {
    /// Where: a JSON pointer (RFC 6901).
    pub pointer: String,
    /// Why.
    pub message: String,
}

/// The application's side of the protocol. Each method is reached by one wire message.
pub trait PcpServer: Send + Sync {
    /// The application's id: the name of its socket.
    fn app_id(&self) -> &AppId;

    /// The signed manifest, byte for byte as it was installed.
    fn manifest(&self) -> &str;

    /// Does what the capability says. `params` is a JSON object that fits the declared schema.
    fn invoke<'a>(
        &'a self,
        capability: &'a CapabilityId,
        context: &'a InvocationContext,
        params: &'a str,
    ) -> BoxFuture<'a, CapabilityResult>;

    /// Says whether the parameters make sense, beyond what the schema can say.
    fn validate_params<'a>(
        &'a self,
        _capability: &'a CapabilityId,
        _params: &'a str,
    ) -> BoxFuture<'a, Result<(), InvalidParams>> {
        Box::pin(async { Ok(()) })
    }

    /// Starts handing events of `topics` to `sink`.
    ///
    /// # Errors
    /// An application without events says `unsupported`.
    fn subscribe_events(&self, _topics: &[String], _sink: EventSink) -> Result<(), PcpError> {
        Err(PcpError::new(ErrorCode::Unsupported, "this application publishes no events"))
    }

    /// Answers a read-only question about the application's present state.
    fn query_dynamic_state<'a>(
        &'a self,
        topic: &'a str,
        _arguments: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(async move {
            CapabilityResult::refused(
                ErrorCode::NotFound,
                format!("this application has no state topic {topic:?}"),
            )
        })
    }
}
