//! `inspect desktop`: what a desktop entry says, and which program it starts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pcp_native::desktop::{DesktopQuestion, DesktopReport, EntryReport, inspect_desktop};
use serde::Serialize;

use crate::context::{Answer, Show};
use crate::envelope::Problem;
use crate::page::{Cell, Page, Tone};

/// Read desktop entries as the daemon would
#[derive(Debug, clap::Args)]
pub(super) struct Desktop {
    /// The desktop files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Show the name in this locale too, as LC_MESSAGES has it; may be repeated
    #[arg(long = "locale", value_name = "LOCALE")]
    locales: Vec<String>,
    /// Say whether this desktop shows it, as XDG_CURRENT_DESKTOP has it; may be repeated
    #[arg(long = "desktop", value_name = "NAMES")]
    desktops: Vec<String>,
    /// Where the program of TryExec is looked for; the caller's PATH unless said otherwise
    #[arg(long, value_name = "PATH")]
    path: Option<OsString>,
}

impl Desktop {
    pub(super) fn run(&self) -> Answer {
        let search = self.path.clone().or_else(|| std::env::var_os("PATH")).unwrap_or_default();
        let question = DesktopQuestion { locales: &self.locales, desktops: &self.desktops, search: &search };
        let reports = self.files.iter().map(|file| inspect_desktop(file, question)).collect();
        Answer::report(Entries(reports))
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Entries(Vec<DesktopReport>);

impl Show for Entries {
    fn show(&self, page: &mut Page) {
        for (number, report) in self.0.iter().enumerate() {
            if number > 0 {
                page.gap();
            }
            let mut fields = vec![("File", Cell::new(&report.file)), ("Outcome", Cell::word(report.outcome))];
            match &report.app {
                Some(entry) => fields.extend(facts(entry)),
                None => fields.extend([
                    ("Reason", Cell::maybe(report.reason)),
                    ("Why", Cell::maybe(report.why.as_ref())),
                ]),
            }
            page.fields(&fields);
            if let Some(entry) = &report.app {
                more(entry, page);
            }
            for diagnostic in &report.diagnostics {
                page.line(Tone::Careful, format_args!("  {diagnostic}"));
            }
        }
    }

    fn problem(&self) -> Option<Problem> {
        super::unread(
            self.0.iter().filter(|report| report.reason == Some("unreadable")).map(|r| r.why.as_deref()),
        )
    }
}

fn facts(entry: &EntryReport) -> [(&'static str, Cell); 11] {
    [
        ("Application", Cell::maybe(entry.app_id.as_ref())),
        ("Name", Cell::maybe(entry.values.get("Name").and_then(|name| name.as_str()))),
        ("Categories", Cell::maybe(entry.values.get("Categories"))),
        ("Arguments", Cell::maybe(entry.argv.as_ref().map(|argv| format!("{argv:?}")))),
        ("Program", Cell::maybe(entry.program.as_ref())),
        ("Interpreter", Cell::maybe(entry.interpreter.as_ref())),
        ("Container", Cell::maybe(entry.sandbox)),
        ("No program because", Cell::maybe(entry.program_why)),
        ("Started over D-Bus as", Cell::maybe(entry.dbus_name.as_ref())),
        ("In menus", Cell::new(if entry.shown { "yes" } else { "no" })),
        ("Installed", Cell::maybe(entry.installed.map(|there| if there { "yes" } else { "no" }))),
    ]
}

fn more(entry: &EntryReport, page: &mut Page) {
    pairs("Name in", &entry.localized, page);
    pairs("Shown in", &entry.shown_in, page);
    for (id, argv) in &entry.actions {
        page.line(Tone::Plain, format_args!("  Action {id}: {:?}", argv.as_deref().unwrap_or_default()));
    }
}

fn pairs(what: &str, pairs: &BTreeMap<String, impl std::fmt::Display>, page: &mut Page) {
    for (name, value) in pairs {
        page.line(Tone::Plain, format_args!("  {what} {name:?}: {value}"));
    }
}
