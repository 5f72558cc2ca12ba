//! What can be done right now.
//!
//! Holds applications and their capabilities and answers "which capability has this id" and "which fit this
//! filter". It does not find them (the adapters do) and does not judge who may use them (`pcp-execution` does).
//! Start with [`InMemoryRegistry`].

mod registry;

pub use registry::{InMemoryRegistry, MAX_APPS, MAX_CAPABILITIES};
