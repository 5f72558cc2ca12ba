//! A terminal for a program that prints tables only on one.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};

use nix::fcntl::OFlag;
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};

/// Runs `command` with standard output on a terminal; gives exit code, what the terminal saw, standard error.
pub(crate) fn on_a_terminal(command: &mut Command) -> (i32, String, String) {
    // No child that another test starts meanwhile may hold the terminal open.
    let mut master: PtyMaster = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let terminal: File = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlag::O_NOCTTY.bits())
        .open(ptsname_r(&master).unwrap())
        .unwrap();
    let mut child = command.stdout(Stdio::from(terminal)).stderr(Stdio::piped()).spawn().unwrap();
    // The command keeps its own copy of the terminal until it is given another.
    command.stdout(Stdio::null());
    let mut seen = Vec::new();
    // Linux says EIO once nobody has the other end open.
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = master.read(&mut buffer) {
        seen.extend_from_slice(&buffer[..count]);
    }
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    let code = child.wait().unwrap().code().unwrap_or(-1);
    (code, String::from_utf8(seen).unwrap().replace("\r\n", "\n"), err)
}
