//! The blocking client: one question at a time, on std alone, for programs that are started to ask it.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use pcp_core::OperationId;
use pcp_stream::{Arrived, Frame, ProtocolError, StreamClient, StreamMessageType};
use serde::Deserialize;

use crate::embedded::Json;
use crate::error::Error;
use crate::payload::{Payload, Tag, read_empty, read_payload, write_nothing};
use crate::payloads::{
    AckState, ActionReport, CancelAction, CancelRequest, DetectRequest, DetectResponse, ErrorResponse,
    ExecuteAction, ExecuteRequest, ExecuteResponse, GetManifest, ManifestResponse, OperationResult,
    QueryState, RegistryQuery, RegistryResponse, StateResponse,
};

mod events;

pub use events::{MAX_EVENTS_ASIDE, ReceivedEvent};

/// How long a client waits for a reply unless it is told otherwise: twice the longest budget of an intent.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// How much longer it waits once a person has been asked: what a prompt lives.
const CONFIRMATION_WAIT: Duration = Duration::from_secs(60);

/// A connection to the daemon. The listener's user was checked before anything was sent.
#[derive(Debug)]
pub struct Client {
    stream: StreamClient,
    timeout: Duration,
    aside: events::EventsAside,
}

impl Client {
    /// Connects to the daemon's socket, which `expected_uid` has to serve.
    ///
    /// # Errors
    /// [`Error::Protocol`] names who listens instead, or why nobody answers.
    pub fn connect(path: &Path, expected_uid: u32) -> Result<Self, Error> {
        Ok(Self::speaking(StreamClient::connect(path, expected_uid)?))
    }

    /// Speaks over a stream that is connected already.
    ///
    /// # Errors
    /// [`Error::Protocol`] when the peer cannot be identified.
    pub fn over(stream: UnixStream) -> Result<Self, Error> {
        Ok(Self::speaking(StreamClient::over(stream)?))
    }

    fn speaking(stream: StreamClient) -> Self {
        Self { stream, timeout: DEFAULT_TIMEOUT, aside: events::EventsAside::default() }
    }

    /// Waits no longer than `timeout` for each reply.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Asks whether the daemon is there.
    ///
    /// # Errors
    /// [`Error`].
    pub fn ping(&mut self) -> Result<(), Error> {
        let sent = self.stream.send(StreamMessageType::Ping, self.timeout, write_nothing);
        sent.map_err(|error| self.last_word(Error::from(error)))?;
        let arrived = self.reply(self.timeout)?;
        let frame = self.stream.frame(&arrived);
        expect(StreamMessageType::Ping, StreamMessageType::Pong, &frame)?;
        read_empty(frame)
    }

    /// Sends `request` and reads the one reply as `R`. The reply lives until the next question.
    ///
    /// # Errors
    /// [`Error::Refused`] carries the daemon's answer when it is an error.
    pub fn ask<'a, Q: Payload, R: Payload + Deserialize<'a>>(&'a mut self, request: &Q) -> Result<R, Error> {
        self.send(request)?;
        let arrived = self.reply(self.timeout)?;
        let frame = self.stream.frame(&arrived);
        expect(Q::TYPE, R::TYPE, &frame)?;
        read_payload(frame.payload)
    }

