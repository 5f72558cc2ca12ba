//! `app list|show`: which applications there are, and everything that is known of one (R-021, R-206).

use pcp_core::AppId;
use pcp_ipc::payloads::{AppRow, RegistryQuery, RegistryRows};
use serde::Serialize;
use serde_json::value::RawValue;

use super::apps::Apps;
use crate::context::{Answer, Context, Show};
use crate::daemon;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// List applications, or show everything about one
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli app list
  pcp-cli app show org.portal.notes
  pcp-cli app show org.portal.notes --json | jq -r .data.signature

Exit codes: 0 ok, 2 no application id, 3 daemon or protocol, 4 not registered.")]
pub(crate) struct App {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the applications, as `apps` does
    List(Apps),
    /// Show everything about one application
    Show {
        /// The application's id, such as org.portal.notes
        #[arg(value_name = "APP")]
        id: String,
    },
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Entry(Box<RawValue>);

impl App {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::List(apps) => apps.run(context),
            Verb::Show { id } => show(context, id),
        }
    }
}

fn show(context: &Context<'_>, text: &str) -> Result<Answer, Error> {
    let id = AppId::parse(text).map_err(|error| {
        Error::usage(error.to_string(), "an application's id is such as org.portal.notes")
    })?;
    let query = RegistryQuery { id: Some(id.as_str().into()), ..RegistryQuery::all(RegistryRows::Apps) };
    let rows = daemon::rows(&mut context.globals.connect()?, &query)?;
    let entry = Entry(rows.into_iter().next().ok_or_else(|| Error::NotFound {
        what: "application",
        name: id.to_string(),
        hint: "`pcp-cli apps` shows the ids there are",
    })?);
    // Read here already, so that the page and the envelope refuse the same rows.
    entry.row()?;
    Ok(Answer::report(entry))
}

impl Entry {
    fn row(&self) -> Result<AppRow<'_>, Error> {
        serde_json::from_str(self.0.get())
            .map_err(|source| Error::Reply { what: "row of an application", source })
    }
}

impl Show for Entry {
    fn show(&self, page: &mut Page) {
        let Ok(row) = self.row() else { return };
        let mut fields = vec![
            ("Id", Cell::new(&row.id)),
            ("Version", Cell::maybe((!row.version.is_empty()).then_some(&row.version))),
            ("Method", Cell::new(row.method)),
            ("Signature", Cell::word(row.signature)),
            (
                "Problem",
                row.problem
                    .as_ref()
                    .map_or_else(|| Cell::maybe(None::<u8>), |why| Cell::toned(Tone::Bad, why)),
            ),
        ];
        if let Some(declared) = &row.declared {
            let categories =
                declared.categories.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            fields.extend([
                ("Name", Cell::new(&declared.name)),
                ("Categories", Cell::maybe((!categories.is_empty()).then_some(categories))),
                ("Toolkit", Cell::word(&declared.toolkit)),
                ("Evidence", Cell::maybe(declared.evidence.as_ref())),
                ("Program", Cell::maybe(declared.program.as_ref())),
                ("Window class", Cell::maybe(declared.window_class.as_ref())),
                ("File", Cell::new(&declared.file)),
                ("Confidence", Cell::new(format_args!("{} %", declared.confidence_percent))),
                ("In menus", Cell::new(if declared.no_display { "no" } else { "yes" })),
            ]);
        }
        page.fields(&fields);
        page.gap();
        page.line(Tone::Heading, "Capabilities");
        for id in &row.capabilities {
            page.line(Tone::Plain, id);
        }
        if row.capabilities.is_empty() {
            page.line(Tone::Faint, "none");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(row: &str) -> String {
        let mut page = Page::default();
        Entry(RawValue::from_string(row.to_owned()).unwrap()).show(&mut page);
        page.finish(false)
    }

    #[test]
    fn an_application_is_shown_with_what_its_files_say() {
        let row = r#"{"id":"org.x.mail","version":"","method":"desktop","signature":"unsigned","declared":{"name":"Mail","categories":["Network","Email"],"toolkit":"gtk3","evidence":"gi.require_version","program":"/bin/mail","file":"/s/a.desktop","confidence_percent":90,"no_display":false},"capabilities":["app.org.x.mail.read"]}"#;
        let expected = "          Id: org.x.mail
     Version: -
      Method: desktop
   Signature: unsigned
     Problem: -
        Name: Mail
  Categories: Network, Email
     Toolkit: gtk3
    Evidence: gi.require_version
     Program: /bin/mail
Window class: -
        File: /s/a.desktop
  Confidence: 90 %
    In menus: yes

Capabilities
app.org.x.mail.read
";
        assert_eq!(page(row), expected);
    }

    #[test]
    fn one_that_offers_nothing_is_shown_with_its_problem() {
        let row = r#"{"id":"org.x","version":"1","method":"desktop","signature":"invalid","problem":"bad\u001b","capabilities":[]}"#;
        assert!(page(row).contains("  Problem: bad\\u{1b}\n\nCapabilities\nnone\n"), "{}", page(row));
    }
}
