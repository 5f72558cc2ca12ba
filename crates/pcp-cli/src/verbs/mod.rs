//! One file for each verb: its options, what it asks or reads, and how its answer looks.

pub(crate) mod adapters;
pub(crate) mod app;
pub(crate) mod apps;
pub(crate) mod audit;
pub(crate) mod backend;
pub(crate) mod capability;
pub(crate) mod classify;
pub(crate) mod completion;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod inspect;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod manifest;
pub(crate) mod ping;
pub(crate) mod policy;
pub(crate) mod show;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod version;
pub(crate) mod wire;
