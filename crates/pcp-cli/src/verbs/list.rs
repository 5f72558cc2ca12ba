//! `list`: what can be done right now.

use pcp_core::{DetectionMethod, Domain};
use pcp_ipc::payloads::{RegistryQuery, RegistryRows};
use serde::{Deserialize, Serialize};

use crate::context::{Answer, Context, Show};
use crate::daemon;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// List the capabilities that are registered
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli list
  pcp-cli list --domain system
  pcp-cli list --app 'org.portal.*'
  pcp-cli list --json | jq -r '.data[].id'

Exit codes: 0 ok (also when nothing matches), 3 daemon or protocol, 5 unknown caller.")]
pub(crate) struct List {
    /// Only this domain: app, compositor, system
    #[arg(long, value_name = "DOMAIN")]
    domain: Option<Domain>,
    /// Only what was found this way: desktop, atspi2, wine, simulated
    #[arg(long, value_name = "METHOD")]
    method: Option<DetectionMethod>,
    /// Only applications whose id matches; * stands for any run of characters
    #[arg(long, value_name = "GLOB")]
    app: Option<String>,
}

/// What the list says of a capability; `show` says everything.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    id: String,
    app_id: String,
    domain: Domain,
    name: String,
    method: DetectionMethod,
    tier: String,
    stability: String,
    executable: bool,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Rows(Vec<Row>);

impl List {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let query = RegistryQuery {
            domain: self.domain,
            method: self.method,
            app: self.app.as_deref().map(Into::into),
            ..RegistryQuery::all(RegistryRows::Capabilities)
        };
        let rows = daemon::rows(&mut context.globals.connect()?, &query)?;
        let rows: Result<Vec<Row>, _> = rows.iter().map(|row| serde_json::from_str(row.get())).collect();
        let rows = rows.map_err(|source| Error::Reply { what: "row of a capability", source })?;
        Ok(Answer::report(Rows(rows)))
    }
}

impl Show for Rows {
    fn show(&self, page: &mut Page) {
        let cells = |row: &Row| {
            vec![
                Cell::new(&row.id),
                Cell::new(&row.tier),
                Cell::word(&row.stability),
                Cell::new(if row.executable { "yes" } else { "no" }),
                Cell::new(&row.name),
            ]
        };
        let rows: Vec<_> = self.0.iter().map(cells).collect();
        page.table(&["CAPABILITY", "TIER", "STABILITY", "EXECUTABLE", "NAME"], &rows);
        page.gap();
        page.line(Tone::Faint, format_args!("{} capabilities listed.", rows.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_a_table_with_a_count() {
        let row = Row {
            id: "app.org.portal.notes.create".into(),
            app_id: "org.portal.notes".into(),
            domain: Domain::App,
            name: "New\u{1b}[31m note".into(),
            method: DetectionMethod::Desktop,
            tier: "1".into(),
            stability: "stable".into(),
            executable: true,
        };
        let mut page = Page::default();
        Rows(vec![row]).show(&mut page);
        let expected = "\
CAPABILITY                   TIER  STABILITY  EXECUTABLE  NAME
app.org.portal.notes.create  1     stable     yes         New\\u{1b}[31m note

1 capabilities listed.
";
        assert_eq!(page.finish(false), expected);
    }
}
