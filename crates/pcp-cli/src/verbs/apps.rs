//! `apps`: which applications there are, and what is wrong with those that offer nothing.

use clap::builder::PossibleValuesParser;
use pcp_core::DetectionMethod;
use pcp_ipc::payloads::{AppRow, RegistryQuery, RegistryRows};
use pcp_native::Toolkit;
use pcp_native::predict::toolkit_word;
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
  pcp-cli apps --toolkit gtk4 --category Email
  pcp-cli apps --json | jq '.data[] | select(.problem)'

Exit codes: 0 ok (also when nothing matches), 3 daemon or protocol, 5 unknown caller.")]
pub(crate) struct Apps {
    /// Only applications whose id matches; * stands for any run of characters
    #[arg(value_name = "GLOB")]
    app: Option<String>,
    /// Only what was found this way: desktop, atspi2, wine, simulated
    #[arg(long, value_name = "METHOD")]
    method: Option<DetectionMethod>,
    /// Only applications whose windows are of this toolkit
    #[arg(long, value_name = "TOOLKIT", value_parser = toolkits())]
    toolkit: Option<String>,
    /// Only applications of this category of the menus, in any case: Email, Office, Game
    #[arg(long, value_name = "CATEGORY")]
    category: Option<String>,
}

fn toolkits() -> PossibleValuesParser {
    let known = Toolkit::ALL.into_iter().map(Some).chain([None]);
    PossibleValuesParser::new(known.map(toolkit_word))
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
        let mut rows = daemon::rows(&mut context.globals.connect()?, &query)?;
        let mut fault = Ok(());
        rows.retain(|row| match read(row) {
            Ok(app) => self.wants(&app),
            Err(error) => {
                fault = Err(error);
                false
            }
        });
        fault.map(|()| Answer::report(Rows(rows)))
    }

    /// What the daemon has no filter for.
    fn wants(&self, app: &AppRow<'_>) -> bool {
        let declared = app.declared.as_ref();
        let category = |wanted: &String| {
            declared.is_some_and(|app| app.categories.iter().any(|one| one.eq_ignore_ascii_case(wanted)))
        };
        let toolkit = |wanted: &String| declared.is_some_and(|app| app.toolkit.as_str() == wanted);
        self.toolkit.as_ref().is_none_or(toolkit) && self.category.as_ref().is_none_or(category)
    }
}

fn read(row: &RawValue) -> Result<AppRow<'_>, Error> {
    serde_json::from_str(row.get()).map_err(|source| Error::Reply { what: "row of an application", source })
}

impl Show for Rows {
    fn show(&self, page: &mut Page) {
        // Every row has been read before.
        let apps: Vec<_> = self.0.iter().filter_map(|row| read(row).ok()).collect();
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
