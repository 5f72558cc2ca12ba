//! Reads trails for people and tools, with or without a running daemon, and writes nothing.
//!
//! Records of several trails come in the order of their wall time. Memory is one line per trail.

use std::path::Path;

use pcp_core::{OperationId, RecordKind, Terminal, Trail};

use crate::Error;
use crate::archive::find_by_index;
use crate::disk::{Disk, RealDisk};
use crate::index;
use crate::ledger::{OperationLedger, OperationStatus};
use crate::line::Hash;
use crate::record::Record;
use crate::scan::Scanner;
use crate::segment;

/// Which records are wanted; what is absent matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only this trail.
    pub trail: Option<Trail>,
    /// Only this kind.
    pub kind: Option<RecordKind>,
    /// Only this operation.
    pub operation_id: Option<OperationId>,
    /// Only this application.
    pub app: Option<String>,
    /// Only this capability.
    pub capability: Option<String>,
    /// Only this caller.
    pub uid: Option<u32>,
    /// Only operations that ended like this.
    pub terminal: Option<Terminal>,
    /// Not before this wall time in milliseconds.
    pub since_ms: Option<u64>,
    /// Not after this wall time in milliseconds.
    pub until_ms: Option<u64>,
}

impl Filter {
    /// Whether a record is wanted.
    #[must_use]
    pub fn matches(&self, record: &Record<'_>) -> bool {
        fn is<T>(wanted: &Option<T>, test: impl FnOnce(&T) -> bool) -> bool {
            wanted.as_ref().is_none_or(test)
        }
        is(&self.kind, |kind| record.kind == kind.as_str())
            && is(&self.operation_id, |id| record.operation_id == id.to_text().as_str())
            && is(&self.app, |app| record.target.app == *app)
            && is(&self.capability, |capability| record.capability == *capability)
            && is(&self.uid, |uid| record.caller.uid == *uid)
            && is(&self.terminal, |terminal| record.terminal.as_deref() == Some(terminal.as_str()))
            && is(&self.since_ms, |since| record.time_ms >= *since)
            && is(&self.until_ms, |until| record.time_ms <= *until)
    }
}

/// A record that was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its trail; absent when a lone file is read.
    pub trail: Option<Trail>,
    /// Its line without the LF. [`Record::read`] reads it.
    pub line: &'a [u8],
    /// SHA-256 of the line.
    pub hash: Hash,
}

/// The next wanted line of one trail.
#[derive(Debug)]
struct Cursor<'d> {
    scanner: Scanner<'d>,
    trail: Option<Trail>,
    line: Vec<u8>,
    hash: Hash,
    /// Wall time of the line; `None` at the end.
    time_ms: Option<u64>,
}

impl Cursor<'_> {
    fn advance(&mut self, filter: &Filter) -> Result<(), Error> {
        self.time_ms = None;
        while let Some(line) = self.scanner.next()? {
            if let Some(record) = Record::read(line.bytes)
                && filter.matches(&record)
            {
                self.time_ms = Some(record.time_ms);
                self.hash = line.hash;
                self.line.clear();
                self.line.extend_from_slice(line.bytes);
                break;
            }
        }
        Ok(())
    }
}

/// Goes through trails record by record.
#[derive(Debug)]
pub struct Show<'d> {
    cursors: Vec<Cursor<'d>>,
    filter: Filter,
    /// The cursor whose line was given last.
    given: Option<usize>,
}

impl<'d> Show<'d> {
    /// Begins to read the trails of a disk.
    ///
    /// # Errors
    /// As for [`Show::next`].
    pub fn of_disk(disk: &'d dyn Disk, filter: Filter) -> Result<Self, Error> {
        let mut scanners = Vec::new();
        for trail in Trail::ALL.iter().filter(|trail| filter.trail.is_none_or(|wanted| wanted == **trail)) {
            let segments = segment::list(disk, trail.as_str())?;
            scanners.push((Some(*trail), Scanner::over(disk, segments)));
        }
        Self::begin(scanners, filter)
    }

