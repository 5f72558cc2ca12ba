//! The stories that ship with the harness, in the order of telling.

mod boot;
mod poweroff;

use crate::story::Story;

/// Every story. Measuring comes before the load, and the last one of all switches the device off.
pub const ALL: &[Story] = &[
    boot::STORY,
    poweroff::STORY,
];
