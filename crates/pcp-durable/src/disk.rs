//! The seam between the journal and the file system, where tests inject every fault a disk knows.
//!
//! A disk is one flat directory of append-only files. [`RealDisk`] is the operating system;
//! `FaultyDisk` (feature `faults`) keeps a live and a durable view in memory and fails on demand.

use std::fmt::Debug;
use std::io;

#[cfg(any(test, feature = "faults"))]
mod faulty;
mod real;

#[cfg(any(test, feature = "faults"))]
pub use faulty::{Fault, FaultyDisk};
pub use real::RealDisk;

/// One private directory that holds journal segments.
pub trait Disk: Debug + Send + Sync {
    /// Names of the regular files in the directory, in no particular order.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens an existing file.
    ///
    /// # Errors
    /// Whatever the operating system says; `PermissionDenied` for a file that is not private.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Creates a file that must not exist yet, readable by its owner only.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Removes a file.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, in place of any file that has it.
    ///
    /// # Errors
    /// Whatever the operating system says; `Unsupported` on a disk that is no place for keys.
    fn rename(&self, _from: &str, _to: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Overwrites a file with zeros, durably. A medium that moves blocks may still hold the old ones.
    ///
    /// # Errors
    /// As [`Disk::rename`].
    fn erase(&self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Makes creations and removals durable. An error is final: the caller must not try again.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn sync_dir(&self) -> io::Result<()>;

    /// Bytes an unprivileged writer can still use.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn remaining_bytes(&self) -> io::Result<u64>;
}

/// One open file of a [`Disk`].
pub trait DiskFile: Debug + Send {
    /// Bytes in the file.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn size(&self) -> io::Result<u64>;

    /// Reads at an offset; 0 means end of file. May read less than asked.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Appends; may write less than given.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes the content durable. An error is final: a second call may lie (the kernel marks the lost
    /// pages clean), so the caller must not try again.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn sync_data(&mut self) -> io::Result<()>;

    /// Cuts the file to `size` bytes and gives back space reserved beyond it.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn truncate(&mut self, size: u64) -> io::Result<()>;

    /// Reserves space for `bytes` from `offset` on without changing the file's size, so that nothing
    /// but records ever stands in it. `Unsupported` where the file system cannot.
    ///
    /// # Errors
    /// Whatever the operating system says.
    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<()>;
}

/// True for the errors of a full disk, a full quota or a spent file-size limit: space may come back.
#[must_use]
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
