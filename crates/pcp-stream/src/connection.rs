//! The asynchronous face: the two halves of a connection, each with its buffer and its deadline.
//!
//! Both halves may be dropped out of a `select!` at any await: what has arrived, what is still to be written
//! and since when a frame has been open is kept in the half, not in the future.

use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use crate::client::CONNECT_TIMEOUT;
use crate::error::ProtocolError;
use crate::frame::{Frame, FrameReader, KEPT_BUFFER_BYTES, encode, encode_with};
use crate::message_type::StreamMessageType;
use crate::peer::PeerIdentity;

/// A frame has to be whole this long after its first byte: on one machine a megabyte takes milliseconds, and
/// a writer of single bytes shall not hold a connection. Between frames there is no deadline.
pub const FRAME_DEADLINE: Duration = Duration::from_secs(5);

/// A peer that takes no byte for this long is not reading any more.
pub const WRITE_STALL: Duration = Duration::from_secs(5);

/// Pause before asking a listener again whose queue is full.
const CONNECT_RETRY: Duration = Duration::from_millis(10);

/// Memory that the large frames of all connections of this process may hold together, in bytes: a quarter of the
/// daemon's 128 MiB. A buffer counts with what it holds beyond [`KEPT_BUFFER_BYTES`] (TH-21).
pub const LARGE_FRAMES_BYTES: usize = 32 * 1024 * 1024;

/// What [`LARGE_FRAMES_BYTES`] bounds.
static LARGE_FRAMES: AtomicUsize = AtomicUsize::new(0);

/// What one buffer has taken of [`LARGE_FRAMES_BYTES`]; given back when it is dropped.
#[derive(Debug, Default)]
struct Large(usize);

