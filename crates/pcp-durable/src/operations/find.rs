//! Finds the last record of one operation on the disk, from the newest segment back.

use std::path::Path;

use pcp_core::{OperationId, Trail};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::OperationKey;
use crate::archive::find_by_index;
use crate::disk::{Disk, RealDisk};
use crate::line::{Chain, LineFault};
use crate::record::Record;
use crate::scan::Scanner;
use crate::{Error, index, segment};

/// The last record of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastRecord {
    /// Its wall time in Unix milliseconds.
    pub time_ms: u64,
    /// Its `params`.
    pub params: Box<str>,
    /// Whether it is the operation's end, and not only its claim.
    pub ends: bool,
}

impl LastRecord {
    /// What the records of a directory, or of one of its files, say of an operation. Needs no daemon and writes nothing.
    ///
    /// # Errors
    /// [`Error::NotPrivate`], [`Error::Damaged`], [`Error::SegmentMissing`] or [`Error::Disk`].
    pub fn offline(ledger: &Path, operation_id: &str) -> Result<Option<Self>, Error> {
        let id = OperationKey::of(operation_id).id();
        if ledger.is_dir() {
            return in_trail(&RealDisk::open_read_only(ledger)?, Trail::Application, id);
        }
        let file = RealDisk::open_lone_file(ledger).map_err(|source| Error::disk("open", ledger, source))?;
        newest(Scanner::lone(ledger.display().to_string(), file), id).map(|(found, _)| found)
    }

    fn read(line: &[u8], ends: bool) -> Option<Self> {
        #[derive(Deserialize)]
        struct Kept<'a> {
            time_ms: u64,
            #[serde(borrow)]
            params: &'a RawValue,
        }
        let kept: Kept<'_> = serde_json::from_slice(line).ok()?;
        Some(Self { time_ms: kept.time_ms, params: kept.params.get().into(), ends })
    }
}

/// The last record of the operation in a trail.
pub(super) fn in_trail(disk: &dyn Disk, trail: Trail, id: OperationId) -> Result<Option<LastRecord>, Error> {
    let segments = segment::list(disk, trail.as_str())?;
    let Some((open, closed)) = segments.split_last() else { return Ok(None) };
    let file = disk.open(&open.name).map_err(|source| Error::file("open", &open.name, source))?;
    let (mut found, _) = newest(Scanner::lone(open.name.clone(), file), id)?;
    let mut chain = segment::start(disk, &segments)?;
    for segment in closed {
        if found.as_ref().is_some_and(|record| record.ends) {
            break;
        }
        let indexed = index::load(disk, segment, chain).and_then(|(summary, _)| {
            let row = find_by_index(disk, segment, &summary, id.as_bytes()).ok()?;
            Some((row.and_then(|row| LastRecord::read(&row.line, row.is_end)), summary.after))
        });
        let (older, after) = match indexed {
            Some(known) => known,
            None => newest(Scanner::behind(disk, vec![segment.clone()], chain), id)?,
        };
        chain = after;
        found = older.filter(|record| record.ends || found.is_none()).or(found);
    }
    Ok(found)
}

/// The last record of the operation in the lines of a scanner, and where these end. The writer may be at the last line.
fn newest(mut scanner: Scanner<'_>, id: OperationId) -> Result<(Option<LastRecord>, Chain), Error> {
    let text = id.to_text();
    let mut found: Option<LastRecord> = None;
    loop {
        let line = match scanner.next() {
            Ok(Some(line)) => line,
            Ok(None) | Err(Error::Damaged { fault: LineFault::Unfinished, .. }) => break,
            Err(error) => return Err(error),
        };
        // Lines are UTF-8, which the scanner has checked; most are somebody else's and not read further.
        if !std::str::from_utf8(line.bytes).is_ok_and(|line| line.contains(text.as_str())) {
            continue;
        }
        let Some(record) = Record::read(line.bytes).filter(|record| record.operation() == Some(id)) else {
            continue;
        };
        let ends = match &*record.kind {
            "terminal" => true,
            "intent" => false,
            _ => continue,
        };
        if ends || found.is_none() {
            found = LastRecord::read(line.bytes, ends).or(found);
        }
    }
    Ok((found, scanner.chain()))
}
