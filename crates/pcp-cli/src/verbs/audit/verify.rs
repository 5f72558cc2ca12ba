//! `audit verify`: intact, broken, or not to be told.

use std::fs::File;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};

use pcp_core::{ErrorCode, Trail};
use pcp_durable::{
    KEY_TEXT_BYTES, Pin, Proofs, RealDisk, TrailReport, Verdict, VerificationKey, verify_log,
    verify_lone_file, verify_sealed_file,
};
use serde::Serialize;

use super::{Place, head};
use crate::context::Show;
use crate::digits::hex;
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Longest file of a key or of heads that is read: a key or three heads, and what people add around them.
const MAX_PROOF_BYTES: u64 = 4096;

/// What the trails are held against.
#[derive(Debug, clap::Args)]
pub(super) struct Against {
    /// The verification key that `audit setup-keys` printed, in a file; `-` for the standard input. After keys were
    /// replaced, once for each
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Heads that `audit head` printed earlier: the trails must go on from there
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    since_head: Option<PathBuf>,
    /// The directory of the key and the anchor [default: `seal` beside the audit directory]
    #[arg(long, value_name = "DIR", conflicts_with = "file")]
    seals: Option<PathBuf>,
    /// The trails are a copy without key and anchor: what is missing behind their last seals cannot be told
    #[arg(long, conflicts_with_all = ["file", "seals"])]
    copy: bool,
    /// The trail that the one file is of, to check its seals
    #[arg(long, value_name = "TRAIL", requires = "file")]
    trail: Option<Trail>,
}

/// Checks a directory or a file.
pub(super) fn check(place: &Place, against: &Against) -> Result<Checked, Error> {
    let keys = against.key.iter().map(|path| read_key(path)).collect::<Result<Vec<_>, _>>()?;
    if let Some(file) = &place.file {
        let report = match against.trail {
            Some(trail) => verify_sealed_file(file, trail, &keys),
            None if keys.is_empty() => verify_lone_file(file),
            None => {
                return Err(Error::usage("a key alone does not say whose seals these are", "add --trail"));
            }
        };
        return Ok(Checked { trails: vec![Check::of(&report)], seals: None });
    }
    let pins = against.since_head.as_deref().map(read_heads).transpose()?.unwrap_or_default();
    let disk = RealDisk::open_read_only(&place.dir)?;
    let seals = against.seals.clone().unwrap_or_else(|| place.seals());
    let is_there = !against.copy && (against.seals.is_some() || seals.symlink_metadata().is_ok());
    let seals = is_there.then(|| RealDisk::open_read_only(&seals)).transpose()?;
    let seals = seals.as_ref().map(|disk| disk as &dyn pcp_durable::Disk);
    let report = verify_log(&disk, &Proofs { seals, is_copy: against.copy, keys: &keys, pins: &pins });
    let (verdict, error) = verdict_of(&report.seals.verdict);
    Ok(Checked {
        trails: report.trails.iter().map(Check::of).collect(),
        seals: Some(Seals {
            verdict,
            sealed: report.seals.is_sealed,
            epoch: report.seals.epoch,
            why: error.map(ToString::to_string),
        }),
    })
}

fn read_text(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => stdin().take(MAX_PROOF_BYTES).read_to_string(&mut text),
        _ => File::open(path).and_then(|file| file.take(MAX_PROOF_BYTES).read_to_string(&mut text)),
    };
    read.map_err(|source| Error::file("read", path, source))?;
    Ok(text)
}

/// The first word that looks like a key, so that a line of explanation around it does no harm.
fn read_key(path: &Path) -> Result<VerificationKey, Error> {
    let text = read_text(path)?;
    let mut words = text.split_whitespace().filter(|word| word.len() <= KEY_TEXT_BYTES);
    words.find_map(|word| word.parse().ok()).ok_or_else(|| pcp_durable::Error::NotAKey.into())
}

fn read_heads(path: &Path) -> Result<Vec<Pin>, Error> {
    let heads = head::parse(&read_text(path)?);
    heads.ok_or_else(|| {
        let message = format!("{} has no heads of trails", path.display());
        Error::usage(message, "write one by `pcp-cli audit head > FILE`")
    })
}

#[derive(Debug, Serialize)]
pub(super) struct Checked {
    trails: Vec<Check>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seals: Option<Seals>,
}

