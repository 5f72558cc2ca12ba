//! The blocking face: one connection of a program that asks and waits, on std alone.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, setsockopt, socket, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::error::ProtocolError;
use crate::frame::{Arrived, Frame, FrameReader, KEPT_BUFFER_BYTES, encode_with};
use crate::message_type::StreamMessageType;
use crate::peer::PeerIdentity;

/// Longest wait for a listener whose queue is full: it is alive, but swamped.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection that sends a frame and blocks until one comes back.
///
/// The listener's user is known before the first byte is sent.
#[derive(Debug)]
pub struct StreamClient {
    stream: UnixStream,
    peer: PeerIdentity,
    reader: FrameReader,
    outgoing: Vec<u8>,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
}

impl StreamClient {
    /// Connects to `path` and refuses a listener that is not `expected_uid`, before anything is sent.
    pub fn connect(path: &Path, expected_uid: u32) -> Result<Self, ProtocolError> {
        let client = Self::connect_anyone(path)?;
        if client.peer.uid != expected_uid {
            return Err(ProtocolError::WrongListener {
                path: path.to_owned(),
                found: client.peer.uid,
                expected: expected_uid,
            });
        }
        Ok(client)
    }

    /// Connects to `path` whoever listens: for probes, which have no secrets to lose.
    pub fn connect_anyone(path: &Path) -> Result<Self, ProtocolError> {
        let failed = |errno: Errno| ProtocolError::socket("connect to", path, errno);
        let address = UnixAddr::new(path).map_err(failed)?;
        let socket =
            socket(AddressFamily::Unix, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).map_err(failed)?;
        limit_wait(&socket, CONNECT_TIMEOUT).map_err(failed)?;
        nix::sys::socket::connect(socket.as_raw_fd(), &address).map_err(|errno| match errno {
            Errno::EAGAIN => ProtocolError::Timeout { limit_ms: millis(CONNECT_TIMEOUT) },
            other => failed(other),
        })?;
        Self::over(UnixStream::from(socket))
    }

    /// Speaks over a stream that is connected already.
    pub fn over(stream: UnixStream) -> Result<Self, ProtocolError> {
        let peer = PeerIdentity::of(&stream)?;
        Ok(Self {
            stream,
            peer,
            reader: FrameReader::new(),
            outgoing: Vec::new(),
            read_timeout: None,
            write_timeout: None,
        })
    }

    /// Who listens.
    #[must_use]
    pub fn peer(&self) -> &PeerIdentity {
        &self.peer
    }

    /// The stream itself, for a caller that waits for several things at once.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Sends one frame whose payload `write` appends; gives up when no byte is taken for `timeout`.
    pub fn send<E: From<ProtocolError>>(
        &mut self,
        message_type: StreamMessageType,
        timeout: Duration,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.outgoing.clear();
        if self.outgoing.capacity() > KEPT_BUFFER_BYTES {
            self.outgoing.shrink_to(KEPT_BUFFER_BYTES);
        }
        encode_with(message_type, &mut self.outgoing, write)?;
        Ok(self.flush(timeout)?)
    }

    fn flush(&mut self, timeout: Duration) -> Result<(), ProtocolError> {
        if self.write_timeout != Some(timeout) {
            self.stream.set_write_timeout(Some(at_least_one_tick(timeout)))?;
            self.write_timeout = Some(timeout);
        }
        (&self.stream).write_all(&self.outgoing).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                ProtocolError::WriteStall { limit_ms: millis(timeout) }
            }
            _ => ProtocolError::Io(error),
        })
    }

    /// Waits for one frame, no longer than `timeout`.
    ///
    /// The payload stays valid until the next call. [`ProtocolError::Timeout`] loses nothing: what has
    /// arrived of a frame is kept for the next call.
    pub fn receive(&mut self, timeout: Duration) -> Result<Frame<'_>, ProtocolError> {
        let arrived = self.wait(timeout)?;
        Ok(self.frame(&arrived))
    }

    /// Waits for one frame as [`Self::receive`] does, to be looked at with [`Self::frame`].
    pub fn wait(&mut self, timeout: Duration) -> Result<Arrived, ProtocolError> {
        let begun = Instant::now();
        let mut remaining = timeout;
        loop {
            if let Some(arrived) = self.reader.advance()? {
                return Ok(arrived);
            }
            if remaining.is_zero() && !timeout.is_zero() {
                return Err(ProtocolError::Timeout { limit_ms: millis(timeout) });
            }
            self.fill(remaining, timeout)?;
            remaining = timeout.saturating_sub(begun.elapsed());
        }
    }

    /// The frame that [`Self::wait`] gave; call it before waiting again, which reuses its bytes.
    #[must_use]
    pub fn frame(&self, arrived: &Arrived) -> Frame<'_> {
        self.reader.frame(arrived)
    }

    fn fill(&mut self, remaining: Duration, timeout: Duration) -> Result<(), ProtocolError> {
        let remaining = at_least_one_tick(remaining);
        if self.read_timeout != Some(remaining) {
            self.stream.set_read_timeout(Some(remaining))?;
            self.read_timeout = Some(remaining);
        }
        let received = loop {
            match (&self.stream).read(self.reader.space()) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match received {
            Ok(0) if self.reader.has_begun() => {
                Err(ProtocolError::ClosedInsideFrame { received: self.reader.pending_bytes() })
            }
            Ok(0) => Err(ProtocolError::Closed),
            Ok(count) => {
                self.reader.filled(count);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(ProtocolError::Timeout { limit_ms: millis(timeout) })
            }
            Err(error) => Err(ProtocolError::Io(error)),
        }
    }
}

/// A connect waits for room in the listener's queue as long as a send may wait.
fn limit_wait(socket: &OwnedFd, timeout: Duration) -> nix::Result<()> {
    let wait = TimeVal::milliseconds(i64::try_from(millis(timeout)).unwrap_or(i64::MAX));
    setsockopt(socket, sockopt::SendTimeout, &wait)
}

/// Zero would mean "for ever" to the kernel.
fn at_least_one_tick(timeout: Duration) -> Duration {
    timeout.max(Duration::from_millis(1))
}

fn millis(timeout: Duration) -> u64 {
    u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)
}
