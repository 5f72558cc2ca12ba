//! Where the answer goes when its way is blocked, and what a hostile environment changes: nothing.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};

use super::{pcp_cli, run, told};

fn shell(script: &str) -> (i32, String, String) {
    let program = env!("CARGO_BIN_EXE_pcp-cli");
    told(&Command::new("sh").args(["-c", script, "sh", program]).env_clear().output().unwrap())
}

#[test]
fn an_answer_that_cannot_be_written_is_exit_code_1_and_one_line() {
    let closed = "pcp-cli: cannot write the answer: standard output is closed\n";
    let full = "pcp-cli: cannot write the answer: No space left on device (os error 28)\n";
    let reading = "pcp-cli: cannot write the answer: Bad file descriptor (os error 9)\n";
    let table = [
        ("\"$1\" version >&-", closed),
        ("\"$1\" status x >&-", closed),
        ("\"$1\" pnig >&-", closed),
        ("\"$1\" >&-", closed),
        ("\"$1\" wire --list >/dev/full", full),
        ("\"$1\" --format table version >/dev/full", full),
        ("\"$1\" pnig >/dev/full", full),
        ("\"$1\" version 1</dev/null", reading),
    ];
    for (script, line) in table {
        assert_eq!(shell(script), (1, String::new(), line.to_owned()), "{script}");
    }
}

#[test]
fn nothing_is_asked_of_a_daemon_when_the_answer_could_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pcpd.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    listener.set_nonblocking(true).unwrap();
    let script = format!("\"$1\" exec app.x.y a=1 --socket {} >&-", socket.display());
    assert_eq!(shell(&script).0, 1);
    assert!(listener.accept().is_err(), "it connected");
}

#[test]
fn a_reader_that_went_away_is_exit_code_1_without_a_word() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = pcp_cli().args(["wire", "--list"]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), output.status.signal()), (Some(1), None));
    assert_eq!(output.stderr, b"");
}

#[test]
fn the_other_descriptors_may_be_closed() {
    let (code, out, _) = shell("\"$1\" version <&- 2>&-");
    assert_eq!(code, 0);
    assert!(out.starts_with("{\"ok\":true"), "{out}");
    assert_eq!(shell("\"$1\" --format table pnig 2>&-"), (2, String::new(), String::new()));
    assert_eq!(shell("\"$1\" version >&- 2>&- <&-").0, 1);
    assert_eq!(shell("\"$1\" exec app.x.y --params - <&-").0, 2);
}

#[test]
fn a_process_without_even_a_name_prints_help() {
    // Linux gives a process that is started with no words at all one empty word.
    let output = Command::new("bash")
        .args(["-c", "exec -a '' \"$0\"", env!("CARGO_BIN_EXE_pcp-cli")])
        .output()
        .expect("bash runs; it can start a program without a name");
    let (code, out, err) = told(&output);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("Usage: pcp-cli"), "{out}");
}

#[test]
fn rubbish_in_the_environment_changes_nothing() {
    let rubbish = OsStr::from_bytes(b"\xff\xfe\x1b[31m");
    for name in ["LANG", "LC_ALL", "TERM", "TZ", "COLUMNS", "HOME", "CLICOLOR", "RUST_BACKTRACE"] {
        let output = pcp_cli().env(name, rubbish).args(["classify", "app.x.delete"]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}");
    }
    for name in ["PCP_TIMEOUT", "PCP_FORMAT"] {
        let output = pcp_cli().env(name, rubbish).arg("version").output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(!output.stdout.contains(&0x1b), "{name}");
    }
}

#[test]
fn words_that_are_no_text_are_refused_and_never_crash() {
    for word in [&b"\xff"[..], b"--\xff", b"--format=\xff", b"-\xc3", b"\x1b]0;x\x07"] {
        let output = pcp_cli().arg(OsStr::from_bytes(word)).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{word:?}");
        assert!(output.stdout.starts_with(b"{\"ok\":false"), "{word:?}");
        assert!(!output.stdout.contains(&0x1b));
    }
}

#[test]
fn colour_comes_when_it_is_asked_for_and_never_into_an_envelope() {
    let coloured = |args: &[&str], variables: &[(&str, &str)]| {
        let args = [&["classify", "app.x.delete"], args].concat();
        let output = pcp_cli().args(args).envs(variables.iter().copied()).output().unwrap();
        output.stdout.contains(&0x1b)
    };
    assert!(!coloured(&["--format", "table"], &[]));
    assert!(coloured(&["--format", "table", "--color", "always"], &[]));
    assert!(coloured(&["--format", "table"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["--format", "table"], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")]));
    assert!(coloured(&["--format", "table", "--color", "always"], &[("NO_COLOR", "1")]));
    assert!(!coloured(&["--format", "table", "--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["--json", "--color", "always"], &[]));
}

#[test]
fn on_a_terminal_the_answer_is_a_page_and_an_error_three_lines() {
    let typed = |command: &str| {
        let program = env!("CARGO_BIN_EXE_pcp-cli");
        let output = Command::new("script")
            .args(["-qec", &format!("{program} {command}"), "/dev/null"])
            .env("TERM", "dumb")
            .stdin(File::open("/dev/null").unwrap())
            .output()
            .expect("script runs; it is in util-linux");
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap().replace('\r', ""))
    };
    let (code, text) = typed("capability parse app.mail.search");
    assert_eq!((code, text.lines().next()), (0, Some("  Canonical: app.mail.search")));
    let (code, text) = typed("ping --socket /nonexistent.sock");
    assert_eq!(code, 3);
    assert!(text.starts_with("error: cannot connect to /nonexistent.sock: "), "{text}");
    assert!(text.contains("\nhint: look at `pcp-cli doctor`"), "{text}");
    let (code, text) = typed("status x");
    assert_eq!((code, text.starts_with("{\"ok\":false,\"error\":{\"code\":\"protocol_error\"")), (3, true));
}

#[test]
fn an_interrupted_program_ends_by_the_signal_that_a_shell_calls_130() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("pcpd.sock");
    // Accepts by its queue and never answers.
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let uid = nix::unistd::getuid().to_string();
    // Whoever runs the tests in the background may have SIGINT ignored, and so would its children.
    let mut command = std::process::Command::new("env");
    command.arg("--default-signal=INT").arg(env!("CARGO_BIN_EXE_pcp-cli"));
    command.args(["ping", "--expect-uid", &uid, "--socket"]).arg(&socket);
    let mut child = command.process_group(0).stdout(Stdio::null()).spawn().unwrap();
    let (connection, _) = listener.accept().unwrap();
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    drop(connection);
}

#[test]
fn standard_output_that_is_the_null_device_is_no_closed_one() {
    let status = pcp_cli().arg("version").stdout(Stdio::null()).status().unwrap();
    assert_eq!(status.code(), Some(0));
    let both_ways = File::options().read(true).write(true).open("/dev/null").unwrap();
    assert_eq!(pcp_cli().arg("version").stdout(both_ways).status().unwrap().code(), Some(0));
    assert_eq!(run(&["version"]).0, 0);
}
