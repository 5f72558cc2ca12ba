//! `audit`: check the trails, and read them (R-157..R-160). Needs no daemon and changes nothing.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pcp_core::{ErrorCode, OperationId, Trail};
use pcp_durable::{
    AUDIT_DIRECTORY, Filter, RealDisk, Record, Show as TrailReader, Shown, TrailReport, Verdict,
    verify_directory, verify_lone_file,
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::{Answer, Context, Show};
use crate::digits::hex;
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Most records that are shown at once; with the longest lines 64 MiB.
const MAX_SHOWN: u32 = 1000;

/// Check the audit trails, and read them
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli audit verify
  pcp-cli audit verify --file copy/application.000001.jsonl
  pcp-cli audit show --last 20
  pcp-cli audit show --op 0191e7a0-0000-7000-8000-000000000001 --json | jq '.data[].terminal'

Exit codes: 0 ok, 2 usage, 11 a trail is broken, 12 a trail could not be read.")]
pub(crate) struct Audit {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Check every line of every trail, and name the first bad one
    Verify {
        #[command(flatten)]
        place: Place,
    },
    /// Print the newest records
    Show {
        #[command(flatten)]
        place: Place,
        /// Only this trail: application, compositor, system
        #[arg(long, value_name = "TRAIL")]
        trail: Option<Trail>,
        /// Only this operation
        #[arg(long, value_name = "OP")]
        op: Option<OperationId>,
        /// Only this application
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// The newest N of them
        #[arg(long, value_name = "N", default_value_t = 100,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHOWN)))]
        last: u32,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The audit directory
    #[arg(long, value_name = "DIR", default_value = AUDIT_DIRECTORY, conflicts_with = "file")]
    dir: PathBuf,
    /// One journal file, wherever it lies
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
}

impl Audit {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::Verify { place } => {
                let reports = match &place.file {
                    Some(file) => vec![verify_lone_file(file)],
                    None => verify_directory(&place.dir)?,
                };
                Ok(Answer::report(Checked { trails: reports.iter().map(Check::of).collect() }))
            }
            Verb::Show { place, trail, op, app, last } => {
                let filter =
                    Filter { trail: *trail, operation_id: *op, app: app.clone(), ..Filter::default() };
                let last = usize::try_from(*last).unwrap_or(usize::MAX);
                Ok(Answer::report(Records(match &place.file {
                    Some(file) => newest(TrailReader::of_file(file, filter)?, last)?,
                    None => of_directory(&place.dir, filter, last)?,
                })))
            }
        }
    }
}

fn of_directory(dir: &Path, filter: Filter, last: usize) -> Result<Vec<Box<RawValue>>, Error> {
    let disk = RealDisk::open_read_only(dir)?;
    newest(TrailReader::of_disk(&disk, filter)?, last)
}

/// The last so many records, oldest first.
fn newest(mut trails: TrailReader<'_>, last: usize) -> Result<Vec<Box<RawValue>>, Error> {
    let mut kept = VecDeque::new();
    while let Some(shown) = trails.next()? {
        if kept.len() == last {
            kept.pop_front();
        }
        kept.push_back(member(&shown)?);
    }
    Ok(kept.into())
}

/// A record as it stands in its trail, with the trail and the hash of its line before its own members.
fn member(shown: &Shown<'_>) -> Result<Box<RawValue>, Error> {
    let line = String::from_utf8_lossy(shown.line);
    let trail = serde_json::to_string(&shown.trail)?;
    let members = line.strip_prefix('{').unwrap_or_default();
    let text = format!("{{\"trail\":{trail},\"audit_hash\":\"{}\",{members}", hex(&shown.hash));
    Ok(RawValue::from_string(text)?)
}

