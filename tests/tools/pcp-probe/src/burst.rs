//! Many requests at once, to see how many are served and how many are told to slow down.

use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use pcp_stream::{StreamClient, StreamMessageType};
use serde::{Deserialize, Serialize};

use crate::exchange::{ProbeError, Reply};
use crate::types::empty_frame;

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of a burst.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// Requests that were served.
    pub served: usize,
    /// Requests that were told 429.
    pub limited: usize,
    /// Everything else: other answers and connections that ended.
    pub other: usize,
    /// From the first connection to the last answer, in milliseconds.
    pub took_ms: u64,
}

/// Opens `connections`, sends `pings` over each before reading any answer, and reads them all.
///
/// # Errors
/// [`ProbeError::Connect`].
pub fn burst(socket: &Path, connections: usize, pings: usize) -> Result<Burst, ProbeError> {
    let begun = Instant::now();
    let ping = empty_frame(StreamMessageType::Ping.discriminant());
    let frames = ping.repeat(pings);
    let mut found = Burst::default();
    let connect = |_| StreamClient::connect_anyone(socket).map_err(ProbeError::Connect);
    let mut clients = (0..connections).map(connect).collect::<Result<Vec<_>, _>>()?;
    for client in &mut clients {
        let _ = client.stream().write_all(&frames);
    }
    for client in &mut clients {
        for left in (1..=pings).rev() {
            let Ok(frame) = client.receive(PATIENCE) else {
                found.other += left;
                break;
            };
            let payload = String::from_utf8_lossy(frame.payload).into_owned();
            let reply = Reply { name: frame.message_type.name(), payload };
            match (reply.name, reply.code().as_deref()) {
                ("pong", _) => found.served += 1,
                (_, Some("rate_limited")) => found.limited += 1,
                _ => found.other += 1,
            }
        }
    }
    found.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(found)
}
