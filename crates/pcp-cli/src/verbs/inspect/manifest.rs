//! `inspect manifest`: what a manifest is in the daemon's judgement.

use std::path::PathBuf;

use pcp_core::AppId;
use pcp_native::{ManifestReport, inspect_manifest};
use serde::Serialize;

use crate::context::{Answer, Show};
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Judge manifests as the daemon would
#[derive(Debug, clap::Args)]
pub(super) struct Manifest {
    /// The manifests
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The file with the 32 bytes of the trusted key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The application that the manifest is looked up for
    #[arg(long, value_name = "APP")]
    expect: Option<String>,
}

impl Manifest {
    pub(super) fn run(&self) -> Result<Answer, Error> {
        let expect = self.expect.as_deref().map(|text| {
            AppId::parse(text).map_err(|error| Error::usage(error.to_string(), "name an application id"))
        });
        let expect = expect.transpose()?;
        let judge = |file: &PathBuf| inspect_manifest(file, self.key.as_deref(), expect.as_ref()).report;
        Ok(Answer::report(Manifests(self.files.iter().map(judge).collect())))
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Manifests(Vec<ManifestReport>);

impl Show for Manifests {
    fn show(&self, page: &mut Page) {
        for (number, report) in self.0.iter().enumerate() {
            if number > 0 {
                page.gap();
            }
            manifest_page(report, page);
        }
    }

    fn problem(&self) -> Option<Problem> {
        super::unread(
            self.0.iter().filter(|report| report.reason == Some("unreadable")).map(|r| r.why.as_deref()),
        )
    }
}

/// A manifest's report for a person.
pub(in crate::verbs) fn manifest_page(report: &ManifestReport, page: &mut Page) {
    let outcome = serde_json::to_value(report.outcome).ok();
    let outcome = outcome.as_ref().and_then(|word| word.as_str()).unwrap_or_default();
    page.fields(&[
        ("File", Cell::maybe(report.file.as_ref())),
        ("Key", Cell::maybe(report.key.as_ref())),
        ("Outcome", Cell::word(outcome)),
        ("Reason", Cell::maybe(report.reason)),
        ("Why", Cell::maybe(report.why.as_ref())),
        ("Application", Cell::maybe(report.app_id.as_ref())),
        ("Version", Cell::maybe(report.version.as_ref())),
        ("Canonical SHA-256", Cell::maybe(report.canonical_sha256.as_ref())),
        ("Capabilities", Cell::new(report.capabilities.len())),
    ]);
    for id in &report.capabilities {
        page.line(Tone::Plain, format_args!("  {id}"));
    }
}
