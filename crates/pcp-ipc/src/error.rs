//! What can go wrong between a value here and a value there, and which code it is on the wire.

use core::fmt;
use std::borrow::Cow;

use pcp_core::{ErrorCode, PcpError};
use pcp_stream::{ProtocolError, StreamMessageType};

/// Longest text of an error in bytes: it may quote what was sent, which may be a megabyte.
pub const MAX_ERROR_TEXT_BYTES: usize = 1024;

/// Why a payload could not be read, and at which byte of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadError {
    what: Cow<'static, str>,
    at: usize,
}

impl ReadError {
    pub(crate) const fn new(what: &'static str, at: usize) -> Self {
        Self { what: Cow::Borrowed(what), at }
    }

    /// Places an error that serde raised without knowing where.
    pub(crate) fn or_at(mut self, at: usize) -> Self {
        if self.at == 0 {
            self.at = at;
        }
        self
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self { what: Cow::Owned(cut(message)), at: 0 }
    }
}

/// The text of `value`, cut at a character when it is too long, without ever holding the long form.
pub(crate) fn cut(value: impl fmt::Display) -> String {
    struct Bounded(String);
    impl fmt::Write for Bounded {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let room = MAX_ERROR_TEXT_BYTES - self.0.len();
            if text.len() <= room {
                self.0.push_str(text);
                return Ok(());
            }
            let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            self.0.push_str(text.get(..end).unwrap_or_default());
            Err(fmt::Error)
        }
    }
    let mut bounded = Bounded(String::new());
    // Stopping early is the point; there is nothing else that can fail here.
    let _ = fmt::write(&mut bounded, format_args!("{value}"));
    bounded.0
}

/// Why a message was not sent, read or answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The frame or the connection failed.
    #[error(transparent)]
    Protocol(#[from] ProtocolError),
    /// The payload is not what its type says.
    #[error("payload of {message_type}: {error}")]
    Payload {
        /// Name of the message type.
        message_type: &'static str,
        /// What is wrong, and where.
        error: ReadError,
    },
    /// The payload is no text.
    #[error("payload of {message_type} is not UTF-8 from byte {at} on")]
    NotText {
        /// Name of the message type.
        message_type: &'static str,
        /// The first bad byte.
        at: usize,
    },
    /// A payload where none may be.
    #[error("{message_type} has no payload, but {bytes} bytes came with it")]
    NotEmpty {
        /// Name of the message type.
        message_type: &'static str,
        /// How many.
        bytes: usize,
    },
    /// The message is not served by whom it was sent to.
    #[error("{message_type} is not served here")]
    UnsupportedMessage {
        /// Name of the message type.
        message_type: &'static str,
    },
    /// A member has a value that its schema allows and its meaning does not.
    #[error("{member}: {problem}")]
    Value {
        /// Which member.
        member: &'static str,
        /// What is wrong with it.
        problem: Cow<'static, str>,
        /// Whether a later version may serve it.
        unsupported: bool,
    },
    /// A value could not be written as JSON.
    #[error("cannot write {what} as JSON: {problem}")]
    Write {
        /// What was to be written.
        what: &'static str,
        /// Why not.
        problem: String,
    },
    /// The peer answered with an error.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The peer answered with something that is no answer to what was asked.
    #[error("{got} came as the answer to {asked}")]
    UnexpectedReply {
        /// Name of the request.
        asked: &'static str,
        /// Name of what came.
        got: &'static str,
    },
}

/// A peer's ErrorResponse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Code, text, stage and hint.
    pub error: PcpError,
    /// Whether it is certain that nothing was done.
    pub retry_safe: bool,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error {
    pub(crate) fn value(member: &'static str, problem: impl Into<Cow<'static, str>>) -> Self {
        Self::Value { member, problem: problem.into(), unsupported: false }
    }

    #[cfg(feature = "server")]
    pub(crate) fn unsupported(member: &'static str, problem: &'static str) -> Self {
        Self::Value { member, problem: Cow::Borrowed(problem), unsupported: true }
    }

    /// What is answered instead of doing it: nothing was done.
    #[cfg(feature = "server")]
    pub(crate) fn refused(error: PcpError) -> Self {
        Self::Refused(Box::new(Refusal { error, retry_safe: true }))
    }

    pub(crate) fn unexpected(asked: StreamMessageType, got: StreamMessageType) -> Self {
        Self::UnexpectedReply { asked: asked.name(), got: got.name() }
    }

    /// The stable word for this error.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Protocol(error) => protocol_code(error),
            Self::Payload { .. } | Self::NotText { .. } | Self::NotEmpty { .. } => ErrorCode::InvalidRequest,
            Self::UnsupportedMessage { .. } => ErrorCode::UnsupportedMessage,
            Self::Value { unsupported: true, .. } => ErrorCode::Unsupported,
            Self::Value { .. } => ErrorCode::InvalidRequest,
            Self::Write { .. } => ErrorCode::SerializationError,
            Self::Refused(refusal) => refusal.error.code,
            Self::UnexpectedReply { .. } => ErrorCode::ProtocolError,
        }
    }

    /// Whether the connection is of no use after this.
    #[must_use]
    pub fn ends_stream(&self) -> bool {
        matches!(self, Self::Protocol(error) if error.ends_stream())
    }

    /// The error as it travels.
    #[must_use]
    pub fn to_pcp(&self) -> PcpError {
        match self {
            Self::Refused(refusal) => refusal.error.clone(),
            other => PcpError::new(other.code(), cut(other)),
        }
    }
}

fn protocol_code(error: &ProtocolError) -> ErrorCode {
    match error {
        ProtocolError::UnknownType { .. } => ErrorCode::UnsupportedMessage,
        ProtocolError::Timeout { .. } => ErrorCode::Timeout,
        ProtocolError::FrameMemory { .. } => ErrorCode::LimitReached,
        ProtocolError::WrongListener { .. }
        | ProtocolError::Socket { .. }
        | ProtocolError::PeerGone
        | ProtocolError::Closed
        | ProtocolError::ClosedInsideFrame { .. }
        | ProtocolError::Io(_) => ErrorCode::DaemonUnreachable,
        _ => ErrorCode::ProtocolError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let text = "ä".repeat(MAX_ERROR_TEXT_BYTES);
        let shortened = cut(format_args!("x{text}"));
        assert_eq!(shortened.len(), MAX_ERROR_TEXT_BYTES - 1);
        assert!(shortened.ends_with('ä'));
        assert_eq!(cut("short"), "short");
        assert_eq!(cut("y".repeat(MAX_ERROR_TEXT_BYTES)).len(), MAX_ERROR_TEXT_BYTES);
    }
}
