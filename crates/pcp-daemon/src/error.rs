//! What can keep the daemon from starting or serving.

use std::path::PathBuf;

use thiserror::Error;

/// A failure of the daemon itself; a failure of a request travels as `PcpError`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The command line.
    #[error("{0}; usage: portal-pcpd [--config FILE] [--check-config] [--print-config] [--version]")]
    Usage(String),
    /// The configuration.
    #[error("configuration {}{}: {why}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    Config {
        /// The file.
        path: PathBuf,
        /// The line, where there is one.
        line: Option<usize>,
        /// What is wrong.
        why: String,
    },
    /// A group that the configuration names.
    #[error("identity.clients_group is {0:?}, and there is no such group; create it or remove the line")]
    NoGroup(String),
    /// The trails.
    #[error("audit trails in {}: {why}", path.display())]
    Audit {
        /// Their directory.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The socket.
    #[error(transparent)]
    Socket(#[from] pcp_stream::ProtocolError),
    /// The operating system.
    #[error("cannot {what}: {error}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Its answer.
        error: std::io::Error,
    },
}
