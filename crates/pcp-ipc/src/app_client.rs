//! The daemon's connection to one Tier-1 application: kept open, one request at a time, no memory per request.

use std::path::PathBuf;

use pcp_core::ports::{DispatchFailure, Reply, ReplyFailure};
use pcp_core::server::InvalidParams;
use pcp_core::{CapabilityId, ErrorCode, InvocationContext, PcpError, StateSource};
use pcp_stream::{Connection, Frame, ProtocolError, StreamMessageType};

use crate::embedded::Json;
use crate::error::{Error, cut};
use crate::payload::{Payload, Tag, read_payload};
use crate::payloads::{
    AppShutdown, AppShutdownAck, ErrorResponse, GetManifest, InvocationResult, InvokeCapability,
    ManifestResponse, QueryState, StateResponse, ValidateParams, ValidateParamsResponse,
};

mod events;

pub use events::AppEventStream;

/// A persistent connection to an application's socket.
///
/// One request is open at a time; whoever wants more keeps several of these. A request that is given up halfway
/// (its future dropped) costs the connection, because a late reply would be taken for the next one's. It sets no
/// deadline of its own beyond those of a frame: the caller's budget decides.
#[derive(Debug)]
pub struct AppClient {
    path: PathBuf,
    expected_uid: u32,
    connection: Option<Connection>,
    /// Set while a reply is owed. Found set at the next request: the last one was given up.
    owed: bool,
}

