//! Raw frames for a live socket: sends what no honest client would send and judges what comes back.
//!
//! A test tool. It trusts nobody who listens and proves nothing about itself; the stories use its library face.
//! Start with [`exchange`], then [`judge_cases`] and [`judge_types`].

mod cases;
mod cli;
mod exchange;
mod types;

pub use cases::{CaseVerdict, judge_cases};
pub use cli::run;
pub use exchange::{Exchange, ProbeError, Reply, Sending, exchange};
pub use types::{TypeVerdict, judge_types};
