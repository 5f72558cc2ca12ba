//! `shell`: a person at the serial line.

use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};

use crate::device::Device;
use crate::error::Error;

pub(crate) fn shell(mut device: Device) -> Result<i32, Error> {
    let (machine, console) = device.raw_console()?;
    eprintln!("connected; leave with Ctrl-]");
    if machine.is_none() {
        // A device that is up has said its prompt already.
        console.send(b"\r")?;
    }
    let restore = raw_terminal()?;
    let left = console.attach(io::stdin(), &mut io::stdout());
    drop(restore);
    eprintln!();
    let (left, emulated) = (left?, machine.is_some());
    drop(machine);
    device.close()?;
    eprintln!(
        "{}",
        match (left, emulated) {
            (true, true) => "left; the machine and its overlay are gone, the image is unchanged",
            (true, false) => "left; the device goes on",
            (false, _) => "the device ended the line",
        }
    );
    Ok(0)
}

/// The terminal as it was, put back when this goes.
struct Restore(Termios);

impl Drop for Restore {
    fn drop(&mut self) {
        // The terminal may be gone; then there is nothing to put back.
        let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSANOW, &self.0);
    }
}

/// Makes every key go to the device, Ctrl-C too. `None` if nobody types.
fn raw_terminal() -> Result<Option<Restore>, Error> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    let failed =
        |errno: nix::Error| Error::Io { what: "cannot set the terminal".to_owned(), source: errno.into() };
    let stdin = io::stdin();
    let before = tcgetattr(stdin.as_fd()).map_err(failed)?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(stdin.as_fd(), SetArg::TCSANOW, &raw).map_err(failed)?;
    Ok(Some(Restore(before)))
}
