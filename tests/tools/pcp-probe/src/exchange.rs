//! One exchange: raw bytes out, in pieces if asked, and whatever frames come back until it is quiet.

use std::io::{self, Write};
use std::net::Shutdown;
use std::path::Path;
use std::time::{Duration, Instant};

use pcp_stream::{ProtocolError, StreamClient};
use serde::Serialize;

/// Longest wait for the first reply, and for the end of a connection that has to close.
const PATIENCE: Duration = Duration::from_secs(5);

/// A reply after this silence is not expected any more.
const QUIET: Duration = Duration::from_millis(300);

/// Why nothing could be probed at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum ProbeError {
    /// Nobody can be connected to.
    Connect(ProtocolError),
    /// An input file is missing or unreadable.
    Input(std::path::PathBuf, String),
}

impl std::fmt::Display for ProbeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connect(error) => write!(f, "{error}"),
            Self::Input(path, problem) => write!(f, "cannot read {}: {problem}", path.display()),
        }
    }
}

impl std::error::Error for ProbeError {}

/// How bytes are to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sending {
    /// Bytes a write; 0 means all at once.
    pub chunk: usize,
    /// Pause between two writes.
    pub pause: Duration,
    /// Close the writing side after the last byte.
    pub eof: bool,
    /// Stop waiting after this many replies; 0 means wait until it is quiet.
    pub enough: usize,
}

/// One frame that came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reply {
    /// Name of its type.
    #[serde(rename = "type")]
    pub name: &'static str,
    /// Its payload; bytes that are no text are replaced.
    pub payload: String,
}

impl Reply {
    /// The member `code` of an ErrorResponse.
    #[must_use]
    pub fn code(&self) -> Option<String> {
        let payload: serde_json::Value = serde_json::from_str(&self.payload).ok()?;
        Some(payload.get("code")?.as_str()?.to_owned())
    }
}

/// What came of an exchange.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// Bytes that could be sent before the peer closed.
    pub sent: usize,
    /// What came back.
    pub replies: Vec<Reply>,
    /// Whether the connection is still open.
    pub open: bool,
    /// Why reading ended, where it was no plain close.
    pub error: Option<String>,
}

/// Sends `bytes` to whoever listens at `socket` and collects what comes back.
///
/// # Errors
/// [`ProbeError::Connect`]; everything later is part of the result.
pub fn exchange(socket: &Path, bytes: &[u8], how: Sending) -> Result<Exchange, ProbeError> {
    let mut client = StreamClient::connect_anyone(socket).map_err(ProbeError::Connect)?;
    let sent = send(&client, bytes, how);
    let mut result = Exchange { sent, replies: Vec::new(), open: true, error: None };
    collect(&mut client, how, &mut result);
    Ok(result)
}

/// Writes until all is sent or the peer has closed, which many an input makes it do.
fn send(client: &StreamClient, bytes: &[u8], how: Sending) -> usize {
    let chunk = if how.chunk == 0 { bytes.len().max(1) } else { how.chunk };
    let mut stream = client.stream();
    let mut sent = 0;
    for piece in bytes.chunks(chunk) {
        if sent > 0 && !how.pause.is_zero() {
            std::thread::sleep(how.pause);
        }
        if stream.write_all(piece).is_err() {
            return sent;
        }
        sent += piece.len();
    }
    if how.eof {
        let _ = stream.shutdown(Shutdown::Write);
    }
    sent
}

fn collect(client: &mut StreamClient, how: Sending, result: &mut Exchange) {
    let begun = Instant::now();
    loop {
        if how.enough > 0 && result.replies.len() >= how.enough {
            return;
        }
        let wait = if result.replies.is_empty() || how.eof {
            PATIENCE.saturating_sub(begun.elapsed())
        } else {
            QUIET
        };
        match client.receive(wait.max(QUIET)) {
            Ok(frame) => result.replies.push(Reply {
                name: frame.message_type.name(),
                payload: String::from_utf8_lossy(frame.payload).into_owned(),
            }),
            Err(ProtocolError::Timeout { .. }) => return,
            Err(ProtocolError::Closed) => {
                result.open = false;
                return;
            }
            Err(ProtocolError::Io(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                result.open = false;
                return;
            }
            Err(error) => {
                result.open = false;
                result.error = Some(error.to_string());
                return;
            }
        }
    }
}
