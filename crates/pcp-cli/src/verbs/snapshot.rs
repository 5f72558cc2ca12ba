//! `snapshot`: the whole registry, to keep and to compare.

use pcp_ipc::payloads::{RegistryQuery, RegistryRows};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::{Answer, Context, Show};
use crate::daemon;
use crate::error::Error;
use crate::page::{Page, Tone};

/// Print the whole registry as JSON
///
/// The rows are sorted by id and carry no times, so that two snapshots differ only where the registry does.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli snapshot --json > before.json
  pcp-cli snapshot --json | jq '.data.capabilities | length'

Exit codes: 0 ok, 3 daemon or protocol, 5 unknown caller.")]
pub(crate) struct Snapshot {}

#[derive(Debug, Serialize)]
struct Registry {
    apps: Vec<Box<RawValue>>,
    capabilities: Vec<Box<RawValue>>,
}

impl Snapshot {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let mut client = context.globals.connect()?;
        let mut all = |what| daemon::rows(&mut client, &RegistryQuery::all(what));
        let apps = all(RegistryRows::Apps)?;
        let capabilities = all(RegistryRows::Capabilities)?;
        Ok(Answer::report(Registry { apps, capabilities }))
    }
}

impl Show for Registry {
    fn show(&self, page: &mut Page) {
        for row in self.apps.iter().chain(&self.capabilities) {
            page.json(row.get());
        }
        let (apps, capabilities) = (self.apps.len(), self.capabilities.len());
        page.line(Tone::Faint, format_args!("{apps} applications, {capabilities} capabilities."));
    }
}
