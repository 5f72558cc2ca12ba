//! One file's bytes, whatever it turns out to be: never waited for, never more than the limit.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

use nix::NixPath;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, openat};
use nix::sys::stat::{FileStat, Mode, SFlag, fstat};

use super::skip::SkipReason;
use super::tree::Candidate;

/// Largest desktop file that is read, in bytes: five times the largest one found in a distribution.
pub const MAX_DESKTOP_FILE_BYTES: u64 = 256 * 1024;

/// By what a file is known to be the one that was read: nothing of it changes while the bytes do not.
///
/// A file written twice within one tick of the kernel's clock keeps its times; who keeps the bytes for long asks
/// again when the file was changed less than a tick before it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatKey {
    /// The device it lies on.
    pub dev: u64,
    /// Its number there.
    pub ino: u64,
    /// Its length in bytes.
    pub size: u64,
    /// When its bytes were changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When anything of it was changed, in nanoseconds since 1970. No program can set it.
    pub ctime_ns: i64,
}

impl StatKey {
    pub(crate) fn of(facts: &FileStat) -> Self {
        let nanoseconds =
            |seconds: i64, part: i64| seconds.saturating_mul(1_000_000_000).saturating_add(part);
        Self {
            dev: facts.st_dev,
            ino: facts.st_ino,
            size: size(facts),
            mtime_ns: nanoseconds(facts.st_mtime, facts.st_mtime_nsec),
            ctime_ns: nanoseconds(facts.st_ctime, facts.st_ctime_nsec),
        }
    }
}

/// What kind of file this is.
pub(crate) fn kind(facts: &FileStat) -> SFlag {
    SFlag::from_bits_truncate(facts.st_mode) & SFlag::S_IFMT
}

/// Its length in bytes.
pub(crate) fn size(facts: &FileStat) -> u64 {
    u64::try_from(facts.st_size).unwrap_or_default()
}

/// Fills `buffer` with the bytes of the regular file at `path`, which may be a link: containers export links.
///
/// # Errors
/// [`SkipReason`] says why there are none; `buffer` is then empty.
pub fn read(path: &Path, buffer: &mut Vec<u8>) -> Result<StatKey, SkipReason> {
    let mut read = || {
        let mut file = open(AT_FDCWD, path)?;
        let facts = fstat(&file).map_err(SkipReason::of)?;
        check(&facts)?;
        let key = StatKey::of(&facts);
        fill(&mut file, key.size, buffer)?;
        // The key is from before the reading: a change meanwhile makes it stale, never wrong.
        Ok(key)
    };
    let read = read();
    if read.is_err() {
        buffer.clear();
    }
    read
}

/// As [`read`], for a file that was just listed and is known by its key: it is not asked again what it is. Whatever
/// took its place meanwhile is read to the limit at most, and the next look finds the key stale.
pub(super) fn read_listed(candidate: &Candidate, buffer: &mut Vec<u8>) -> Result<(), SkipReason> {
    let opened = match candidate.held() {
        Some((folder, name)) => open(folder, name),
        None => open(AT_FDCWD, &candidate.path),
    };
    let read = opened.and_then(|mut file| fill(&mut file, candidate.stat.size, buffer));
    if read.is_err() {
        buffer.clear();
    }
    read
}

fn open<P: ?Sized + NixPath>(folder: impl AsFd, path: &P) -> Result<File, SkipReason> {
    // O_NONBLOCK, or a planted pipe would hold the reader until somebody writes to it.
    let flags = OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    openat(folder, path, flags, Mode::empty()).map(File::from).map_err(SkipReason::of)
}

/// Whether these are the facts of a file that may be read.
pub(super) fn check(facts: &FileStat) -> Result<(), SkipReason> {
    let what = match kind(facts) {
        SFlag::S_IFREG if size(facts) <= MAX_DESKTOP_FILE_BYTES => return Ok(()),
        SFlag::S_IFREG => {
            return Err(SkipReason::TooLarge { bytes: size(facts), limit: MAX_DESKTOP_FILE_BYTES });
        }
        SFlag::S_IFDIR => "a folder",
        SFlag::S_IFIFO => "a pipe",
        SFlag::S_IFSOCK => "a socket",
        _ => "a device",
    };
    Err(SkipReason::NotRegular { what })
}

fn fill(file: &mut File, bytes: u64, buffer: &mut Vec<u8>) -> Result<(), SkipReason> {
    // One byte more than the length: where it stays unread the file has ended, and no second call has to ask.
    let length = usize::try_from(bytes).unwrap_or_default();
    let mut room = length + 1;
    let mut filled = 0;
    loop {
        // What was read before is written over: only what the buffer grows by is cleared.
        buffer.resize(room, 0);
        let ended = match file.read(buffer.get_mut(filled..).unwrap_or_default()) {
            Ok(bytes) => {
                filled += bytes;
                bytes == 0 || filled == length
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(SkipReason::of(errno(&error))),
        };
        if filled as u64 > MAX_DESKTOP_FILE_BYTES {
            return Err(SkipReason::TooLarge { bytes: filled as u64, limit: MAX_DESKTOP_FILE_BYTES });
        }
        if ended {
            buffer.truncate(filled);
            return Ok(());
        }
        if filled == room {
            // It grew since its length was asked for, or had none to tell.
            room = usize::try_from(MAX_DESKTOP_FILE_BYTES).unwrap_or_default() + 1;
        }
    }
}

pub(super) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}
