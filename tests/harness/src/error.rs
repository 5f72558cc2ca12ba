//! Everything that can go wrong while driving a device, told so that the next step is clear.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What was attempted and why it did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The options do not say what to do.
    #[error("{0}")]
    Usage(String),
    /// A host program that is not there.
    #[error("{tool} is not installed: install the package {package}")]
    MissingTool {
        /// The program.
        tool: String,
        /// The Debian package it is in.
        package: &'static str,
    },
    /// A host program that said no.
    #[error("{tool} failed: {detail}")]
    Tool {
        /// The program.
        tool: String,
        /// What it said.
        detail: String,
    },
    /// A file, port or process of the host.
    #[error("{what}: {source}")]
    Io {
        /// What was attempted.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// Something did not come in time.
    #[error("no {what} within {} s; last seen:\n{seen}", limit.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
        /// The end of what came instead.
        seen: String,
    },
    /// The stream ended before what was waited for.
    #[error("the console ended before {what}; last seen:\n{seen}")]
    Ended {
        /// What was waited for.
        what: String,
        /// The end of what came.
        seen: String,
    },
    /// More output than will be kept.
    #[error("output exceeds the {limit}-byte limit: write it to a file on the device")]
    TooMuchOutput {
        /// The limit.
        limit: usize,
    },
    /// A file larger than the way to the device takes.
    #[error("{path} of {bytes} bytes exceeds the {limit}-byte limit over {way}")]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
        /// Serial line or SSH.
        way: &'static str,
    },
    /// The device started but does not work.
    #[error("device is not ready: {0}")]
    NotReady(String),
    /// A command ran and failed where it should not.
    #[error("{command:?} ended with status {status}:\n{output}")]
    Status {
        /// The command.
        command: String,
        /// Its status.
        status: i32,
        /// Its output.
        output: String,
    },
    /// SSH did not get as far as the command.
    #[error("ssh to {address}: {detail}")]
    Ssh {
        /// Where to.
        address: String,
        /// What it said.
        detail: String,
    },
    /// The target has no such way in.
    #[error("the target has no {0}")]
    Absent(&'static str),
    /// The image file is not what it was before.
    #[error("image {path} changed while it ran on an overlay: sha256 was {before}, is {after}")]
    ImageChanged {
        /// The image.
        path: PathBuf,
        /// Before.
        before: String,
        /// After.
        after: String,
    },
    /// A story's own finding.
    #[error("{0}")]
    Finding(String),
}

impl Error {
    /// Names what was attempted when an input or output operation failed.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
