//! What the scripts of `completion` ask: ids, soon, or nothing at all.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use pcp_stream::StreamMessageType as Message;

use super::daemon::Daemon;
use super::{pcp_cli, told};

const APPS: &str = r#"{"type":"registry_response","what":"apps","rows":[{"id":"org.x","capabilities":["app.org.x.b","app.org.x.a"]},{"id":"org.y","capabilities":["app.org.y.a"]}]}"#;
const SYSTEM: &str =
    r#"{"type":"registry_response","what":"capabilities","rows":[{"id":"system.power.off"}]}"#;

/// Answers questions about applications and about capabilities, one connection.
fn registry() -> Daemon {
    Daemon::serve(|_, asked| {
        let rows = if asked.contains(r#""what":"apps""#) { APPS } else { SYSTEM };
        vec![(Message::RegistryResponse, rows.to_owned())]
    })
}

#[test]
fn the_ids_that_begin_as_the_word_does_are_printed_a_line_each() {
    let uid = nix::unistd::getuid().to_string();
    let table = [
        ("show", "app.org.x.", "app.org.x.a\napp.org.x.b\n"),
        ("exec", "app.org.y", "app.org.y.a\n"),
        ("show", "sys", "system.power.off\n"),
        ("apps", "org", "org.x\norg.y\n"),
    ];
    for (verb, word, ids) in table {
        let daemon = registry();
        let socket = daemon.socket();
        let mut command = pcp_cli();
        command.args(["__complete", "--", "--expect-uid", &uid, "--socket"]).arg(socket).args([verb, word]);
        let (code, out, err) = told(&command.output().unwrap());
        assert_eq!((code, out.as_str(), err.as_str()), (0, ids, ""), "{verb} {word}");
    }
}

#[test]
fn a_daemon_that_does_not_answer_is_waited_for_no_longer_than_nobody_notices() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pcpd.sock");
    // Connections wait in its queue for ever.
    let _listener = UnixListener::bind(&socket).unwrap();
    let uid = nix::unistd::getuid().to_string();
    let begun = Instant::now();
    let mut command = pcp_cli();
    command.args(["__complete", "--expect-uid", &uid, "--", "show", "app."]).env("PCP_SOCKET", &socket);
    assert_eq!(told(&command.output().unwrap()), (0, String::new(), String::new()));
    // A tenth of a second, and what a loaded machine takes to start a process.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[test]
fn whatever_goes_wrong_is_silent() {
    let nobody = ["__complete", "--", "--socket", "/nonexistent.sock", "show", "app."];
    let words: [&[&str]; 6] = [
        &nobody,
        &["__complete"],
        &["__complete", "--"],
        &["__complete", "--", "pnig", "x"],
        &["__complete", "--", "show", "--socket"],
        &["__complete", "--", "--expect-uid", "none", "show", ""],
    ];
    for words in words {
        let mut command = pcp_cli();
        command.args(words).env("PCP_SOCKET", "/nonexistent.sock");
        assert_eq!(told(&command.output().unwrap()), (0, String::new(), String::new()), "{words:?}");
    }
    // What is no text is refused like everywhere; the scripts take nothing from a failure.
    let output = pcp_cli().args(["__complete", "--"]).arg(OsStr::from_bytes(b"\xff")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
