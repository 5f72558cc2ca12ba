//! From files to the registry. Applications come from `apps.d` and their signed manifests.

pub mod register;

pub use register::{RegisteredApp, register_apps};