impl Large {
    /// Notes how large the buffer is now. Refuses when all of them together are too large.
    fn note(&mut self, capacity: usize) -> Result<(), ProtocolError> {
        let held = capacity.saturating_sub(KEPT_BUFFER_BYTES);
        if held == self.0 {
            return Ok(());
        }
        let before = LARGE_FRAMES.load(Ordering::Relaxed);
        if held > self.0 && before + (held - self.0) > LARGE_FRAMES_BYTES {
            return Err(ProtocolError::FrameMemory { limit: LARGE_FRAMES_BYTES });
        }
        LARGE_FRAMES.fetch_add(held, Ordering::Relaxed);
        LARGE_FRAMES.fetch_sub(std::mem::replace(&mut self.0, held), Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Large {
    fn drop(&mut self) {
        LARGE_FRAMES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// A connected stream with the identity of its peer, before it is split.
#[derive(Debug)]
pub struct Connection {
    /// Who is at the other end.
    pub peer: PeerIdentity,
    /// Frames that arrive.
    pub reader: FrameReadHalf,
    /// Frames to send.
    pub writer: FrameWriteHalf,
}

impl Connection {
    /// Takes over a connected stream.
    pub fn over(stream: UnixStream) -> Result<Self, ProtocolError> {
        let peer = PeerIdentity::of(stream.as_fd())?;
        let (read, write) = stream.into_split();
        Ok(Self {
            peer,
            reader: FrameReadHalf {
                half: read,
                reader: FrameReader::new(),
                begun: None,
                turn_used: false,
                large: Large::default(),
            },
            writer: FrameWriteHalf { half: write, outgoing: Vec::new(), written: 0, large: Large::default() },
        })
    }

    /// Connects to `path` and refuses a listener that is not `expected_uid`, before anything is sent.
    pub async fn connect(path: &Path, expected_uid: u32) -> Result<Self, ProtocolError> {
        let until = Instant::now() + CONNECT_TIMEOUT;
        let stream = loop {
            match UnixStream::connect(path).await {
                // The listener's queue is full. The socket is non-blocking, so the kernel does not wait for us.
                Err(error) if error.kind() == ErrorKind::WouldBlock && Instant::now() < until => {
                    tokio::time::sleep(CONNECT_RETRY).await;
                }
                other => break other.map_err(|error| ProtocolError::socket("connect to", path, error))?,
            }
        };
        let connection = Self::over(stream)?;
        if connection.peer.uid != expected_uid {
            return Err(ProtocolError::WrongListener {
                path: path.to_owned(),
                found: connection.peer.uid,
                expected: expected_uid,
            });
        }
        Ok(connection)
    }
}

/// The half frames arrive on.
#[derive(Debug)]
pub struct FrameReadHalf {
    half: OwnedReadHalf,
    reader: FrameReader,
    begun: Option<Instant>,
    /// Whether a frame was given since the peer was last waited for.
    turn_used: bool,
    large: Large,
}

impl FrameReadHalf {
    /// The next frame; `None` when the peer closed between two frames.
    ///
    /// The payload stays valid until the next call. Allocates nothing once the buffer has its size.
    ///
    /// A peer that has sent many frames gets one a turn: everybody else on this thread is looked after in between
    /// (TH-06). One that waits for its replies is never held up.
    pub async fn next(&mut self) -> Result<Option<Frame<'_>>, ProtocolError> {
        let found = loop {
            if self.turn_used && self.reader.has_begun() {
                self.turn_used = false;
                yield_now().await;
            }
            match self.reader.advance() {
                Ok(Some(found)) => {
                    self.begun = None;
                    self.turn_used = true;
                    break found;
                }
                Ok(None) => {}
                Err(error) => {
                    self.begun = None;
                    return Err(error);
                }
            }
            if !self.fill().await? {
                return Ok(None);
            }
        };
        Ok(Some(self.reader.frame(&found)))
    }

    /// Receives some bytes; `false` when the peer closed between two frames.
    async fn fill(&mut self) -> Result<bool, ProtocolError> {
        let space = self.reader.space();
        let received = self.half.try_read(space);
        self.large.note(self.reader.capacity_bytes())?;
        let received = match received {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable().await?;
                self.turn_used = false;
                return Ok(true);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        if received == 0 {
            return match self.reader.pending_bytes() {
                0 => Ok(false),
                received => Err(ProtocolError::ClosedInsideFrame { received }),
            };
        }
        self.reader.filled(received);
        Ok(true)
    }

    /// Waits for more: as long as it takes between frames, until the deadline inside one.
    async fn readable(&mut self) -> Result<(), ProtocolError> {
        if !self.reader.has_begun() {
            return Ok(self.half.readable().await?);
        }
        let begun = *self.begun.get_or_insert_with(Instant::now);
        match timeout_at(begun + FRAME_DEADLINE, self.half.readable()).await {
            Ok(ready) => Ok(ready?),
            Err(_) => Err(ProtocolError::FrameDeadline { limit_ms: millis(FRAME_DEADLINE) }),
        }
    }

    /// Whether nothing has arrived that was not asked for: no byte is pending and the peer has not closed. An answer
    /// that is there before its question was sent is another question's.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        let socket = self.half.as_ref().as_fd();
        self.reader.pending_bytes() == 0
            && matches!(recv(socket.as_raw_fd(), &mut byte, flags), Err(Errno::EAGAIN))
    }

    /// Bytes of memory the half holds.
    #[must_use]
    pub fn capacity_bytes(&self) -> usize {
        self.reader.capacity_bytes()
    }
}

/// The half frames are sent on: append with [`Self::queue`], send with [`Self::flush`].
#[derive(Debug)]
pub struct FrameWriteHalf {
    half: OwnedWriteHalf,
    outgoing: Vec<u8>,
    written: usize,
    large: Large,
}

impl FrameWriteHalf {
    /// Appends a frame whose payload `write` appends to what the next [`Self::flush`] sends.
    pub fn queue<E: From<ProtocolError>>(
        &mut self,
        message_type: StreamMessageType,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        encode_with(message_type, &mut self.outgoing, write)
    }

    /// Appends frames that were encoded elsewhere, such as by whoever answers on behalf of this connection.
    pub fn queue_encoded(&mut self, frames: &[u8]) {
        self.outgoing.extend_from_slice(frames);
    }

    /// Sends one frame and everything queued before it.
    pub async fn send(
        &mut self,
        message_type: StreamMessageType,
        payload: &[u8],
    ) -> Result<(), ProtocolError> {
        encode(message_type, payload, &mut self.outgoing)?;
        self.flush().await
    }

    /// Bytes queued and not yet taken by the kernel: what a caller bounds its queue by.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.outgoing.len() - self.written
    }

    /// Sends what is queued; gives up when the peer takes no byte for [`WRITE_STALL`].
    pub async fn flush(&mut self) -> Result<(), ProtocolError> {
        while self.written < self.outgoing.len() {
            match self.half.try_write(&self.outgoing[self.written..]) {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // Only what a slow reader makes us keep counts; what leaves at once holds nothing up.
                    self.large.note(self.outgoing.capacity())?;
                    match timeout(WRITE_STALL, self.half.writable()).await {
                        Ok(ready) => ready?,
                        Err(_) => return Err(ProtocolError::WriteStall { limit_ms: millis(WRITE_STALL) }),
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.outgoing.clear();
        self.written = 0;
        if self.outgoing.capacity() > KEPT_BUFFER_BYTES {
            self.outgoing.shrink_to(KEPT_BUFFER_BYTES);
        }
        self.large.note(self.outgoing.capacity())
    }
}

fn millis(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)
}
