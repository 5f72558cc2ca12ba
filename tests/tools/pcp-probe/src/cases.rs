//! A folder of frame cases against a live socket: each input has one right reaction.

use std::path::Path;
use std::time::Duration;

use pcp_stream::{StreamClient, StreamMessageType};
use serde::{Deserialize, Serialize};

use crate::exchange::{Exchange, ProbeError, Reply, Sending, exchange};
use crate::types::empty_frame;

#[derive(Deserialize)]
struct Expected {
    cases: Vec<Case>,
}

/// One line of `expected.json`; members that are only for people are left out.
#[derive(Deserialize)]
struct Case {
    case: String,
    file: String,
    frames: usize,
    outcome: String,
    after: String,
    #[serde(default)]
    eof: bool,
    #[serde(default)]
    chunk: usize,
    #[serde(default)]
    pause_ms: u64,
    max_alloc_bytes: Option<u64>,
}

/// How one case went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseVerdict {
    /// Its identifier.
    pub case: String,
    /// Its input.
    pub file: String,
    /// What was wrong; `None` when nothing was.
    pub problem: Option<String>,
}

/// Sends every case of `folder` to `socket` and judges the reaction.
///
/// # Errors
/// [`ProbeError`] when the folder cannot be read or nobody listens.
pub fn judge_cases(folder: &Path, socket: &Path) -> Result<Vec<CaseVerdict>, ProbeError> {
    let read = |path: &Path| {
        std::fs::read(path).map_err(|error| ProbeError::Input(path.to_owned(), error.to_string()))
    };
    let list = folder.join("expected.json");
    let expected: Expected = serde_json::from_slice(&read(&list)?)
        .map_err(|error| ProbeError::Input(list.clone(), error.to_string()))?;
    let mut verdicts = Vec::new();
    for case in expected.cases {
        let bytes = read(&folder.join(&case.file))?;
        let problem = judge(&case, bytes, socket)?;
        verdicts.push(CaseVerdict { case: case.case, file: case.file, problem });
    }
    Ok(verdicts)
}

/// Sends the input and, where the stream may go on, a Ping behind it: its Pong shows that it did.
fn judge(case: &Case, mut bytes: Vec<u8>, socket: &Path) -> Result<Option<String>, ProbeError> {
    if !case.eof {
        bytes.extend_from_slice(&empty_frame(StreamMessageType::Ping.discriminant()));
    }
    let enough = if case.outcome == "accept" || case.outcome == "accept-frame" { case.frames + 1 } else { 0 };
    let pause = Duration::from_millis(case.pause_ms);
    let before = listener_memory(socket)?;
    let seen = exchange(socket, &bytes, Sending { chunk: case.chunk, pause, eof: case.eof, enough })?;
    let grown = listener_memory(socket)?.saturating_sub(before);
    if let Some(limit) = case.max_alloc_bytes.filter(|limit| grown > *limit) {
        return Ok(Some(format!("the listener's memory grew by {grown} bytes, over {limit}")));
    }
    Ok(reaction(case, &seen).map(|problem| format!("{problem}; saw {seen:?}")).or(alive(socket)))
}

/// What is wrong with the reaction, if anything.
fn reaction(case: &Case, seen: &Exchange) -> Option<String> {
    let pongs = seen.replies.iter().filter(|reply| reply.name == "pong").count();
    let errors: Vec<&Reply> = seen.replies.iter().filter(|reply| reply.name == "error_response").collect();
    if pongs + errors.len() != seen.replies.len() {
        return Some("something else than pong and error_response came back".to_owned());
    }
    let probe = usize::from(seen.open);
    let wanted = match case.outcome.as_str() {
        "accept" => pongs == case.frames + probe && errors.is_empty(),
        "accept-frame" => errors.len() == case.frames && pongs == probe,
        "reject" | "eof" => pongs == 0,
        "checksum-mismatch" => pongs <= probe,
        "error-reply" => pongs <= probe && (errors.len() == 1 || case.after == "either"),
        other => return Some(format!("outcome {other:?} is not known to this probe")),
    };
    if !wanted {
        return Some(format!("{pongs} pongs and {} errors are no {}", errors.len(), case.outcome));
    }
    match (case.after.as_str(), seen.open) {
        ("open", true) | ("close", false) | ("either", _) => None,
        (after, _) => Some(format!("the connection should be {after} afterwards")),
    }
}

/// Whatever was sent before, the next client is served.
fn alive(socket: &Path) -> Option<String> {
    let ping = empty_frame(StreamMessageType::Ping.discriminant());
    match exchange(socket, &ping, Sending { enough: 1, ..Sending::default() }) {
        Ok(Exchange { replies, .. }) if replies.first().is_some_and(|reply| reply.name == "pong") => None,
        other => Some(format!("a ping afterwards was not answered: {other:?}")),
    }
}

/// Resident memory of the process that listens, in bytes; 0 where it cannot be seen.
fn listener_memory(socket: &Path) -> Result<u64, ProbeError> {
    let client = StreamClient::connect_anyone(socket).map_err(ProbeError::Connect)?;
    let pages = std::fs::read_to_string(format!("/proc/{}/statm", client.peer().pid))
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096);
    Ok(pages * u64::try_from(page).unwrap_or(4096))
}
