//! Every message type there could be, against a live socket: each gets exactly one answer.

use std::path::Path;
use std::time::Duration;

use pcp_stream::{ProtocolError, StreamClient, StreamMessageType};
use serde::Serialize;

use crate::exchange::{ProbeError, Reply};

/// Longest wait for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause after being told to slow down.
const SLOW_DOWN: Duration = Duration::from_millis(250);

/// How often one type is asked again after being told to slow down.
const ATTEMPTS: usize = 20;

/// What one message type got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeVerdict {
    /// The number that was sent.
    pub discriminant: u32,
    /// Name of the answer's type; `None` when there was none.
    pub answer: Option<&'static str>,
    /// The code of an ErrorResponse.
    pub code: Option<String>,
    /// What was wrong; `None` when nothing was.
    pub problem: Option<String>,
}

/// Sends an empty frame of each discriminant from 0 to 255 over one connection.
///
/// Right is: exactly one answer to each, `unsupported_message` to every number above 26, and the connection stays.
///
/// # Errors
/// [`ProbeError::Connect`].
pub fn judge_types(socket: &Path) -> Result<Vec<TypeVerdict>, ProbeError> {
    let mut client = StreamClient::connect_anyone(socket).map_err(ProbeError::Connect)?;
    let mut verdicts = Vec::new();
    for discriminant in 0..=255 {
        let answer = ask(&mut client, discriminant);
        let open = answer.is_ok();
        verdicts.push(verdict(discriminant, answer));
        if !open {
            client = StreamClient::connect_anyone(socket).map_err(ProbeError::Connect)?;
        }
    }
    Ok(verdicts)
}

fn verdict(discriminant: u32, answer: Result<Reply, ProtocolError>) -> TypeVerdict {
    let (answer, code, problem) = match answer {
        Ok(reply) => {
            let code = reply.code();
            let known = StreamMessageType::from_discriminant(discriminant);
            let wanted = match known {
                Some(StreamMessageType::Ping) => {
                    reply.name == "pong" || code.as_deref() == Some("unsupported_message")
                }
                Some(_) => true,
                None => code.as_deref() == Some("unsupported_message"),
            };
            let problem = (!wanted).then(|| format!("answered by {}: {}", reply.name, reply.payload));
            (Some(reply.name), code, problem)
        }
        Err(error) => (None, None, Some(error.to_string())),
    };
    TypeVerdict { discriminant, answer, code, problem }
}

fn ask(client: &mut StreamClient, discriminant: u32) -> Result<Reply, ProtocolError> {
    for _ in 0..ATTEMPTS {
        std::io::Write::write_all(&mut client.stream(), &empty_frame(discriminant))?;
        let frame = client.receive(PATIENCE)?;
        let payload = String::from_utf8_lossy(frame.payload).into_owned();
        let reply = Reply { name: frame.message_type.name(), payload };
        if reply.code().as_deref() != Some("rate_limited") {
            return Ok(reply);
        }
        std::thread::sleep(SLOW_DOWN);
    }
    Err(ProtocolError::Timeout { limit_ms: 0 })
}

/// A frame without payload of any type number, known or not; the checksum of nothing is 0.
pub(crate) fn empty_frame(discriminant: u32) -> Vec<u8> {
    let mut header = vec![0x80, 0xa0, 0x8d, 0x82, 0x05, 0x01];
    let mut rest = discriminant;
    while rest > 0x7f {
        header.push(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    header.extend_from_slice(&[rest.to_le_bytes()[0], 0, 0]);
    let mut frame = u32::try_from(header.len()).unwrap_or_default().to_le_bytes().to_vec();
    frame.extend_from_slice(&header);
    frame
}
