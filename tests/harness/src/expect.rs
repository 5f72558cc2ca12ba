//! Waiting for text on a byte stream, with an end to the waiting and to the memory.
//!
//! A reader thread keeps what arrives in a bounded buffer and in a log; [`Expect::expect`] takes it out up to
//! the first of some literal texts. Nothing here knows what is on the other side.

use std::fs::File;
use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Bytes kept of what has arrived and was not asked for. A boot prints about 40 KiB; the rest is room for the
/// output of one command.
pub const BUFFER_BYTES: usize = 1024 * 1024;
/// Bytes read at once: a UART delivers less, a pipe no more.
const CHUNK_BYTES: usize = 4096;
/// Bytes of the stream's end that an error shows: about a screen.
const SHOWN_BYTES: usize = 2048;
/// Ctrl-], as in telnet: the one key that does not go to the device.
pub const LEAVE_KEY: u8 = 0x1d;

/// A stream that is waited on.
pub struct Expect {
    shared: Arc<Shared>,
    writer: Arc<Mutex<Box<dyn Write + Send>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    overflowed: bool,
    ended: bool,
    leave: bool,
}

/// What came: which of the texts, and everything before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Index of the text that was found first.
    pub index: usize,
    /// The bytes before it.
    pub before: Vec<u8>,
}

impl Expect {
    /// Starts reading. Everything that arrives also goes to `log`.
    pub fn new(
        reader: impl Read + Send + 'static,
        writer: impl Write + Send + 'static,
        log: Option<File>,
    ) -> Self {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        thread::spawn(move || read_all(reader, log, &theirs));
        Self { shared, writer: Arc::new(Mutex::new(Box::new(writer))) }
    }

    /// Writes to the device.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn send(&self, bytes: &[u8]) -> Result<(), Error> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer
            .write_all(bytes)
            .and_then(|()| writer.flush())
            .map_err(Error::io("cannot write to the console"))
    }

    /// Waits for the first of `texts` and takes it and everything before it out of the stream. `what` names
    /// them in an error.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::Ended`], or [`Error::TooMuchOutput`] if bytes before the text were lost.
    pub fn expect(&self, what: &str, texts: &[&str], limit: Duration) -> Result<Found, Error> {
        let deadline = Instant::now() + limit;
        let overlap = texts.iter().map(|text| text.len()).max().unwrap_or(0);
        let mut searched = 0;
        let mut state = self.lock();
        loop {
            if state.overflowed {
                state.overflowed = false;
                state.buffer.clear();
                return Err(Error::TooMuchOutput { limit: BUFFER_BYTES });
            }
            let from = searched_from(&state.buffer, searched, overlap);
            if let Some((index, start)) = first_of(&state.buffer, texts, from) {
                let mut before: Vec<u8> = state.buffer.drain(..start + texts[index].len()).collect();
                before.truncate(start);
                return Ok(Found { index, before });
            }
            searched = state.buffer.len();
            if state.ended {
                return Err(Error::Ended { what: what.to_owned(), seen: tail(&state.buffer) });
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                return Err(Error::Timeout { what: what.to_owned(), limit, seen: tail(&state.buffer) });
            };
            state = self.wait(state, left);
        }
    }

    /// Waits until the other side closes, and gives what came before that.
    ///
    /// # Errors
    /// [`Error::Timeout`].
    pub fn end(&self, limit: Duration) -> Result<Vec<u8>, Error> {
        let deadline = Instant::now() + limit;
        let mut state = self.lock();
        while !state.ended {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else {
                let what = "end of the console".to_owned();
                return Err(Error::Timeout { what, limit, seen: tail(&state.buffer) });
            };
            state = self.wait(state, left);
        }
        Ok(std::mem::take(&mut state.buffer))
    }

    /// Connects a person: keys from `input` go to the device, what it says to `output`, until [`LEAVE_KEY`],
    /// the end of `input`, or the end of the stream. `true` if the person left.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn attach(&self, input: impl Read + Send + 'static, output: &mut impl Write) -> Result<bool, Error> {
        self.lock().leave = false;
        let (shared, writer) = (Arc::clone(&self.shared), Arc::clone(&self.writer));
        thread::spawn(move || forward_keys(input, &writer, &shared));
        loop {
            let mut state = self.lock();
            while state.buffer.is_empty() && !state.ended && !state.leave {
                state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let (bytes, left, ended) = (std::mem::take(&mut state.buffer), state.leave, state.ended);
            state.overflowed = false;
            drop(state);
            output
                .write_all(&bytes)
                .and_then(|()| output.flush())
                .map_err(Error::io("cannot write to the terminal"))?;
            if left || (ended && bytes.is_empty()) {
                return Ok(left);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>, left: Duration) -> MutexGuard<'a, State> {
        self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
    }
}

impl std::fmt::Debug for Expect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Expect").finish_non_exhaustive()
    }
}

impl Shared {
    fn change(&self, edit: impl FnOnce(&mut State)) {
        edit(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }
}

fn read_all(mut reader: impl Read, mut log: Option<File>, shared: &Shared) {
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let count = match reader.read(&mut chunk) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // A pseudo-terminal whose other side is gone answers EIO; a UART never ends.
            Ok(0) | Err(_) => return shared.change(|state| state.ended = true),
            Ok(count) => count,
        };
        let bytes = &chunk[..count];
        // A full disk under the log must not end the run; the console is the result, the log a convenience.
        log = log.filter(|mut file| file.write_all(bytes).is_ok());
        shared.change(|state| {
            if state.buffer.len() + bytes.len() > BUFFER_BYTES {
                state.overflowed = true;
                state.buffer.clear();
            }
            state.buffer.extend_from_slice(bytes);
        });
    }
}

