//! `audit show`: the newest records.

use std::collections::VecDeque;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pcp_durable::{Filter, RealDisk, Record, Show as TrailReader, Shown};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Place;
use crate::context::Show;
use crate::digits::hex;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// The last so many wanted records, oldest first.
pub(super) fn records(place: &Place, filter: Filter, last: usize) -> Result<Records, Error> {
    Ok(Records(match &place.file {
        Some(file) => newest(TrailReader::of_file(file, filter)?, last)?,
        None => of_directory(&place.dir, filter, last)?,
    }))
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
#[serde(transparent)]
pub(super) struct Records(Vec<Box<RawValue>>);

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
}
