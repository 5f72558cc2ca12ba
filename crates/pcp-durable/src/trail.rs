//! The three audit trails, and the ledger that is read off them.
//!
//! One directory, one trail per domain. An operation's intent record is its claim and is durable before the
//! effect; its terminal record is its end. What a crash left open is closed as *unknown* when the log is
//! opened, and never run again.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::task::{Context, Poll};

use pcp_core::{
    AuditEnd, AuditEntry, AuditError, AuditLogger, AuditTicket, Durability, Effect, ErrorCode, OperationId,
    RecordKind, Stage, Terminal, Trail,
};

use crate::archive::Archive;
use crate::disk::{Disk, RealDisk};
use crate::index::Id;
use crate::journal::{Cut, Seen};
use crate::ledger::OperationLedger;
use crate::line::{Hash, hash};
use crate::record::{self, Record};
use crate::scan::{Line, read_at};
use crate::verify::{TrailReport, verify_trail};
use crate::writer::{Limits, Sync, Ticket, TrailId, TrailStatus, Writer};
use crate::{Error, MAX_LINE_BYTES};

/// Where the trails of an installed daemon are.
pub const AUDIT_DIRECTORY: &str = "/var/lib/portal/pcp/audit";

/// What opening the log found and did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Torn tails that were cut off.
    pub cuts: Vec<Cut>,
    /// Operations that had been claimed and had no end: unknown from now on.
    pub unknown: Vec<OperationId>,
    /// How many of those ends could not be written because the disk is full; the next opening tries again.
    pub unwritten: usize,
    /// The latest wall time in any record: the clock must not have been later than this (TH-13).
    pub latest_ms: u64,
    /// Records in the three trails.
    pub records: u64,
}

/// A claim without an end, as found on the disk.
#[derive(Debug)]
struct Open {
    trail: usize,
    file: String,
    offset: u64,
    length: usize,
}

/// The audit log of one daemon.
#[derive(Debug)]
pub struct AuditLog {
    writer: Writer,
    ledger: Arc<OperationLedger>,
}

impl AuditLog {
    /// Opens the log in a directory, making it if it is missing. `time_ms` is the wall clock, for the
    /// records of what recovery found.
    ///
    /// # Errors
    /// [`Error::NotPrivate`], [`Error::InUse`], [`Error::Damaged`], [`Error::SegmentMissing`], [`Error::Disk`].
    pub fn open(directory: &Path, time_ms: u64) -> Result<(Self, Recovery), Error> {
        Self::open_with(directory, Limits::default(), time_ms)
    }

    /// Opens the log in a directory with sizes and times of one's own.
    ///
    /// # Errors
    /// As [`AuditLog::open`].
    pub fn open_with(directory: &Path, limits: Limits, time_ms: u64) -> Result<(Self, Recovery), Error> {
        Self::open_on(Arc::new(RealDisk::open(directory)?), limits, time_ms)
    }

    /// Opens the log on any disk.
    ///
    /// # Errors
    /// As [`AuditLog::open`].
    pub fn open_on(disk: Arc<dyn Disk>, limits: Limits, time_ms: u64) -> Result<(Self, Recovery), Error> {
        Self::open_sealed_on(disk, None, limits, time_ms)
    }

