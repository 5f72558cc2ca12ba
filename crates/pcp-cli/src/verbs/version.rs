//! `version`: what this program is and which protocol it speaks.

use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Page, Tone};

/// Print the version of this program and of the protocol it speaks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli version

Exit codes: 0 ok.")]
pub(crate) struct Version {}

#[derive(Debug, Serialize)]
struct Versions {
    program: &'static str,
    version: &'static str,
    protocol: u32,
    architecture: &'static str,
}

impl Version {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        Ok(Answer::report(Versions {
            program: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
            protocol: pcp_stream::VERSION,
            architecture: std::env::consts::ARCH,
        }))
    }
}

impl Show for Versions {
    fn show(&self, page: &mut Page) {
        let Self { program, version, protocol, architecture } = self;
        page.line(Tone::Plain, format_args!("{program} {version} ({architecture}), protocol {protocol}"));
    }
}
