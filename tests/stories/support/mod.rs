//! What the stories stand on: a device in a folder, its users, its programs, and what they leave behind.

pub(crate) mod answer;
pub(crate) mod device;
pub(crate) mod gauge;
pub(crate) mod operation;
pub(crate) mod process;
pub(crate) mod pseudo_terminal;
pub(crate) mod python;
pub(crate) mod records;
pub(crate) mod uids;
pub(crate) mod workspace;

pub(crate) use answer::Answer;
pub(crate) use device::{Device, Plan};
pub(crate) use gauge::Gauge;
pub(crate) use operation::{new_operation, request};
pub(crate) use process::Process;
pub(crate) use records::Line;
