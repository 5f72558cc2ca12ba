//! The engine of protocol v2: a signed request becomes at most one effect, and a terminal that says what is known of it.
//!
//! A library face for hosts (R-213, S3): the host brings the keys ([`AuthorityVerifier`](pcp_core::v2::AuthorityVerifier)),
//! the hands ([`Executor`]), the memory ([`OperationStore`]) and the clock. Everything that can be checked without an
//! effect is checked before the claim, so that a stale target or a late request costs no operation id; from the claim on
//! every end is stored. It keeps no policy and asks no person. It runs inside a tokio runtime with a timer.
//! Start with [`Engine::execute`].

mod applications;
mod boundary;
mod context;
mod door;
mod durable;
mod ending;
mod error;
mod execute;
mod executor;
mod facts;
mod observations;
mod prepare;
mod store;
mod verification;

pub use boundary::{Boundary, CancellationToken, Over};
pub use door::{ActionDoor, Process, Processes};
pub use durable::DurableStore;
pub use error::{ProtocolError, StoreError};
pub use execute::Engine;
pub use executor::{
    DispatchEffect, DispatchError, Executor, ExecutorError, ExecutorFault, TargetObservation,
};
pub use facts::{ActionFacts, action_class};
pub use observations::{
    MAX_OBSERVATIONS, MAX_OBSERVATIONS_BYTES, MAX_OBSERVATIONS_PER_OWNER, ObservationStore, Seen,
};
pub use pcp_core::v2::ClaimRecord;
pub use store::{Known, OperationStore};
pub use verification::{MAX_SETTLE_SAMPLES, SETTLE};
