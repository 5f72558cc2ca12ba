//! The engine of protocol v2 with every port swapped: each row of S3's order, outcomes and proofs
//! (R-181..R-184, R-189..R-194, R-213).
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::wildcard_imports, reason = "the nouns of the protocol")]

mod device;
mod durable;
mod observations;
mod order;
mod outcomes;
mod proofs;
mod races;