fn forward_keys(mut input: impl Read, writer: &Mutex<Box<dyn Write + Send>>, shared: &Shared) {
    let mut chunk = [0; CHUNK_BYTES];
    loop {
        let count = input.read(&mut chunk).unwrap_or(0);
        let keys = &chunk[..count];
        let sent = keys.split(|&key| key == LEAVE_KEY).next().unwrap_or_default();
        let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
        let written = writer.write_all(sent).and_then(|()| writer.flush());
        drop(writer);
        if count == 0 || sent.len() < count || written.is_err() {
            return shared.change(|state| state.leave = true);
        }
    }
}

/// Where to go on searching: a text may have begun in what was already looked at.
fn searched_from(buffer: &[u8], searched: usize, overlap: usize) -> usize {
    searched.min(buffer.len()).saturating_sub(overlap)
}

fn first_of(buffer: &[u8], texts: &[&str], from: usize) -> Option<(usize, usize)> {
    let found = texts.iter().enumerate().filter_map(|(index, text)| {
        let at = buffer[from..].windows(text.len().max(1)).position(|window| window == text.as_bytes())?;
        Some((index, from + at))
    });
    found.min_by_key(|&(_, at)| at)
}

fn tail(buffer: &[u8]) -> String {
    plain(&buffer[buffer.len().saturating_sub(SHOWN_BYTES)..])
}

/// The text of terminal output: control sequences (`ESC[6n` after every prompt of busybox) taken out, line ends
/// (`\r\r\n` on a console with two drivers that translate) made one.
#[must_use]
pub fn plain(bytes: &[u8]) -> String {
    let mut text = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == 0x1b && after.first() == Some(&b'[') {
            let end = after[1..]
                .iter()
                .position(|byte| (0x40..=0x7e).contains(byte))
                .map_or(after.len(), |at| at + 2);
            rest = &after[end..];
        } else if byte == b'\r' {
            let others = after.iter().take_while(|&&byte| byte == b'\r').count();
            if after.get(others) == Some(&b'\n') {
                rest = &after[others..];
            } else {
                text.push(byte);
            }
        } else {
            text.push(byte);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    const SOON: Duration = Duration::from_secs(10);

    fn pair() -> (Expect, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Expect::new(ours.try_clone().unwrap(), ours, None), theirs)
    }

    #[test]
    fn the_earliest_text_is_taken_with_everything_before_it() {
        let (console, mut device) = pair();
        device.write_all(b"one two three").unwrap();

        let found = console.expect("text", &["three", "two"], SOON).unwrap();
        assert_eq!(found, Found { index: 1, before: b"one ".to_vec() });
        let found = console.expect("text", &["three", "two"], SOON).unwrap();
        assert_eq!(found, Found { index: 0, before: b" ".to_vec() });
    }

    #[test]
    fn a_text_that_arrives_in_pieces_is_found() {
        let (console, mut device) = pair();
        let writer = thread::spawn(move || {
            for piece in ["PCP", "-RE", "ADY"] {
                device.write_all(piece.as_bytes()).unwrap();
                device.flush().unwrap();
            }
            device
        });
        assert_eq!(console.expect("ready", &["PCP-READY"], SOON).unwrap().before, b"");
        drop(writer.join().unwrap());
    }

    #[test]
    fn waiting_ends_with_what_was_seen() {
        let (console, mut device) = pair();
        device.write_all(b"kernel panic").unwrap();
        console.expect("start", &["kernel"], SOON).unwrap();
        let error = console.expect("login prompt", &["login:"], Duration::ZERO).unwrap_err();
        let Error::Timeout { what, .. } = error else { panic!("{error:?}") };
        assert_eq!(what, "login prompt");

        drop(device);
        let error = console.expect("login prompt", &["login:"], SOON).unwrap_err();
        assert!(matches!(error, Error::Ended { ref seen, .. } if seen == " panic"), "{error:?}");
    }

    #[test]
    fn the_buffer_holds_its_limit_and_says_when_more_came() {
        for (extra, fits) in [(0, true), (1, false)] {
            let (console, mut device) = pair();
            let writer = thread::spawn(move || {
                device.write_all(&vec![b'x'; BUFFER_BYTES + extra - 1]).unwrap();
                device.write_all(b"!").unwrap();
                drop(device);
            });
            writer.join().unwrap();
            let outcome = console.end(SOON).and_then(|_| console.expect("end", &["!"], Duration::ZERO));
            let overflowed = matches!(outcome, Err(Error::TooMuchOutput { limit: BUFFER_BYTES }));
            assert_eq!(!overflowed, fits, "{extra}");
        }
    }

    #[test]
    fn a_person_sees_the_device_and_leaves_with_the_leave_key() {
        let (console, mut device) = pair();
        device.write_all(b"hello").unwrap();
        console.shared.change(|_| {});
        let (keys, mut person) = UnixStream::pair().unwrap();
        person.write_all(b"ls\r\x1dnot sent").unwrap();
        let mut screen = Vec::new();

        assert!(console.attach(keys, &mut screen).unwrap());

        drop(console);
        let mut typed = [0; 3];
        device.read_exact(&mut typed).unwrap();
        assert_eq!(&typed, b"ls\r");
    }

    #[test]
    fn terminal_output_becomes_plain_text() {
        let table: [(&[u8], &str); 5] = [
            (b"a\r\r\nb\r\nc\n", "a\nb\nc\n"),
            (b"~ # \x1b[6n", "~ # "),
            (b"\x1b[?2004h\x1b[1;32mok\x1b[0m", "ok"),
            (b"50%\r100%", "50%\r100%"),
            (b"cut \x1b[3", "cut "),
        ];
        for (bytes, text) in table {
            assert_eq!(plain(bytes), text);
        }
    }
}
