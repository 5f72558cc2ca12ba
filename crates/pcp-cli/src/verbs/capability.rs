//! `capability parse`: the three parts of an id and its canonical form (R-005, R-006, C58). Needs no daemon.

use pcp_core::CapabilityId;
use pcp_core::id::APP_ALIASES;
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Cell, Page};

/// Take capability ids apart
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli capability parse editor.org.xfce.mousepad.read

Exit codes: 0 ok, 2 no capability id.")]
pub(crate) struct Capability {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print the three parts of an id and its canonical form
    Parse {
        /// The capability's id: domain.app.action
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Serialize)]
struct Parts {
    id: String,
    canonical: String,
    domain: String,
    app: String,
    action: String,
    alias: Option<&'static str>,
}

impl Capability {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        let Verb::Parse { id: text } = &self.verb;
        let id = parse(text)?;
        let first = text.split('.').next().unwrap_or_default();
        Ok(Answer::report(Parts {
            id: text.clone(),
            canonical: id.to_string(),
            domain: id.domain().to_string(),
            app: id.app().to_owned(),
            action: id.action().to_owned(),
            alias: APP_ALIASES.into_iter().find(|alias| *alias == first),
        }))
    }
}

/// An id as it stands on the command line.
pub(super) fn parse(text: &str) -> Result<CapabilityId, Error> {
    CapabilityId::parse(text).map_err(|error| {
        Error::usage(error.to_string(), "an id is domain.app.action, such as app.org.portal.notes.create")
    })
}

impl Show for Parts {
    fn show(&self, page: &mut Page) {
        page.fields(&[
            ("Canonical", Cell::new(&self.canonical)),
            ("Domain", Cell::new(&self.domain)),
            ("Application", Cell::new(&self.app)),
            ("Action", Cell::new(&self.action)),
            ("Alias", Cell::maybe(self.alias)),
        ]);
    }
}
