//! What the benches and the gate measure: one place for the set-ups, so that wall time, instruction counts
//! and ratios are about the same operations. Start with [`Wire`] and [`Lifecycle`].

pub mod detection;
pub mod journal;
mod lifecycle;
mod live;
pub mod registry;
mod wire;

pub use lifecycle::Lifecycle;
pub use live::LiveDaemon;
pub use wire::Wire;
