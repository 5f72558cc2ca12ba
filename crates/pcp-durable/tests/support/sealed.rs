//! A sealed log in memory, what an attacker may do to it, and whether anybody notices.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub)] // Each test file uses its part of this.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pcp_core::{AuditEntry, Durability, RecordKind, Trail};
use pcp_durable::disk::{Disk, FaultyDisk};
use pcp_durable::{
    AuditLog, Error, Limits, LogReport, Proofs, Recovery, Verdict, VerificationKey, set_up_keys, verify_log,
};

use super::{TIME_MS, entry};

pub const SECRET: [u8; 32] = [0x51; 32];

/// Small segments, an epoch every so many records, no clock.
pub fn limits(segment_bytes: u64, seal_records: u64) -> Limits {
    let never = Duration::from_hours(24);
    Limits { segment_bytes, seal_records, seal_interval: never, anchor_delay: never, ..Limits::default() }
}

/// A log and its keys, as files.
#[derive(Clone, Debug)]
pub struct Place {
    pub trails: FaultyDisk,
    pub seals: FaultyDisk,
    pub key: VerificationKey,
    pub limits: Limits,
}

impl Place {
    pub fn new(limits: Limits) -> Self {
        let (trails, seals) = (FaultyDisk::new(), FaultyDisk::new());
        let key = set_up_keys(Some(&trails), Arc::new(seals.clone()), SECRET, None).unwrap();
        Self { trails, seals, key, limits }
    }

    pub fn open(&self) -> Result<(AuditLog, Recovery), Error> {
        let seals: Arc<dyn Disk> = Arc::new(self.seals.clone());
        AuditLog::open_sealed_on(Arc::new(self.trails.clone()), Some(seals), self.limits, TIME_MS)
    }

    /// Appends so many records, over all trails, each durable before the next; ends cleanly.
    pub fn live(&self, from: u64, count: u64) {
        let (log, _) = self.open().unwrap();
        self.append(&log, from, count);
        log.close().unwrap();
    }

    pub fn append(&self, log: &AuditLog, from: u64, count: u64) {
        for n in from..from + count {
            let trail = Trail::ALL[usize::try_from(n).unwrap() % 3];
            let record = AuditEntry { trail, ..entry(RecordKind::Refusal, n) };
            let ticket = log.append(&record, Durability::Durable).unwrap();
            log.wait(&ticket).unwrap();
        }
    }

    pub fn verify(&self) -> LogReport {
        self.verify_with(std::slice::from_ref(&self.key))
    }

    pub fn verify_with(&self, keys: &[VerificationKey]) -> LogReport {
        let proofs = Proofs { seals: Some(&self.seals), keys, ..Proofs::default() };
        verify_log(&self.trails, &proofs)
    }

    /// All files of the trails.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let names = self.trails.list().unwrap();
        let is_trail = |name: &String| name.ends_with(".jsonl");
        names
            .into_iter()
            .filter(is_trail)
            .map(|name| {
                let content = self.trails.content(&name).unwrap();
                (name, content)
            })
            .collect()
    }

    /// The same place with other trails.
    pub fn with(&self, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let trails = FaultyDisk::new();
        files.iter().for_each(|(name, content)| trails.put(name, content));
        Self { trails, ..self.clone() }
    }

    /// The files of a trail in order.
    pub fn segments(&self, trail: Trail) -> Vec<String> {
        let begin = format!("{trail}.");
        self.files().into_keys().filter(|name| name.starts_with(&begin)).collect()
    }

    /// The lines of a trail, each with its LF, over all segments.
    pub fn lines(&self, trail: Trail) -> Vec<Vec<u8>> {
        let files = self.files();
        let names = self.segments(trail);
        names.iter().flat_map(|name| lines(&files[name])).collect()
    }
}

/// The lines of a file, each with its LF.
pub fn lines(content: &[u8]) -> Vec<Vec<u8>> {
    content.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

pub fn is_intact(report: &LogReport) -> bool {
    report.trails.iter().all(pcp_durable::TrailReport::is_whole)
        && matches!(report.seals.verdict, Verdict::Whole)
}

/// Known to be wrong, and not merely unchecked.
pub fn is_tampered(report: &LogReport) -> bool {
    let broken = |verdict: &Verdict| matches!(verdict, Verdict::Broken(_));
    report.trails.iter().any(|trail| broken(&trail.verdict)) || broken(&report.seals.verdict)
}
