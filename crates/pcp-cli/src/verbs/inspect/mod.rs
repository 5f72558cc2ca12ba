//! `inspect`: what PCP reads in a file and why, without the daemon. One file for each kind of input.
//!
//! A file that PCP would refuse is a finding, not an error: the exit code says only whether all were read.

mod desktop;
mod elf;
mod frame;
mod manifest;
mod tree;

use pcp_core::ErrorCode;

use crate::context::{Answer, Context};
use crate::envelope::Problem;
use crate::error::Error;

pub(super) use manifest::manifest_page;

/// Say what PCP reads in a file, and why
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli inspect manifest org.example.notes.json --key org.example.notes.pub
  pcp-cli inspect manifest --expect org.example.notes *.json --json | jq '.data[].outcome'
  pcp-cli inspect frame captured.bin
  pcp-cli inspect desktop /usr/share/applications/org.example.notes.desktop --locale de_DE.UTF-8
  pcp-cli inspect tree --home ~/.local/share --data /usr/local/share --data /usr/share
  pcp-cli inspect elf /usr/bin/gedit --json | jq -r '.data[].toolkit'

Exit codes: 0 all files were read (whatever was found in them), 2 usage, 4 one could not be read.")]
pub(crate) struct Inspect {
    #[command(subcommand)]
    verb: Verb,
}

/// One kind of input each; a new one is a file beside this one, a line here and a line in `run`.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    Desktop(desktop::Desktop),
    Tree(tree::Tree),
    Elf(elf::Elf),
    Manifest(manifest::Manifest),
    Frame(frame::Frame),
}

impl Inspect {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::Desktop(verb) => Ok(verb.run()),
            Verb::Tree(verb) => Ok(verb.run()),
            Verb::Elf(verb) => verb.run(),
            Verb::Manifest(verb) => verb.run(),
            Verb::Frame(verb) => Ok(verb.run()),
        }
    }
}

/// The problem of files that could not be read.
fn unread<'a>(whys: impl Iterator<Item = Option<&'a str>>) -> Option<Problem> {
    let whys: Vec<&str> = whys.map(Option::unwrap_or_default).collect();
    let first = whys.first()?;
    let more = if whys.len() > 1 { format!(", and {} more", whys.len() - 1) } else { String::new() };
    Some(Problem::new(ErrorCode::NotFound, format!("{first}{more}")))
}
