//! A scriptable Tier-1 application that keeps its own durable count of effects.
//!
//! It is the ground truth of "executed" in stories: whatever the daemon says, [`count`] says what happened. It
//! obeys a [`Script`] (and, where the schema allows it, each request's `behave` member): it fails, hangs before or
//! after the effect, answers something undeclared, or dies. It is no example of an application; `apps/notes` is.
//! Start with [`FakeApp`] for the application and [`FakeManifest`] for installing one.

mod app;
mod effects;
mod error;
mod install;
mod manifest;
mod options;
mod run;
mod script;

pub use app::{FakeApp, MAX_SUBSCRIPTIONS};
pub use effects::{Effect, EffectLog, count, effects, invocations_file};
pub use error::Error;
pub use install::{Installed, Places};
pub use manifest::{APP_ID, FakeCapability, FakeManifest};
pub use options::Options;
pub use run::main;
pub use script::{Act, MAX_DELAY, Script};
