//! A program under a user of its own, gone with the value that stands for it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::uids;

/// Longest wait for a clean end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at whether a process has ended.
const LOOK: Duration = Duration::from_millis(2);

/// A command that runs `program` of this workspace as `uid` with one primary and some further groups.
pub(crate) fn command(exe: &Path, program: &str, uid: u32, groups: &[u32]) -> Command {
    let mut command = if uid == uids::own() {
        Command::new(exe)
    } else {
        let list: Vec<String> = groups.iter().map(u32::to_string).collect();
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}"));
        command.arg(if list.is_empty() {
            OsString::from("--clear-groups")
        } else {
            format!("--groups={}", list.join(",")).into()
        });
        command.arg("--").arg(exe);
        command
    };
    command.arg(program).env_clear().env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin").env("TZ", "UTC");
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// A running process. It is killed when the value goes, also while a test panics.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) name: String,
    child: Child,
}

impl Process {
    /// Starts `command`.
    pub(crate) fn start(name: &str, command: &mut Command) -> Self {
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), child }
    }

    /// Starts `command` and waits for the line on standard output that says that it is ready.
    pub(crate) fn start_until_it_says(name: &str, command: &mut Command, word: &str) -> Self {
        let mut process = Self::start(name, command.stdout(Stdio::piped()));
        let mut line = String::new();
        let mut out = BufReader::new(process.child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        assert!(line.contains(word), "{name} said {line:?} and not {word:?}");
        process
    }

    /// Its number.
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Waits for the end, which has to come within `limit`.
    pub(crate) fn end_within(mut self, limit: Duration) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(begun.elapsed() < limit, "{} did not end within {limit:?}", self.name);
            std::thread::sleep(LOOK);
        }
    }

    /// Asks it to end, which it has to do with exit code 0.
    pub(crate) fn end_cleanly(self) {
        self.signal(Signal::SIGTERM);
        assert_eq!(self.end_within(PATIENCE).code(), Some(0));
    }

    /// As the kernel's memory killer ends it.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that is every program, where every user of this machine can execute it.
pub(crate) fn executable(space: &Path) -> PathBuf {
    let built = Path::new(env!("CARGO_BIN_EXE_under-test"));
    if built.ancestors().skip(1).all(anyone_may_pass) {
        return built.to_owned();
    }
    let placed = space.join("under-test");
    std::fs::hard_link(built, &placed).or_else(|_| std::fs::copy(built, &placed).map(|_| ())).unwrap();
    placed
}

fn anyone_may_pass(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(folder).is_ok_and(|facts| facts.permissions().mode() & 0o001 != 0)
}
