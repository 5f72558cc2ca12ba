//! `apps`: which applications there are, and what is wrong with those that offer nothing.

use pcp_core::DetectionMethod;
use pcp_ipc::payloads::{AppRow, RegistryQuery, RegistryRows};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::{Answer, Context, Show};
use crate::daemon;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// List the applications and what is known of their signatures
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli apps
  pcp-cli apps 'org.portal.*'
  pcp-cli apps --json | jq '.data[] | select(.problem)'

Exit codes: 0 ok (also when nothing matches), 3 daemon or protocol, 5 unknown caller.")]
pub(crate) struct Apps {
    /// Only applications whose id matches; * stands for any run of characters
    #[arg(value_name = "GLOB")]
    app: Option<String>,
    /// Only what was found this way: desktop, atspi2, wine, simulated
    #[arg(long, value_name = "METHOD")]
    method: Option<DetectionMethod>,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Rows(Vec<Box<RawValue>>);

impl Apps {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let query = RegistryQuery {
            method: self.method,
            app: self.app.as_deref().map(Into::into),
            ..RegistryQuery::all(RegistryRows::Apps)
        };
        let rows = Rows(daemon::rows(&mut context.globals.connect()?, &query)?);
        rows.read()?;
        Ok(Answer::report(rows))
    }
}

impl Rows {
    fn read(&self) -> Result<Vec<AppRow<'_>>, Error> {
        let rows: Result<_, _> = self.0.iter().map(|row| serde_json::from_str(row.get())).collect();
        rows.map_err(|source| Error::Reply { what: "row of an application", source })
    }
}

impl Show for Rows {
    fn show(&self, page: &mut Page) {
        let Ok(apps) = self.read() else { return };
        let cells = |app: &AppRow<'_>| {
            vec![
                Cell::new(&app.id),
                Cell::maybe((!app.version.is_empty()).then_some(&app.version)),
                Cell::maybe(app.declared.as_ref().map(|declared| &declared.toolkit)),
                Cell::word(app.signature),
                Cell::new(app.capabilities.len()),
                Cell::maybe(app.problem.as_ref().or(app.declared.as_ref().map(|declared| &declared.name))),
            ]
        };
        let rows: Vec<_> = apps.iter().map(cells).collect();
        page.table(
            &["APPLICATION", "VERSION", "TOOLKIT", "SIGNATURE", "CAPABILITIES", "NAME OR PROBLEM"],
            &rows,
        );
        page.gap();
        page.line(Tone::Faint, format_args!("{} applications listed.", rows.len()));
    }
}
