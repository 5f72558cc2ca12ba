//! The tree in which programs are looked up: the running system's, or one that lies unpacked in a folder.
//!
//! Beneath a folder, absolute paths and absolute links stay in the folder: the kernel resolves them (`openat2`), no
//! code here walks links. What is opened is a regular file, and opening never waits for anyone.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use thiserror::Error;

use crate::desktop::StatKey;

/// Where programs and libraries are looked up.
#[derive(Debug)]
pub struct Root {
    folder: Option<Folder>,
}

#[derive(Debug)]
struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// Why there is no regular file to read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Nothing has that name.
    #[error("no such file")]
    Missing,
    /// It is there and is no regular file.
    #[error("{0}, not a regular file")]
    NotRegular(&'static str),
    /// The system refused.
    #[error("cannot be opened: {0}")]
    Refused(Errno),
}

/// A regular file, open for reading.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: File,
    /// Its length when it was opened.
    pub bytes: u64,
    /// By what a change of it is seen. Device and number are the same for every path to it.
    pub stat: StatKey,
    /// Whether anybody may execute it.
    pub executable: bool,
}

impl Root {
    /// The running system.
    #[must_use]
    pub const fn system() -> Self {
        Self { folder: None }
    }

    /// The tree in `folder`: `/usr/bin/x` means `folder/usr/bin/x`, in links too.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn beneath(folder: &Path) -> io::Result<Self> {
        let path = folder.canonicalize()?;
        let flags = OFlag::O_DIRECTORY | OFlag::O_NONBLOCK;
        let handle = OpenOptions::new().read(true).custom_flags(flags.bits()).open(&path)?;
        Ok(Self { folder: Some(Folder { handle: handle.into(), path }) })
    }

    /// Opens a regular file. FIFOs, devices and folders are refused without waiting; a loop of links ends at once.
    ///
    /// # Errors
    /// [`OpenError`] says which.
    pub fn open(&self, path: &Path) -> Result<Opened, OpenError> {
        let file = match self.open_any(path) {
            Ok(file) => file,
            Err(Errno::ENOENT | Errno::ENOTDIR) => return self.open_merged(path),
            Err(Errno::ENXIO) => return Err(OpenError::NotRegular("a socket")),
            Err(errno) => return Err(OpenError::Refused(errno)),
        };
        regular(file)
    }

    /// Whether anything has that name: for the files that stand beside a program.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        match &self.folder {
            None => path.exists(),
            Some(_) => self.open_flags(path, OFlag::O_PATH).is_ok(),
        }
    }

    /// The path of an opened file at the end of all links, as seen within this tree.
    #[must_use]
    pub fn resolved(&self, opened: &Opened) -> Option<PathBuf> {
        let link = format!("/proc/self/fd/{}", opened.file.as_raw_fd());
        let path = std::fs::read_link(link).ok()?;
        match &self.folder {
            None => Some(path),
            Some(folder) => path.strip_prefix(&folder.path).ok().map(|below| Path::new("/").join(below)),
        }
    }

    fn open_any(&self, path: &Path) -> Result<File, Errno> {
        self.open_flags(path, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_NOCTTY)
    }

    fn open_flags(&self, path: &Path, flags: OFlag) -> Result<File, Errno> {
        let flags = flags | OFlag::O_CLOEXEC;
        let Some(folder) = &self.folder else {
            let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path);
            return opened.map_err(|error| errno(&error));
        };
        let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        openat2(&folder.handle, path, OpenHow::new().flags(flags).resolve(resolve)).map(File::from)
    }

    /// A tree of unpacked packages lacks the links that make `/bin` mean `/usr/bin`.
    fn open_merged(&self, path: &Path) -> Result<Opened, OpenError> {
        let below = ["/bin/", "/sbin/", "/lib/", "/lib64/"]
            .iter()
            .any(|top| path.starts_with(top.trim_end_matches('/')));
        if self.folder.is_none() || !below {
            return Err(OpenError::Missing);
        }
        let below = path.strip_prefix("/").unwrap_or(path);
        match self.open_any(&Path::new("/usr").join(below)) {
            Ok(file) => regular(file),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Err(OpenError::Missing),
            Err(errno) => Err(OpenError::Refused(errno)),
        }
    }
}

fn regular(file: File) -> Result<Opened, OpenError> {
    let metadata = file.metadata().map_err(|error| OpenError::Refused(errno(&error)))?;
    let kind = metadata.file_type();
    if !kind.is_file() {
        use std::os::unix::fs::FileTypeExt;
        let name = if kind.is_dir() {
            "a folder"
        } else if kind.is_fifo() {
            "a FIFO"
        } else {
            "a device"
        };
        return Err(OpenError::NotRegular(name));
    }
    Ok(Opened {
        bytes: metadata.len(),
        stat: StatKey::of(&metadata),
        executable: metadata.mode() & 0o111 != 0,
        file,
    })
}

fn errno(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EINVAL, Errno::from_raw)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_of_an_unpacked_tree_stay_in_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        std::fs::create_dir_all(at("usr/bin")).unwrap();
        std::fs::create_dir_all(at("etc/alternatives")).unwrap();
        std::fs::write(at("usr/bin/real"), "x").unwrap();
        symlink("/etc/alternatives/app", at("usr/bin/app")).unwrap();
        symlink("/usr/bin/real", at("etc/alternatives/app")).unwrap();
        symlink("../../../../../../etc/passwd", at("usr/bin/escape")).unwrap();
        symlink("loop", at("usr/bin/loop")).unwrap();
        let root = Root::beneath(folder.path()).unwrap();

        let opened = root.open(Path::new("/usr/bin/app")).unwrap();

        assert_eq!(root.resolved(&opened), Some(PathBuf::from("/usr/bin/real")));
        assert!(root.open(Path::new("/bin/app")).is_ok(), "/bin means /usr/bin");
        assert_eq!(root.open(Path::new("/usr/bin/escape")).unwrap_err(), OpenError::Missing);
        assert_eq!(root.open(Path::new("/usr/bin/loop")).unwrap_err(), OpenError::Refused(Errno::ELOOP));
        assert!(root.has(Path::new("/etc/alternatives/app")) && !root.has(Path::new("/etc/passwd")));
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let root = Root::system();
        let why = |path: &Path| root.open(path).unwrap_err().to_string();

        assert_eq!(why(&fifo), "a FIFO, not a regular file");
        assert_eq!(why(folder.path()), "a folder, not a regular file");
        assert_eq!(why(Path::new("/dev/null")), "a device, not a regular file");
        assert_eq!(why(&socket), "a socket, not a regular file");
        assert_eq!(why(&folder.path().join("gone")), "no such file");
    }
}
