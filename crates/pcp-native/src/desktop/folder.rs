//! A folder that may be held open, so that what lies in it is found by its name instead of its whole path.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::dir::{Dir, Type};
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open};
use nix::sys::stat::{FileStat, Mode, fstatat, stat};

/// An open folder, or none. It says nothing of what lies in it, so that all are equal.
#[derive(Debug, Clone, Default)]
pub(super) struct Folder(Option<Arc<OwnedFd>>);

impl PartialEq for Folder {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Folder {}

impl Folder {
    /// Opens the folder and tells its names with their kinds, counted from zero, until told to stop.
    pub(super) fn list(
        path: &Path,
        mut each: impl FnMut(usize, &OsStr, Option<Type>) -> ControlFlow<()>,
    ) -> Result<Self, Errno> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let handle = open(path, flags, Mode::empty())?;
        let mut names = Dir::from_fd(handle.try_clone().map_err(|_| Errno::EMFILE)?)?;
        let own = |name: &OsStr| matches!(name.as_bytes(), b"." | b"..");
        let mut number = 0;
        for entry in names.iter() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if own(name) {
                continue;
            }
            if each(number, name, entry.file_type()).is_break() {
                break;
            }
            number += 1;
        }
        Ok(Self(Some(Arc::new(handle))))
    }

    /// The open folder.
    pub(super) fn handle(&self) -> Option<BorrowedFd<'_>> {
        self.0.as_deref().map(AsFd::as_fd)
    }

    /// The facts of the file `name` in it, at the end of all links. `path` is its whole path.
    pub(super) fn stat(&self, name: &OsStr, path: &Path) -> Result<FileStat, Errno> {
        match self.handle() {
            Some(handle) => fstatat(handle, name, AtFlags::empty()),
            None => stat(path),
        }
    }
}

/// The path of a name in a folder, its room taken once.
pub(crate) fn joined(folder: &Path, name: &OsStr) -> PathBuf {
    let mut path = PathBuf::with_capacity(folder.as_os_str().len() + 1 + name.len());
    path.push(folder);
    path.push(name);
    path
}
