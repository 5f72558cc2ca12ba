//! `show`: everything that is known of one capability.

use pcp_core::{AppId, CapabilityId};
use pcp_ipc::payloads::{CapabilityRow, RegistryQuery, RegistryRows};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::{Answer, Context, Show};
use crate::daemon;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Show everything about one capability
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli show app.org.portal.notes.create
  pcp-cli show editor.org.portal.notes.create     (a category stands for app)
  pcp-cli show app.org.portal.notes.create --json | jq .data.input_schema

Exit codes: 0 ok, 2 no capability id, 3 daemon or protocol, 4 not registered.")]
pub(crate) struct ShowCapability {
    /// The capability's id: domain.app.action
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Descriptor(Box<RawValue>);

impl ShowCapability {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let id = super::capability::parse(&self.id).map_err(|error| match AppId::parse(&self.id) {
            Ok(app) => Error::usage(
                format!("{app} is no capability's id but may be an application's"),
                format!("`pcp-cli app show {app}` shows an application, and which capabilities it has"),
            ),
            Err(_) => error,
        })?;
        let query =
            RegistryQuery { id: Some(id.as_str().into()), ..RegistryQuery::all(RegistryRows::Capabilities) };
        let rows = daemon::rows(&mut context.globals.connect()?, &query)?;
        let descriptor = Descriptor(rows.into_iter().next().ok_or_else(|| not_found(&id))?);
        // Read here already, so that the page and the envelope refuse the same rows.
        descriptor.row()?;
        Ok(Answer::report(descriptor))
    }
}

fn not_found(id: &CapabilityId) -> Error {
    Error::NotFound {
        what: "capability",
        name: id.to_string(),
        hint: "`pcp-cli list` shows the ids there are",
    }
}

impl Descriptor {
    fn row(&self) -> Result<CapabilityRow<'_>, Error> {
        serde_json::from_str(self.0.get())
            .map_err(|source| Error::Reply { what: "row of a capability", source })
    }
}

impl Show for Descriptor {
    fn show(&self, page: &mut Page) {
        let Ok(row) = self.row() else { return };
        page.fields(&[
            ("Id", Cell::new(&row.id)),
            ("Name", Cell::new(&row.name)),
            ("Description", Cell::new(&row.description)),
            ("Category", Cell::new(&row.category)),
            ("Domain", Cell::new(row.domain)),
            ("Application", Cell::new(&row.app_id)),
            ("Version", Cell::new(&row.version)),
            ("Method", Cell::new(row.method)),
            ("Tier", Cell::new(row.tier)),
            ("Stability", Cell::word(row.stability)),
            ("Signature", Cell::word(row.signature)),
            ("Executable", Cell::new(row.executable)),
            ("Side effects", Cell::new(row.side_effects)),
            (
                "Confirmation",
                Cell::new(if row.confirmation_required { "asked for by its author" } else { "by class" }),
            ),
            ("Minimum trust", Cell::new(row.minimum_trust)),
            ("Own validation", Cell::new(row.validates_params)),
        ]);
        for (name, schema) in [("Parameters", row.input_schema), ("Result", row.output_schema)] {
            page.gap();
            page.line(Tone::Heading, format_args!("{name} (JSON Schema)"));
            page.json(schema.as_str());
        }
    }
}