    /// Begins to read one journal file, wherever it lies.
    ///
    /// # Errors
    /// As for [`Show::next`].
    pub fn of_file(path: &Path, filter: Filter) -> Result<Show<'static>, Error> {
        let opened = RealDisk::open_lone_file(path);
        let file = opened.map_err(|source| Error::disk("open", path, source))?;
        Show::begin(vec![(None, Scanner::lone(path.display().to_string(), file))], filter)
    }

    fn begin(scanners: Vec<(Option<Trail>, Scanner<'d>)>, filter: Filter) -> Result<Self, Error> {
        let mut cursors = Vec::new();
        for (trail, scanner) in scanners {
            let mut cursor =
                Cursor { scanner, trail, line: Vec::new(), hash: Hash::default(), time_ms: None };
            cursor.advance(&filter)?;
            cursors.push(cursor);
        }
        Ok(Self { cursors, filter, given: None })
    }

    /// The next wanted record; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`] at the first bad line; [`Error::Disk`] when a file cannot be read.
    #[expect(clippy::should_implement_trait, reason = "an iterator cannot lend its buffer")]
    pub fn next(&mut self) -> Result<Option<Shown<'_>>, Error> {
        if let Some(given) = self.given.take() {
            self.cursors[given].advance(&self.filter)?;
        }
        let waiting = self.cursors.iter().enumerate().filter_map(|(at, cursor)| Some((cursor.time_ms?, at)));
        let Some((_, earliest)) = waiting.min() else { return Ok(None) };
        self.given = Some(earliest);
        let Cursor { trail, line, hash, .. } = &self.cursors[earliest];
        Ok(Some(Shown { trail: *trail, line, hash: *hash }))
    }
}

/// What the trails of a directory say about an operation, as long as its segments are kept. `terminal: None` is
/// a claim whose end is not written: under way if a daemon runs, unknown if none does.
///
/// # Errors
/// [`Error::NotPrivate`], [`Error::Damaged`], [`Error::SegmentMissing`], [`Error::Disk`].
pub fn status_in_directory(directory: &Path, id: OperationId) -> Result<Option<OperationStatus>, Error> {
    let disk = RealDisk::open_read_only(directory)?;
    let ledger = OperationLedger::new();
    for trail in Trail::ALL {
        replay_trail(&disk, trail.as_str(), id, &ledger)?;
    }
    Ok(ledger.status(id))
}

/// Shows the ledger an operation's records in one trail. A closed segment is not read where its index fits.
fn replay_trail(
    disk: &dyn Disk,
    trail: &str,
    id: OperationId,
    ledger: &OperationLedger,
) -> Result<(), Error> {
    let segments = segment::list(disk, trail)?;
    let mut chain = segment::start(disk, &segments)?;
    for (at, segment) in segments.iter().enumerate() {
        let closed = at + 1 < segments.len();
        if closed
            && let Some((summary, _)) = index::load(disk, segment, chain)
            && let Ok(found) = find_by_index(disk, segment, &summary, id.as_bytes())
        {
            chain = summary.after;
            if let Some(found) = found {
                replay(ledger, &found.line, found.hash);
            }
            continue;
        }
        let mut scanner = Scanner::behind(disk, vec![segment.clone()], chain);
        while let Some(line) = scanner.next()? {
            if Record::read(line.bytes).and_then(|record| record.operation()) == Some(id) {
                replay(ledger, line.bytes, line.hash);
            }
        }
        chain = scanner.chain();
    }
    Ok(())
}

fn replay(ledger: &OperationLedger, line: &[u8], hash: Hash) {
    if let Some(record) = Record::read(line) {
        ledger.replay(&record, hash);
    }
}

/// What one journal file says about an operation.
///
/// # Errors
/// As [`status_in_directory`].
pub fn status_in_file(path: &Path, id: OperationId) -> Result<Option<OperationStatus>, Error> {
    let ledger = OperationLedger::new();
    let mut show = Show::of_file(path, Filter { operation_id: Some(id), ..Filter::default() })?;
    while let Some(shown) = show.next()? {
        replay(&ledger, shown.line, shown.hash);
    }
    Ok(ledger.status(id))
}
