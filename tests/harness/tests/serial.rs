//! The console against a real shell behind a real terminal: two pseudo-terminals with a cable between them, one the
//! port that is opened, one the terminal that the shell sits at.

#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot do")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::pty::{OpenptyResult, openpty};
use pcp_harness::target::serial::{self, COPY_BYTES, ConsoleShell, SerialAddress};
use pcp_harness::target::{Settings, Target};
use pcp_harness::{Device, Error, Need, Shell as _};

const SOON: Duration = Duration::from_secs(30);
/// What a device's console does before a shell is there: init asks for Enter.
const ASK_FIRST: &str = "printf 'Please press Enter to activate this console. '; read key; exec /bin/sh -i";

/// A device on a cable. Dropping it pulls the plug.
struct Bench {
    port: PathBuf,
    /// Keeps the port's terminal open between two users, as a real port is.
    _port: OwnedFd,
    device: Child,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = self.device.kill();
        let _ = self.device.wait();
    }
}

fn copy(mut from: File, mut to: File) {
    thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut chunk) {
            if to.write_all(&chunk[..count]).is_err() {
                break;
            }
        }
    });
}

fn bench(script: &str) -> Bench {
    let OpenptyResult { master: cable, slave: port } = openpty(None, None).unwrap();
    let OpenptyResult { master: plug, slave: terminal } = openpty(None, None).unwrap();
    let path = nix::unistd::ttyname(&port).unwrap();
    let stdio = || Stdio::from(terminal.try_clone().unwrap());
    // A console's shell has every signal at its default, whoever runs the tests.
    let device = Command::new("env")
        .args(["--default-signal", "setsid", "--ctty", "/bin/sh", "-c", script])
        .env("PS1", "# ")
        .env_remove("ENV")
        .stdin(stdio())
        .stdout(stdio())
        .stderr(stdio())
        .spawn()
        .unwrap();
    copy(File::from(cable.try_clone().unwrap()), File::from(plug.try_clone().unwrap()));
    copy(File::from(plug), File::from(cable));
    Bench { port: path, _port: port, device }
}

impl Bench {
    fn address(&self) -> SerialAddress {
        SerialAddress { path: self.port.clone(), baud: 1_500_000 }
    }

    fn wake(&self) -> ConsoleShell {
        ConsoleShell::wake(serial::open(&self.address(), None).unwrap(), SOON).unwrap()
    }
}

#[test]
fn a_console_that_asks_for_enter_gives_a_shell() {
    let bench = bench(ASK_FIRST);
    let answer = bench.wake().run("echo one; echo two >&2; exit 7", SOON).unwrap();
    assert_eq!((answer.status, answer.output.as_str()), (7, "one\ntwo"));
}

#[test]
fn a_shell_with_half_a_line_on_it_is_taken_over_without_running_it() {
    let folder = tempfile::tempdir().unwrap();
    let victim = folder.path().join("victim");
    fs::write(&victim, "x").unwrap();
    let bench = bench("exec /bin/sh -i");
    fs::write(&bench.port, format!("rm {}", victim.display())).unwrap();

    let console = serial::open(&bench.address(), None).unwrap();
    ConsoleShell::wake(console, SOON).unwrap().check("true").unwrap();

    assert!(victim.exists());
}

#[test]
fn answers_keep_their_text_whatever_is_in_it() {
    let bench = bench(ASK_FIRST);
    let mut shell = bench.wake();
    let long = "x".repeat(3000);
    let table = [
        ("printf 'no newline'", "no newline"),
        ("printf 'a\\n\\nb\\n'", "a\n\nb"),
        ("true", ""),
        ("echo 'RC=0=END PCP-1-RC=1=END PCP-PROMPT> '", "RC=0=END PCP-1-RC=1=END PCP-PROMPT> "),
        ("echo \"quo'ted\" # comment", "quo'ted"),
        ("cat <<'END'\nline 1\n\tline 2\nEND", "line 1\n\tline 2"),
        (&format!("echo {long}"), &long),
        ("printf '\\033[1mbold\\033[0m\\n'", "bold"),
        ("echo 'ends with a backslash \\'", "ends with a backslash \\"),
    ];
    for (command, output) in table {
        assert_eq!(shell.check(command).unwrap(), output, "{command}");
    }
}

