//! The daemon's side of a connection: who it is, how much it may ask, and what answers it.

mod actions;
mod detect;
mod events;
pub mod handlers;
pub mod limits;
mod outlet;
mod plan;
pub mod session;

pub use limits::{Admission, TokenBucket};
pub use session::serve;
