//! An honest crowd: so many connections, so many requests a second each, and how long every answer took (T-10).
//!
//! Requests are due at fixed times whether or not the answers before them have come, and a latency counts from when
//! the request was due: a listener that stands still is not excused by clients that wait for it.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use pcp_stream::{FrameReader, ProtocolError, StreamMessageType, encode};
use serde::Serialize;

use crate::exchange::{ProbeError, Reply};
use crate::latencies::{Latencies, Percentiles};
use crate::types::empty_frame;

/// How long the last answers may take once nothing is asked any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// Every so many requests of a mixed load one asks for a page of the registry.
const PAGE_EVERY: u64 = 10;

/// The request for a page.
const PAGE: &[u8] = br#"{"type":"registry_query","what":"capabilities"}"#;

/// Bytes taken at once, a page of the registry in a few steps.
const READ_BYTES: usize = 16 * 1024;

/// Connections that are looked at after one wait.
const EVENTS_AT_ONCE: usize = 256;

/// What an honest crowd asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Asks {
    /// Pings.
    Pings,
    /// Pings, and pages of the registry between them.
    Mixed,
}

/// The crowd.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many connections.
    pub connections: usize,
    /// Requests a second over each.
    pub per_second: u32,
    /// How long.
    pub time: Duration,
    /// What is asked.
    pub asks: Asks,
}

/// How the crowd fared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadReport {
    /// Requests that were sent.
    pub asked: u64,
    /// Those that were served.
    pub served: u64,
    /// Those that were told 429.
    pub limited: u64,
    /// Other errors.
    pub errors: u64,
    /// Requests that got no answer, because it was too late or the connection ended.
    pub unanswered: u64,
    /// The first error's text.
    pub first_error: Option<String>,
    /// How long answers took.
    pub latency: Percentiles,
}

struct Line {
    stream: UnixStream,
    reader: FrameReader,
    waiting: VecDeque<Instant>,
    open: bool,
}

struct Crowd {
    lines: Vec<Line>,
    watch: Epoll,
    latencies: Latencies,
    report: LoadReport,
}

/// Runs the crowd.
///
/// # Errors
/// [`ProbeError::Connect`] when a connection cannot be made; everything later is counted.
pub fn run_load(socket: &Path, load: &Load) -> Result<LoadReport, ProbeError> {
    let failed = |error| ProbeError::Connect(ProtocolError::Io(error));
    let watch = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(|errno| failed(errno.into()))?;
    let connect = |number: usize| {
        let stream = UnixStream::connect(socket)?;
        stream.set_nonblocking(true)?;
        watch.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
        Ok(Line { stream, reader: FrameReader::new(), waiting: VecDeque::new(), open: true })
    };
    let lines: io::Result<Vec<Line>> = (0..load.connections).map(connect).collect();
    let lines = lines.map_err(failed)?;
    let mut crowd = Crowd { lines, watch, latencies: Latencies::default(), report: LoadReport::default() };
    crowd.ask(load);
    let Crowd { lines, latencies, mut report, .. } = crowd;
    report.unanswered += lines.iter().map(|line| line.waiting.len() as u64).sum::<u64>();
    report.latency = latencies.percentiles();
    Ok(report)
}

impl Crowd {
    fn ask(&mut self, load: &Load) {
        let rate = load.connections as u64 * u64::from(load.per_second);
        let total = u64::try_from(u128::from(rate) * load.time.as_millis() / 1_000).unwrap_or(u64::MAX);
        let ping = empty_frame(StreamMessageType::Ping.discriminant());
        let mut page = Vec::new();
        let _ = encode(StreamMessageType::RegistryQuery, PAGE, &mut page);
        let begun = Instant::now();
        let due =
            |number: u64| begun + Duration::from_nanos(number.saturating_mul(1_000_000_000) / rate.max(1));
        let mut number = 0;
        while number < total {
            let now = Instant::now();
            while number < total && due(number) <= now {
                let index = usize::try_from(number % load.connections as u64).unwrap_or(0);
                let is_page = load.asks == Asks::Mixed && number % PAGE_EVERY == PAGE_EVERY - 1;
                self.send(index, if is_page { &page } else { &ping }, due(number));
                number += 1;
            }
            self.listen(due(number).saturating_duration_since(Instant::now()));
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && self.lines.iter().any(|line| line.open && !line.waiting.is_empty()) {
            self.listen(Duration::from_millis(10));
        }
    }

    fn send(&mut self, index: usize, frame: &[u8], due: Instant) {
        let line = &mut self.lines[index];
        self.report.asked += 1;
        // The socket's buffer holds thousands of requests; one that is full stands for a listener that is stuck.
        if line.open && (&line.stream).write_all(frame).is_ok() {
            line.waiting.push_back(due);
        } else {
            line.open = false;
            self.report.unanswered += 1;
        }
    }

    /// Waits for answers and reads those that have come. The wait is as fine as the clock: epoll's own has milliseconds.
    fn listen(&mut self, wait: Duration) {
        let mut any = [PollFd::new(self.watch.0.as_fd(), PollFlags::POLLIN)];
        if !matches!(ppoll(&mut any, Some(TimeSpec::from(wait)), None), Ok(count) if count > 0) {
            return;
        }
        let mut events = [EpollEvent::empty(); EVENTS_AT_ONCE];
        let count = self.watch.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            self.read(usize::try_from(event.data()).unwrap_or(usize::MAX));
        }
    }

    fn read(&mut self, index: usize) {
        let Some(line) = self.lines.get_mut(index) else { return };
        let mut bytes = [0; READ_BYTES];
        let count = match (&line.stream).read(&mut bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            other => other.unwrap_or(0),
        };
        line.open = count > 0;
        let mut rest = &bytes[..count];
        while !rest.is_empty() && self.lines[index].open {
            rest = &rest[self.lines[index].reader.push(rest)..];
            self.take_answers(index);
        }
        let line = &mut self.lines[index];
        if !line.open {
            // What has ended would be ready for ever.
            let _ = self.watch.delete(&line.stream);
            self.report.unanswered += line.waiting.drain(..).count() as u64;
        }
    }

    fn take_answers(&mut self, index: usize) {
        let Self { lines, latencies, report, .. } = self;
        let line = &mut lines[index];
        loop {
            let frame = match line.reader.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return,
                Err(error) => {
                    report.first_error.get_or_insert(error.to_string());
                    line.open = false;
                    return;
                }
            };
            // A refused connection is told so before it has asked.
            if let Some(due) = line.waiting.pop_front() {
                latencies.note(due.elapsed());
            }
            if frame.message_type != StreamMessageType::ErrorResponse {
                report.served += 1;
                continue;
            }
            let payload = String::from_utf8_lossy(frame.payload).into_owned();
            let reply = Reply { name: frame.message_type.name(), payload };
            if reply.code().as_deref() == Some("rate_limited") {
                report.limited += 1;
            } else {
                report.errors += 1;
                report.first_error.get_or_insert(reply.payload);
            }
        }
    }
}
