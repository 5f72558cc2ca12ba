//! A listening socket that nobody else could have planted, reached or replaced.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, socket};
use nix::sys::stat::{FchmodatFlags, Mode, fchmod, fchmodat};
use nix::unistd::{Gid, fchownat};
use tokio::net::UnixListener;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::connection::Connection;
use crate::error::ProtocolError;

/// Connections that may wait to be accepted; the kernel refuses more, which costs the daemon nothing.
pub const ACCEPT_BACKLOG: i32 = 128;

/// Pause before the next accept while the system has no file or memory for a connection: long enough to cost nothing,
/// short enough that nobody notices when there is one again.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);
/// How often at most [`StreamServer::accept`] tells of it; a log is no place for each refused connection.
const EXHAUSTED_TOLD_EVERY: Duration = Duration::from_secs(10);

/// Write bits of group and others in a mode.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// The sticky bit: in such a directory only the owner of a file replaces it.
const STICKY: u32 = 0o1000;

/// Who may connect to a socket, once it exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketAccess {
    /// Its owner: mode 0600.
    Owner,
    /// Its owner and the group it got from its setgid directory: mode 0660.
    DirectoryGroup,
    /// Its owner and this group: mode 0660.
    Group(u32),
}

/// A bound socket. The name is removed when this is dropped, if it is still this socket's.
#[derive(Debug)]
pub struct StreamServer {
    listener: UnixListener,
    path: PathBuf,
    inode: (u64, u64),
    /// When it was last told that no connection can be accepted.
    told: Mutex<Option<Instant>>,
}

impl StreamServer {
    /// Binds `path`, with mode 0600 from the first instant, then opens it as `access` says.
    ///
    /// A name that is taken is left alone and reported, unless it is a socket of this user at which nobody
    /// answers.
    pub fn bind(path: &Path, access: SocketAccess) -> Result<Self, ProtocolError> {
        check_directory(path)?;
        clear_stale(path)?;
        let listener = bind_closed(path)?;
        let meta =
            fs::symlink_metadata(path).map_err(|error| ProtocolError::socket("look at", path, error))?;
        let listener = UnixListener::from_std(StdUnixListener::from(listener))?;
        // From here on dropping the server removes the name again.
        let inode = (meta.dev(), meta.ino());
        let server = Self { listener, path: path.to_owned(), inode, told: Mutex::default() };
        if meta.permissions().mode() & 0o177 != 0 {
            return Err(ProtocolError::socket("keep closed", path, std::io::Error::from(Errno::EPERM)));
        }
        open_to(path, access)?;
        Ok(server)
    }

    /// The socket's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next connection and identifies its peer. May be dropped out of a `select!`.
    ///
    /// One connection a turn: whoever connects in a loop does not keep those from being served who are connected
    /// already, and connections do not pile up faster than they are looked after (TH-06). A peer that is gone by
    /// then is nobody's fault here and passed over; out of files or memory is told once and then waited out (T-12).
    pub async fn accept(&self) -> Result<Connection, ProtocolError> {
        loop {
            yield_now().await;
            match self.accept_one().await {
                Err(ProtocolError::PeerGone) => {}
                Err(error) if is_exhausted(&error) && !self.is_news() => sleep(EXHAUSTED_PAUSE).await,
                answer => return answer,
            }
        }
    }

    async fn accept_one(&self) -> Result<Connection, ProtocolError> {
        let (stream, _) = self
            .listener
            .accept()
            .await
            .map_err(|error| ProtocolError::socket("accept on", &self.path, error))?;
        Connection::over(stream)
    }

    /// Whether exhaustion has not been told for a while; notes that it is told now.
    fn is_news(&self) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let news = told.is_none_or(|told| told.elapsed() >= EXHAUSTED_TOLD_EVERY);
        if news {
            *told = Some(Instant::now());
        }
        news
    }
}

