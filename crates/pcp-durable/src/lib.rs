//! What survives power loss: journals of chained lines, the audit trails, the operation ledger.
//!
//! A record is one JSON line that carries the hash of the line before it (`FORMAT.md`). Nothing here reads
//! a clock, decides a policy or knows a socket; the chain makes tampering evident, it does not prevent it.
//! Start with [`Writer`]: it takes records from any thread and says when they are durable.

pub mod disk;
mod error;
mod journal;
mod json;
mod line;
mod scan;
mod segment;
mod tail;
mod verify;
mod writer;

pub use disk::{Disk, RealDisk};
pub use error::Error;
pub use journal::{Cut, RESERVE_BYTES, SEGMENT_BYTES};
pub use json::JsonFault;
pub use line::{Chain, Envelope, Hash, LineFault, LineWriter, MAX_LINE_BYTES};
pub use scan::Line;
pub use verify::{TrailReport, Verdict, verify_lone_file, verify_trail};
pub use writer::{
    LAZY_DELAY, Limits, MAX_WAITING, Opened, PENDING_BYTES, Sync, Ticket, TrailId, TrailStatus, Writer,
};
