//! Which process is at the other end of a socket, as the kernel says it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::Pid;

use crate::error::ProtocolError;

/// Identity of a peer: user and group from SO_PEERCRED, the process itself pinned by SO_PEERPIDFD.
///
/// The kernel noted uid, gid and pid when the connection was made (for a listener: when it began to
/// listen); nothing the peer sends can change them. A process descriptor keeps meaning the same process
/// after its number was given to another one, so that [`PeerIdentity::is_alive`] cannot be fooled by reuse.
///
/// Kernels before 6.5 have no SO_PEERPIDFD. There `pidfd` is `None`, uid and gid are as certain as ever, but
/// the process is known by its number only: it may have ended and the number may mean another one.
#[derive(Debug)]
pub struct PeerIdentity {
    /// User id of the process that connected or listens.
    pub uid: u32,
    /// Its group id.
    pub gid: u32,
    /// Its process id, for display; decide by [`Self::uid`] and [`Self::is_alive`].
    pub pid: i32,
    pidfd: Option<OwnedFd>,
}

impl PeerIdentity {
    /// Asks the kernel who is at the other end of `socket`.
    pub fn of(socket: impl AsFd) -> Result<Self, ProtocolError> {
        let credentials =
            getsockopt(&socket, sockopt::PeerCredentials).map_err(|errno| ProtocolError::Io(errno.into()))?;
        let pidfd = pinned(getsockopt(&socket, sockopt::PeerPidfd))?;
        Ok(Self { uid: credentials.uid(), gid: credentials.gid(), pid: credentials.pid(), pidfd })
    }

    /// Whether the process is pinned, that is, whether the kernel knows SO_PEERPIDFD.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.pidfd.is_some()
    }

    /// Whether the process that was identified still runs.
    ///
    /// Where it is not pinned: whether any process of that number runs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        match &self.pidfd {
            Some(pidfd) => !has_ended(pidfd.as_fd()),
            None => !matches!(nix::sys::signal::kill(Pid::from_raw(self.pid), None), Err(Errno::ESRCH)),
        }
    }
}

/// Tells a kernel that cannot pin from a peer that is gone already.
fn pinned(answer: nix::Result<OwnedFd>) -> Result<Option<OwnedFd>, ProtocolError> {
    match answer {
        Ok(pidfd) => Ok(Some(pidfd)),
        Err(Errno::ENOPROTOOPT) => Ok(None),
        // The process was reaped between its connect and our question: 6.5 to 6.15 say EINVAL, later ones ESRCH.
        Err(Errno::EINVAL | Errno::ESRCH | Errno::ENODATA) => Err(ProtocolError::PeerGone),
        Err(errno) => Err(ProtocolError::Io(errno.into())),
    }
}

/// A process descriptor becomes readable when its process ends.
fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut fds = [PollFd::new(pidfd, PollFlags::POLLIN)];
    matches!(nix::poll::poll(&mut fds, PollTimeout::ZERO), Ok(ready) if ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_peer_in_this_process_is_this_process() {
        let (here, _there) = UnixStream::pair().unwrap();

        let peer = PeerIdentity::of(&here).unwrap();

        assert_eq!(peer.uid, nix::unistd::getuid().as_raw());
        assert_eq!(peer.gid, nix::unistd::getgid().as_raw());
        assert_eq!(peer.pid, nix::unistd::getpid().as_raw());
        assert!(peer.is_alive());
    }

    #[test]
    fn a_client_sees_the_listener() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let _listener = UnixListener::bind(&path).unwrap();

        let peer = PeerIdentity::of(UnixStream::connect(&path).unwrap()).unwrap();

        assert_eq!((peer.uid, peer.pid), (nix::unistd::getuid().as_raw(), nix::unistd::getpid().as_raw()));
    }

    #[test]
    fn a_peer_that_ended_is_not_alive_even_before_its_number_is_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let script =
            "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);sys.stdin.read()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("python3 runs; install it (ci/setup does)");
        let (mut connection, _) = listener.accept().unwrap();
        let peer = PeerIdentity::of(&connection).unwrap();
        assert_eq!(u32::try_from(peer.pid).unwrap(), child.id());
        assert!(peer.is_alive());

        drop(child.stdin.take());
        let _ = connection.read(&mut [0]).unwrap();
        child.wait().unwrap();

        assert!(!peer.is_alive());
    }

    #[test]
    fn a_kernel_without_peer_pidfd_leaves_the_peer_unpinned_and_a_reaped_peer_is_refused() {
        assert!(pinned(Err(Errno::ENOPROTOOPT)).unwrap().is_none());
        for errno in [Errno::EINVAL, Errno::ESRCH] {
            assert!(matches!(pinned(Err(errno)), Err(ProtocolError::PeerGone)));
        }
        let peer = PeerIdentity { uid: 0, gid: 0, pid: nix::unistd::getpid().as_raw(), pidfd: None };
        assert!(!peer.is_pinned());
        assert!(peer.is_alive());
    }
}
