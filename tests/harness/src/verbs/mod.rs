//! One verb, one file.

pub(crate) mod boot;
pub(crate) mod run;
pub(crate) mod shell;
pub(crate) mod story;
