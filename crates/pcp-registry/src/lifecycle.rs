//! The life of the adapters: one thread each, asked by messages, watched, and replaced when it fails (group D).

pub(crate) mod health;
pub(crate) mod host;
pub(crate) mod manager;
pub(crate) mod reply;
pub(crate) mod seat;