/// Whether the system has no file or no memory left for a connection: none can be accepted until others end.
fn is_exhausted(error: &ProtocolError) -> bool {
    let (ProtocolError::Socket { source, .. } | ProtocolError::Io(source)) = error else { return false };
    let errno = source.raw_os_error().map(Errno::from_raw);
    matches!(errno, Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM))
}

impl Drop for StreamServer {
    fn drop(&mut self) {
        // Another process may have taken the name since; its socket is not ours to remove.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The directory has to be ours or root's, and others may write to it only where they cannot replace our files.
fn check_directory(path: &Path) -> Result<(), ProtocolError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let meta =
        fs::symlink_metadata(parent).map_err(|error| ProtocolError::socket("look at", parent, error))?;
    let unsafe_directory = |problem| Err(ProtocolError::UnsafeDirectory { path: parent.to_owned(), problem });
    if !meta.is_dir() {
        return unsafe_directory("is no directory");
    }
    if meta.uid() != 0 && meta.uid() != own_uid() {
        return unsafe_directory("belongs to another user");
    }
    if meta.mode() & WRITABLE_BY_OTHERS != 0 && meta.mode() & STICKY == 0 {
        return unsafe_directory("is writable by others and not sticky");
    }
    Ok(())
}

/// Makes room at `path`, removing nothing but a dead socket of our own.
fn clear_stale(path: &Path) -> Result<(), ProtocolError> {
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(ProtocolError::socket("look at", path, error)),
    };
    if let Some(kind) = not_a_socket(&meta) {
        return Err(ProtocolError::Planted { path: path.to_owned(), kind });
    }
    if meta.uid() != own_uid() {
        return Err(ProtocolError::NotOurs { path: path.to_owned(), owner: meta.uid() });
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| ProtocolError::socket("remove the stale", path, error))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // It answers, or it would if its queue had room.
        _ => Err(ProtocolError::AlreadyServed { path: path.to_owned() }),
    }
}

fn not_a_socket(meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    if kind.is_socket() {
        None
    } else if kind.is_symlink() {
        Some("symbolic link")
    } else if kind.is_dir() {
        Some("directory")
    } else {
        Some("file")
    }
}

/// Binds and listens with mode 0600.
///
/// The mode of a socket file is that of the socket when it is bound. Setting it beforehand leaves no window
/// and, unlike the process-wide umask, does not reach into files other threads are creating meanwhile.
fn bind_closed(path: &Path) -> Result<OwnedFd, ProtocolError> {
    let failed = |what| move |errno: Errno| ProtocolError::socket(what, path, errno);
    let address = UnixAddr::new(path).map_err(failed("name"))?;
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None).map_err(failed("make"))?;
    fchmod(&socket, Mode::S_IRUSR | Mode::S_IWUSR).map_err(failed("close"))?;
    nix::sys::socket::bind(socket.as_raw_fd(), &address).map_err(failed("bind"))?;
    let backlog = Backlog::new(ACCEPT_BACKLOG).map_err(failed("listen on"))?;
    nix::sys::socket::listen(&socket, backlog).map_err(failed("listen on"))?;
    Ok(socket)
}

/// Widens a socket that is closed to everybody but its owner. The group first: the mode speaks of it.
fn open_to(path: &Path, access: SocketAccess) -> Result<(), ProtocolError> {
    let failed = |errno: Errno| ProtocolError::socket("open to its group", path, errno);
    match access {
        SocketAccess::Owner => return Ok(()),
        SocketAccess::DirectoryGroup => {}
        SocketAccess::Group(gid) => {
            let group = Some(Gid::from_raw(gid));
            fchownat(AT_FDCWD, path, None, group, AtFlags::AT_SYMLINK_NOFOLLOW).map_err(failed)?;
        }
    }
    let mode = Mode::S_IRUSR | Mode::S_IWUSR | Mode::S_IRGRP | Mode::S_IWGRP;
    fchmodat(AT_FDCWD, path, mode, FchmodatFlags::FollowSymlink).map_err(failed)
}

fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}
