//! One byte a second of a frame that would take an hour: the listener has to set an end to it (TH-06).

use std::io::{ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::garbage::drain;
use super::{AttackReport, Target};

/// Between two bytes of one connection.
const BYTE_EVERY: Duration = Duration::from_secs(1);
/// Between two looks at whether the listener has closed.
const LOOK: Duration = Duration::from_millis(50);

pub(super) fn run(target: &Target<'_>) -> AttackReport {
    let frame = &target.attack.vectors[0].frame;
    let mut report = AttackReport::default();
    let mut clients: Vec<Option<(UnixStream, Instant, usize)>> = Vec::new();
    clients.resize_with(target.attack.clients, || None);
    while !target.is_over() {
        for client in &mut clients {
            let Some((stream, since, sent)) = client else {
                *client = target.connect(&mut report).map(|stream| (stream, Instant::now(), 0));
                continue;
            };
            let is_due = since.elapsed() >= BYTE_EVERY * u32::try_from(*sent).unwrap_or(u32::MAX);
            let mut is_open = drain(stream);
            // The last byte is never sent: the frame stays open whatever its length.
            if is_open && is_due && *sent + 1 < frame.len() {
                match stream.write(&frame[*sent..=*sent]) {
                    Ok(count) => {
                        *sent += count;
                        report.sent += count as u64;
                    }
                    Err(error) => is_open = error.kind() == ErrorKind::WouldBlock,
                }
            }
            if !is_open {
                report.note_closed(since.elapsed());
                *client = None;
            }
        }
        std::thread::sleep(LOOK);
    }
    report
}
