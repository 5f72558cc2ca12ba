//! What may be asked, as closed sets: of the daemon by a client, of an application by the daemon.

use pcp_stream::{Frame, Role, StreamMessageType};

use crate::error::Error;
use crate::payload::{read_empty, read_payload};
use crate::payloads::signed;
use crate::payloads::{
    AppShutdown, CancelAction, CancelRequest, ConfirmationResponse, DetectRequest, EventAck, ExecuteAction,
    ExecuteRequest, GetManifest, InvokeCapability, QueryState, RegistryQuery, SubscribeEvents,
    UnsubscribeEvents, ValidateParams,
};

/// What a client asks of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<'a> {
    /// Are you there?
    Ping,
    /// Execute an intent.
    Execute(ExecuteRequest<'a>),
    /// Execute a signed action.
    Action(ExecuteAction<'a>),
    /// Rows of the registry.
    Registry(RegistryQuery<'a>),
    /// A manifest.
    Manifest(GetManifest<'a>),
    /// A read-only question.
    QueryState(QueryState<'a>),
    /// Stop an operation.
    Cancel(CancelRequest),
    /// Stop a signed action.
    CancelAction(CancelAction<'a>),
    /// Look at an application again.
    Detect(DetectRequest<'a>),
    /// Deliver events.
    Subscribe(SubscribeEvents<'a>),
    /// Deliver no more events.
    Unsubscribe(UnsubscribeEvents),
    /// Events have been dealt with.
    Acknowledge(EventAck),
    /// A person has decided; only from a confirmer.
    Decide(ConfirmationResponse<'a>),
}

impl<'a> Request<'a> {
    /// Reads what `from` sent to the daemon.
    ///
    /// # Errors
    /// [`Error::UnsupportedMessage`] for what does not travel in this direction; otherwise what is wrong with the
    /// payload. The connection can go on in every case.
    pub fn read(frame: Frame<'a>, from: Role) -> Result<Self, Error> {
        let unsupported = Error::UnsupportedMessage { message_type: frame.message_type.name() };
        if !frame.message_type.travels(from, Role::Daemon) {
            return Err(unsupported);
        }
        Ok(match frame.message_type {
            StreamMessageType::Ping => {
                read_empty(frame)?;
                Self::Ping
            }
            StreamMessageType::ExecuteRequest => execute(frame.payload)?,
            StreamMessageType::RegistryQuery => Self::Registry(read_payload(frame.payload)?),
            StreamMessageType::GetManifest => Self::Manifest(read_payload(frame.payload)?),
            StreamMessageType::QueryState => Self::QueryState(read_payload(frame.payload)?),
            StreamMessageType::CancelRequest => cancel(frame.payload)?,
            StreamMessageType::DetectRequest => Self::Detect(read_payload(frame.payload)?),
            StreamMessageType::SubscribeEvents => Self::Subscribe(read_payload(frame.payload)?),
            StreamMessageType::UnsubscribeEvents => Self::Unsubscribe(read_payload(frame.payload)?),
            StreamMessageType::EventAck => Self::Acknowledge(read_payload(frame.payload)?),
            StreamMessageType::ConfirmationResponse => Self::Decide(read_payload(frame.payload)?),
            _ => return Err(unsupported),
        })
    }
}

/// An intent, and only what is none is looked at again: the steady path reads once.
fn execute(payload: &[u8]) -> Result<Request<'_>, Error> {
    ExecuteRequest::read(payload).map(Request::Execute).or_else(|error| signed(payload, error))
}

fn cancel(payload: &[u8]) -> Result<Request<'_>, Error> {
    read_payload(payload).map(Request::Cancel).or_else(|error| signed(payload, error))
}

/// What the daemon asks of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppRequest<'a> {
    /// Its manifest.
    Manifest,
    /// Carry out a capability.
    Invoke(InvokeCapability<'a>),
    /// Would these parameters do?
    Validate(ValidateParams<'a>),
    /// A read-only question.
    QueryState(QueryState<'a>),
    /// Deliver events.
    Subscribe(SubscribeEvents<'a>),
    /// End.
    Shutdown(AppShutdown<'a>),
}

impl<'a> AppRequest<'a> {
    /// Reads what the daemon sent to an application.
    ///
    /// # Errors
    /// As [`Request::read`].
    pub fn read(frame: Frame<'a>) -> Result<Self, Error> {
        let unsupported = Error::UnsupportedMessage { message_type: frame.message_type.name() };
        if !frame.message_type.travels(Role::Daemon, Role::App) {
            return Err(unsupported);
        }
        Ok(match frame.message_type {
            StreamMessageType::GetManifest => {
                read_payload::<GetManifest<'_>>(frame.payload)?;
                Self::Manifest
            }
            StreamMessageType::InvokeCapability => Self::Invoke(read_payload(frame.payload)?),
            StreamMessageType::ValidateParamsMsg => Self::Validate(read_payload(frame.payload)?),
            StreamMessageType::QueryState => Self::QueryState(read_payload(frame.payload)?),
            StreamMessageType::SubscribeEvents => Self::Subscribe(read_payload(frame.payload)?),
            StreamMessageType::AppShutdown => Self::Shutdown(read_payload(frame.payload)?),
            _ => return Err(unsupported),
        })
    }
}