#[derive(Debug, Serialize)]
struct Checked {
    trails: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    name: String,
    verdict: &'static str,
    records: u64,
    head_seq: u64,
    head_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_bad: Option<BadLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct BadLine {
    file: String,
    line: u64,
    offset: u64,
}

impl Check {
    fn of(report: &TrailReport) -> Self {
        let (verdict, error) = match &report.verdict {
            Verdict::Whole => ("whole", None),
            Verdict::Broken(error) => ("broken", Some(error)),
            Verdict::Unchecked(error) => ("unchecked", Some(error)),
        };
        let first_bad = match error {
            Some(pcp_durable::Error::Damaged { file, line, offset, .. }) => {
                Some(BadLine { file: file.clone(), line: *line, offset: *offset })
            }
            _ => None,
        };
        Self {
            name: report.name.clone(),
            verdict,
            records: report.lines,
            head_seq: report.head.seq,
            head_hash: hex(&report.head.hash),
            first_bad,
            why: error.map(ToString::to_string),
        }
    }
}

impl Show for Checked {
    fn show(&self, page: &mut Page) {
        let cells = |check: &Check| {
            vec![
                Cell::new(&check.name),
                Cell::word(check.verdict),
                Cell::new(check.records),
                Cell::new(&check.head_hash),
            ]
        };
        let rows: Vec<_> = self.trails.iter().map(cells).collect();
        page.table(&["TRAIL", "VERDICT", "RECORDS", "HEAD"], &rows);
    }

    /// Broken before unchecked: what is known to be wrong weighs more than what is not known.
    fn problem(&self) -> Option<Problem> {
        let all = |verdict| self.trails.iter().filter(move |check| check.verdict == verdict);
        let (code, bad) = match (all("broken").next(), all("unchecked").next()) {
            (Some(_), _) => (ErrorCode::IntegrityBroken, "broken"),
            (None, Some(_)) => (ErrorCode::IntegrityUnchecked, "unchecked"),
            (None, None) => return None,
        };
        let whys: Vec<String> = all(bad)
            .map(|check| format!("trail {} is {bad}: {}", check.name, check.why.as_deref().unwrap_or("-")))
            .collect();
        Some(Problem::new(code, whys.join("; ")))
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Records(Vec<Box<RawValue>>);

impl Show for Records {
    fn show(&self, page: &mut Page) {
        let zone = TimeZone::system();
        let rows: Vec<_> = self.0.iter().filter_map(|record| cells(record.get(), &zone)).collect();
        let headings = [
            "TIME",
            "SEQ",
            "KIND",
            "UID",
            "CAPABILITY",
            "TIER",
            "TERMINAL",
            "EFFECT",
            "ERROR",
            "µs",
            "OPERATION",
        ];
        page.table(&headings, &rows);
        page.gap();
        page.line(Tone::Faint, format_args!("{} records shown.", rows.len()));
    }
}

fn cells(record: &str, zone: &TimeZone) -> Option<Vec<Cell>> {
    let record = Record::read(record.as_bytes())?;
    Some(vec![
        Cell::new(moment(record.time_ms, zone)),
        Cell::new(record.seq),
        Cell::new(&record.kind),
        Cell::new(record.caller.uid),
        Cell::new(&record.capability),
        Cell::maybe(record.tier.as_ref()),
        record.terminal.as_ref().map_or_else(|| Cell::maybe(None::<u8>), Cell::word),
        record.effect.as_ref().map_or_else(|| Cell::maybe(None::<u8>), Cell::word),
        Cell::maybe(record.error.as_ref()),
        Cell::maybe(record.duration_us),
        Cell::new(&record.operation_id),
    ])
}

/// A wall time in the zone of whoever reads it.
fn moment(unix_ms: u64, zone: &TimeZone) -> String {
    let timestamp = i64::try_from(unix_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    match timestamp {
        Some(timestamp) => {
            timestamp.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S%.3f %z").to_string()
        }
        None => format!("{unix_ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_the_readers_zone_and_an_impossible_one_as_a_number() {
        let berlin = TimeZone::fixed(jiff::tz::offset(1));
        assert_eq!(moment(1_700_000_000_123, &berlin), "2023-11-14 23:13:20.123 +0100");
        assert_eq!(moment(u64::MAX, &berlin), format!("{} ms", u64::MAX));
    }

    #[test]
    fn a_broken_trail_weighs_more_than_an_unchecked_one() {
        let check = |name: &str, verdict| Check {
            name: name.into(),
            verdict,
            records: 0,
            head_seq: 0,
            head_hash: String::new(),
            first_bad: None,
            why: Some("why".into()),
        };
        let code = |verdicts: &[&'static str]| {
            let trails = verdicts.iter().map(|verdict| check("t", verdict)).collect();
            Checked { trails }.problem().map(|problem| problem.code.exit_code())
        };
        assert_eq!(code(&["whole", "whole"]), None);
        assert_eq!(code(&["whole", "unchecked"]), Some(12));
        assert_eq!(code(&["unchecked", "broken"]), Some(11));
    }
}
