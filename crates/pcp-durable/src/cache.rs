//! What detection found in files, kept for the next start: one file that may be lost, stale or damaged at any time.
//!
//! Nothing is believed of it that does not fit: owner, mode, length, version, identity and checksum come before the
//! first value (`FORMAT.md`), and what is in it is only ever a claim about files that the reader asks again. A file
//! that does not fit is left aside with its [`CacheFault`] and written anew. Start with [`load`] and [`store`].

mod codec;

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open, openat, renameat};
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};
use sha2::{Digest as _, Sha256};

pub use codec::{CachedApp, CachedEntry, CachedFile, CachedFinding, Detected, FileStat};

/// The name of the file in the state directory.
pub const CACHE_FILE: &str = "detection.cache";
/// What it is called until it is whole.
const NEW_FILE: &str = "detection.cache.new";
/// Largest file in bytes: 10 000 applications with 800 bytes each. It is read whole.
pub const MAX_CACHE_BYTES: usize = 8 * 1024 * 1024;
/// Most desktop files, programs and libraries, and folders that one holds, each: as many as a scan looks at.
pub const MAX_CACHE_ENTRIES: usize = 10_000;
/// Longest text in bytes: the longest path of Linux.
pub const MAX_CACHE_TEXT_BYTES: usize = 4096;

/// What the file begins with; the last byte is the version.
const MAGIC: [u8; 8] = *b"PCPDTCT\x01";
const IDENTITY_BYTES: usize = 32;
/// Magic, identity, CRC-32 of everything behind it.
const HEADER_BYTES: usize = MAGIC.len() + IDENTITY_BYTES + 4;

/// For whom and by whom a cache is: everything besides files on which a finding depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheIdentity([u8; IDENTITY_BYTES]);

impl CacheIdentity {
    /// The identity that these parts make, in their order.
    #[must_use]
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

/// Why a cache is left aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheFault {
    /// There is none.
    #[error("there is none yet")]
    Absent,
    /// It cannot be read.
    #[error("it cannot be read: {}", .0.desc())]
    Unreadable(Errno),
    /// Somebody else may have written it.
    #[error("it is {0}; only a file of mode 0600 of the daemon's own user counts")]
    NotPrivate(&'static str),
    /// It is longer than any cache.
    #[error("it has {bytes} bytes, the limit is {limit}")]
    TooLarge {
        /// How long it is.
        bytes: u64,
        /// How long it may be.
        limit: usize,
    },
    /// It begins like no cache, or like that of another version.
    #[error("it is of another version, or no cache")]
    Version,
    /// Another daemon, system or configuration made it.
    #[error("it was made by another daemon, on another system or with another configuration")]
    Identity,
    /// Its bytes are not those that were written.
    #[error("its checksum is wrong: it is damaged")]
    Checksum,
    /// Its bytes are as they were written and are no cache: a mistake of whoever wrote it.
    #[error("{0} in it cannot be: it is damaged")]
    Malformed(&'static str),
}

/// Reads the bytes of the cache in a state directory, all checks but those of [`Detected::read`] made.
///
/// # Errors
/// [`CacheFault`] says why it does not count.
pub fn load(directory: &Path, identity: CacheIdentity) -> Result<Vec<u8>, CacheFault> {
    let unreadable = |errno| match errno {
        Errno::ENOENT => CacheFault::Absent,
        Errno::ELOOP => CacheFault::NotPrivate("a link"),
        other => CacheFault::Unreadable(other),
    };
    let directory = enter(directory).map_err(unreadable)?;
    // O_NONBLOCK, or a planted pipe would hold up the start.
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file: File = openat(&directory, CACHE_FILE, flags, Mode::empty()).map_err(unreadable)?.into();
    let facts = fstat(&file).map_err(CacheFault::Unreadable)?;
    let mode = SFlag::from_bits_truncate(facts.st_mode) & SFlag::S_IFMT;
    if mode != SFlag::S_IFREG {
        return Err(CacheFault::NotPrivate("no regular file"));
    }
    if facts.st_uid != geteuid().as_raw() {
        return Err(CacheFault::NotPrivate("another user's"));
    }
    if facts.st_mode & 0o177 != 0 || facts.st_nlink != 1 {
        return Err(CacheFault::NotPrivate("open to others, or has a second name"));
    }
    let bytes = u64::try_from(facts.st_size).unwrap_or_default();
    let too_large = |bytes| CacheFault::TooLarge { bytes, limit: MAX_CACHE_BYTES };
    let length = usize::try_from(bytes).ok().filter(|length| *length <= MAX_CACHE_BYTES);
    let mut read = Vec::with_capacity(length.ok_or_else(|| too_large(bytes))? + 1);
    let limit = MAX_CACHE_BYTES as u64 + 1;
    file.take(limit).read_to_end(&mut read).map_err(|error| CacheFault::Unreadable(errno(&error)))?;
    if read.len() > MAX_CACHE_BYTES {
        return Err(too_large(read.len() as u64));
    }
    check(&read, identity)?;
    Ok(read)
}

/// Whether the header is one of this version and identity, and the rest is what was written.
fn check(bytes: &[u8], identity: CacheIdentity) -> Result<(), CacheFault> {
    let (magic, rest) = bytes.split_first_chunk::<{ MAGIC.len() }>().ok_or(CacheFault::Version)?;
    if *magic != MAGIC {
        return Err(CacheFault::Version);
    }
    let (made, rest) = rest.split_first_chunk::<IDENTITY_BYTES>().ok_or(CacheFault::Checksum)?;
    let (sum, content) = rest.split_first_chunk::<4>().ok_or(CacheFault::Checksum)?;
    if *made != identity.0 {
        return Err(CacheFault::Identity);
    }
    if crc32fast::hash(content) != u32::from_le_bytes(*sum) {
        return Err(CacheFault::Checksum);
    }
    Ok(())
}

/// The bytes of a cache, as [`store`] takes them. What does not fit the limits is left out: it will be looked at again.
#[must_use]
pub fn encode(identity: CacheIdentity, detected: &Detected<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&identity.0);
    bytes.extend_from_slice(&[0; 4]);
    detected.write(&mut bytes);
    let sum = crc32fast::hash(bytes.get(HEADER_BYTES..).unwrap_or_default());
    if let Some(place) = bytes.get_mut(HEADER_BYTES - 4..HEADER_BYTES) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// The content of checked bytes.
fn content(bytes: &[u8]) -> &[u8] {
    bytes.get(HEADER_BYTES..).unwrap_or_default()
}

/// Puts a cache in the place of the one before, whole and durable or not at all.
///
/// # Errors
/// What the system says; the one before is still there then.
pub fn store(directory: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = enter(directory)?;
    match unlinkat(&directory, NEW_FILE, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mut file: File = openat(&directory, NEW_FILE, flags, Mode::S_IRUSR | Mode::S_IWUSR)?.into();
    file.write_all(bytes)?;
    file.sync_data()?;
    renameat(&directory, NEW_FILE, &directory, CACHE_FILE)?;
    nix::unistd::fsync(directory.as_fd())?;
    Ok(())
}

fn enter(directory: &Path) -> nix::Result<std::os::fd::OwnedFd> {
    open(directory, OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC, Mode::empty())
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}
