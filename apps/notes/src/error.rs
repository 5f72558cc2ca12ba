//! Everything that can go wrong, and what the caller may believe about the effect.

use std::io;
use std::path::PathBuf;

use pcp_core::{CapabilityFailure, ErrorCode};

use crate::note::{MAX_BODY_BYTES, MAX_TITLE_CHARS};
use crate::store::MAX_NOTES;

/// What was attempted and why it did not happen, or may not have.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No note has this id.
    #[error("there is no note {id}; list shows the notes, and a deleted one comes back with restore")]
    NoNote {
        /// The id asked for.
        id: u64,
    },
    /// Nothing of this id is in the trash.
    #[error("there is no note {id} in the trash")]
    NotInTrash {
        /// The id asked for.
        id: u64,
    },
    /// The note changed since the caller read it.
    #[error("note {id} is at revision {found}, not {expected}: read it again and repeat the change")]
    Stale {
        /// The note.
        id: u64,
        /// The revision that the caller expected.
        expected: u64,
        /// The revision that it has.
        found: u64,
    },
    /// A parameter that the schema allows and the application does not.
    #[error("parameter {pointer}: {why}")]
    Parameter {
        /// JSON pointer to it; empty for the whole object.
        pointer: &'static str,
        /// The rule, without the value: it may be what somebody typed.
        why: String,
    },
    /// The application does not serve this capability.
    #[error("capability {0:?} is not served by this application")]
    NoCapability(String),
    /// The store is full.
    #[error("the store holds {MAX_NOTES} notes, the trash included, which is its limit: empty the trash")]
    Full,
    /// A result that fits no frame.
    #[error("the result has {bytes} bytes, over the {limit}-byte limit: export as text, or ask for fewer")]
    ResultTooLarge {
        /// Bytes of the result as JSON.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// Something failed on the disk before anything changed.
    #[error("cannot {what} {path}: {source}; nothing was changed")]
    Disk {
        /// What was attempted.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The change is made, but it may not survive a power cut.
    #[error(
        "{path} is changed, but the disk did not confirm it: {source}; it may be lost if power fails now"
    )]
    Unconfirmed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A failed rename after which the old name is gone.
    #[error("renaming to {path} failed and may have happened: {source}; read the note to see")]
    Unsettled {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file that is no note.
    #[error("{path} is no note: {why}; move it away or repair it")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The rule that it breaks.
        why: &'static str,
    },
    /// Another process uses the data directory.
    #[error("{path} is in use by another pcp-notes: stop it, or use another --data directory")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The command line is wrong.
    #[error("{0}; see pcp-notes --help")]
    Usage(String),
    /// The installed manifest cannot be served.
    #[error("manifest {path}: {why}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// `/etc/passwd` has no such user.
    #[error("{path} has no user {name:?}, which the daemon runs under: create it, or pass --daemon-uid")]
    NoUser {
        /// The file.
        path: PathBuf,
        /// The user's name.
        name: String,
    },
    /// The socket could not be served.
    #[error("cannot serve {path}: {why}")]
    Serve {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    /// A parameter that breaks a rule of [`crate::note`].
    pub(crate) fn parameter(pointer: &'static str, why: impl Into<String>) -> Self {
        Self::Parameter { pointer, why: why.into() }
    }

    /// A title that breaks the rule.
    pub(crate) fn title(why: &str) -> Self {
        Self::parameter("/title", format!("a title is one line of 1 to {MAX_TITLE_CHARS} characters; {why}"))
    }

    /// A body that breaks the rule.
    pub(crate) fn body(why: &str) -> Self {
        Self::parameter("/body", format!("a body is text of at most {MAX_BODY_BYTES} bytes; {why}"))
    }

    /// The code of the closed table that the caller gets.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NoNote { .. } | Self::NotInTrash { .. } => ErrorCode::NotFound,
            Self::Stale { .. } => ErrorCode::Conflict,
            Self::Parameter { .. } | Self::Usage(_) => ErrorCode::InvalidParameters,
            Self::NoCapability(_) => ErrorCode::CapabilityNotFound,
            Self::Full | Self::ResultTooLarge { .. } => ErrorCode::LimitReached,
            Self::Manifest { .. } => ErrorCode::InvalidManifest,
            _ => ErrorCode::ExecutionFailed,
        }
    }

    /// Whether it is certain that nothing changed: the most important thing that a failure says, because the
    /// daemon reports every other failure of an effect as *unknown*.
    #[must_use]
    pub fn no_effect(&self) -> bool {
        !matches!(self, Self::Unconfirmed { .. } | Self::Unsettled { .. })
    }

    /// The failure as the protocol carries it.
    #[must_use]
    pub fn to_failure(&self) -> CapabilityFailure {
        CapabilityFailure { code: self.code(), message: self.to_string(), no_effect: self.no_effect() }
    }
}