/// The key and the anchor, and what the key that was given could check.
#[derive(Debug, Serialize)]
struct Seals {
    verdict: &'static str,
    sealed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Check {
    name: String,
    verdict: &'static str,
    records: u64,
    head_seq: u64,
    head_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    seals: Option<Sealed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_bad: Option<BadLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

#[derive(Debug, Serialize)]
struct Sealed {
    epoch: u64,
    checked: u64,
    unchecked: u64,
}

#[derive(Debug, Serialize)]
struct BadLine {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    offset: u64,
    record: u64,
}

/// The stable word of a verdict, and why where it is not a good one.
fn verdict_of(verdict: &Verdict) -> (&'static str, Option<&pcp_durable::Error>) {
    match verdict {
        Verdict::Whole => ("whole", None),
        Verdict::Broken(error) => ("broken", Some(error)),
        Verdict::Unchecked(error) => ("unchecked", Some(error)),
    }
}

/// The file, the place in it and the record that are bad.
fn bad_line(error: &pcp_durable::Error, good: u64) -> Option<BadLine> {
    use pcp_durable::Error::{CutShort, Damaged, Seal};
    match error {
        Damaged { file, line, offset, .. } => {
            Some(BadLine { file: file.clone(), line: Some(*line), offset: *offset, record: good + 1 })
        }
        Seal { file, line, offset, seq, .. } => {
            Some(BadLine { file: file.clone(), line: Some(*line), offset: *offset, record: *seq })
        }
        CutShort { file, offset, last, .. } => {
            Some(BadLine { file: file.clone(), line: None, offset: *offset, record: last + 1 })
        }
        _ => None,
    }
}

impl Check {
    fn of(report: &TrailReport) -> Self {
        let (verdict, error) = verdict_of(&report.verdict);
        let first_bad = error.and_then(|error| bad_line(error, report.head.seq));
        let seals = report.sealed.map(|sealed| Sealed {
            epoch: sealed.epoch,
            checked: sealed.checked,
            unchecked: sealed.unchecked,
        });
        Self {
            name: report.name.clone(),
            verdict,
            records: report.lines,
            head_seq: report.head.seq,
            head_hash: hex(&report.head.hash),
            seals,
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
        let Some(seals) = &self.seals else { return };
        let sum = |count: fn(&Sealed) -> u64| {
            self.trails.iter().filter_map(|trail| trail.seals.as_ref()).map(count).sum()
        };
        let (checked, unchecked): (u64, u64) = (sum(|sealed| sealed.checked), sum(|sealed| sealed.unchecked));
        page.gap();
        match (seals.sealed, unchecked) {
            (false, _) => {
                page.line(Tone::Careful, "Not sealed: whoever may write these files can make them anew.")
            }
            (true, 0) => {
                page.line(Tone::Good, format_args!("Sealed; {checked} seals checked with their key."))
            }
            (true, _) => page.line(
                Tone::Careful,
                format_args!(
                    "Sealed; {checked} seals checked with their key, {unchecked} not: give the key by --key."
                ),
            ),
        }
    }

    /// Broken before unchecked: what is known to be wrong weighs more than what is not known.
    fn problem(&self) -> Option<Problem> {
        let trails =
            self.trails.iter().map(|check| (check.verdict, format!("trail {}", check.name), &check.why));
        let seals = self.seals.iter().map(|seals| (seals.verdict, "the sealing".to_owned(), &seals.why));
        let all: Vec<(&str, String, &Option<String>)> = trails.chain(seals).collect();
        let is = |wanted: &str| all.iter().any(|(verdict, ..)| *verdict == wanted);
        let (code, bad) = match (is("broken"), is("unchecked")) {
            (true, _) => (ErrorCode::IntegrityBroken, "broken"),
            (false, true) => (ErrorCode::IntegrityUnchecked, "unchecked"),
            (false, false) => return None,
        };
        let whys: Vec<String> = all
            .iter()
            .filter(|(verdict, ..)| *verdict == bad)
            .map(|(_, what, why)| format!("{what} is {bad}: {}", why.as_deref().unwrap_or("-")))
            .collect();
        Some(Problem::new(code, whys.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_trail_weighs_more_than_an_unchecked_one() {
        let check = |name: &str, verdict| Check {
            name: name.into(),
            verdict,
            records: 0,
            head_seq: 0,
            head_hash: String::new(),
            seals: None,
            first_bad: None,
            why: Some("why".into()),
        };
        let code = |verdicts: &[&'static str]| {
            let trails = verdicts.iter().map(|verdict| check("t", verdict)).collect();
            Checked { trails, seals: None }.problem().map(|problem| problem.code.exit_code())
        };
        assert_eq!(code(&["whole", "whole"]), None);
        assert_eq!(code(&["whole", "unchecked"]), Some(12));
        assert_eq!(code(&["unchecked", "broken"]), Some(11));
    }
}
