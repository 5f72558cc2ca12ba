//! Audit records beside the least that keeps the same bytes, and a log with a long history.
//!
//! A history is written by the log itself, on a disk that does not sync: a million operations in seconds.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pcp_core::{
    ActionClass, ActionHash, AuditEnd, AuditEntry, AuthPrincipal, ClaimState, Domain, Durability, Effect,
    Modality, OperationClaims, OperationId, PermissionRecord, RecordKind, Stage, Terminal, Tier, Trail,
    TrustLevel,
};
use pcp_durable::disk::{Disk, DiskFile};
use pcp_durable::{AuditLog, Error, Limits, RealDisk, set_up_keys};

/// When the history begins, in Unix milliseconds; an operation follows every millisecond.
pub const BEGIN_MS: u64 = 1_780_000_000_000;

static CALLER: AuthPrincipal = AuthPrincipal {
    uid: 1000,
    pid: Some(4711),
    domain: Domain::App,
    trust: TrustLevel::USER,
    admin: false,
    confirmer: false,
    modality: Modality::Visual,
    rate_per_second: None,
};

/// The n-th operation of a history.
#[must_use]
pub fn operation(n: u64) -> OperationId {
    OperationId::from_parts(BEGIN_MS + n, [0x5a; 10])
}

/// What every operation does.
#[must_use]
pub fn action() -> ActionHash {
    ActionHash::from_bytes([1; 32])
}

/// A record of the usual length.
#[must_use]
pub fn entry(kind: RecordKind, n: u64) -> AuditEntry<'static> {
    AuditEntry {
        trail: Trail::Application,
        kind,
        time_ms: BEGIN_MS + n,
        operation_id: operation(n),
        caller: &CALLER,
        capability: "app.org.example.notes.create",
        target_app: "org.example.notes",
        class: ActionClass::Activate,
        tier: Some(Tier::One),
        permission: PermissionRecord { verdict: "allowed", rule: "app.*", gate: "none" },
        params: "{\"title\":\"sha256:2c26b46b\"}",
        params_sha256: &[0xab; 32],
        action_hash: action(),
        end: (kind != RecordKind::Intent).then_some(AuditEnd {
            stage: Stage::Audit,
            terminal: Terminal::Succeeded,
            error: None,
            effect: Some(Effect::Verified),
            verification: "result",
            timed_out: false,
            duration_us: 1234,
        }),
    }
}

/// Writes a history of whole operations into a directory.
///
/// # Errors
/// What the log says.
pub fn make_history(directory: &Path, operations: u64) -> Result<(), Error> {
    let disk = Arc::new(Unsynced(RealDisk::open(directory)?));
    let limits = Limits { pending_bytes: 4 << 20, waiting: 1 << 16, ..Limits::default() };
    let (log, _) = AuditLog::open_on(disk, limits, BEGIN_MS)?;
    for n in 0..operations {
        assert_eq!(log.ledger().begin(operation(n), action(), BEGIN_MS + n), ClaimState::Fresh);
        for kind in [RecordKind::Intent, RecordKind::Terminal] {
            put(&log, &entry(kind, n))?;
        }
    }
    log.close()
}

/// Appends, as soon as there is room.
fn put(log: &AuditLog, entry: &AuditEntry<'_>) -> Result<(), Error> {
    loop {
        match log.append(entry, Durability::Lazy) {
            Ok(_) => return Ok(()),
            Err(Error::Backlog { .. } | Error::TooManyWaiting { .. }) => log.flush()?,
            Err(error) => return Err(error),
        }
    }
}

/// What opening a log took.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// Time.
    pub time: Duration,
    /// Most memory of the process meanwhile, beyond what it had before, in KiB.
    pub memory_kib: u64,
    /// Records in the log.
    pub records: u64,
}

/// Opens a log once. The memory is right only in a process that did nothing else before.
///
/// # Errors
/// What the log says.
pub fn open_once(directory: &Path) -> Result<(Opening, AuditLog), Error> {
    let before = peak_kib();
    let begun = Instant::now();
    let (log, found) = AuditLog::open(directory, BEGIN_MS)?;
    let time = begun.elapsed();
    Ok((Opening { time, memory_kib: peak_kib().saturating_sub(before), records: found.records }, log))
}

/// The most memory this process ever had, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Synced records beside the same bytes written and synced by hand, on the same file system.
#[derive(Debug)]
pub struct Synced {
    log: AuditLog,
    raw: File,
    line: Vec<u8>,
    records: u64,
    _folder: tempfile::TempDir,
}

