//! Frames that are wrong in every way there is, and right ones in an order that makes no sense.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use pcp_stream::{MAX_FRAME_BYTES, StreamMessageType, encode};

use super::{AttackReport, Target};
use crate::random::Random;
use crate::vectors::Vector;

/// Longest run of random bytes.
const RANDOM_BYTES: usize = 64;
/// Levels of a payload that is nothing but levels; the limit is 32.
const DEEP: usize = 4_096;
/// How long a listener may take nothing before the connection is given up.
const STUCK: Duration = Duration::from_secs(10);

/// A frame, and whether the stream is of no use after it.
struct Made {
    bytes: Vec<u8>,
    ends: bool,
}

pub(super) fn run(target: &Target<'_>, number: u64) -> AttackReport {
    let mut random = Random::new(target.attack.seed.wrapping_add(number));
    let mut report = AttackReport::default();
    let mut connected: Option<(UnixStream, Instant)> = None;
    while !target.is_over() && target.take_frame() {
        if connected.is_none() {
            connected = target.connect(&mut report).map(|stream| (stream, Instant::now()));
        }
        let Some((stream, since)) = &connected else { continue };
        let made = make(&mut random, target.attack.vectors);
        report.sent += 1;
        if !send(stream, &made.bytes) {
            report.note_closed(since.elapsed());
            connected = None;
        } else if made.ends {
            connected = None;
        }
    }
    report
}

fn make(random: &mut Random, vectors: &[Vector]) -> Made {
    let pick = random.below(vectors.len());
    let other = random.below(vectors.len());
    let (mut frame, kind) = (vectors[pick].frame.clone(), vectors[other].message_type);
    match random.below(10) {
        0 => Made { bytes: (0..=random.below(RANDOM_BYTES)).map(|_| random.byte()).collect(), ends: true },
        1 | 2 => {
            for _ in 0..=random.below(3) {
                let bit = random.below(frame.len() * 8);
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            Made { bytes: frame, ends: true }
        }
        3 => {
            let lengths = [u32::MAX, u32::MAX / 2, 0, 8, 1 << 20, (1 << 20) + 1];
            frame[..4].copy_from_slice(&lengths[random.below(lengths.len())].to_le_bytes());
            Made { bytes: frame, ends: true }
        }
        4 => {
            frame.truncate(1 + random.below(frame.len() - 1));
            Made { bytes: frame, ends: true }
        }
        5 => intact(kind, &vectors[pick].payload),
        6 => {
            let mut payload = vectors[pick].payload.clone();
            if !payload.is_empty() {
                let at = random.below(payload.len());
                payload[at] = random.byte();
            }
            intact(vectors[pick].message_type, &payload)
        }
        7 if random.below(64) == 0 => {
            let mut payload = br#"{"type":"query_state","topic":"doctor","arguments":"#.to_vec();
            payload.resize(payload.len() + DEEP, b'[');
            intact(StreamMessageType::QueryState, &payload)
        }
        8 if random.below(256) == 0 => {
            // As large as a frame may be, all of it a single name.
            let mut payload = br#"{"type":"registry_query","what":"apps","app":""#.to_vec();
            payload.resize(MAX_FRAME_BYTES - 64, b'*');
            payload.extend_from_slice(b"\"}");
            intact(StreamMessageType::RegistryQuery, &payload)
        }
        _ => Made { bytes: frame, ends: false },
    }
}

/// A frame whose checksum is right, whatever it carries.
fn intact(kind: StreamMessageType, payload: &[u8]) -> Made {
    let mut bytes = Vec::new();
    let ends = encode(kind, payload, &mut bytes).is_err();
    Made { bytes, ends }
}

/// Sends it all and reads what has come meanwhile, unseen; `false` when the listener has closed.
pub(super) fn send(stream: &UnixStream, bytes: &[u8]) -> bool {
    let begun = Instant::now();
    let mut sent = 0;
    loop {
        if !drain(stream) {
            return false;
        }
        match (&*stream).write(&bytes[sent..]) {
            Ok(count) => sent += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let mut ready = [PollFd::new(stream.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT)];
                let _ = poll(&mut ready, PollTimeout::from(100_u8));
            }
            Err(_) => return false,
        }
        if sent == bytes.len() {
            return true;
        }
        if begun.elapsed() > STUCK {
            return false;
        }
    }
}

/// Reads and forgets; `false` at the end of the stream.
pub(super) fn drain(stream: &UnixStream) -> bool {
    let mut unseen = [0; 4_096];
    loop {
        match (&*stream).read(&mut unseen) {
            Ok(0) => return false,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
    }
}
