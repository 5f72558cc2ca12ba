//! Drives a device wherever it is: an image under QEMU, a board over SSH, a board on a serial line.
//!
//! It boots, types, copies, measures, switches off, and tells stories: named checks that say what they need, so
//! that a target which cannot do a step skips it by name. It knows nothing of the protocol; stories ask the
//! device's own `pcp-cli`. Start with [`Device`], then [`Story`].

pub mod base64;
pub mod cli;
pub mod device;
mod error;
pub mod expect;
pub mod measure;
pub mod power;
pub mod stories;
pub mod story;
pub mod target;
mod verbs;

pub use device::{Answer, Device, Shell};
pub use error::Error;
pub use story::{Need, Story};
