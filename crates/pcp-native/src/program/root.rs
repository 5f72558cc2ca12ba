//! The tree in which programs are looked up: the running system's, or one that lies unpacked in a folder.
//!
//! Beneath a folder, absolute paths and absolute links stay in the folder: the kernel resolves them (`openat2`), no
//! code here walks links. What is opened is a regular file, and opening never waits for anyone.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::NixPath;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::{Mode, SFlag, fstat};
use thiserror::Error;

use crate::desktop::StatKey;
use crate::desktop::file::kind;

/// How a program is opened: never waiting, never as the terminal of this process.
const PROGRAM: OFlag =
    OFlag::O_RDONLY.union(OFlag::O_NONBLOCK).union(OFlag::O_NOCTTY).union(OFlag::O_CLOEXEC);

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
    /// Whether its name is a link.
    pub(super) is_link: bool,
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
        let flags = OFlag::O_DIRECTORY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let handle = openat(AT_FDCWD, &path, flags, Mode::empty())?;
        Ok(Self { folder: Some(Folder { handle, path }) })
    }

    /// Whether this is the running system, whose folders can be held open: beneath another folder every link has to
    /// be resolved from the top.
    pub(super) const fn is_system(&self) -> bool {
        self.folder.is_none()
    }

    /// Opens a regular file. FIFOs, devices and folders are refused without waiting; a loop of links ends at once.
    ///
    /// # Errors
    /// [`OpenError`] says which.
    pub fn open(&self, path: &Path) -> Result<Opened, OpenError> {
        match &self.folder {
            None => open_within(AT_FDCWD, path),
            Some(folder) => match beneath(folder, path, PROGRAM) {
                Err(Errno::ENOENT | Errno::ENOTDIR) => open_merged(folder, path),
                opened => regular(opened.map_err(refused)?, true),
            },
        }
    }

    /// Whether anything has that name: for the files that stand beside a program.
    #[must_use]
    pub fn has(&self, path: &Path) -> bool {
        match &self.folder {
            None => path.exists(),
            Some(folder) => beneath(folder, path, OFlag::O_PATH | OFlag::O_CLOEXEC).is_ok(),
        }
    }

    /// The path of an opened file at the end of all links, as seen within this tree.
    #[must_use]
    pub fn resolved(&self, opened: &Opened) -> Option<PathBuf> {
        let path = path_of(&opened.file)?;
        match &self.folder {
            None => Some(path),
            Some(folder) => path.strip_prefix(&folder.path).ok().map(|below| Path::new("/").join(below)),
        }
    }
}

/// Where an open file is, at the end of all links.
pub(super) fn path_of(file: &impl AsRawFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

/// Opens a regular file of the running system by its name in a folder, or by its whole path.
pub(super) fn open_within<P: ?Sized + NixPath>(folder: impl AsFd, name: &P) -> Result<Opened, OpenError> {
    // What is no link is where its name says: nobody has to ask the kernel where that is.
    match openat(folder.as_fd(), name, PROGRAM | OFlag::O_NOFOLLOW, Mode::empty()) {
        Err(Errno::ELOOP) => {
            let opened = openat(folder, name, PROGRAM, Mode::empty());
            regular(opened.map_err(refused)?.into(), true)
        }
        opened => regular(opened.map_err(refused)?.into(), false),
    }
}

fn beneath(folder: &Folder, path: &(impl ?Sized + NixPath), flags: OFlag) -> Result<File, Errno> {
    let resolve = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    openat2(&folder.handle, path, OpenHow::new().flags(flags).resolve(resolve)).map(File::from)
}

/// A tree of unpacked packages lacks the links that make `/bin` mean `/usr/bin`.
fn open_merged(folder: &Folder, path: &Path) -> Result<Opened, OpenError> {
    let top = path.strip_prefix("/").ok().and_then(|below| below.components().next());
    let is_merged = |top: &OsStr| ["bin", "sbin", "lib", "lib64"].iter().any(|merged| top == *merged);
    if !top.is_some_and(|top| is_merged(top.as_os_str())) {
        return Err(OpenError::Missing);
    }
    let below = path.strip_prefix("/").unwrap_or(path);
    regular(beneath(folder, &Path::new("/usr").join(below), PROGRAM).map_err(refused)?, true)
}

fn refused(errno: Errno) -> OpenError {
    match errno {
        Errno::ENOENT | Errno::ENOTDIR => OpenError::Missing,
        Errno::ENXIO => OpenError::NotRegular("a socket"),
        other => OpenError::Refused(other),
    }
}

fn regular(file: File, is_link: bool) -> Result<Opened, OpenError> {
    let facts = fstat(&file).map_err(OpenError::Refused)?;
    match kind(&facts) {
        SFlag::S_IFREG => {}
        SFlag::S_IFDIR => return Err(OpenError::NotRegular("a folder")),
        SFlag::S_IFIFO => return Err(OpenError::NotRegular("a FIFO")),
        _ => return Err(OpenError::NotRegular("a device")),
    }
    let stat = StatKey::of(&facts);
    Ok(Opened { bytes: stat.size, stat, executable: facts.st_mode & 0o111 != 0, is_link, file })
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
