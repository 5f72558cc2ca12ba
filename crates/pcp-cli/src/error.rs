//! What can keep a verb from answering: the stable word, the text, the cause behind it, the next step.

use std::io;
use std::path::{Path, PathBuf};

use pcp_core::ErrorCode;

/// Why a verb has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line is wrong.
    #[error("{message}")]
    Usage {
        /// What is wrong with it.
        message: String,
        /// What to write instead.
        hint: Option<String>,
    },
    /// The daemon could not be asked, or said no.
    #[error("{0}")]
    Daemon(#[from] pcp_ipc::Error),
    /// A request was sent and its end never came: it may have happened.
    #[error("no result of operation {operation} came back, so it may have been carried out")]
    Lost {
        /// The operation.
        operation: pcp_core::OperationId,
        /// How the answer got lost.
        #[source]
        cause: pcp_ipc::Error,
    },
    /// The daemon answered, but not with what the protocol says.
    #[error("the daemon's {what} cannot be read: {source}")]
    Reply {
        /// Which part of the answer.
        what: &'static str,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The answer is larger than a client takes.
    #[error("{what} has more than {limit} bytes; ask for less with --app or --domain")]
    TooLarge {
        /// What was asked for.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// There is no such thing.
    #[error("there is no {what} {name:?}")]
    NotFound {
        /// What it would be.
        what: &'static str,
        /// Its name.
        name: String,
        /// Where to look for names.
        hint: &'static str,
    },
    /// Less happened than was waited for.
    #[error("only {told} of {count} events came within {seconds} s")]
    TooFew {
        /// How many came.
        told: u64,
        /// How many were waited for.
        count: u64,
        /// For how long.
        seconds: f64,
    },
    /// A file or device could not be used.
    #[error("cannot {action} {}", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A key or a document does not serve its purpose.
    #[error("cannot use {what} {}", path.display())]
    Untrusted {
        /// What the file is.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: pcp_trust::Error,
    },
    /// A manifest counts for nothing.
    #[error("manifest {} is refused ({reason})", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The stable word of why.
        reason: &'static str,
        /// The sentence of why.
        why: String,
    },
    /// A trail could not be looked at, or is broken.
    #[error("{0}")]
    Trail(#[from] pcp_durable::Error),
    /// What `status` of S3 says of every failure of its ledger.
    #[error("{0}")]
    Ledger(String),
    /// Nothing can be observed.
    #[error("{0}")]
    Observation(&'static str),
    /// The answer is no JSON.
    #[error("the answer cannot be written as JSON: {0}")]
    Serialization(#[from] serde_json::Error),
}

impl Error {
    /// A mistake on the command line.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: Some(hint.into()) }
    }

    /// A file that could not be used.
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File { action, path: path.to_owned(), source }
    }

    /// The stable word, which also decides the exit code.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Usage { .. } => ErrorCode::Usage,
            Self::Daemon(error) => error.code(),
            Self::Lost { .. } => ErrorCode::OutcomeUnknown,
            Self::Reply { .. } | Self::TooLarge { .. } | Self::Ledger(_) => ErrorCode::ProtocolError,
            Self::Observation(_) => ErrorCode::ObservationError,
            Self::NotFound { .. } => ErrorCode::NotFound,
            Self::TooFew { .. } => ErrorCode::Timeout,
            Self::File { source, .. } => file_code(source),
            Self::Untrusted { source, .. } => match source {
                pcp_trust::Error::Read { source, .. } => file_code(source),
                _ => ErrorCode::IntegrityBroken,
            },
            Self::Manifest { reason: "unreadable", .. } => ErrorCode::NotFound,
            Self::Manifest { .. } => ErrorCode::InvalidManifest,
            Self::Trail(error) if error.is_damage() => ErrorCode::IntegrityBroken,
            Self::Trail(_) => ErrorCode::IntegrityUnchecked,
            Self::Serialization(_) => ErrorCode::SerializationError,
        }
    }

    /// What lies behind it, where the text does not say so already.
    #[must_use]
    pub fn cause(&self) -> Option<String> {
        match self {
            Self::Lost { cause, .. } => Some(cause.to_string()),
            Self::File { source, .. } => Some(source.to_string()),
            Self::Untrusted { source, .. } => Some(source.to_string()),
            Self::Manifest { why, .. } => Some(why.clone()),
            _ => None,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Usage { hint, .. } => hint.clone(),
            Self::Daemon(pcp_ipc::Error::Refused(refusal)) => {
                refusal.error.hint.as_deref().map(str::to_owned)
            }
            Self::Daemon(error) if error.code() == ErrorCode::DaemonUnreachable => Some(
                "look at `pcp-cli doctor`; another socket is named by --socket, its user by --expect-uid"
                    .into(),
            ),
            Self::Lost { operation, .. } => Some(format!(
                "do not repeat it under a new id; `pcp-cli exec` with --op {operation} and the same words gives \
                 its stored result, and so does `pcp-cli status {operation}` on the device"
            )),
            Self::NotFound { hint, .. } => Some((*hint).to_owned()),
            Self::TooFew { .. } => Some("wait longer by --timeout, or for less by --count".into()),
            Self::File { source, .. } if source.kind() == io::ErrorKind::AlreadyExists => {
                Some("name a file that does not exist: no key is ever overwritten".into())
            }
            Self::Trail(error) if !error.is_damage() => Some(
                "trails are read by the daemon's user and by root; another place is named by --dir".into(),
            ),
            _ => None,
        }
    }
}

