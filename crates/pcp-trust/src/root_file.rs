//! Files whose author matters: opened without following links, checked on the descriptor, read once.
//!
//! Everything is asked of the open descriptor, never of the path again, and the bytes that were checked are the
//! bytes that are used (R-209, RELIABILITY TH-15). Start with [`RootDirectory`] for a folder of root's files and
//! [`read_once`] for a single path.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, OFlag, OpenHow, ResolveFlag, openat, openat2};
use nix::sys::stat::Mode;

use crate::error::Error;

/// Permission bits that let others than the owner change a file.
const OTHERS_MAY_WRITE: u32 = 0o022;

/// What must hold for a file before its bytes count.
#[derive(Debug, Clone, Copy)]
pub struct FileRule {
    /// The uid that must own it, and alone may write it. `None` where the reader's own eyes are the authority:
    /// a file a person names on the command line.
    pub owner: Option<u32>,
    /// Bytes it may have.
    pub max_bytes: usize,
}

/// Reads the file at `path` once. No part of the path may be a symbolic link.
///
/// # Errors
/// [`Error::SymbolicLink`], [`Error::NotRegular`], [`Error::WrongOwner`], [`Error::WritableByOthers`],
/// [`Error::FileTooLarge`] or [`Error::Read`].
pub fn read_once(path: &Path, rule: FileRule) -> Result<Vec<u8>, Error> {
    let opened = match openat2(AT_FDCWD, path, strict_how()) {
        Err(Errno::ENOSYS) => open_step_by_step(path),
        answer => answer,
    };
    read_checked(opened.map_err(|errno| open_error(path, errno))?, path, rule)
}

fn file_flags() -> OFlag {
    // Without O_NONBLOCK a planted pipe would hold the caller until somebody writes to it.
    OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC
}

fn strict_how() -> OpenHow {
    OpenHow::new()
        .flags(file_flags())
        .resolve(ResolveFlag::RESOLVE_NO_SYMLINKS | ResolveFlag::RESOLVE_NO_MAGICLINKS)
}

/// The same promise without openat2 (Linux before 5.6): every directory is opened from the one before it.
fn open_step_by_step(path: &Path) -> nix::Result<OwnedFd> {
    let start = if path.is_absolute() { "/" } else { "." };
    let step = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut directory = openat(AT_FDCWD, start, step, Mode::empty())?;
    let mut names =
        path.components().filter(|part| !matches!(part, Component::RootDir | Component::CurDir)).peekable();
    while let Some(name) = names.next() {
        if names.peek().is_none() {
            return openat(&directory, name.as_os_str(), file_flags(), Mode::empty());
        }
        directory = openat(&directory, name.as_os_str(), step, Mode::empty())
            .map_err(|errno| if is_link(&directory, name) { Errno::ELOOP } else { errno })?;
    }
    Err(Errno::EISDIR)
}

/// O_DIRECTORY and O_NOFOLLOW together answer ENOTDIR for a link; the operator should hear of the link.
fn is_link(directory: &OwnedFd, name: Component<'_>) -> bool {
    let flags = nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW;
    nix::sys::stat::fstatat(directory, name.as_os_str(), flags)
        .is_ok_and(|stat| stat.st_mode & nix::libc::S_IFMT == nix::libc::S_IFLNK)
}

fn open_error(path: &Path, errno: Errno) -> Error {
    let path = path.to_owned();
    match errno {
        Errno::ELOOP => Error::SymbolicLink { path },
        // A socket, or a device without a driver.
        Errno::ENXIO => Error::NotRegular { path },
        _ => Error::Read { path, source: io::Error::from(errno) },
    }
}

fn read_checked(opened: OwnedFd, path: &Path, rule: FileRule) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Read { path: path.to_owned(), source };
    let file = File::from(opened);
    let facts = file.metadata().map_err(failed)?;
    if !facts.is_file() {
        return Err(Error::NotRegular { path: path.to_owned() });
    }
    if let Some(owner) = rule.owner {
        check_author(&facts, path, owner)?;
    }
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is too long, even while it grows.
    let cap = rule.max_bytes.saturating_add(1) as u64;
    file.take(cap).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() > rule.max_bytes {
        return Err(Error::FileTooLarge { path: path.to_owned(), limit: rule.max_bytes });
    }
    Ok(bytes)
}

