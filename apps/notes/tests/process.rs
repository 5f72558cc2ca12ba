//! The binary: ready line, signals, exit codes, and what a second start finds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifest.json");

fn command(space: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pcp-notes"));
    command.args(["--manifest", MANIFEST, "--data"]).arg(space.join("data"));
    command.arg("--socket-dir").arg(space);
    command.args(["--daemon-uid", &nix::unistd::getuid().to_string()]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts the application and waits until it can be asked.
fn start(space: &Path) -> Child {
    let mut child = command(space).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let socket = space.join("org.portal.notes.sock");
    assert_eq!(line, format!("pcp-notes: ready on {}\n", socket.display()));
    assert!(socket.exists());
    child
}

fn end(mut child: Child, signal: Signal) -> Option<i32> {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
    child.wait().unwrap().code()
}

#[test]
fn a_signal_to_end_removes_the_socket_and_exits_with_0() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let space = tempfile::tempdir().unwrap();
        let child = start(space.path());
        assert_eq!(end(child, signal), Some(0));
        assert!(!space.path().join("org.portal.notes.sock").exists());
    }
}

#[test]
fn a_killed_application_starts_again_over_its_own_socket_and_data() {
    let space = tempfile::tempdir().unwrap();
    assert_eq!(end(start(space.path()), Signal::SIGKILL), None);
    assert!(space.path().join("org.portal.notes.sock").exists());

    let child = start(space.path());

    assert_eq!(end(child, Signal::SIGTERM), Some(0));
}

#[test]
fn what_keeps_it_from_starting_is_one_line_with_the_next_step() {
    let space = tempfile::tempdir().unwrap();
    let running = start(space.path());
    let table = [
        (vec!["--nonsense"], 2, "unknown argument \"--nonsense\"; see pcp-notes --help"),
        (vec!["--manifest", "/nonexistent"], 1, "install it, or pass --manifest"),
        (vec![], 1, "in use by another pcp-notes"),
    ];
    for (more, code, text) in table {
        let mut child = command(space.path()).args(more).spawn().unwrap();
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{error}");
        assert!(error.starts_with("pcp-notes: ") && error.contains(text), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    assert_eq!(end(running, Signal::SIGTERM), Some(0));
}