#[test]
fn a_failed_command_is_an_answer_and_check_makes_it_an_error() {
    let bench = bench(ASK_FIRST);
    let mut shell = bench.wake();
    assert_eq!(shell.run("false", SOON).unwrap().status, 1);
    let error = shell.check("echo why; exit 3").unwrap_err();
    assert_eq!(error.to_string(), "\"echo why; exit 3\" ended with status 3:\nwhy");
}

#[test]
fn a_command_that_does_not_end_is_stopped_and_the_shell_goes_on() {
    let bench = bench(ASK_FIRST);
    let mut shell = bench.wake();
    let error = shell.run("echo begun; cat", Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(shell.check("echo next").unwrap(), "next");
}

#[test]
fn a_file_arrives_whole_with_its_mode_and_nothing_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let bench = bench(ASK_FIRST);
    let mut shell = bench.wake();
    for size in [0, 1, 449, 450, 451, 20_000] {
        let content: Vec<u8> = (0..size).map(|i: u32| (i * 7 % 251) as u8).collect();
        let (local, remote) = (folder.path().join("local"), folder.path().join("it's here"));
        fs::write(&local, &content).unwrap();

        shell.copy_in(&local, remote.to_str().unwrap(), 0o750).unwrap();

        assert_eq!(fs::read(&remote).unwrap(), content, "{size}");
        assert_eq!(fs::metadata(&remote).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{size}");
    }
}

#[test]
fn a_file_past_the_limit_or_a_place_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let local = folder.path().join("local");
    let bench = bench(ASK_FIRST);
    let mut shell = bench.wake();

    fs::write(&local, vec![0; usize::try_from(COPY_BYTES).unwrap() + 1]).unwrap();
    assert!(matches!(
        shell.copy_in(&local, "/tmp/x", 0o600),
        Err(Error::FileTooLarge { limit: COPY_BYTES, .. })
    ));

    fs::write(&local, "x").unwrap();
    let nowhere = folder.path().join("none/x");
    assert!(matches!(shell.copy_in(&local, nowhere.to_str().unwrap(), 0o600), Err(Error::Status { .. })));
}

#[test]
fn a_line_without_a_shell_ends_in_a_timeout_that_shows_the_line() {
    let bench = bench("printf 'board login: '; while read key; do printf 'board login: '; done");
    let console = serial::open(&bench.address(), None).unwrap();
    let error = ConsoleShell::wake(console, Duration::from_millis(200)).unwrap_err();
    let Error::Timeout { what, seen, .. } = error else { panic!("{error}") };
    assert_eq!(what, "shell on the console");
    assert!(seen.contains("board login: "), "{seen}");
}

#[test]
fn the_log_has_what_the_console_said() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let bench = bench(ASK_FIRST);
    let settings = Settings { log: Some(log.clone()), ..Settings::default() };
    let mut device = Device::new(&[Target::Serial(bench.address())], &settings).unwrap();
    assert_eq!(device.root().unwrap().check("echo 'for the log'").unwrap(), "for the log");
    let text = fs::read_to_string(log).unwrap();
    // What was said before the port was opened is nobody's.
    assert!(text.contains("for the log"), "{text}");
}

#[test]
fn a_serial_target_has_a_console_and_nothing_else() {
    let bench = bench(ASK_FIRST);
    let mut device = Device::new(&[Target::Serial(bench.address())], &Settings::default()).unwrap();
    assert_eq!(device.has(Need::Console), Ok(()));
    assert!(device.has(Need::Ssh).is_err() && device.has(Need::PowerSwitch).is_err());
    assert!(matches!(device.operator(), Err(Error::Absent("SSH"))));
    assert!(matches!(device.cut_power(), Err(Error::Absent("power switch"))));
}

#[test]
fn a_port_that_is_not_there_is_named() {
    let address: SerialAddress = "/dev/no-such-tty".parse().unwrap();
    let error = serial::open(&address, None).unwrap_err().to_string();
    assert!(error.starts_with("cannot open /dev/no-such-tty (is it there"), "{error}");
}