fn check_author(facts: &Metadata, path: &Path, wanted: u32) -> Result<(), Error> {
    if facts.uid() != wanted {
        return Err(Error::WrongOwner { path: path.to_owned(), owner: facts.uid(), wanted });
    }
    if facts.mode() & OTHERS_MAY_WRITE != 0 {
        return Err(Error::WritableByOthers { path: path.to_owned(), mode: facts.mode() & 0o7777 });
    }
    Ok(())
}

/// An open directory that only its owner can change, so that no file in it can be swapped for another.
#[derive(Debug)]
pub struct RootDirectory {
    opened: OwnedFd,
    path: PathBuf,
    owner: u32,
}

impl RootDirectory {
    /// Opens `path`; `None` if there is no such directory.
    ///
    /// # Errors
    /// [`Error::SymbolicLink`], [`Error::WrongOwner`], [`Error::WritableByOthers`] or [`Error::Read`].
    pub fn open(path: &Path, owner: u32) -> Result<Option<Self>, Error> {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let opened = match openat(AT_FDCWD, path, flags, Mode::empty()) {
            Ok(opened) => opened,
            Err(Errno::ENOENT) => return Ok(None),
            Err(Errno::ENOTDIR) if path.is_symlink() => return Err(open_error(path, Errno::ELOOP)),
            Err(errno) => return Err(open_error(path, errno)),
        };
        let directory = File::from(opened);
        let facts = directory.metadata().map_err(|source| Error::Read { path: path.to_owned(), source })?;
        check_author(&facts, path, owner)?;
        Ok(Some(Self { opened: directory.into(), path: path.to_owned(), owner }))
    }

    /// Reads the file `name` in this directory once; `None` if there is none. `name` is one path component.
    ///
    /// # Errors
    /// Those of [`read_once`].
    pub fn read(&self, name: &str, max_bytes: usize) -> Result<Option<Vec<u8>>, Error> {
        let path = self.path.join(name);
        let single = Path::new(name).components().eq([Component::Normal(name.as_ref())]);
        if !single {
            return Err(open_error(&path, Errno::EINVAL));
        }
        match openat(self.opened.as_fd(), name, file_flags(), Mode::empty()) {
            Ok(opened) => {
                read_checked(opened, &path, FileRule { owner: Some(self.owner), max_bytes }).map(Some)
            }
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(open_error(&path, errno)),
        }
    }

