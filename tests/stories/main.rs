//! Stories told with the real binaries: real sockets, real files, real users (DESIGN 5.2).
//!
//! Each asserts what happened in the world: the fake application's own count, the trails, the socket, the exit code.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::cast_possible_truncation, reason = "test values are small")]

mod adapters;
mod audit;
mod cli;
mod completion;
mod config;
mod desktop;
mod detection;
mod durability;
mod elf;
mod events;
mod explain;
mod hostile;
mod identity;
mod limits;
mod manifests;
mod notes;
mod outcomes;
mod policy;
mod promises;
mod protocol;
mod races;
mod snapshot;
mod support;
mod tamper;
mod tidy;
mod walls;
mod wire;
mod wire_types;
