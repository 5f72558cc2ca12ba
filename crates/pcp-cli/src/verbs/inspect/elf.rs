//! `inspect elf`: what a program is, what it needs, and which toolkit draws it. Nothing is run.

use std::path::PathBuf;

use pcp_native::{ProgramKind, ProgramReport, Programs, Root};
use serde::Serialize;

use crate::context::{Answer, Show};
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Where programs that scripts start are looked up in another tree.
const PATH: [&str; 8] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/local/games",
    "/usr/games",
];

/// Say what programs are, what they need and which toolkit draws them
#[derive(Debug, clap::Args)]
pub(super) struct Elf {
    /// Programs, scripts or libraries
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A folder that files and links are looked up beneath, as an unpacked package or an image
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
}

impl Elf {
    pub(super) fn run(&self) -> Result<Answer, Error> {
        let (root, path) = match &self.root {
            Some(folder) => {
                let root = Root::beneath(folder).map_err(|error| {
                    Error::usage(format!("cannot open {}: {error}", folder.display()), "name a folder")
                })?;
                (root, PATH.map(PathBuf::from).to_vec())
            }
            None => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                (Root::system(), std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect())
            }
        };
        let programs = Programs::new(&root, path);
        Ok(Answer::report(Found(self.files.iter().map(|file| programs.probe_file(file)).collect())))
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Found(Vec<ProgramReport>);

impl Show for Found {
    fn show(&self, page: &mut Page) {
        for (number, report) in self.0.iter().enumerate() {
            if number > 0 {
                page.gap();
            }
            one(report, page);
        }
    }

    fn problem(&self) -> Option<Problem> {
        let missing = self.0.iter().filter(|report| report.kind == ProgramKind::Missing);
        super::unread(missing.map(|report| report.why.as_deref()))
    }
}

fn one(report: &ProgramReport, page: &mut Page) {
    let kind = serde_json::to_value(report.kind).ok();
    let kind = kind.as_ref().and_then(|word| word.as_str()).unwrap_or_default();
    let machine = report.elf.as_ref().map(|elf| format!("{}, {} bits", elf.machine, elf.bits));
    page.fields(&[
        ("File", Cell::new(&report.file)),
        ("Kind", Cell::word(kind)),
        ("Resolved", Cell::maybe(report.resolved.as_ref())),
        ("Toolkit", Cell::maybe(report.toolkit)),
        ("Evidence", Cell::maybe(report.evidence.as_ref())),
        ("Why", Cell::maybe(report.why.as_ref())),
        ("Machine", Cell::maybe(machine)),
        ("Interpreter", Cell::maybe(report.interpreter.as_ref())),
        ("Starts", Cell::maybe(report.starts.as_ref().map(|started| &started.file))),
    ]);
    for name in report.elf.iter().flat_map(|elf| &elf.needed) {
        page.line(Tone::Plain, format_args!("  {name}"));
    }
}
