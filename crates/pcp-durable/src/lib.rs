//! What survives power loss: journals of chained lines, the audit trails, the operation ledger.
//!
//! A record is one JSON line that carries the hash of the line before it (`FORMAT.md`). Nothing here reads
//! a clock, decides a policy or knows a socket; the chain makes tampering evident, it does not prevent it.
//! Start with [`AuditLog`]; below it, [`Writer`] takes records from any thread and says when they are durable.

mod archive;
mod begin;
pub mod cache;
pub mod disk;
mod error;
mod export;
mod index;
mod journal;
mod json;
mod ledger;
mod line;
mod offline;
mod operations;
mod record;
mod retain;
mod scan;
mod seal;
mod segment;
mod shelf;
mod tail;
mod trail;
mod verify;
mod writer;

pub use disk::{Disk, RealDisk};
pub use error::Error;
pub use export::{Exported, export, head};
pub use journal::{Cut, RESERVE_BYTES, SEGMENT_BYTES};
pub use json::JsonFault;
pub use ledger::{MAX_AHEAD, MAX_OPERATIONS, MAX_RUNNING, OperationLedger, OperationStatus, RETENTION};
pub use line::{Chain, Hash, LineFault, LineWriter, Link, MAX_LINE_BYTES};
pub use offline::{Filter, Show, Shown, status_in_directory, status_in_file};
pub use operations::{LastRecord, MAX_RECENT_ENDS, OperationKey, Operations, Standing, operation_binding};
pub use record::{Record, RecordCaller, RecordTarget};
pub use scan::Line;
pub use seal::{
    KEY_TEXT_BYTES, MAX_REASON_BYTES, SEAL_DIRECTORY, SealFault, Sealed, VerificationKey, set_up_keys,
};
pub use trail::{AUDIT_DIRECTORY, AuditLog, Recovery, verify_directory};
pub use verify::{
    LogReport, Pin, Proofs, SealsReport, TrailReport, Verdict, verify_log, verify_lone_file,
    verify_sealed_file, verify_trail,
};
pub use writer::{
    ANCHOR_DELAY, ANCHOR_RECORDS, LAZY_DELAY, Limits, MAX_WAITING, Opened, PENDING_BYTES, SEAL_INTERVAL,
    SEAL_RECORDS, Sync, Ticket, TrailId, TrailStatus, Writer,
};
