//! A device on the network, as its operator.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::device::{Answer, Shell};
use crate::error::Error;
use crate::power::{die_with_us, sha256_of};

/// Seconds for one connection attempt: a live device answers in one, an emulated one under load in seven.
const CONNECT_SECONDS: u32 = 20;
/// Between two attempts while the device's server is still starting.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Bytes of output taken from one command.
const OUTPUT_BYTES: u64 = 1024 * 1024;
/// Bytes of a file copied: an update bundle fits, a slip that names a whole disk does not.
pub const COPY_BYTES: u64 = 512 * 1024 * 1024;
/// Time for a copy: the largest file at 10 MiB/s.
const COPY_LIMIT: Duration = Duration::from_secs(60);

/// `USER@HOST[:PORT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshAddress {
    /// Who logs in.
    pub user: String,
    /// Where.
    pub host: String,
    /// On which port.
    pub port: u16,
}

impl FromStr for SshAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let refused = || Error::Usage(format!("ssh://{text} is not ssh://USER@HOST[:PORT]"));
        let (user, place) = text.split_once('@').ok_or_else(refused)?;
        let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port.map_or(Ok(22), str::parse).map_err(|_| refused())?;
        // A word that begins with a dash would be an option to ssh.
        if [user, host].iter().any(|word| word.is_empty() || word.starts_with('-')) || port == 0 {
            return Err(refused());
        }
        Ok(Self { user: user.to_owned(), host: host.to_owned(), port })
    }
}

/// Whose host key is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostKeys {
    /// Any: the machine was made for this run, on this host.
    Throwaway,
    /// The person's known hosts; a new one is added.
    Own,
    /// The known hosts of this file; a new one is added.
    File(PathBuf),
}

/// A shell over SSH: every command is a connection of its own.
#[derive(Debug, Clone)]
pub struct SshShell {
    address: SshAddress,
    key: Option<PathBuf>,
    host_keys: HostKeys,
}

impl SshShell {
    /// A shell at `address`; nothing is connected yet.
    #[must_use]
    pub fn new(address: SshAddress, key: Option<PathBuf>, host_keys: HostKeys) -> Self {
        Self { address, key, host_keys }
    }

    /// Waits until the device's SSH server takes the key.
    ///
    /// # Errors
    /// [`Error::Ssh`] with what the last attempt said.
    pub fn connect(&mut self, limit: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + limit;
        loop {
            match self.run("true", limit) {
                Err(error @ Error::Ssh { .. }) if Instant::now() >= deadline => return Err(error),
                Err(Error::Ssh { .. }) => thread::sleep(RETRY_PAUSE),
                other => return other.map(|_| ()),
            }
        }
    }

    /// The ways to log in that the server offers to somebody who shows no key.
    ///
    /// # Errors
    /// [`Error::Ssh`] if it does not get as far as saying so.
    pub fn offered_methods(&self, limit: Duration) -> Result<Vec<String>, Error> {
        let mut command = self.command();
        command.args(["-o", "PubkeyAuthentication=no", "true"]);
        let (_, complaint) = gather(start(command, Stdio::null())?, "a login without a key", limit)?;
        methods(&complaint).ok_or_else(|| Error::Ssh { address: self.place(), detail: complaint })
    }

    fn command(&self) -> Command {
        let mut ssh = Command::new("ssh");
        ssh.args(["-T", "-o", "BatchMode=yes", "-o", "LogLevel=ERROR"]);
        ssh.args(["-o", &format!("ConnectTimeout={CONNECT_SECONDS}"), "-p", &self.address.port.to_string()]);
        if let Some(key) = &self.key {
            ssh.arg("-i").arg(key).args(["-o", "IdentitiesOnly=yes"]);
        }
        match &self.host_keys {
            HostKeys::Throwaway => ssh.args([
                "-F",
                "none",
                "-o",
                "StrictHostKeyChecking=no",
                "-o",
                "UserKnownHostsFile=/dev/null",
            ]),
            HostKeys::Own => ssh.args(["-o", "StrictHostKeyChecking=accept-new"]),
            HostKeys::File(path) => ssh
                .args(["-F", "none", "-o", "StrictHostKeyChecking=accept-new", "-o"])
                .arg(format!("UserKnownHostsFile={}", path.display())),
        };
        ssh.arg(format!("{}@{}", self.address.user, self.address.host));
        ssh
    }

    fn place(&self) -> String {
        format!("{}@{}:{}", self.address.user, self.address.host, self.address.port)
    }

