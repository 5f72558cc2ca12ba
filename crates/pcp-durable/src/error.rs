//! What can go wrong, and whether it is the disk, the data or the moment.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::line::LineFault;

/// Why a durable operation did not happen.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused, outside the path of appended records.
    #[error("cannot {action} {name}: {source}")]
    Disk {
        /// What was attempted.
        action: &'static str,
        /// The file or directory.
        name: String,
        /// What the operating system said.
        source: Arc<io::Error>,
    },
    /// The directory is not private.
    #[error("{path} is not private: {why}")]
    NotPrivate {
        /// The directory.
        path: String,
        /// Which rule it breaks, and what to do.
        why: String,
    },
    /// Another process holds the directory.
    #[error("{path} is in use by another writer; stop it first")]
    InUse {
        /// The directory.
        path: String,
    },
    /// A line that is not the last one is torn or invalid; nothing is ever skipped.
    #[error("{file} line {line} (byte {offset}): {fault}; keep the file and restore it from a copy")]
    Damaged {
        /// The segment.
        file: String,
        /// Line in that file, from 1.
        line: u64,
        /// Where the line begins in that file.
        offset: u64,
        /// What is wrong with it.
        fault: LineFault,
    },
    /// A segment between the first and the last is not there.
    #[error("segment {file} is missing; restore it from a copy")]
    SegmentMissing {
        /// The name it should have.
        file: String,
    },
    /// The record is longer than a line may be.
    #[error("record is longer than a line of {limit} bytes; shorten its parameters")]
    LineTooLong {
        /// The limit, line end included.
        limit: usize,
    },
    /// A raw JSON member of the record is not JSON.
    #[error("member \"{member}\" of the record is not JSON: {fault}")]
    NotJson {
        /// The member.
        member: &'static str,
        /// What is wrong with it.
        fault: crate::json::JsonFault,
    },
    /// Records come faster than the disk takes them.
    #[error("{waiting} bytes of trail {trail} wait for the disk, the limit is {limit}; try again")]
    Backlog {
        /// The trail.
        trail: String,
        /// Bytes waiting.
        waiting: usize,
        /// The limit for this kind of record.
        limit: usize,
    },
    /// Too many records wait for their sync.
    #[error("{limit} records already wait to become durable; try again")]
    TooManyWaiting {
        /// The limit.
        limit: usize,
    },
    /// No space for a record of this kind. Comes back by itself when space does.
    #[error("no space left for records of trail {trail}; free space on its file system")]
    Full {
        /// The trail.
        trail: String,
    },
    /// The store does not write any more: what was not synced may be lost.
    #[error("journal is fenced since it could not {action} {name}: {cause}; check the disk and restart")]
    Fenced {
        /// What was attempted.
        action: &'static str,
        /// The segment.
        name: String,
        /// What the operating system said first.
        cause: Arc<io::Error>,
    },
    /// The writer has been shut down.
    #[error("journal is closed")]
    Closed,
}

impl Error {
    pub(crate) fn disk(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Disk { action, name: path.display().to_string(), source: Arc::new(source) }
    }

    pub(crate) fn file(action: &'static str, name: &str, source: io::Error) -> Self {
        Self::Disk { action, name: name.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn not_private(path: &Path, why: String) -> Self {
        Self::NotPrivate { path: path.display().to_string(), why }
    }

    /// True when no record could be kept: before an effect the answer is `audit_unavailable`, after one
    /// it is `outcome_unknown` (C6).
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Backlog { .. }
                | Self::TooManyWaiting { .. }
                | Self::Full { .. }
                | Self::Fenced { .. }
                | Self::Closed
        )
    }

    /// True when the content is wrong, false when it could not be looked at.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Damaged { .. } | Self::SegmentMissing { .. })
    }
}
