//! What was left out, where it is and why. One broken file never costs another one its place.

use std::path::PathBuf;

use nix::errno::Errno;
use thiserror::Error;

use super::entry::Rejection;

/// Most files of one pass whose reason is kept. The rest is counted.
pub const MAX_SKIPS: usize = 1000;

/// Why a file or a folder was left out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the sentences name")]
pub enum SkipReason {
    /// The kernel said no.
    #[error("cannot be read: {}", .0.desc())]
    Unreadable(Errno),
    /// A link to nothing.
    #[error("is a link to a file that is not there")]
    DanglingLink,
    /// Links that lead nowhere.
    #[error("is a link that leads back to itself")]
    LinkLoop,
    /// A pipe, a socket, a device, a folder.
    #[error("is {what}, no regular file")]
    NotRegular { what: &'static str },
    /// Larger than any desktop entry.
    #[error("has {bytes} bytes, which exceeds the {limit}-byte limit")]
    TooLarge { bytes: u64, limit: u64 },
    /// An id has to be text.
    #[error("has a name that is not UTF-8")]
    NameNotUtf8,
    /// A folder that holds itself.
    #[error("is a folder that holds itself")]
    DirectoryLoop,
    /// Folders in folders.
    #[error("lies deeper than the limit of {limit} folders")]
    TooDeep { limit: usize },
    /// More files than a system has.
    #[error("comes after the limit of {limit} desktop files; this and what follows was left out")]
    TooManyFiles { limit: usize },
    /// More folders than a system has.
    #[error("comes after the limit of {limit} folders; this and what follows was left out")]
    TooManyDirectories { limit: usize },
    /// More names than a folder has.
    #[error("holds more than {limit} names; the rest was left out")]
    TooManyNames { limit: usize },
    /// Read, and no entry.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// Another file has become this application already.
    #[error("would become application {id}, which another file is already")]
    IdTaken { id: String },
}

impl SkipReason {
    /// The stable word for it.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "unreadable",
            Self::DanglingLink => "dangling-link",
            Self::LinkLoop => "link-loop",
            Self::NotRegular { .. } => "not-regular",
            Self::NameNotUtf8 => "name-not-utf8",
            Self::DirectoryLoop => "directory-loop",
            Self::TooLarge { .. }
            | Self::TooDeep { .. }
            | Self::TooManyFiles { .. }
            | Self::TooManyDirectories { .. }
            | Self::TooManyNames { .. } => "limit",
            Self::Rejected(rejection) => rejection.reason(),
            Self::IdTaken { .. } => "id-taken",
        }
    }

    /// The reason for a file that could not be opened or looked at.
    pub(super) const fn of(errno: Errno) -> Self {
        match errno {
            Errno::ELOOP => Self::LinkLoop,
            // Opening a socket, or a device that is not there.
            Errno::ENXIO | Errno::ENODEV => Self::NotRegular { what: "a socket or a device" },
            other => Self::Unreadable(other),
        }
    }

    /// As [`Self::of`], for a name that was just seen in its folder: if it is not there, its target is not.
    pub(super) const fn of_listed(errno: Errno) -> Self {
        match errno {
            Errno::ENOENT => Self::DanglingLink,
            other => Self::of(other),
        }
    }
}

/// One thing that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    /// Where it is.
    pub path: PathBuf,
    /// Why it was left out.
    pub reason: SkipReason,
}

/// What one pass left out: the first [`MAX_SKIPS`], and how many more there are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skips {
    kept: Vec<Skip>,
    left_off: usize,
}

impl Skips {
    /// Adds one.
    pub fn note(&mut self, path: impl Into<PathBuf>, reason: SkipReason) {
        if self.kept.len() < MAX_SKIPS {
            self.kept.push(Skip { path: path.into(), reason });
        } else {
            self.left_off += 1;
        }
    }

    /// The first ones, in the order they were found.
    #[must_use]
    pub fn kept(&self) -> &[Skip] {
        &self.kept
    }

    /// How many were counted only.
    #[must_use]
    pub const fn left_off(&self) -> usize {
        self.left_off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_kept_to_the_limit_and_counted_beyond_it() {
        let mut skips = Skips::default();
        for _ in 0..MAX_SKIPS + 2 {
            skips.note("x", SkipReason::LinkLoop);
        }
        assert_eq!((skips.kept().len(), skips.left_off()), (MAX_SKIPS, 2));
    }
}
