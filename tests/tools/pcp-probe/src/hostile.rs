//! Clients that no honest program is: what each does, for how long, and what the listener did about it (T-08, T-09).

mod flood;
mod garbage;
mod reconnect;
mod slow;
mod unread;

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::exchange::ProbeError;
use crate::vectors::Vector;

/// Pause before connecting again to a listener that refuses.
const REFUSED_PAUSE: Duration = Duration::from_millis(20);

/// What a hostile client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Behaviour {
    /// Sends random bytes, flipped bits, length bombs, half frames, and right frames of every type in any order.
    Garbage,
    /// Sends one byte of a frame a second.
    Slow,
    /// Asks for pages of the registry and for events, and reads nothing.
    Unread,
    /// Connects, asks once, closes, and again.
    Reconnect,
    /// Asks as fast as it can and reads the answers.
    Flood,
}

/// A number of hostile clients that do the same.
#[derive(Clone, Copy, Debug)]
pub struct Attack<'a> {
    /// What they do.
    pub behaviour: Behaviour,
    /// How many they are.
    pub clients: usize,
    /// How long they go on.
    pub time: Duration,
    /// Frames after which they stop even so; only those that send frames one by one count.
    pub frames: u64,
    /// Where their numbers come from.
    pub seed: u64,
    /// Frames that are right, to begin from.
    pub vectors: &'a [Vector],
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttackReport {
    /// What they did.
    pub behaviour: Option<Behaviour>,
    /// Connections that were made.
    pub connections: u64,
    /// Connections that could not be made.
    pub unreached: u64,
    /// Frames that were sent, whole or not; bytes of those that send single bytes.
    pub sent: u64,
    /// Connections that the listener closed.
    pub closed: u64,
    /// The shortest time to that, in milliseconds, from when the listener had a reason.
    pub shortest_ms: u64,
    /// The longest.
    pub longest_ms: u64,
}

impl AttackReport {
    fn note_closed(&mut self, after: Duration) {
        let ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.shortest_ms = if self.closed == 0 { ms } else { self.shortest_ms.min(ms) };
        self.longest_ms = self.longest_ms.max(ms);
        self.closed += 1;
    }

    fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.unreached += other.unreached;
        self.sent += other.sent;
        if other.closed > 0 {
            let shortest = if self.closed == 0 { u64::MAX } else { self.shortest_ms };
            self.shortest_ms = shortest.min(other.shortest_ms);
            self.longest_ms = self.longest_ms.max(other.longest_ms);
            self.closed += other.closed;
        }
    }
}

/// What every client of an attack knows.
struct Target<'a> {
    socket: &'a Path,
    attack: Attack<'a>,
    until: Instant,
    frames_left: AtomicU64,
}

impl Target<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.until || self.frames_left.load(Ordering::Relaxed) == 0
    }

    /// Whether one more frame may be sent.
    fn take_frame(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        self.frames_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Connects; pauses where that does not work, so that a listener's refusal is not a busy loop here.
    fn connect(&self, report: &mut AttackReport) -> Option<UnixStream> {
        let connected = UnixStream::connect(self.socket).and_then(|stream| {
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => {
                report.connections += 1;
                Some(stream)
            }
            Err(_) => {
                report.unreached += 1;
                std::thread::sleep(REFUSED_PAUSE);
                None
            }
        }
    }
}

/// Attacks until the time or the frames are used up.
///
/// # Errors
/// [`ProbeError::Input`] when there are no frames to begin from.
pub fn attack(socket: &Path, attack: Attack<'_>) -> Result<AttackReport, ProbeError> {
    if attack.vectors.is_empty() {
        return Err(ProbeError::Input(socket.to_owned(), "no right frame to begin from".to_owned()));
    }
    let until = Instant::now() + attack.time;
    let target = Target { socket, attack, until, frames_left: AtomicU64::new(attack.frames) };
    let mut report = match attack.behaviour {
        Behaviour::Slow => slow::run(&target),
        Behaviour::Unread => unread::run(&target),
        Behaviour::Garbage => each(&target, garbage::run),
        Behaviour::Reconnect => each(&target, reconnect::run),
        Behaviour::Flood => each(&target, flood::run),
    };
    report.behaviour = Some(attack.behaviour);
    Ok(report)
}

/// A thread for each client, numbered.
fn each(target: &Target<'_>, run: impl Fn(&Target<'_>, u64) -> AttackReport + Sync) -> AttackReport {
    let run = &run;
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..target.attack.clients as u64)
            .map(|number| scope.spawn(move || run(target, number)))
            .collect();
        let mut report = AttackReport::default();
        for client in clients {
            report.add(&client.join().unwrap_or_default());
        }
        report
    })
}
