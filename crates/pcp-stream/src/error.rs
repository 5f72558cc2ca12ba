//! What can be wrong with a stream of frames or with the socket that carries it.

use std::io;
use std::path::PathBuf;

/// Why a frame was not read, a socket not opened or a peer not accepted.
///
/// Everything but [`ProtocolError::UnknownType`] means that nothing more can be read from the stream: see
/// [`ProtocolError::ends_stream`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolError {
    /// The length field, or a payload to be sent, is over the limit. Nothing was reserved for it.
    #[error("frame of {len} bytes exceeds the {limit}-byte limit")]
    FrameTooLarge {
        /// Bytes after the length field.
        len: u64,
        /// [`crate::MAX_FRAME_BYTES`].
        limit: usize,
    },
    /// The length field leaves no room for a header.
    #[error("frame of {len} bytes cannot hold a header of {least} bytes")]
    FrameTooShort {
        /// Bytes after the length field.
        len: u32,
        /// [`crate::MIN_HEADER_BYTES`].
        least: usize,
    },
    /// The stream is no stream of this protocol.
    #[error("magic number {found:#010x} is not 0x50435000; the peer speaks another protocol")]
    BadMagic {
        /// The number in its place.
        found: u32,
    },
    /// The peer speaks another version.
    #[error("protocol version {found} is not supported; this side speaks version 1")]
    UnsupportedVersion {
        /// The peer's version.
        found: u32,
    },
    /// A header field is no 32-bit number in its shortest spelling.
    #[error("header field {field} is not a 32-bit varint in its shortest form")]
    BadVarint {
        /// The field's name.
        field: &'static str,
    },
    /// The frame ends inside its header.
    #[error("frame of {len} bytes ends inside its header")]
    HeaderCut {
        /// Bytes after the length field.
        len: usize,
    },
    /// Header and length field disagree about the size of the payload.
    #[error("header promises {payload_len} payload bytes but the frame holds {room}")]
    LengthMismatch {
        /// What the header says.
        payload_len: u32,
        /// What the length field leaves for the payload.
        room: usize,
    },
    /// The payload is not what was sent.
    #[error("payload checksum is {computed:08x} but the header says {stated:08x}")]
    ChecksumMismatch {
        /// CRC-32 in the header.
        stated: u32,
        /// CRC-32 of the payload.
        computed: u32,
    },
    /// A whole and intact frame of a type this version does not know. The stream can go on.
    #[error("message type {discriminant} is not one of 0 to 26")]
    UnknownType {
        /// The number of the type.
        discriminant: u32,
    },
    /// Large frames that are not whole, or not read, hold all the memory that they may.
    #[error("large frames of all connections hold {limit} bytes, the limit; ask again in a moment")]
    FrameMemory {
        /// The limit in bytes.
        limit: usize,
    },
    /// The peer closed inside a frame.
    #[error("the peer closed the connection {received} bytes into a frame")]
    ClosedInsideFrame {
        /// Bytes of the frame that had arrived.
        received: usize,
    },
    /// A frame was begun and not finished in time.
    #[error("a frame begun {limit_ms} ms ago is still incomplete")]
    FrameDeadline {
        /// The limit that was passed.
        limit_ms: u64,
    },
    /// The peer does not read what is sent to it.
    #[error("the peer took no byte of a reply for {limit_ms} ms")]
    WriteStall {
        /// The limit that was passed.
        limit_ms: u64,
    },
    /// No reply came in time.
    #[error("no reply within {limit_ms} ms; ask for longer or look whether the daemon is busy")]
    Timeout {
        /// The limit that was passed.
        limit_ms: u64,
    },
    /// The peer closed where a frame was expected.
    #[error("the peer closed the connection before it replied")]
    Closed,
    /// The listener of a socket is another user than it has to be. Nothing was sent to it.
    #[error("{} is served by uid {found}, not by uid {expected}; nothing was sent", path.display())]
    WrongListener {
        /// The socket.
        path: PathBuf,
        /// Who listens.
        found: u32,
        /// Who should.
        expected: u32,
    },
    /// The peer's process ended before it could be pinned.
    #[error("the peer's process ended before it could be identified")]
    PeerGone,
    /// A socket's name is taken by something that is no socket.
    #[error("{} is a {kind}, not a socket of ours; remove it and start again", path.display())]
    Planted {
        /// The name.
        path: PathBuf,
        /// What stands there.
        kind: &'static str,
    },
    /// A socket's name is taken by another user's socket, which is left alone.
    #[error("socket {} belongs to uid {owner} and is not removed; its owner or root has to", path.display())]
    NotOurs {
        /// The name.
        path: PathBuf,
        /// The owner of what stands there.
        owner: u32,
    },
    /// Somebody answers at the socket already.
    #[error("socket {} is already served; stop the other process first", path.display())]
    AlreadyServed {
        /// The name.
        path: PathBuf,
    },
    /// The directory would let others replace the socket.
    #[error("directory {} {problem}; sockets are not made there", path.display())]
    UnsafeDirectory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The system refused an operation on a socket.
    #[error("cannot {what} {}: {source}", path.display())]
    Socket {
        /// What was attempted, such as `connect to`.
        what: &'static str,
        /// The socket's name, where it is known.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Reading or writing a connection failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
}

impl ProtocolError {
    /// Whether the stream is of no use after this: all errors but an unknown message type.
    #[must_use]
    pub fn ends_stream(&self) -> bool {
        !matches!(self, Self::UnknownType { .. })
    }

    pub(crate) fn socket(what: &'static str, path: &std::path::Path, source: impl Into<io::Error>) -> Self {
        Self::Socket { what, path: path.to_owned(), source: source.into() }
    }
}