    /// Opens the log in a directory and seals it with the keys in another one, if that is there.
    ///
    /// # Errors
    /// As [`AuditLog::open_sealed_on`].
    pub fn open_sealed(
        directory: &Path,
        seals: &Path,
        limits: Limits,
        time_ms: u64,
    ) -> Result<(Self, Recovery), Error> {
        let seals = match std::fs::symlink_metadata(seals) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            _ => Some(Arc::new(RealDisk::open(seals)?) as Arc<dyn Disk>),
        };
        Self::open_sealed_on(Arc::new(RealDisk::open(directory)?), seals, limits, time_ms)
    }

    /// Opens the log on any disk, sealed with the keys on another one.
    ///
    /// # Errors
    /// As [`AuditLog::open`]; with keys also [`Error::SealKey`], [`Error::NoAnchor`], [`Error::Anchor`], and
    /// [`Error::CutShort`] or [`Error::Seal`] when a trail ends before its anchor or another record stands there.
    pub fn open_sealed_on(
        disk: Arc<dyn Disk>,
        seals: Option<Arc<dyn Disk>>,
        limits: Limits,
        time_ms: u64,
    ) -> Result<(Self, Recovery), Error> {
        let names: Vec<&str> = Trail::ALL.iter().map(|trail| trail.as_str()).collect();
        let archive = Archive::new(disk.clone(), &names);
        let ledger = Arc::new(OperationLedger::over(Some(archive), limits.retention));
        let mut recovery = Recovery::default();
        let mut open: BTreeMap<Id, Open> = BTreeMap::new();
        let (writer, opened) =
            Writer::open_for(Some(&ledger), disk.clone(), seals, &names, limits, &mut |trail, seen| {
                match seen {
                    Seen::Line(line) => {
                        if let Some(record) = Record::read(line.bytes) {
                            ledger.replay(&record, line.hash);
                            track_open(&mut open, trail, line, &record);
                        }
                    }
                    Seen::Loose(_, row) if row.ends() => drop(open.remove(&row.id)),
                    Seen::Loose(segment, row) => {
                        let (file, offset, length) = (segment.name.clone(), row.offset.into(), row.length());
                        open.insert(row.id, Open { trail, file, offset, length });
                    }
                }
                Ok(())
            })?;
        ledger.begin_behind_archive();
        recovery.latest_ms = ledger.high_water_ms();
        recovery.records = opened.iter().map(|trail| trail.chain.seq).sum();
        recovery.cuts = opened.into_iter().filter_map(|trail| trail.cut).collect();
        let log = Self { writer, ledger };
        log.close_open(&*disk, &open, time_ms, &mut recovery)?;
        Ok((log, recovery))
    }

    /// The ledger: what is known of every claimed operation.
    #[must_use]
    pub fn ledger(&self) -> &Arc<OperationLedger> {
        &self.ledger
    }

    pub(crate) fn writer(&self) -> &Writer {
        &self.writer
    }

    /// How a trail is doing.
    #[must_use]
    pub fn status(&self, trail: Trail) -> TrailStatus {
        self.writer.status(trail_id(trail))
    }

    /// The failure that ended all writing, if there was one: nothing but reads may run from then on (C6).
    #[must_use]
    pub fn fence(&self) -> Option<Error> {
        self.writer.fence()
    }

    /// Puts a record at the end of its trail and notes it in the ledger.
    ///
    /// # Errors
    /// As [`Writer::append`]. After an error of an intent record no effect may follow.
    pub fn append(&self, entry: &AuditEntry<'_>, durability: Durability) -> Result<Ticket, Error> {
        let sync = urgency(entry.kind, durability);
        let claim = match entry.kind {
            RecordKind::Terminal => self.ledger.claim_hash(entry.operation_id),
            _ => None,
        };
        let write = |line: &mut crate::LineWriter<'_>| record::write(line, entry, claim.as_ref());
        let ticket = self.writer.append(trail_id(entry.trail), sync, write)?;
        self.ledger.reached(entry.time_ms);
        let (id, action) = (entry.operation_id, entry.action_hash);
        match (entry.kind, &entry.end) {
            (RecordKind::Intent, _) => self.ledger.claimed(id, action, entry.tier, ticket.hash),
            (RecordKind::Terminal, Some(end)) => self.ledger.ended(id, action, entry.tier, end, ticket.hash),
            _ => {}
        }
        Ok(ticket)
    }

    /// Blocks until the record is on the medium.
    ///
    /// # Errors
    /// As [`Writer::wait`].
    pub fn wait(&self, ticket: &Ticket) -> Result<(), Error> {
        self.writer.wait(ticket)
    }

    /// Blocks until every record is on the medium.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn flush(&self) -> Result<(), Error> {
        self.writer.flush()
    }

    /// Writes and syncs what is there and ends the writer thread.
    ///
    /// # Errors
    /// As [`Writer::close`].
    pub fn close(self) -> Result<(), Error> {
        self.writer.close()
    }

    /// Writes the end *unknown* for every claim that has none.
    fn close_open(
        &self,
        disk: &dyn Disk,
        open: &BTreeMap<Id, Open>,
        time_ms: u64,
        recovery: &mut Recovery,
    ) -> Result<(), Error> {
        for claim in open.values() {
            let line = read_claim(disk, claim)?;
            let hash = hash(&line);
            let Some(record) = Record::read(&line) else { continue };
            let Some(id) = record.operation() else { continue };
            self.ledger.replay(&record, hash);
            recovery.unknown.push(id);
            let mut written = self.append_unknown(id, (claim.trail, &line, hash), time_ms);
            if matches!(written, Err(Error::Backlog { .. } | Error::TooManyWaiting { .. })) {
                self.flush()?;
                written = self.append_unknown(id, (claim.trail, &line, hash), time_ms);
            }
            match written {
                Err(Error::Full { .. }) => recovery.unwritten += 1,
                other => other?,
            }
        }
        match self.flush() {
            Err(Error::Full { .. }) => {
                recovery.unwritten = recovery.unwritten.max(1);
                Ok(())
            }
            other => other,
        }
    }

    fn append_unknown(
        &self,
        id: OperationId,
        claim: (usize, &[u8], Hash),
        time_ms: u64,
    ) -> Result<(), Error> {
        let (trail, line, claim_hash) = claim;
        let end = AuditEnd {
            stage: Stage::Execute,
            terminal: Terminal::OutcomeUnknown,
            error: Some(ErrorCode::OutcomeUnknown),
            effect: Some(Effect::Unknown),
            verification: "none",
            timed_out: false,
            duration_us: 0,
        };
        if let Some(status) = self.ledger.status(id) {
            // Whether or not the record can be written: it is not run again.
            self.ledger.ended(id, status.action_hash, status.tier, &end, claim_hash);
        }
        let ticket = self.writer.append(TrailId(trail), Sync::Now, |out| {
            out.text("kind", RecordKind::Terminal.as_str()).number("time_ms", time_ms);
            out.members_of_line(claimed_members(line));
            record::write_end(out, &end, Some(&claim_hash));
            out.text("reason", "recovered");
        })?;
        self.ledger.reached(time_ms);
        if let Some(status) = self.ledger.status(id) {
            self.ledger.ended(id, status.action_hash, status.tier, &end, ticket.hash);
        }
        Ok(())
    }
}

