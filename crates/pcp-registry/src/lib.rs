//! What can be done right now.
//!
//! Holds applications and their capabilities and answers "which capability has this id" and "which fit this
//! filter". It does not find them (the adapters do) and does not judge who may use them (`pcp-execution` does).
//! Start with [`InMemoryRegistry`]; what it holds at one moment is a [`Snapshot`].

mod batch;
mod build;
mod diff_tracker;
mod index;
mod intern;
mod query;
mod registry;
mod snapshot;
mod stats;

pub use batch::{Applied, Change};
pub use diff_tracker::CapabilityDiffTracker;
pub use registry::{InMemoryRegistry, MAX_APPS, MAX_CAPABILITIES};
pub use snapshot::{HeldApp, Snapshot};
pub use stats::RegistryStats;
