//! What can go wrong, and whether it is the disk, the data or the moment.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::line::LineFault;
use crate::seal::SealFault;

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
    /// A seal is wrong, or what stands in a trail is not what a seal, an anchor or a pinned head says.
    #[error(
        "{file} line {line} (byte {offset}), record {seq}: {fault}; keep the files and restore them from a copy"
    )]
    Seal {
        /// The segment.
        file: String,
        /// Line in that file, from 1.
        line: u64,
        /// Where the line begins in that file.
        offset: u64,
        /// Its number in its trail.
        seq: u64,
        /// What is wrong.
        fault: SealFault,
    },
    /// A trail ends before a record that is known to have been in it.
    #[error(
        "{file} ends at byte {offset} with record {last}, but {witness} names record {named}: records are missing"
    )]
    CutShort {
        /// The last segment.
        file: String,
        /// Its length.
        offset: u64,
        /// The last record.
        last: u64,
        /// The record that was there.
        named: u64,
        /// What names it.
        witness: String,
    },
    /// Nobody who had the key wrote the anchor, or it is an older one.
    #[error("{file} was not written with the key of epoch {epoch}: it was changed or is an older copy")]
    Anchor {
        /// The file.
        file: String,
        /// The present epoch.
        epoch: u64,
    },
    /// A check could not be made because something that it needs is not there.
    #[error("cannot check {what}: {why}")]
    NotChecked {
        /// What was to be checked.
        what: String,
        /// What is missing, and what to do.
        why: String,
    },
    /// There are keys, but no anchor.
    #[error("there is a sealing key but no anchor; if it was never there, replace the keys")]
    NoAnchor,
    /// The sealing key cannot be used.
    #[error("cannot use the sealing key: {why}; restore it from a copy, or replace the keys")]
    SealKey {
        /// What is wrong with it.
        why: String,
    },
    /// There are keys already.
    #[error("sealing keys exist since epoch {epoch}; to replace them, say why")]
    KeysExist {
        /// The present epoch.
        epoch: u64,
    },
    /// The reason for new keys cannot stand in a seal.
    #[error("the reason for new keys has {bytes} bytes, not 1 to {limit}")]
    Reason {
        /// Its length.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A text is no verification key.
    #[error("not a verification key; it looks like pcp-seal-1:EPOCH:64 hexadecimal digits")]
    NotAKey,
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
        matches!(
            self,
            Self::Damaged { .. }
                | Self::SegmentMissing { .. }
                | Self::Seal { .. }
                | Self::CutShort { .. }
                | Self::Anchor { .. }
        )
    }
}
