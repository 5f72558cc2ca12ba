//! Clients that ask and do not read: every answer stays where the listener put it (R-136).

use std::io::{ErrorKind, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pcp_stream::{StreamMessageType, encode};

use super::{AttackReport, Target};

/// Between two looks at each client.
const LOOK: Duration = Duration::from_millis(50);
/// What is asked, first for events and then again and again for pages.
const SUBSCRIBE: &[u8] = br#"{"type":"subscribe_events"}"#;
const PAGE: &[u8] = br#"{"type":"registry_query","what":"capabilities"}"#;
/// Pages a write.
const AT_ONCE: usize = 32;

struct Client {
    stream: UnixStream,
    /// Since when nothing more was taken from it: the listener waits for it to read.
    stuck: Option<Instant>,
    /// What is being sent, and how much of it is.
    bytes: Vec<u8>,
    sent: usize,
}

pub(super) fn run(target: &Target<'_>) -> AttackReport {
    let mut report = AttackReport::default();
    let (mut first, mut pages) = (Vec::new(), Vec::new());
    let _ = encode(StreamMessageType::SubscribeEvents, SUBSCRIBE, &mut first);
    let _ = encode(StreamMessageType::RegistryQuery, PAGE, &mut pages);
    let pages = pages.repeat(AT_ONCE);
    let mut clients: Vec<Option<Client>> = Vec::new();
    clients.resize_with(target.attack.clients, || None);
    while !target.is_over() {
        for client in &mut clients {
            let Some(open) = client else {
                let new = |stream| Client { stream, stuck: None, bytes: first.clone(), sent: 0 };
                *client = target.connect(&mut report).map(new);
                continue;
            };
            if !ask(open, &pages, &mut report) || is_closed(&open.stream) {
                report.note_closed(open.stuck.map_or(Duration::ZERO, |since| since.elapsed()));
                *client = None;
            }
        }
        std::thread::sleep(LOOK);
    }
    report
}

/// Sends until nothing more is taken; `false` when the listener has closed.
fn ask(client: &mut Client, pages: &[u8], report: &mut AttackReport) -> bool {
    loop {
        match client.stream.write(&client.bytes[client.sent..]) {
            Ok(count) => {
                client.stuck = None;
                client.sent += count;
                if client.sent == client.bytes.len() {
                    report.sent += 1;
                    client.bytes = pages.to_vec();
                    client.sent = 0;
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                client.stuck.get_or_insert_with(Instant::now);
                return true;
            }
            Err(_) => return false,
        }
    }
}

/// Whether the listener has hung up; asked without reading.
fn is_closed(stream: &UnixStream) -> bool {
    let mut ends = [PollFd::new(stream.as_fd(), PollFlags::empty())];
    let hung = PollFlags::POLLHUP | PollFlags::POLLERR;
    matches!(poll(&mut ends, PollTimeout::ZERO), Ok(count) if count > 0)
        && ends[0].revents().is_some_and(|found| found.intersects(hung))
}