impl AuditLogger for AuditLog {
    fn append(&self, entry: &AuditEntry<'_>, durability: Durability) -> Result<AuditTicket, AuditError> {
        let ticket = Self::append(self, entry, durability).map_err(|error| AuditError(error.to_string()))?;
        Ok(AuditTicket { trail: entry.trail, seq: ticket.seq, hash: ticket.hash })
    }

    fn poll_durable(&self, ticket: &AuditTicket, cx: &mut Context<'_>) -> Poll<Result<(), AuditError>> {
        let ticket = Ticket { trail: trail_id(ticket.trail), seq: ticket.seq, hash: ticket.hash };
        self.writer.poll_durable(&ticket, cx).map_err(|error| AuditError(error.to_string()))
    }

    fn poll_room(&self, trail: Trail, kind: RecordKind, cx: &mut Context<'_>) -> Poll<()> {
        self.writer.poll_room(trail_id(trail), urgency(kind, Durability::Lazy), cx)
    }
}

const fn urgency(kind: RecordKind, durability: Durability) -> Sync {
    match (kind, durability) {
        (RecordKind::Intent, _) => Sync::Claim,
        (_, Durability::Durable) => Sync::Now,
        (RecordKind::Read, Durability::Lazy) => Sync::Lazy,
        (_, Durability::Lazy) => Sync::Kept,
    }
}

/// Checks the three trails of a directory without changing a byte.
///
/// # Errors
/// [`Error::NotPrivate`] or [`Error::Disk`] when the directory itself cannot be entered.
pub fn verify_directory(directory: &Path) -> Result<Vec<TrailReport>, Error> {
    let disk = RealDisk::open_read_only(directory)?;
    Ok(Trail::ALL.iter().map(|trail| verify_trail(&disk, trail.as_str())).collect())
}

/// The writer's trails are opened in the order of [`Trail::ALL`].
fn trail_id(trail: Trail) -> TrailId {
    TrailId(match trail {
        Trail::Application => 0,
        Trail::Compositor => 1,
        Trail::System => 2,
    })
}

fn track_open(open: &mut BTreeMap<Id, Open>, trail: usize, line: &Line<'_>, record: &Record<'_>) {
    let Some(id) = record.operation().map(|id| *id.as_bytes()) else { return };
    match &*record.kind {
        "intent" => {
            let (file, length) = (line.file.to_owned(), line.bytes.len());
            open.insert(id, Open { trail, file, offset: line.offset, length });
        }
        "terminal" => {
            open.remove(&id);
        }
        _ => {}
    }
}

/// Reads the line of a claim again.
fn read_claim(disk: &dyn Disk, claim: &Open) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::file("read the claim in", &claim.file, source);
    let file = disk.open(&claim.file).map_err(failed)?;
    let mut line = vec![0; claim.length.min(MAX_LINE_BYTES)];
    let mut done = 0;
    while done < line.len() {
        match read_at(&*file, claim.offset + done as u64, &mut line[done..]).map_err(failed)? {
            0 => return Err(failed(std::io::ErrorKind::UnexpectedEof.into())),
            count => done += count,
        }
    }
    Ok(line)
}

/// The members of an intent record from `operation_id` to the last before `crc`, as they stand. What comes
/// before them holds words and numbers only, so the first match is the member itself.
fn claimed_members(line: &[u8]) -> &[u8] {
    const FIRST: &[u8] = b",\"operation_id\":";
    let start = line.windows(FIRST.len()).position(|window| window == FIRST).map_or(line.len(), |at| at + 1);
    let end = line.len().saturating_sub(crate::line::TAIL_BYTES).max(start);
    &line[start..end]
}