impl Synced {
    /// A log, sealed or not, and a file in a temporary folder below `parent`.
    ///
    /// # Errors
    /// What keeps them from being made.
    pub fn new(parent: &Path, is_sealed: bool) -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir_in(parent)?;
        let directory = folder.path().join("audit");
        let seals = folder.path().join("seal");
        if is_sealed {
            set_up_keys(None, Arc::new(RealDisk::open(&seals)?), [7; 32], None)?;
        }
        let (log, _) = AuditLog::open_sealed(&directory, &seals, Limits::default(), BEGIN_MS)?;
        let mut it = Self {
            log,
            raw: File::create(folder.path().join("raw"))?,
            line: Vec::new(),
            records: 0,
            _folder: folder,
        };
        it.record();
        it.line = std::fs::read(directory.join("application.000001.jsonl"))?;
        Ok(it)
    }

    /// One record, durable.
    pub fn record(&mut self) {
        self.records += 1;
        let ticket = self.log.append(&entry(RecordKind::Terminal, self.records), Durability::Durable);
        let durable = ticket.and_then(|ticket| self.log.wait(&ticket));
        assert!(durable.is_ok(), "{durable:?}");
    }

    /// As many bytes, written and synced.
    pub fn raw(&mut self) {
        let done = self.raw.write_all(&self.line).and_then(|()| self.raw.sync_data());
        assert!(done.is_ok(), "{done:?}");
    }
}

/// A log on a disk that takes everything and keeps nothing: records and their chain only, sealed with keys on a real
/// disk or not.
///
/// # Errors
/// What the log says.
pub fn chain_only(records: u64, seals: Option<&Path>) -> Result<Duration, Error> {
    let seals = match seals {
        Some(path) => {
            let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(path)?);
            set_up_keys(None, disk.clone(), [7; 32], Some("measured once more"))?;
            Some(disk)
        }
        None => None,
    };
    let (log, _) = AuditLog::open_sealed_on(Arc::new(Void::default()), seals, Limits::default(), BEGIN_MS)?;
    let begun = Instant::now();
    for n in 0..records {
        put(&log, &entry(RecordKind::Read, n))?;
    }
    log.close()?;
    Ok(begun.elapsed())
}

/// A folder for a history: beside the build, where there is space, and not in memory.
///
/// # Errors
/// What keeps it from being made.
pub fn folder() -> io::Result<(tempfile::TempDir, PathBuf)> {
    let parent = std::env::var_os("PCP_BENCH_FOLDER").map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = tempfile::tempdir_in(parent)?;
    let path = folder.path().join("audit");
    Ok((folder, path))
}

/// A real disk that says it has synced.
#[derive(Debug)]
struct Unsynced(RealDisk);

impl Disk for Unsynced {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(self.0.open(name)?)))
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(UnsyncedFile(self.0.create(name)?)))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
    fn remaining_bytes(&self) -> io::Result<u64> {
        self.0.remaining_bytes()
    }
}

#[derive(Debug)]
struct UnsyncedFile(Box<dyn DiskFile>);

impl DiskFile for UnsyncedFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, into)
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }
    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.0.truncate(size)
    }
    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.0.reserve(offset, bytes)
    }
}

/// Lengths of files without content.
#[derive(Clone, Debug, Default)]
struct Void(Arc<Mutex<BTreeMap<String, u64>>>);

impl Void {
    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, u64>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Disk for Void {
    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.with(|files| files.keys().cloned().collect()))
    }
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(VoidFile(self.clone(), name.to_owned())))
    }
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.with(|files| files.insert(name.to_owned(), 0));
        self.open(name)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.with(|files| files.remove(name));
        Ok(())
    }
    fn sync_dir(&self) -> io::Result<()> {
        Ok(())
    }
    fn remaining_bytes(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }
}

#[derive(Debug)]
struct VoidFile(Void, String);

impl DiskFile for VoidFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.with(|files| files.get(&self.1).copied().unwrap_or(0)))
    }
    fn read_at(&self, _offset: u64, _into: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.with(|files| *files.entry(self.1.clone()).or_default() += bytes.len() as u64);
        Ok(bytes.len())
    }
    fn sync_data(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn truncate(&mut self, _size: u64) -> io::Result<()> {
        Ok(())
    }
    fn reserve(&mut self, _offset: u64, _bytes: u64) -> io::Result<()> {
        Ok(())
    }
}
