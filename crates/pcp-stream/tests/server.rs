//! Binding a socket: modes, planted names, strangers' sockets, stale ones; and who listens.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use pcp_stream::{Connection, ProtocolError, SocketAccess, StreamClient, StreamMessageType, StreamServer};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

#[tokio::test]
async fn a_socket_has_the_mode_it_was_asked_for_and_goes_with_its_server() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    let table = [
        (SocketAccess::Owner, 0o600),
        (SocketAccess::DirectoryGroup, 0o660),
        (SocketAccess::Group(nix::unistd::getegid().as_raw()), 0o660),
    ];
    for (access, wanted) in table {
        let server = StreamServer::bind(&path, access).unwrap();
        assert_eq!(mode(&path), wanted, "{access:?}");
        drop(server);
        assert!(!path.exists());
    }
}

#[tokio::test]
async fn a_planted_link_file_or_directory_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    let link = dir.path().join("link.sock");
    symlink(&target, &link).unwrap();
    let file = dir.path().join("file.sock");
    fs::write(&file, "").unwrap();
    let folder = dir.path().join("folder.sock");
    fs::create_dir(&folder).unwrap();
    for (path, what) in [(link, "symbolic link"), (file, "file"), (folder, "directory")] {
        let refused = StreamServer::bind(&path, SocketAccess::Owner).unwrap_err();
        assert!(matches!(refused, ProtocolError::Planted { kind, .. } if kind == what), "{refused}");
        assert!(fs::symlink_metadata(&path).is_ok());
    }
    assert!(!target.exists());
}

#[tokio::test]
async fn a_stale_socket_of_ours_is_replaced_and_a_served_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());

    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();

    let refused = StreamServer::bind(&path, SocketAccess::Owner).unwrap_err();
    assert!(matches!(refused, ProtocolError::AlreadyServed { .. }), "{refused}");
    assert!(path.exists());
    drop(server);
}

#[tokio::test]
async fn the_name_of_a_successor_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();
    fs::remove_file(&path).unwrap();
    let _successor = UnixListener::bind(&path).unwrap();

    drop(server);

    assert!(path.exists());
}

#[tokio::test]
async fn a_directory_in_which_others_could_replace_the_socket_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let table = [(0o777, false), (0o770, false), (0o1777, true), (0o3771, true), (0o700, true)];
    for (mode, accepted) in table {
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        let bound = StreamServer::bind(&path, SocketAccess::Owner);
        match bound {
            Ok(_) => assert!(accepted, "mode {mode:o} was accepted"),
            Err(ProtocolError::UnsafeDirectory { .. }) => assert!(!accepted, "mode {mode:o} was refused"),
            Err(other) => panic!("mode {mode:o}: {other}"),
        }
    }
}

/// Only root can make another user's files; elsewhere there is nothing to look at.
#[tokio::test]
async fn another_users_socket_is_not_removed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    drop(UnixListener::bind(&path).unwrap());
    let stranger = 65_534;
    if std::os::unix::fs::chown(&path, Some(stranger), None).is_err() {
        return;
    }

    let refused = StreamServer::bind(&path, SocketAccess::Owner).unwrap_err();

    assert!(matches!(refused, ProtocolError::NotOurs { owner, .. } if owner == stranger), "{refused}");
    assert_eq!(fs::symlink_metadata(&path).unwrap().uid(), stranger);
}

#[tokio::test]
async fn a_client_that_finds_another_listener_sends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();

    let blocking = StreamClient::connect(&path, own_uid() + 1).unwrap_err();
    let asynchronous = Connection::connect(&path, own_uid() + 1).await.unwrap_err();

    for refused in [blocking, asynchronous] {
        assert!(matches!(refused, ProtocolError::WrongListener { .. }), "{refused}");
    }
    for _ in 0..2 {
        let mut accepted = server.accept().await.unwrap();
        assert!(accepted.reader.next().await.unwrap().is_none(), "a byte was sent");
    }
}

#[tokio::test]
async fn a_blocking_client_and_an_asynchronous_server_understand_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();
    let asking = tokio::task::spawn_blocking(move || {
        let second = Duration::from_secs(5);
        let mut client = StreamClient::connect(&path, own_uid()).unwrap();
        let payload = vec![b'q'; 300_000];
        client
            .send::<ProtocolError>(StreamMessageType::RegistryQuery, second, |out| {
                out.extend_from_slice(&payload);
                Ok(())
            })
            .unwrap();
        let reply = client.receive(second).unwrap();
        assert_eq!((reply.message_type, reply.payload.len()), (StreamMessageType::RegistryResponse, 300_001));
        let ended = client.receive(second).unwrap_err();
        assert!(matches!(ended, ProtocolError::Closed), "{ended}");
    });

    let mut connection = server.accept().await.unwrap();
    assert_eq!(connection.peer.uid, own_uid());
    let mut reply = connection.reader.next().await.unwrap().unwrap().payload.to_vec();
    reply.push(b'!');
    connection.writer.send(StreamMessageType::RegistryResponse, &reply).await.unwrap();
    drop(connection);
    asking.await.unwrap();
}

#[test]
fn a_client_gives_up_on_a_listener_that_says_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mute.sock");
    let _listener = UnixListener::bind(&path).unwrap();
    let mut client = StreamClient::connect(&path, own_uid()).unwrap();

    let refused = client.receive(Duration::from_millis(20)).unwrap_err();

    assert!(matches!(refused, ProtocolError::Timeout { limit_ms: 20 }), "{refused}");
}

#[tokio::test]
async fn connections_are_accepted_one_a_turn() {
    const CONNECTIONS: usize = 50;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();
    let _clients: Vec<UnixStream> = (0..CONNECTIONS).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let turns = std::cell::Cell::new(0);
    let others = async {
        loop {
            tokio::task::yield_now().await;
            turns.set(turns.get() + 1);
        }
    };
    let accepting = async {
        for _ in 0..CONNECTIONS {
            server.accept().await.unwrap();
        }
        assert!(turns.get() >= CONNECTIONS - 1, "{CONNECTIONS} in {} turns of somebody else", turns.get());
    };

    tokio::select! {
        () = accepting => {}
        () = others => unreachable!(),
    }
}

#[tokio::test]
async fn a_peer_that_is_gone_before_it_is_accepted_is_passed_over() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pcpd.sock");
    let server = StreamServer::bind(&path, SocketAccess::Owner).unwrap();
    let script = "import socket,sys;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1])";
    for _ in 0..3 {
        // It connects, ends and is reaped: nobody can say any more which process it was.
        let status = std::process::Command::new("python3").args(["-c", script]).arg(&path).status().unwrap();
        assert!(status.success());
    }
    let honest = UnixStream::connect(&path).unwrap();

    let mut accepted = server.accept().await.unwrap();
    // Where the kernel cannot pin, or pins the dead, the three come first and have said nothing.
    while i32::try_from(std::process::id()).unwrap() != accepted.peer.pid {
        accepted = server.accept().await.unwrap();
    }
    drop(honest);
    assert!(accepted.reader.next().await.unwrap().is_none());
}
