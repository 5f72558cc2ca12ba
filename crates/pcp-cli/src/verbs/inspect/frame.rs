//! `inspect frame`: what the daemon would make of bytes that a client sent.

use std::path::{Path, PathBuf};

use pcp_ipc::Request;
use pcp_stream::{FrameReader, ProtocolError, Role};
use pcp_trust::root_file::{FileRule, read_once};
use serde::Serialize;

use crate::context::{Answer, Show};
use crate::envelope::Problem;
use crate::page::{Cell, Page};

/// Largest file of frames that is read, in bytes: sixteen of the largest frames.
const MAX_FRAMES_FILE_BYTES: usize = 16 * 1024 * 1024;

/// Most frames of a file whose types are listed.
const MAX_LISTED_TYPES: usize = 1000;

/// Read frames of the wire protocol as the daemon would
#[derive(Debug, clap::Args)]
pub(super) struct Frame {
    /// Files that hold what a client sent
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

impl Frame {
    pub(super) fn run(&self) -> Answer {
        Answer::report(Frames(self.files.iter().map(|file| read_frames(file)).collect()))
    }
}

/// What became of the bytes of one file, in the words of the test data.
#[derive(Debug, Serialize)]
struct FrameReport {
    file: String,
    bytes: usize,
    frames: usize,
    types: Vec<&'static str>,
    outcome: &'static str,
    after: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Frames(Vec<FrameReport>);

fn read_frames(file: &Path) -> FrameReport {
    let name = file.display().to_string();
    match read_once(file, FileRule { owner: None, max_bytes: MAX_FRAMES_FILE_BYTES }) {
        Ok(bytes) => judge_frames(name, &bytes),
        Err(error) => FrameReport {
            file: name,
            bytes: 0,
            frames: 0,
            types: Vec::new(),
            outcome: "unreadable",
            after: "close",
            why: Some(error.to_string()),
        },
    }
}

fn judge_frames(file: String, bytes: &[u8]) -> FrameReport {
    let mut report = FrameReport {
        file,
        bytes: bytes.len(),
        frames: 0,
        types: Vec::new(),
        outcome: "accept",
        after: "open",
        why: None,
    };
    let mut reader = FrameReader::new();
    let mut rest = bytes;
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => {
                report.frames += 1;
                if report.types.len() < MAX_LISTED_TYPES {
                    report.types.push(frame.message_type.name());
                }
                if let Err(error) = Request::read(frame, Role::Confirmer) {
                    report.find(payload_outcome(frame.payload), "open", &error);
                }
            }
            Ok(None) if rest.is_empty() => break,
            Ok(None) => {
                let taken = reader.push(rest);
                rest = rest.get(taken..).unwrap_or_default();
            }
            Err(error @ ProtocolError::UnknownType { .. }) => report.find("error-reply", "open", &error),
            Err(error @ ProtocolError::ChecksumMismatch { .. }) => {
                report.find("checksum-mismatch", "close", &error);
                return report;
            }
            Err(error) => {
                report.find("reject", "close", &error);
                return report;
            }
        }
    }
    if reader.has_begun() {
        report.find("eof", "close", &format!("the file ends {} bytes into a frame", reader.pending_bytes()));
    }
    report
}

/// Framing is right in both: what begins as JSON is judged, of anything else only the frame can be.
const fn payload_outcome(payload: &[u8]) -> &'static str {
    match payload.first() {
        None | Some(b'{') => "error-reply",
        Some(_) => "accept-frame",
    }
}

impl FrameReport {
    /// The last finding counts: it is the one that the connection ends with.
    fn find(&mut self, outcome: &'static str, after: &'static str, why: &dyn std::fmt::Display) {
        (self.outcome, self.after, self.why) = (outcome, after, Some(why.to_string()));
    }
}

impl Show for Frames {
    fn show(&self, page: &mut Page) {
        let cells = |report: &FrameReport| {
            vec![
                Cell::new(&report.file),
                Cell::new(report.bytes),
                Cell::new(report.frames),
                Cell::word(report.outcome),
                Cell::new(report.after),
                Cell::maybe(report.why.as_ref()),
            ]
        };
        let rows: Vec<_> = self.0.iter().map(cells).collect();
        page.table(&["FILE", "BYTES", "FRAMES", "OUTCOME", "AFTER", "WHY"], &rows);
    }

    fn problem(&self) -> Option<Problem> {
        super::unread(self.0.iter().filter(|report| report.outcome == "unreadable").map(|r| r.why.as_deref()))
    }
}