    /// Executes an intent, telling `on_ack` how far it has come.
    ///
    /// # Errors
    /// As [`Self::ask`]. After [`ProtocolError::Timeout`] or a lost connection the outcome is not
    /// known: ask again with the same operation id.
    pub fn execute<'a>(
        &'a mut self,
        request: &ExecuteRequest<'_>,
        mut on_ack: impl FnMut(&ExecuteResponse<'_>),
    ) -> Result<OperationResult<'a>, Error> {
        self.send(request)?;
        let mut timeout = self.timeout;
        loop {
            let arrived = self.reply(timeout)?;
            if arrived.message_type() == StreamMessageType::ExecuteResponse {
                let ack: ExecuteResponse<'_> = read_payload(self.stream.frame(&arrived).payload)?;
                if ack.state == AckState::AwaitingConfirmation {
                    timeout = self.timeout + CONFIRMATION_WAIT;
                }
                on_ack(&ack);
            } else if !self.ends_another(&arrived, request.operation_id) {
                let frame = self.stream.frame(&arrived);
                expect(StreamMessageType::ExecuteRequest, StreamMessageType::CapabilityResultMsg, &frame)?;
                return read_payload(frame.payload);
            }
        }
    }

    /// Executes a signed request of protocol v2, `action` being its JSON.
    ///
    /// # Errors
    /// As [`Self::execute`].
    pub fn execute_action(&mut self, action: Json<'_>) -> Result<ActionReport<'_>, Error> {
        self.ask(&ExecuteAction::new(action))
    }

    /// Asks to stop an operation of protocol v2, from another connection than the one that waits for it.
    ///
    /// # Errors
    /// As [`Self::ask`]; `not_found` when it is not under way.
    pub fn cancel_action(&mut self, operation_id: &str) -> Result<StateResponse<'_>, Error> {
        self.ask(&CancelAction::new(operation_id))
    }

    /// Hands the rows of every page to `on_rows`: each time an array.
    ///
    /// # Errors
    /// As [`Self::ask`], or what `on_rows` gives.
    pub fn registry(
        &mut self,
        query: &RegistryQuery<'_>,
        mut on_rows: impl FnMut(Json<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut query = query.clone();
        loop {
            let page: RegistryResponse<'_> = self.ask(&query)?;
            on_rows(page.rows)?;
            match page.cursor {
                Some(cursor) => query.cursor = Some(cursor.into_owned()),
                None => return Ok(()),
            }
        }
    }

    /// Asks a read-only question.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn query_state(&mut self, topic: &str, arguments: Json<'_>) -> Result<StateResponse<'_>, Error> {
        self.ask(&QueryState { tag: Tag, topic: topic.into(), arguments: Some(arguments) })
    }

    /// Fetches an application's manifest.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn manifest(&mut self, app: &str) -> Result<ManifestResponse<'_>, Error> {
        self.ask(&GetManifest { tag: Tag, app: Some(app.into()) })
    }

    /// Asks to stop an operation that has not taken effect.
    ///
    /// # Errors
    /// As [`Self::ask`]; `not_found` when there is no such operation.
    pub fn cancel(&mut self, operation_id: OperationId) -> Result<ExecuteResponse<'_>, Error> {
        self.ask(&CancelRequest { tag: Tag, operation_id })
    }

    /// Asks to look at an application again.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn detect(&mut self, app: &str) -> Result<DetectResponse<'_>, Error> {
        self.ask(&DetectRequest { tag: Tag, app: app.into() })
    }

    fn send<Q: Payload>(&mut self, request: &Q) -> Result<(), Error> {
        let sent = self.stream.send(Q::TYPE, self.timeout, |out| request.write(out));
        sent.map_err(|error| self.last_word(error))
    }

    /// A daemon that refuses a caller says so and closes at once, perhaps before the request is written: then
    /// what it said tells more than the broken pipe.
    fn last_word(&mut self, error: Error) -> Error {
        match &error {
            Error::Protocol(ProtocolError::Io(cause)) if cause.kind() == ErrorKind::BrokenPipe => {}
            _ => return error,
        }
        match self.stream.receive(self.timeout) {
            Ok(frame) if frame.message_type == StreamMessageType::ErrorResponse => {
                read_payload::<ErrorResponse<'_>>(frame.payload).map_or(error, ErrorResponse::into_error)
            }
            _ => error,
        }
    }

    /// The end of an operation that this client stopped waiting for may still be on its way.
    fn ends_another(&self, arrived: &Arrived, operation_id: OperationId) -> bool {
        arrived.message_type() == StreamMessageType::CapabilityResultMsg
            && read_payload::<OperationResult<'_>>(self.stream.frame(arrived).payload)
                .is_ok_and(|result| result.operation_id != operation_id)
    }
}

/// Checks that a reply is what was asked for, or turns it into the error it is.
fn expect(asked: StreamMessageType, wanted: StreamMessageType, frame: &Frame<'_>) -> Result<(), Error> {
    match frame.message_type {
        got if got == wanted => Ok(()),
        StreamMessageType::ErrorResponse => Err(read_payload::<ErrorResponse<'_>>(frame.payload)
            .map_or_else(|error| error, ErrorResponse::into_error)),
        got => Err(Error::unexpected(asked, got)),
    }
}
