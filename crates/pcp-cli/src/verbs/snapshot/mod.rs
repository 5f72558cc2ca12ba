//! `snapshot`: the whole registry, to keep and to compare.

mod diff;
mod file;

use std::path::PathBuf;

use pcp_ipc::payloads::{RegistryQuery, RegistryRows};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::{Answer, Context, Show};
use crate::daemon;
use crate::error::Error;
use crate::page::{Page, Tone};
use diff::Differences;

/// Print the whole registry as JSON, or what changed between two of them
///
/// The rows are sorted by id and carry no times, so that two snapshots differ only where the registry does.
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli snapshot --json > before.json
  pcp-cli snapshot --json | jq '.data.capabilities | length'
  pcp-cli snapshot diff before.json

Exit codes: 0 ok, 3 daemon or protocol, 5 unknown caller.")]
pub(crate) struct Snapshot {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Say what changed between two snapshots, or between one and now
    ///
    /// Two that differ are an answer and no failure: the exit code is 0, and the member `same` says it.
    #[command(after_help = "\
Examples:
  pcp-cli snapshot diff before.json
  pcp-cli snapshot diff before.json after.json
  ssh device pcp-cli snapshot --json | pcp-cli snapshot diff before.json -
  pcp-cli snapshot diff before.json --json | jq -e .data.same

Exit codes: 0 ok (whether or not they differ), 2 no snapshot, 3 daemon or protocol, 4 no such file.")]
    Diff {
        /// A file that `snapshot --json` wrote; - is standard input
        #[arg(value_name = "OLD")]
        old: PathBuf,
        /// Another one; without it what the daemon has now
        #[arg(value_name = "NEW")]
        new: Option<PathBuf>,
    },
}

#[derive(Debug, Serialize)]
struct Registry {
    apps: Vec<Box<RawValue>>,
    capabilities: Vec<Box<RawValue>>,
}

impl Snapshot {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let Some(Verb::Diff { old, new }) = &self.verb else {
            return Ok(Answer::report(Registry::now(context)?));
        };
        let [old, new] = match new {
            Some(new) => file::read_both(old, new)?,
            None => [file::read(old)?, serde_json::to_string(&Registry::now(context)?)?],
        };
        Ok(Answer::report(Differences::between(&file::rows(&old)?, &file::rows(&new)?)))
    }
}

impl Registry {
    fn now(context: &Context<'_>) -> Result<Self, Error> {
        let mut client = context.globals.connect()?;
        let mut all = |what| daemon::rows(&mut client, &RegistryQuery::all(what));
        Ok(Self { apps: all(RegistryRows::Apps)?, capabilities: all(RegistryRows::Capabilities)? })
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
