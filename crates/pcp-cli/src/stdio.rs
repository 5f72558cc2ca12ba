//! The process's own output: whether it was open at the start, and writing to it without any pretence.
//!
//! Rust's start-up opens `/dev/null` in place of a closed descriptor, and its standard streams take a
//! descriptor that refuses writes for one that swallows them. A command whose answer went nowhere must say so
//! with exit code 1, so both are gone around here.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

static CLOSED_AT_START: AtomicBool = AtomicBool::new(false);

/// Runs before Rust's start-up, which would open `/dev/null` as the missing descriptor.
#[allow(unsafe_code, reason = "only the loader can ask before the standard library changes the answer")]
// SAFETY: the loader calls every pointer of this section once, before `main`, on the only thread, with
// arguments that a C function without parameters may ignore; `note` touches an atomic and one system call.
#[unsafe(link_section = ".init_array")]
#[used]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    #[allow(unsafe_code, reason = "the descriptor may be closed, which no borrowed descriptor can express")]
    // SAFETY: F_GETFD takes no pointer and changes nothing, whatever the number stands for.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    CLOSED_AT_START.store(flags == -1, Ordering::Relaxed);
}

/// Standard output as it was handed to the process.
#[derive(Debug)]
pub(crate) struct Output(Option<File>);

impl Output {
    /// Whether the process was started without a standard output.
    pub(crate) fn stdout_was_closed() -> bool {
        CLOSED_AT_START.load(Ordering::Relaxed)
    }

    /// Standard output, or a writer that refuses when it was closed.
    pub(crate) fn stdout() -> Self {
        if Self::stdout_was_closed() {
            return Self(None);
        }
        Self(duplicate(io::stdout().as_fd()))
    }

    /// Standard error. What cannot be written there is lost: there is nowhere left to say so.
    pub(crate) fn stderr() -> Self {
        Self(duplicate(io::stderr().as_fd()))
    }
}

fn wait_for_room(file: &File) -> io::Result<()> {
    let mut room = [PollFd::new(file.as_fd(), PollFlags::POLLOUT)];
    match poll(&mut room, PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn duplicate(descriptor: BorrowedFd<'_>) -> Option<File> {
    descriptor.try_clone_to_owned().ok().map(File::from)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.0 else { return Err(io::Error::other("it is closed")) };
        loop {
            match file.write(bytes) {
                // A terminal may have been left non-blocking by another program; it will take bytes again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => wait_for_room(file)?,
                other => return other,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_full_for_a_moment_is_waited_for() {
        let (mut reader, writer) = io::pipe().unwrap();
        let pipe = nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK));
        assert!(pipe.is_ok());
        let mut output = Output(Some(File::from(std::os::fd::OwnedFd::from(writer))));
        let bytes = vec![b'x'; 1024 * 1024];
        let read = std::thread::spawn(move || {
            let mut read = Vec::new();
            io::Read::read_to_end(&mut reader, &mut read).map(|_| read.len())
        });

        output.write_all(&bytes).unwrap();
        drop(output);

        assert_eq!(read.join().unwrap().unwrap(), bytes.len());
    }

    #[test]
    fn a_closed_output_refuses_and_an_open_one_was_open_at_the_start() {
        assert!(Output(None).write_all(b"x").is_err());
        assert!(!Output::stdout_was_closed());
    }
}