fn file_code(error: &io::Error) -> ErrorCode {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorCode::NotFound,
        io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
        _ => ErrorCode::ExecutionFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(kind: io::ErrorKind) -> Error {
        Error::file("read", Path::new("f"), kind.into())
    }

    fn trail(kind: io::ErrorKind) -> Error {
        pcp_durable::Error::Disk { action: "open", name: "f".into(), source: io::Error::from(kind).into() }
            .into()
    }

    fn untrusted(source: pcp_trust::Error) -> Error {
        Error::Untrusted { what: "key", path: "f".into(), source }
    }

    fn manifest(reason: &'static str) -> Error {
        Error::Manifest { path: "f".into(), reason, why: String::new() }
    }

    #[test]
    fn every_error_ends_with_the_exit_code_of_its_word() {
        use io::ErrorKind::{NotFound, PermissionDenied, StorageFull};
        let protocol = |error| Error::Daemon(pcp_ipc::Error::Protocol(error));
        let unread = pcp_trust::Error::Read { path: "f".into(), source: NotFound.into() };
        let reply = serde_json::from_str::<bool>("1").unwrap_err();
        let table = [
            (Error::usage("m", "h"), 2),
            (protocol(pcp_stream::ProtocolError::Closed), 3),
            (protocol(pcp_stream::ProtocolError::BadMagic { found: 1 }), 3),
            (protocol(pcp_stream::ProtocolError::Timeout { limit_ms: 1 }), 7),
            (Error::Reply { what: "row", source: reply }, 3),
            (Error::TooLarge { what: "rows", limit: 1 }, 3),
            (Error::Ledger("broken".into()), 3),
            (Error::NotFound { what: "capability", name: "x".into(), hint: "h" }, 4),
            (Error::TooFew { told: 1, count: 2, seconds: 0.5 }, 7),
            (file(NotFound), 4),
            (file(PermissionDenied), 5),
            (file(StorageFull), 10),
            (untrusted(unread), 4),
            (untrusted(pcp_trust::Error::KeyWeak), 11),
            (manifest("unreadable"), 4),
            (manifest("bad-signature"), 11),
            (pcp_durable::Error::SegmentMissing { file: "f".into() }.into(), 11),
            (trail(NotFound), 12),
        ];
        for (error, exit) in table {
            assert_eq!(error.code().exit_code(), exit, "{error}");
        }
    }

    #[test]
    fn an_unreachable_daemon_and_an_unread_trail_name_the_next_step() {
        let unreachable = Error::Daemon(pcp_ipc::Error::Protocol(pcp_stream::ProtocolError::Closed));
        assert!(unreachable.hint().unwrap().contains("doctor"));
        assert!(trail(io::ErrorKind::PermissionDenied).hint().unwrap().contains("root"));
        assert!(file(io::ErrorKind::AlreadyExists).hint().unwrap().contains("overwritten"));
    }
}
