//! The command line of the Portal Capability Protocol: one verb, one file.
//!
//! Asks the daemon over its socket, or reads files without it, and prints one answer: an envelope for programs,
//! a table for people. It decides nothing and executes nothing itself: an effect needs the daemon.
//! Start with [`run`]; the verbs are under `verbs/`, one file each, and the envelope is in `envelope.rs`.

mod cli;
mod context;
mod daemon;
mod digits;
mod envelope;
mod error;
mod escape;
mod nearest;
mod owner;
mod page;
mod params;
mod run;
mod signature_text;
mod stdio;
mod usage;
mod verbs;

pub use error::Error;
pub use run::{Streams, main, run};
