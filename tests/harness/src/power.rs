//! A machine as a process: started, measured, ended by its id and by nothing else.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::error::Error;
use crate::measure::process_cpu_seconds;

/// How often an ending process is asked whether it has ended.
const POLL: Duration = Duration::from_millis(20);
/// Bytes of a process's complaints that are kept: it says one line, or it floods.
const COMPLAINT_BYTES: u64 = 4096;

/// A running machine. Dropping it ends it: no run leaves one behind.
#[derive(Debug)]
pub struct Process {
    child: Child,
    /// A file and not a pipe: nobody reads it while the machine runs, and a full pipe would stop the machine.
    complaints: File,
}

impl Process {
    /// Starts `command` with its input and output in our hands.
    ///
    /// # Errors
    /// [`Error::MissingTool`] or [`Error::Io`].
    pub fn start(
        mut command: Command,
        package: &'static str,
    ) -> Result<(Self, ChildStdout, ChildStdin), Error> {
        let tool = command.get_program().to_string_lossy().into_owned();
        let complaints = tempfile::tempfile().map_err(Error::io("cannot make a temporary file"))?;
        let theirs = complaints.try_clone().map_err(Error::io("cannot share a temporary file"))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(theirs);
        die_with_us(&mut command);
        let mut child = command.spawn().map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => Error::MissingTool { tool: tool.clone(), package },
            _ => Error::Io { what: format!("cannot start {tool}"), source },
        })?;
        let pipes = child.stdout.take().zip(child.stdin.take());
        let process = Self { child, complaints };
        let (output, input) = pipes.ok_or_else(|| Error::Usage(format!("{tool} has no pipes")))?;
        Ok((process, output, input))
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Processor seconds it has used, user and system; `None` once it has ended.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        process_cpu_seconds(self.pid())
    }

    /// Waits for it to end by itself; `None` if it does not within `limit`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>, Error> {
        let deadline = Instant::now() + limit;
        loop {
            let status = self.child.try_wait().map_err(Error::io("cannot wait for the machine"))?;
            if status.is_some() || Instant::now() >= deadline {
                return Ok(status);
            }
            thread::sleep(POLL);
        }
    }

    /// Cuts the power: the process is gone at once, with whatever it had not written.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn cut(&mut self) -> Result<(), Error> {
        self.child
            .kill()
            .and_then(|()| self.child.wait())
            .map(|_| ())
            .map_err(Error::io("cannot end the machine"))
    }

    /// What it said on standard error, to be asked once it has ended.
    pub fn complaint(&mut self) -> String {
        let mut text = Vec::new();
        // Best effort: it is only the explanation of another error.
        let _ = self.complaints.rewind();
        let _ = (&self.complaints).take(COMPLAINT_BYTES).read_to_end(&mut text);
        String::from_utf8_lossy(&text).trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // Nothing is left to do for a process that can be neither ended nor asked.
            let _ = self.cut();
        }
    }
}

/// A harness that is killed must not leave a child running that nobody knows of. The child goes with the thread
/// that starts it, so that thread has to be the one that waits for it.
#[allow(unsafe_code, reason = "the kernel is told between fork and exec, which only pre_exec can do")]
pub(crate) fn die_with_us(command: &mut Command) {
    // SAFETY: the closure runs in the child after fork and makes one prctl(2) system call, which is
    // async-signal-safe; it neither allocates nor takes a lock.
    unsafe {
        command.pre_exec(|| nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from));
    }
}

/// SHA-256 of a file, by the host's own tool: an image has hundreds of megabytes, and a debug build hashes them
/// ten times slower than coreutils.
///
/// # Errors
/// [`Error::MissingTool`] or [`Error::Tool`].
pub fn sha256_of(path: &std::path::Path) -> Result<String, Error> {
    fs::metadata(path).map_err(Error::io(format!("cannot read {}", path.display())))?;
    let output = run_tool(Command::new("sha256sum").arg("--").arg(path), "coreutils")?;
    let digest = output.trim_start_matches('\\').split_whitespace().next().unwrap_or_default();
    Ok(digest.to_owned())
}

/// Runs a host program to its end and gives its output.
///
/// # Errors
/// [`Error::MissingTool`] if it is not there, [`Error::Tool`] if it fails.
pub fn run_tool(command: &mut Command, package: &'static str) -> Result<String, Error> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => Error::MissingTool { tool: tool.clone(), package },
        _ => Error::Io { what: format!("cannot start {tool}"), source },
    })?;
    if !output.status.success() {
        let detail = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Tool { tool, detail });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn shell(script: &str) -> (Process, ChildStdout, ChildStdin) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Process::start(command, "dash").unwrap()
    }

    #[test]
    fn a_machine_that_ends_is_waited_for_and_says_why() {
        let (mut machine, _output, mut input) = shell("read x; echo no disk >&2; exit 3");
        input.write_all(b"\n").unwrap();
        let status = machine.wait(Duration::from_secs(10)).unwrap().unwrap();
        assert_eq!((status.code(), machine.complaint().as_str()), (Some(3), "no disk"));
        assert_eq!(machine.cpu_seconds(), None);
    }

    #[test]
    fn a_machine_that_goes_on_is_measured_and_cut() {
        let (mut machine, _output, _input) = shell("read x");
        assert_eq!(machine.wait(Duration::ZERO).unwrap(), None);
        assert!(machine.cpu_seconds().is_some());
        machine.cut().unwrap();
        assert!(machine.wait(Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn dropping_a_machine_ends_it() {
        let (machine, mut output, _input) = shell("echo up; read x");
        let mut up = [0; 3];
        output.read_exact(&mut up).unwrap();
        let pid = machine.pid();
        drop(machine);
        assert_eq!(process_cpu_seconds(pid), None);
    }

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = Process::start(Command::new("no-such-emulator"), "qemu-system-arm").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-emulator is not installed: install the package qemu-system-arm"
        );
        let error = run_tool(&mut Command::new("no-such-tool"), "some-package").unwrap_err();
        assert!(matches!(error, Error::MissingTool { .. }));
        let error =
            run_tool(Command::new("/bin/sh").args(["-c", "echo bad >&2; exit 1"]), "dash").unwrap_err();
        assert_eq!(error.to_string(), "/bin/sh failed: bad");
    }

    #[test]
    fn the_digest_of_a_file_is_its_sha256() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"abc").unwrap();
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256_of(file.path()).unwrap(), digest);
        assert!(sha256_of(std::path::Path::new("/nonexistent/image")).is_err());
    }
}
