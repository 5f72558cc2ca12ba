//! A device on a serial line, as whoever sits at it: a root shell on the console.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use nix::sys::termios::{
    BaudRate, ControlFlags, FlushArg, SetArg, cfmakeraw, cfsetspeed, tcflush, tcgetattr, tcsetattr,
};

use crate::base64;
use crate::device::{Answer, Shell, receive_script};
use crate::error::Error;
use crate::expect::{Expect, plain};
use crate::power::sha256_of;

/// The console speed of the RK3588's boot loaders, which the kernel keeps.
pub const DEFAULT_BAUD: u32 = 1_500_000;
/// Bytes of a command typed in one line. The line editor of busybox holds 1023, and echoes every one of them.
const LINE_BYTES: usize = 600;
/// Bytes of a file copied over the line: at one round trip per line of base64 this takes about two minutes.
pub const COPY_BYTES: u64 = 1024 * 1024;
/// The prompt, and how it is written so that its echo is not taken for it.
const PROMPT: &str = "PCP-PROMPT> ";
const PROMPT_TYPED: &str = "PS1='PCP''-PROMPT> '";
/// Between two attempts to wake a shell: a slow one has drawn its prompt by then.
const WAKE_PAUSE: Duration = Duration::from_secs(3);
/// Time for the prompt after an answer.
const PROMPT_LIMIT: Duration = Duration::from_secs(10);

/// `/dev/ttyX[@BAUD]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerialAddress {
    /// The port.
    pub path: PathBuf,
    /// Its speed.
    pub baud: u32,
}

impl FromStr for SerialAddress {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (path, baud) = text.split_once('@').map_or((text, None), |(path, baud)| (path, Some(baud)));
        let baud = baud.map_or(Ok(DEFAULT_BAUD), str::parse).ok().filter(|&baud| speed(baud).is_some());
        match baud {
            Some(baud) if path.starts_with('/') => Ok(Self { path: PathBuf::from(path), baud }),
            _ => {
                Err(Error::Usage(format!("serial:{text} is not serial:/dev/ttyX[@BAUD] with a usual speed")))
            }
        }
    }
}

fn speed(baud: u32) -> Option<BaudRate> {
    Some(match baud {
        9600 => BaudRate::B9600,
        19_200 => BaudRate::B19200,
        38_400 => BaudRate::B38400,
        57_600 => BaudRate::B57600,
        115_200 => BaudRate::B115200,
        230_400 => BaudRate::B230400,
        460_800 => BaudRate::B460800,
        921_600 => BaudRate::B921600,
        1_000_000 => BaudRate::B1000000,
        1_500_000 => BaudRate::B1500000,
        3_000_000 => BaudRate::B3000000,
        _ => return None,
    })
}

/// Opens the port: raw, at its speed, without waiting for a modem.
///
/// # Errors
/// [`Error::Io`] naming the port.
pub fn open(address: &SerialAddress, log: Option<File>) -> Result<Expect, Error> {
    let what = || format!("cannot open {} (is it there, and are you in its group?)", address.path.display());
    let port = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NOCTTY | nix::libc::O_NONBLOCK)
        .open(&address.path)
        .map_err(Error::io(what()))?;
    let configured = || -> nix::Result<()> {
        let mut line = tcgetattr(&port)?;
        cfmakeraw(&mut line);
        line.control_flags |= ControlFlags::CLOCAL | ControlFlags::CREAD;
        if let Some(speed) = speed(address.baud) {
            cfsetspeed(&mut line, speed)?;
        }
        tcsetattr(&port, SetArg::TCSANOW, &line)?;
        tcflush(&port, FlushArg::TCIFLUSH)?;
        // Opening must not wait for a carrier, reading must wait for bytes.
        nix::fcntl::fcntl(&port, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::empty())).map(|_| ())
    };
    configured().map_err(|errno| Error::Io { what: what(), source: errno.into() })?;
    let reader = port.try_clone().map_err(Error::io(what()))?;
    Ok(Expect::new(reader, port, log))
}

/// A shell behind a console. Commands are framed by marks that their own echo does not contain.
#[derive(Debug)]
pub struct ConsoleShell {
    console: Expect,
    count: u32,
}

impl ConsoleShell {
    /// Wakes the shell of `console`: presses Enter as init asks, then sets a prompt that nothing else prints.
    ///
    /// # Errors
    /// [`Error::Timeout`] if no shell answers within `limit`, [`Error::Ended`].
    pub fn wake(console: Expect, limit: Duration) -> Result<Self, Error> {
        let mut shell = Self { console, count: 0 };
        shell.find_prompt(limit)?;
        // Kernel messages would break into answers; those that end a machine are printed all the same.
        shell.run("dmesg -n 1", PROMPT_LIMIT)?;
        Ok(shell)
    }

