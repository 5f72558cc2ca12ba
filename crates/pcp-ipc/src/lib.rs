//! Typed requests and replies.
//!
//! Turns the payload of a frame into one typed value and back, and holds the two programs that every peer
//! needs: the blocking [`Client`] of the command line and, with the feature `server`, the [`PcpServerRunner`]
//! of a Tier-1 application with its counterpart in the daemon, [`AppClient`]. It does not decide anything: who
//! may ask is the daemon's business, what happens the pipeline's.
//!
//! Start with [`Request`], then [`Payload`]; the schemas are in `WIRE.md` of `pcp-stream`.

mod bounded;
mod client;
mod embedded;
mod error;
mod event;
mod payload;
mod reader;
mod request;
mod scan;
mod text;

#[cfg(feature = "server")]
mod app_client;
#[cfg(feature = "server")]
mod runner;

pub mod payloads;

pub use client::{Client, MAX_EVENTS_ASIDE, ReceivedEvent};
pub use embedded::Json;
pub use error::{Error, MAX_ERROR_TEXT_BYTES, ReadError, Refusal};
pub use event::{
    AdapterStateData, AppAddedData, AppRemovedData, CapabilityChangeData, CapabilityDiffData,
    CapabilityRegisteredData, DetectionCompletedData, EventData, EventTexts, FieldData, ManifestInvalidData,
    ValueData,
};
pub use payload::{Payload, Tag, read_empty, read_payload};
pub use request::{AppRequest, Request};
pub use scan::MAX_DEPTH;
pub use text::Text;

#[cfg(feature = "server")]
pub use app_client::{AppClient, AppEventStream};
#[cfg(feature = "server")]
pub use runner::{
    DEFAULT_APP_QUEUE_EVENTS, MAX_APP_CONNECTIONS, MAX_APP_EVENT_BYTES, MAX_APP_QUEUE_EVENTS,
    MAX_APP_SUBSCRIPTIONS, MAX_APP_TOPICS, PcpServerRunner,
};