impl AppClient {
    /// A client of the socket at `path`, which `expected_uid` has to serve. Nothing is connected yet.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, expected_uid: u32) -> Self {
        Self { path: path.into(), expected_uid, connection: None, owed: false }
    }

    /// Connects now instead of at the first request.
    ///
    /// # Errors
    /// `squatted_socket` when another user listens, `unavailable` when nobody does.
    pub async fn connect(&mut self) -> Result<(), PcpError> {
        self.connected().await.map(|_| ()).map_err(|error| self.named(&error))
    }

    /// Whether a connection is open and no reply is owed on it.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.connection.is_some() && !self.owed
    }

    /// Invokes a capability. The result's JSON replaces what is in `data`; nothing is allocated for it when
    /// `data` has room.
    ///
    /// # Errors
    /// [`DispatchFailure::no_effect`] says whether the application certainly never saw the invocation.
    pub async fn invoke(
        &mut self,
        capability: &CapabilityId,
        context: &InvocationContext,
        params: &str,
        data: &mut Vec<u8>,
    ) -> Result<Reply, DispatchFailure> {
        data.clear();
        let request = InvokeCapability::new(capability, context, Json::from_checked(params));
        self.send(&request).await?;
        let frame = self.receive().await?;
        let result: InvocationResult<'_> = answer::<InvokeCapability<'_>, _>(&frame)?;
        if let Some(json) = result.data_json {
            data.extend_from_slice(json.as_str().as_bytes());
        }
        let failure = result.failure().map(|failure| ReplyFailure {
            code: failure.code,
            message: failure.message,
            // Who says that it did it and that it failed certifies nothing.
            no_effect: failure.no_effect && !result.success,
        });
        Ok(Reply { success: result.success && failure.is_none(), state_source: result.state_source, failure })
    }

    /// Asks the application whether the parameters would do.
    ///
    /// # Errors
    /// The outer one when it could not be asked, the inner one when they would not.
    pub async fn validate(
        &mut self,
        capability: &CapabilityId,
        params: &str,
    ) -> Result<Result<(), InvalidParams>, DispatchFailure> {
        let request = ValidateParams {
            tag: Tag,
            capability_id: capability.clone(),
            params_json: Json::from_checked(params),
        };
        self.send(&request).await?;
        let frame = self.receive().await?;
        let judgement: ValidateParamsResponse<'_> = answer::<ValidateParams<'_>, _>(&frame)?;
        if judgement.valid {
            return Ok(Ok(()));
        }
        let text =
            |text: Option<crate::text::Text<'_>>| text.map(|text| text.to_string()).unwrap_or_default();
        Ok(Err(InvalidParams { pointer: text(judgement.pointer), message: text(judgement.message) }))
    }

    /// Asks a read-only question; the state's JSON replaces what is in `data`.
    ///
    /// # Errors
    /// [`DispatchFailure`] with the application's code when it has no answer.
    pub async fn query_state(
        &mut self,
        topic: &str,
        arguments: &str,
        data: &mut Vec<u8>,
    ) -> Result<StateSource, DispatchFailure> {
        data.clear();
        let arguments = Some(Json::from_checked(arguments));
        self.send(&QueryState { tag: Tag, topic: topic.into(), arguments }).await?;
        let frame = self.receive().await?;
        let state: StateResponse<'_> = answer::<QueryState<'_>, _>(&frame)?;
        data.extend_from_slice(state.data_json.as_str().as_bytes());
        Ok(state.state_source)
    }

    /// Fetches the manifest; its bytes replace what is in `data`.
    ///
    /// # Errors
    /// [`DispatchFailure`].
    pub async fn manifest(&mut self, data: &mut Vec<u8>) -> Result<(), DispatchFailure> {
        data.clear();
        self.send(&GetManifest::default()).await?;
        let frame = self.receive().await?;
        let manifest: ManifestResponse<'_> = answer::<GetManifest<'_>, _>(&frame)?;
        data.extend_from_slice(manifest.manifest.as_str().as_bytes());
        Ok(())
    }

    /// Asks the application to end.
    ///
    /// # Errors
    /// [`DispatchFailure`].
    pub async fn shut_down(&mut self, reason: &str) -> Result<(), DispatchFailure> {
        self.send(&AppShutdown { tag: Tag, reason: Some(reason.into()) }).await?;
        let frame = self.receive().await?;
        answer::<AppShutdown<'_>, AppShutdownAck>(&frame)?;
        self.connection = None;
        Ok(())
    }

    /// Sends one request. An application reads whole frames only: whatever fails here had no effect.
    async fn send<P: Payload>(&mut self, request: &P) -> Result<(), DispatchFailure> {
        // What is there before the question was sent answers another one: an application that answers twice would
        // be one answer behind from then on.
        let usable = |connection: &Connection| connection.reader.is_quiet();
        if self.owed || !self.connection.as_ref().is_some_and(usable) {
            self.connection = None;
        }
        loop {
            let kept = self.connection.is_some();
            let outcome = self.try_send(request).await;
            match outcome {
                Ok(()) => return Ok(()),
                // A kept connection may have died with the application's last process; a new one tells.
                Err(Error::Protocol(error)) if kept && error.ends_stream() => self.connection = None,
                Err(error) => {
                    self.connection = None;
                    return Err(DispatchFailure { error: self.named(&error), no_effect: true });
                }
            }
        }
    }

    async fn try_send<P: Payload>(&mut self, request: &P) -> Result<(), Error> {
        self.owed = false;
        self.connected().await?;
        let Some(connection) = self.connection.as_mut() else {
            return Err(Error::Protocol(ProtocolError::Closed));
        };
        connection.writer.queue(P::TYPE, |out| request.write(out))?;
        self.owed = true;
        connection.writer.flush().await?;
        Ok(())
    }

    async fn connected(&mut self) -> Result<(), Error> {
        if self.connection.is_none() {
            self.connection = Some(Connection::connect(&self.path, self.expected_uid).await?);
        }
        Ok(())
    }

    /// Waits for the one reply. When it does not come, the application may have done what it was asked.
    async fn receive(&mut self) -> Result<Frame<'_>, DispatchFailure> {
        let lost = |problem: String| DispatchFailure {
            error: PcpError::new(ErrorCode::OutcomeUnknown, problem),
            no_effect: false,
        };
        let Some(connection) = self.connection.as_mut() else {
            return Err(lost("the connection is gone".to_owned()));
        };
        match connection.reader.next().await {
            Ok(Some(frame)) => {
                self.owed = false;
                Ok(frame)
            }
            // `owed` stays set, so that the next request begins with a new connection.
            Ok(None) => Err(lost("the application closed its socket before it answered".to_owned())),
            Err(error) => Err(lost(format!("the application's answer could not be read: {error}"))),
        }
    }

    fn named(&self, error: &Error) -> PcpError {
        let code = match error {
            Error::Protocol(ProtocolError::WrongListener { .. }) => ErrorCode::SquattedSocket,
            Error::Protocol(ProtocolError::FrameTooLarge { .. }) => ErrorCode::InvalidRequest,
            Error::Protocol(_) => ErrorCode::Unavailable,
            other => other.code(),
        };
        PcpError::new(code, cut(error))
    }
}

/// Reads the reply to a `Q`, or turns what came instead into the failure it is.
fn answer<'a, Q: Payload, R: Payload + serde::Deserialize<'a>>(
    frame: &Frame<'a>,
) -> Result<R, DispatchFailure> {
    let unknown = |error: Error| DispatchFailure {
        error: PcpError::new(ErrorCode::OutcomeUnknown, cut(error)),
        no_effect: false,
    };
    if frame.message_type == R::TYPE {
        return read_payload(frame.payload).map_err(unknown);
    }
    if frame.message_type != StreamMessageType::ErrorResponse {
        return Err(unknown(Error::unexpected(Q::TYPE, frame.message_type)));
    }
    match read_payload::<ErrorResponse<'_>>(frame.payload).map(ErrorResponse::into_error) {
        Ok(Error::Refused(refusal)) => {
            Err(DispatchFailure { error: refusal.error, no_effect: refusal.retry_safe })
        }
        Ok(other) | Err(other) => Err(unknown(other)),
    }
}