    /// The stream, for a person or for what the device says while it has no shell.
    #[must_use]
    pub fn console(&self) -> &Expect {
        &self.console
    }

    /// Gives the stream back.
    #[must_use]
    pub fn into_console(self) -> Expect {
        self.console
    }

    fn find_prompt(&mut self, limit: Duration) -> Result<(), Error> {
        let deadline = Instant::now() + limit;
        loop {
            // Ctrl-U first: whatever somebody left on the line is not ours to run.
            self.console.send(format!("\x15\r{PROMPT_TYPED}\r").as_bytes())?;
            match self.console.expect("shell on the console", &[PROMPT], WAKE_PAUSE.min(limit)) {
                Err(Error::Timeout { what, seen, .. }) if Instant::now() >= deadline => {
                    return Err(Error::Timeout { what, limit, seen });
                }
                Err(Error::Timeout { .. }) => {}
                other => return other.map(|_| ()),
            }
        }
    }

    fn converse(&mut self, command: &str, limit: Duration) -> Result<Answer, Error> {
        self.count += 1;
        let (begin, end) = (format!("PCP-{}-BEGIN", self.count), format!("PCP-{}-RC=", self.count));
        let typed = format!("echo PCP''-{0}-BEGIN; ( {command} ); echo PCP''-{0}-RC=$?=END\r", self.count);
        self.console.send(typed.as_bytes())?;
        let what = format!("answer to {command:?}");
        self.console.expect(&what, &[&begin], limit)?;
        let output = self.console.expect(&what, &[&end], limit)?.before;
        let status = plain(&self.console.expect(&what, &["=END"], PROMPT_LIMIT)?.before);
        self.console.expect("prompt", &[PROMPT], PROMPT_LIMIT)?;
        let status = status.parse().map_err(|_| Error::Finding(format!("no status in {status:?}")))?;
        let output = plain(&output);
        let output = output.strip_prefix('\n').unwrap_or(&output).trim_end_matches('\n');
        Ok(Answer { status, output: output.to_owned() })
    }

    /// Puts `content` into a file of the device, line by line.
    fn type_in(&mut self, content: &[u8], remote: &str, mode: u32, digest: &str) -> Result<(), Error> {
        let part = format!("{remote}.b64");
        let quoted = crate::device::quote(&part);
        self.converse(&format!(": > {quoted}"), PROMPT_LIMIT)?.ok(&part)?;
        let text = base64::encode(content);
        for line in text.as_bytes().chunks(LINE_BYTES) {
            let line = String::from_utf8_lossy(line);
            self.converse(&format!("printf %s {line} >> {quoted}"), PROMPT_LIMIT)?.ok(&part)?;
        }
        let script = receive_script(remote, mode, digest, &format!("base64 -d {quoted}"));
        let script = format!("{script}; rc=$?; rm -f {quoted}; exit $rc");
        self.converse(&script, PROMPT_LIMIT)?.ok(&script).map(|_| ())
    }
}

impl Shell for ConsoleShell {
    fn name(&self) -> &'static str {
        "console"
    }

    fn run(&mut self, command: &str, limit: Duration) -> Result<Answer, Error> {
        // What a line editor, an echo or a comment would change goes as a file.
        let plain = !command.contains(['\n', '\r', '\t', '#', '!']) && !command.ends_with('\\');
        let one_line = plain && command.len() <= LINE_BYTES;
        let answer = if one_line {
            self.converse(command, limit)
        } else {
            let script = format!("/tmp/pcp-harness-{}.sh", self.count);
            let local = tempfile::NamedTempFile::new().map_err(Error::io("cannot make a temporary file"))?;
            fs::write(local.path(), command).map_err(Error::io("cannot write a temporary file"))?;
            self.copy_in(local.path(), &script, 0o700)?;
            self.converse(&format!("sh {script}; rc=$?; rm -f {script}; exit $rc"), limit)
        };
        if matches!(answer, Err(Error::Timeout { .. })) {
            // Stop what did not end, so that the next command meets a shell.
            self.console.send(b"\x03")?;
            self.find_prompt(PROMPT_LIMIT)?;
        }
        answer
    }

    fn copy_in(&mut self, local: &Path, remote: &str, mode: u32) -> Result<(), Error> {
        let content = fs::read(local).map_err(Error::io(format!("cannot read {}", local.display())))?;
        let bytes = content.len() as u64;
        if bytes > COPY_BYTES {
            let path = local.to_owned();
            return Err(Error::FileTooLarge { path, bytes, limit: COPY_BYTES, way: "the serial line" });
        }
        let digest = sha256_of(local)?;
        self.type_in(&content, remote, mode, &digest)
    }
}