    /// Runs `script` with `input`; the script's last line says with which status it ended, because ssh's own
    /// status 255 can be the command's or the connection's.
    fn converse(&self, script: &str, input: Stdio, limit: Duration) -> Result<Answer, Error> {
        let mut command = self.command();
        command.arg(format!("( {script}\n) 2>&1\necho \"PCP-RC=$?=END\""));
        let (output, complaint) = gather(start(command, input)?, script, limit)?;
        if output.len() as u64 > OUTPUT_BYTES {
            return Err(Error::TooMuchOutput { limit: usize::try_from(OUTPUT_BYTES).unwrap_or(usize::MAX) });
        }
        parse_answer(&String::from_utf8_lossy(&output)).ok_or_else(|| Error::Ssh {
            address: self.place(),
            detail: if complaint.is_empty() {
                "connection ended without an answer".to_owned()
            } else {
                complaint
            },
        })
    }
}

fn start(mut command: Command, input: Stdio) -> Result<Child, Error> {
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    die_with_us(&mut command);
    command.spawn().map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => {
            Error::MissingTool { tool: "ssh".to_owned(), package: "openssh-client" }
        }
        _ => Error::Io { what: "cannot start ssh".to_owned(), source },
    })
}

/// What stands in `Permission denied (publickey,password).`
fn methods(complaint: &str) -> Option<Vec<String>> {
    let (list, _) = complaint.split_once("Permission denied (")?.1.split_once(')')?;
    Some(list.split(',').map(str::to_owned).collect())
}

/// Takes the status line off the end of the output.
fn parse_answer(output: &str) -> Option<Answer> {
    let (before, after) = output.rsplit_once("PCP-RC=")?;
    let status = after.split_once("=END")?.0.parse().ok()?;
    Some(Answer { status, output: before.trim_end_matches('\n').to_owned() })
}

/// Reads what the child says until it ends, or ends it at the limit.
fn gather(mut child: Child, what: &str, limit: Duration) -> Result<(Vec<u8>, String), Error> {
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take().map(|pipe| read_apart(pipe, sender));
    let complaint = child.stderr.take().map(|pipe| read_apart(pipe, mpsc::channel().0));
    let ended = receiver.recv_timeout(limit).is_ok();
    if !ended {
        // It may have ended in this moment; then there is nothing to end.
        let _ = child.kill();
    }
    child.wait().map_err(Error::io("cannot wait for ssh"))?;
    let join = |thread: Option<thread::JoinHandle<Vec<u8>>>| {
        thread.and_then(|thread| thread.join().ok()).unwrap_or_default()
    };
    let (output, complaint) = (join(output), join(complaint));
    if !ended {
        let seen = String::from_utf8_lossy(&output).into_owned();
        return Err(Error::Timeout { what: format!("answer to {what:?}"), limit, seen });
    }
    Ok((output, String::from_utf8_lossy(&complaint).trim().to_owned()))
}

fn read_apart(pipe: impl Read + Send + 'static, done: mpsc::Sender<()>) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe ends the output; the missing status line then says so.
        let _ = pipe.take(OUTPUT_BYTES + 1).read_to_end(&mut bytes);
        // Nobody listens any more once the limit has passed.
        let _ = done.send(());
        bytes
    })
}

impl Shell for SshShell {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn run(&mut self, command: &str, limit: Duration) -> Result<Answer, Error> {
        self.converse(command, Stdio::null(), limit)
    }

    fn copy_in(&mut self, local: &Path, remote: &str, mode: u32) -> Result<(), Error> {
        let failed = || format!("cannot read {}", local.display());
        let file = File::open(local).map_err(Error::io(failed()))?;
        let bytes = file.metadata().map_err(Error::io(failed()))?.len();
        if bytes > COPY_BYTES {
            return Err(Error::FileTooLarge { path: local.to_owned(), bytes, limit: COPY_BYTES, way: "ssh" });
        }
        let digest = sha256_of(local)?;
        let script = crate::device::receive_script(remote, mode, &digest, "cat");
        self.converse(&script, Stdio::from(file), COPY_LIMIT)?.ok(&script).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_to_log_in_are_read_from_the_refusal() {
        let owned = |words: &[&str]| Some(words.iter().map(|&word| word.to_owned()).collect());
        assert_eq!(methods("operator@h: Permission denied (publickey)."), owned(&["publickey"]));
        assert_eq!(methods("Permission denied (publickey,password)."), owned(&["publickey", "password"]));
        assert_eq!(methods("ssh: connect to host h port 22: Connection refused"), None);
    }

    #[test]
    fn the_status_line_is_taken_off_the_output() {
        let answer = |status, output: &str| Some(Answer { status, output: output.to_owned() });
        assert_eq!(parse_answer("a\nb\nPCP-RC=0=END\n"), answer(0, "a\nb"));
        assert_eq!(parse_answer("no newlinePCP-RC=255=END\n"), answer(255, "no newline"));
        assert_eq!(parse_answer("echo PCP-RC=1=END\nPCP-RC=0=END\n"), answer(0, "echo PCP-RC=1=END"));
        for cut in ["", "a\n", "a\nPCP-RC=", "a\nPCP-RC=0", "PCP-RC=$?=END"] {
            assert_eq!(parse_answer(cut), None, "{cut:?}");
        }
    }
}