    /// The names in this directory, sorted, without hidden ones.
    ///
    /// # Errors
    /// [`Error::TooManyFiles`] past `limit`, so that no choice of files decides who exists; [`Error::Read`].
    pub fn names(&self, limit: usize) -> Result<Vec<String>, Error> {
        let failed = |errno: Errno| open_error(&self.path, errno);
        let own =
            self.opened.try_clone().map_err(|source| Error::Read { path: self.path.clone(), source })?;
        let mut names = Vec::new();
        for entry in Dir::from_fd(own).map_err(failed)?.iter() {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') {
                continue;
            }
            if names.len() == limit {
                return Err(Error::TooManyFiles { path: self.path.clone(), limit });
            }
            names.push(name);
        }
        names.sort();
        Ok(names)
    }

    /// Where this directory was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{getuid, mkfifo};
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn mine(max_bytes: usize) -> FileRule {
        FileRule { owner: Some(getuid().as_raw()), max_bytes }
    }

    /// A real path, because a test machine's temporary directory may itself be reached through a link.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        (folder, path)
    }

    fn write(path: &Path, bytes: &[u8], mode: u32) {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_plain_file_of_the_right_owner_is_read_up_to_the_limit() {
        let (_keep, folder) = folder();
        let path = folder.join("f");
        write(&path, &[7; 100], 0o644);

        assert_eq!(read_once(&path, mine(100)).unwrap(), [7; 100]);
        assert!(matches!(read_once(&path, mine(99)), Err(Error::FileTooLarge { limit: 99, .. })));
    }

    #[test]
    fn the_walk_for_old_kernels_keeps_the_same_promise() {
        let (_keep, folder) = folder();
        fs::create_dir(folder.join("d")).unwrap();
        write(&folder.join("d/f"), b"x", 0o600);
        symlink("d", folder.join("l")).unwrap();
        symlink("f", folder.join("d/g")).unwrap();

        assert!(open_step_by_step(&folder.join("d/f")).is_ok());
        assert!(open_step_by_step(&folder.join("d/../d/./f")).is_ok());
        assert_eq!(open_step_by_step(&folder.join("l/f")).unwrap_err(), Errno::ELOOP);
        assert_eq!(open_step_by_step(&folder.join("d/g")).unwrap_err(), Errno::ELOOP);
        assert_eq!(open_step_by_step(&folder.join("none/f")).unwrap_err(), Errno::ENOENT);
        assert_eq!(open_step_by_step(Path::new("/")).unwrap_err(), Errno::EISDIR);
    }

    #[test]
    fn a_link_anywhere_in_the_path_is_refused() {
        let (_keep, folder) = folder();
        fs::create_dir(folder.join("d")).unwrap();
        write(&folder.join("d/f"), b"x", 0o600);
        symlink("d", folder.join("link")).unwrap();
        symlink("d/f", folder.join("file-link")).unwrap();

        for path in ["link/f", "file-link"] {
            let verdict = read_once(&folder.join(path), mine(10));
            assert!(matches!(verdict, Err(Error::SymbolicLink { .. })), "{path}: {verdict:?}");
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_without_waiting() {
        let (_keep, folder) = folder();
        mkfifo(&folder.join("pipe"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        fs::create_dir(folder.join("d")).unwrap();

        for name in ["pipe", "socket", "d"] {
            let verdict = read_once(&folder.join(name), mine(10));
            assert!(matches!(verdict, Err(Error::NotRegular { .. })), "{name}: {verdict:?}");
        }
    }

    #[test]
    fn a_file_of_another_owner_or_open_to_others_is_refused() {
        let (_keep, folder) = folder();
        let path = folder.join("f");
        write(&path, b"x", 0o644);
        let other = FileRule { owner: Some(getuid().as_raw() + 1), max_bytes: 10 };
        assert!(matches!(read_once(&path, other), Err(Error::WrongOwner { .. })));

        for mode in [0o664, 0o646, 0o666] {
            write(&path, b"x", mode);
            assert!(
                matches!(read_once(&path, mine(10)), Err(Error::WritableByOthers { mode: m, .. }) if m == mode)
            );
        }
        assert!(read_once(&path, FileRule { owner: None, max_bytes: 10 }).is_ok());
    }

    #[test]
    fn a_directory_that_others_may_change_is_refused() {
        let (_keep, folder) = folder();
        let owner = getuid().as_raw();
        let place = folder.join("keys");
        fs::create_dir(&place).unwrap();
        symlink("keys", folder.join("link")).unwrap();

        assert!(RootDirectory::open(&folder.join("none"), owner).unwrap().is_none());
        assert!(matches!(RootDirectory::open(&folder.join("link"), owner), Err(Error::SymbolicLink { .. })));
        assert!(matches!(RootDirectory::open(&place, owner + 1), Err(Error::WrongOwner { .. })));
        fs::set_permissions(&place, Permissions::from_mode(0o1777)).unwrap();
        assert!(matches!(RootDirectory::open(&place, owner), Err(Error::WritableByOthers { .. })));
    }

    #[test]
    fn a_directory_reads_only_names_of_its_own() {
        let (_keep, folder) = folder();
        write(&folder.join("a.toml"), b"x", 0o600);
        write(&folder.join(".hidden"), b"x", 0o600);
        let place = RootDirectory::open(&folder, getuid().as_raw()).unwrap().unwrap();

        assert_eq!(place.read("a.toml", 10).unwrap().as_deref(), Some(&b"x"[..]));
        assert_eq!(place.read("b.toml", 10).unwrap(), None);
        for name in ["../a", "..", ".", "", "a/b", "/etc/passwd", "a.toml/"] {
            assert!(place.read(name, 10).is_err(), "{name}");
        }
        assert_eq!(place.names(1).unwrap(), ["a.toml"]);
        assert!(matches!(place.names(0), Err(Error::TooManyFiles { limit: 0, .. })));
    }
}
