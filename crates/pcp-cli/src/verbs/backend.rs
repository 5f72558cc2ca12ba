//! `capabilities`, `surfaces`, `observe`, `observe-surface`: what S3's backend of the accessibility tree can do (R-195,
//! There is none in this build, and that is what they say: no action, no permission, nothing observed. What an
//! application's own socket can do is a question to the daemon.

use std::collections::BTreeMap;

use pcp_core::v2::{Capabilities as Report, SessionIsolation, Sha256Hash};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::Page;

/// The backend that will be there.
const BACKEND: &str = "pcp-atspi2";
/// What such a backend needs of the system, each of it missing.
const PERMISSIONS: [&str; 6] =
    ["accessibility", "atspi2", "display_geometry", "native_session", "private_state", "x11"];
/// Why nothing is observed.
const NO_BACKEND: &str = "this build has no accessibility backend, so that no window can be observed; \
     applications are observed through the daemon (docs/protocol-v2.md)";
const NO_SURFACE: &str = "a surface id is 64 lower-case hexadecimal digits";

/// Print what the accessibility backend can do on this device
///
/// Needs no daemon. Without a backend no action is listed, and every permission is false.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli capabilities

Exit codes: 0 ok, 2 usage.")]
pub(crate) struct Capabilities {}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Told(Report);

impl Show for Told {
    fn show(&self, _: &mut Page) {}
}

impl Capabilities {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        Ok(Answer::report(Told(Report {
            platform: std::env::consts::OS.to_owned(),
            backend: BACKEND.to_owned(),
            session_isolation: SessionIsolation::SharedDesktop,
            supported_actions: Vec::new(),
            action_capabilities: Vec::new(),
            permissions: PERMISSIONS
                .iter()
                .map(|name| ((*name).to_owned(), false))
                .collect::<BTreeMap<_, _>>(),
            display_geometry_hash: Sha256Hash::ZERO,
        })))
    }
}

/// List the windows that can be observed
///
/// Ends with observation_error where nothing can be, and says why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli surfaces

Exit codes: 0 ok, 2 usage, 3 nothing can be observed.")]
pub(crate) struct Surfaces {}

impl Surfaces {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        Err(Error::Observation(NO_BACKEND))
    }
}

/// Observe the active window
///
/// Ends with observation_error where nothing can be observed, and says why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli observe

Exit codes: 0 ok, 2 usage, 3 nothing can be observed.")]
pub(crate) struct Observe {}

impl Observe {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        Err(Error::Observation(NO_BACKEND))
    }
}

/// Observe one window of `surfaces`
///
/// Ends with observation_error where it cannot be observed, also for what is no surface's id, and says why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli observe-surface 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae

Exit codes: 0 ok, 2 usage, 3 it cannot be observed.")]
pub(crate) struct ObserveSurface {
    /// The surface's id: 64 hexadecimal digits
    #[arg(value_name = "ID")]
    surface: String,
}

impl ObserveSurface {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        Err(Error::Observation(if Sha256Hash::parse(&self.surface).is_some() {
            NO_BACKEND
        } else {
            NO_SURFACE
        }))
    }
}
