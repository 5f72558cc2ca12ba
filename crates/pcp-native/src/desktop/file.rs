//! One file's bytes, whatever it turns out to be: never waited for, never more than the limit.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::errno::Errno;
use nix::libc::{O_CLOEXEC, O_NOCTTY, O_NONBLOCK};

use super::skip::SkipReason;

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
    pub(crate) fn of(facts: &Metadata) -> Self {
        let nanoseconds =
            |seconds: i64, part: i64| seconds.saturating_mul(1_000_000_000).saturating_add(part);
        Self {
            dev: facts.dev(),
            ino: facts.ino(),
            size: facts.size(),
            mtime_ns: nanoseconds(facts.mtime(), facts.mtime_nsec()),
            ctime_ns: nanoseconds(facts.ctime(), facts.ctime_nsec()),
        }
    }
}

/// Fills `buffer` with the bytes of the regular file at `path`, which may be a link: containers export links.
///
/// # Errors
/// [`SkipReason`] says why there are none; `buffer` is then empty.
pub fn read(path: &Path, buffer: &mut Vec<u8>) -> Result<StatKey, SkipReason> {
    let read = open(path).and_then(|(mut file, facts)| {
        fill(&mut file, &facts, buffer)?;
        // The key is from before the reading: a change meanwhile makes it stale, never wrong.
        Ok(StatKey::of(&facts))
    });
    if read.is_err() {
        buffer.clear();
    }
    read
}

fn open(path: &Path) -> Result<(File, Metadata), SkipReason> {
    // O_NONBLOCK, or a planted pipe would hold the reader until somebody writes to it.
    let opened = OpenOptions::new().read(true).custom_flags(O_NONBLOCK | O_NOCTTY | O_CLOEXEC).open(path);
    let file = opened.map_err(|error| SkipReason::of(errno(&error)))?;
    let facts = file.metadata().map_err(|error| SkipReason::of(errno(&error)))?;
    check(&facts)?;
    Ok((file, facts))
}

/// Whether these are the facts of a file that may be read.
pub(super) fn check(facts: &Metadata) -> Result<(), SkipReason> {
    if !facts.is_file() {
        return Err(SkipReason::NotRegular { what: kind(facts) });
    }
    if facts.size() > MAX_DESKTOP_FILE_BYTES {
        return Err(SkipReason::TooLarge { bytes: facts.size(), limit: MAX_DESKTOP_FILE_BYTES });
    }
    Ok(())
}

fn fill(file: &mut File, facts: &Metadata, buffer: &mut Vec<u8>) -> Result<(), SkipReason> {
    // One byte more than the length: where it stays unread the file has ended, and no second call has to ask.
    let length = usize::try_from(facts.size()).unwrap_or_default();
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

fn kind(facts: &Metadata) -> &'static str {
    let kind = facts.file_type();
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

pub(super) fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw)
}
