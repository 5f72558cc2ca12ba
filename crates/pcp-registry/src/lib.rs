//! What can be done right now.
//!
//! Holds applications and their capabilities and answers "which capability has this id" and "which fit this
//! filter". It does not find them (the adapters do) and does not judge who may use them (`pcp-execution` does).
//! Start with [`InMemoryRegistry`]; what it holds at one moment is a [`Snapshot`]. How the adapters are is
//! [`AdapterManager`]'s.

mod batch;
mod build;
mod diff_tracker;
mod error;
mod hash;
mod index;
mod intern;
mod lifecycle;
mod query;
mod registry;
mod snapshot;
mod stats;

pub use batch::{Applied, Change};
pub use diff_tracker::CapabilityDiffTracker;
pub use error::Error;
pub use lifecycle::health::{HEALTH_DEADLINE, HEALTH_INTERVAL, RETRY_FIRST, RETRY_LONGEST};
pub use lifecycle::host::{AdapterHost, MAX_WAITING, OwnedInvocation};
pub use lifecycle::manager::{AdapterManager, AdapterRow, AdapterStateChanged, MAX_ABANDONED, MAX_ADAPTERS};
pub use lifecycle::reply::{HostGone, Reply};
pub use lifecycle::seat::{Executor, LocalFuture, Parking, Seat, SeatFactory};
pub use registry::{InMemoryRegistry, MAX_APPS, MAX_CAPABILITIES};
pub use snapshot::{HeldApp, Snapshot};
pub use stats::RegistryStats;
