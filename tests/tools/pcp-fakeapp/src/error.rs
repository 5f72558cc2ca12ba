//! Everything that can keep the fake application from doing its part.

use std::io;
use std::path::PathBuf;

/// What was attempted and why it did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was attempted.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line of an effects file is no `OPERATION CAPABILITY`.
    #[error("{path}:{line}: not `OPERATION CAPABILITY`; only EffectLog may write this file")]
    BrokenLog {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A behaviour that is not known.
    #[error("behaviour {0:?} is not known; see pcp-fakeapp --help")]
    Behaviour(String),
    /// The manifest cannot be served.
    #[error("manifest {path}: {why}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The socket could not be served.
    #[error("cannot serve {path}: {why}")]
    Serve {
        /// The directory of the socket.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl Error {
    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}
