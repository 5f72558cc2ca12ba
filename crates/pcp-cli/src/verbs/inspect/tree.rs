//! `inspect tree`: which desktop files of a system count, and what was left out.

use std::path::{Path, PathBuf};

use pcp_native::desktop::{Locale, TreeReport, data_dirs, inspect_tree};
use serde::Serialize;

use crate::context::{Answer, Show};
use crate::page::{Cell, Page, Tone};

/// Find the applications of a tree of data folders as the daemon would
#[derive(Debug, clap::Args)]
pub(super) struct Tree {
    /// The user's data folder, as XDG_DATA_HOME names it; without any folder the environment's are taken
    #[arg(long, value_name = "DIR")]
    home: Option<PathBuf>,
    /// A system's data folder, as XDG_DATA_DIRS lists them, the most important one first; may be repeated
    #[arg(long, value_name = "DIR", num_args = 1..)]
    data: Vec<PathBuf>,
    /// Show names in this locale, as LC_MESSAGES has it
    #[arg(long, value_name = "LOCALE")]
    locale: Option<String>,
}

impl Tree {
    pub(super) fn run(&self) -> Answer {
        let locale = self.locale.as_deref().and_then(Locale::parse);
        let from_environment = || {
            let variable = |name| std::env::var_os(name);
            let home = variable("HOME");
            data_dirs(
                variable("XDG_DATA_HOME").as_deref(),
                home.as_deref().map(Path::new),
                variable("XDG_DATA_DIRS").as_deref(),
            )
        };
        let named = self.home.is_some() || !self.data.is_empty();
        let data = if named { self.data.clone() } else { from_environment() };
        Answer::report(Found(inspect_tree(self.home.as_deref(), &data, locale.as_ref())))
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Found(TreeReport);

impl Show for Found {
    fn show(&self, page: &mut Page) {
        let cells = |app: &pcp_native::desktop::AppReport| {
            vec![
                Cell::new(&app.app_id),
                Cell::new(&app.name),
                Cell::maybe(app.program.as_ref()),
                Cell::maybe(app.sandbox.map(|sandbox| sandbox.name()).or(app.interpreter.as_deref())),
                Cell::new(&app.file),
            ]
        };
        let rows: Vec<_> = self.0.entries.iter().map(cells).collect();
        page.table(&["APPLICATION", "NAME", "PROGRAM", "INSIDE", "FILE"], &rows);
        if !self.0.masked.is_empty() {
            page.gap();
            let masked = |(id, reason): (&String, &&'static str)| vec![Cell::new(id), Cell::new(reason)];
            page.table(&["MASKED", "REASON"], &self.0.masked.iter().map(masked).collect::<Vec<_>>());
        }
        if !self.0.skipped.is_empty() {
            page.gap();
            page.line(Tone::Heading, "LEFT OUT");
            for skip in &self.0.skipped {
                page.line(Tone::Careful, &skip.why);
            }
        }
        if self.0.skipped_more > 0 {
            page.line(Tone::Careful, format_args!("and {} more", self.0.skipped_more));
        }
    }
}
