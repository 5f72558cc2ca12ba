//! The stories that ship with the harness, in the order of telling.

mod ask;
mod audit;
mod boot;
mod config;
mod crash;
mod demo;
mod detect;
mod measure;
mod notes;
mod pcpd;
mod ping;
mod poweroff;
mod walls;

use crate::story::Story;

/// Every story. Measuring comes before the load, and the last one of all switches the device off.
pub const ALL: &[Story] = &[
    boot::STORY,
    ping::STORY,
    measure::STORY,
    notes::STORY,
    walls::STORY,
    config::STORY,
    detect::STORY,
    crash::STORY,
    audit::STORY,
    poweroff::STORY,
    demo::STORY,
];
