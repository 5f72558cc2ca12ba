//! What can go wrong with an adapter's host. What the registry itself refuses is [`pcp_core::ports::RegistryError`].

use std::sync::Arc;

use pcp_core::AdapterState;
use thiserror::Error;

/// Why an adapter was not asked, or did not answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such adapter.
    #[error("there is no adapter {name}; see `pcp-cli adapters`")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// An adapter of this name is there already.
    #[error("the adapter {name} is there already")]
    Taken {
        /// Its name.
        name: &'static str,
    },
    /// A limit is reached.
    #[error("there are {limit} adapters, the limit; {name} was not added")]
    Full {
        /// What was turned away.
        name: &'static str,
        /// How many.
        limit: usize,
    },
    /// It is not working now.
    #[error("the adapter {name} is {state}; it is tried again by itself")]
    NotReady {
        /// Its name.
        name: &'static str,
        /// Its state.
        state: AdapterState,
    },
    /// It has more to do than it may keep waiting.
    #[error("the adapter {name} has {limit} messages waiting, its limit; ask again later")]
    Busy {
        /// Its name.
        name: &'static str,
        /// The limit.
        limit: usize,
    },
    /// Its host has ended.
    #[error("the adapter {name} ended: {why}")]
    Gone {
        /// Its name.
        name: &'static str,
        /// Why.
        why: Arc<str>,
    },
    /// The system gave no thread.
    #[error("no thread for the adapter {name}: {why}; it is tried again by itself")]
    NoThread {
        /// Its name.
        name: &'static str,
        /// The system's words.
        why: String,
    },
}
