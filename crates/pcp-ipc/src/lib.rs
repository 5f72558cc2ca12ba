//! Typed requests and replies.
//!
//! Turns the payload of a frame into one typed value and back, and holds the two programs that every peer
//! needs: the blocking [`Client`] of the command line and, with the feature `server`, the [`PcpServerRunner`]
//! of a Tier-1 application with its counterpart in the daemon, [`AppClient`]. It does not decide anything: who
//! may ask is the daemon's business, what happens the pipeline's.
//!
//! Start with [`Request`], then [`Payload`]; the schemas are in `WIRE.md` of `pcp-stream`.

mod client;
mod embedded;
mod error;
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

pub use client::Client;
pub use embedded::Json;
pub use error::{Error, MAX_ERROR_TEXT_BYTES, ReadError, Refusal};
pub use payload::{Payload, Tag, read_empty, read_payload};
pub use request::{AppRequest, Request};
pub use scan::MAX_DEPTH;
pub use text::Text;

#[cfg(feature = "server")]
pub use app_client::AppClient;
#[cfg(feature = "server")]
pub use runner::{MAX_APP_CONNECTIONS, PcpServerRunner};
