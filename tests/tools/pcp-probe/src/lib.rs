//! Raw frames for a live socket: sends what no honest client would send and judges what comes back.
//!
//! A test tool. It trusts nobody who listens and proves nothing about itself; the stories use its library face.
//! Start with [`exchange`], then [`judge_cases`] and [`judge_types`]; crowds are [`run_load`] (honest), [`burst`]
//! (too much at once) and [`attack`] (hostile).

mod burst;
mod cases;
mod cli;
mod crowd_cli;
mod exchange;
mod hostile;
mod latencies;
mod load;
mod matrix;
mod random;
mod types;
mod vectors;

pub use burst::{Burst, burst};
pub use cases::{CaseVerdict, judge_cases};
pub use cli::run;
pub use exchange::{Exchange, ProbeError, Reply, Sending, exchange};
pub use hostile::{Attack, AttackReport, Behaviour, attack};
pub use latencies::{Latencies, Percentiles};
pub use load::{Asks, Load, LoadReport, run_load};
pub use matrix::{Cell, ask_each};
pub use random::Random;
pub use types::{TypeVerdict, judge_types};
pub use vectors::{Vector, read_vectors};
