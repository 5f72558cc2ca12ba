//! `inspect`: what PCP reads in a file and why, without the daemon.
//!
//! A file that PCP would refuse is a finding, not an error: the exit code says only whether all were read.

use std::path::{Path, PathBuf};

use pcp_core::{AppId, ErrorCode};
use pcp_ipc::Request;
use pcp_native::{ManifestReport, inspect_manifest};
use pcp_stream::{FrameReader, ProtocolError, Role};
use pcp_trust::root_file::{FileRule, read_once};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Largest file of frames that is read, in bytes: sixteen of the largest frames.
const MAX_FRAMES_FILE_BYTES: usize = 16 * 1024 * 1024;

/// Most frames of a file whose types are listed.
const MAX_LISTED_TYPES: usize = 1000;

/// Say what PCP reads in a file, and why
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli inspect manifest org.example.notes.json --key org.example.notes.pub
  pcp-cli inspect manifest --expect org.example.notes *.json --json | jq '.data[].outcome'
  pcp-cli inspect frame captured.bin

Exit codes: 0 all files were read (whatever was found in them), 2 usage, 4 one could not be read.")]
pub(crate) struct Inspect {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Judge manifests as the daemon would
    Manifest {
        /// The manifests
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// The file with the 32 bytes of the trusted key
        #[arg(long, value_name = "FILE")]
        key: Option<PathBuf>,
        /// The application that the manifest is looked up for
        #[arg(long, value_name = "APP")]
        expect: Option<String>,
    },
    /// Read frames of the wire protocol as the daemon would
    Frame {
        /// Files that hold what a client sent
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
    },
}

impl Inspect {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::Manifest { files, key, expect } => {
                let expect = expect.as_deref().map(|text| {
                    AppId::parse(text)
                        .map_err(|error| Error::usage(error.to_string(), "name an application id"))
                });
                let expect = expect.transpose()?;
                let judge = |file: &PathBuf| inspect_manifest(file, key.as_deref(), expect.as_ref()).report;
                Ok(Answer::report(Manifests(files.iter().map(judge).collect())))
            }
            Verb::Frame { files } => {
                Ok(Answer::report(Frames(files.iter().map(|file| read_frames(file)).collect())))
            }
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Manifests(Vec<ManifestReport>);

impl Show for Manifests {
    fn show(&self, page: &mut Page) {
        for (number, report) in self.0.iter().enumerate() {
            if number > 0 {
                page.gap();
            }
            manifest_page(report, page);
        }
    }

    fn problem(&self) -> Option<Problem> {
        unread(self.0.iter().filter(|report| report.reason == Some("unreadable")).map(|r| r.why.as_deref()))
    }
}

/// The problem of files that could not be read.
fn unread<'a>(whys: impl Iterator<Item = Option<&'a str>>) -> Option<Problem> {
    let whys: Vec<&str> = whys.map(Option::unwrap_or_default).collect();
    let first = whys.first()?;
    let more = if whys.len() > 1 { format!(", and {} more", whys.len() - 1) } else { String::new() };
    Some(Problem::new(ErrorCode::NotFound, format!("{first}{more}")))
}

/// A manifest's report for a person.
pub(super) fn manifest_page(report: &ManifestReport, page: &mut Page) {
    let outcome = serde_json::to_value(report.outcome).ok();
    let outcome = outcome.as_ref().and_then(|word| word.as_str()).unwrap_or_default();
    page.fields(&[
        ("File", Cell::maybe(report.file.as_ref())),
        ("Key", Cell::maybe(report.key.as_ref())),
        ("Outcome", Cell::word(outcome)),
        ("Reason", Cell::maybe(report.reason)),
        ("Why", Cell::maybe(report.why.as_ref())),
        ("Application", Cell::maybe(report.app_id.as_ref())),
        ("Version", Cell::maybe(report.version.as_ref())),
        ("Canonical SHA-256", Cell::maybe(report.canonical_sha256.as_ref())),
        ("Capabilities", Cell::new(report.capabilities.len())),
    ]);
    for id in &report.capabilities {
        page.line(Tone::Plain, format_args!("  {id}"));
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
        unread(self.0.iter().filter(|report| report.outcome == "unreadable").map(|r| r.why.as_deref()))
    }
}
