//! A process without a file left (T-12). Alone in its program: the limit is the whole process's.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pcp_stream::{ProtocolError, SocketAccess, StreamServer};
use tokio::time::timeout;

#[tokio::test]
async fn running_out_of_files_is_told_once_and_over_when_there_are_some() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();
    let client = UnixStream::connect(&path).unwrap();
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    // Every number below the lowest free one is taken.
    let taken = std::fs::File::open("/dev/null").unwrap();
    let used = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&taken)).unwrap() + 1;
    setrlimit(Resource::RLIMIT_NOFILE, used, hard).unwrap();

    let told = server.accept().await.unwrap_err();
    assert!(matches!(&told, ProtocolError::Socket { .. }), "{told}");
    assert!(told.to_string().contains("accept on") && told.to_string().contains("files"), "{told}");

    let waiting = timeout(Duration::from_millis(300), server.accept()).await;
    assert!(waiting.is_err(), "what was told is not told again: {waiting:?}");

    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    let accepted = timeout(Duration::from_secs(5), server.accept()).await.unwrap().unwrap();
    assert_eq!(accepted.peer.uid, nix::unistd::getuid().as_raw());
    drop((client, taken));
}
