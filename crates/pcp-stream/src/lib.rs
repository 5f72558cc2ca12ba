//! Frames on a Unix socket: length, header, checksum, payload.
//!
//! Turns bytes into a [`Frame`] and back, with every size checked before memory is taken, and says
//! which process is on the other side of a socket. It does not know what a payload means (`pcp-ipc`
//! does) or what a peer may do (`pcp-daemon` decides).
//!
//! Start with [`FrameReader`]: the one rule that turns bytes into frames, shared by the blocking
//! [`StreamClient`] and, with the feature `server`, by the asynchronous halves of a connection. The byte
//! layout, with vectors to test a reader against, is in `WIRE.md`.

mod client;
mod error;
mod frame;
mod header;
mod message_type;
mod peer;

#[cfg(feature = "server")]
mod connection;
#[cfg(feature = "server")]
mod server;

pub use client::{CONNECT_TIMEOUT, StreamClient};
pub use error::ProtocolError;
pub use frame::{
    Arrived, Frame, FrameReader, INITIAL_BUFFER_BYTES, KEPT_BUFFER_BYTES, MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES,
    encode, encode_with,
};
pub use header::{MAGIC, MAX_HEADER_BYTES, MIN_HEADER_BYTES, StreamHeader, VERSION};
pub use message_type::{MESSAGE_TYPE_COUNT, Role, StreamMessageType};
pub use peer::PeerIdentity;

#[cfg(feature = "server")]
pub use connection::{
    Connection, FRAME_DEADLINE, FrameReadHalf, FrameWriteHalf, LARGE_FRAMES_BYTES, WRITE_STALL,
};
#[cfg(feature = "server")]
pub use server::{ACCEPT_BACKLOG, SocketAccess, StreamServer};
