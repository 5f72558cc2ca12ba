//! The command line as clap reads it: the options that every verb has, and the table of verbs.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};

use crate::context::{Answer, Context};
use crate::error::Error;
use crate::verbs;

/// Where the daemon listens.
pub(crate) const SOCKET: &str = "/run/portal/pcp/pcpd.sock";

/// Longest wait that may be asked for, in seconds: an hour, more than any operation lives.
const MAX_TIMEOUT_SECONDS: f64 = 3600.0;
/// Shortest wait, in seconds: one tick of the socket's clock.
const MIN_TIMEOUT_SECONDS: f64 = 0.001;

const EXIT_CODES: &str = "\
Exit codes:
  0 ok                        8 too many requests, or a limit is reached
  1 output cannot be written  9 outcome unknown: may have happened, never repeat
  2 wrong command line       10 ran and failed, or was refused by the pipeline
  3 daemon or protocol       11 integrity broken: trail, ledger, signature
  4 not found                12 integrity could not be checked
  5 denied                   13 doctor found a problem
  6 confirmation needed     130 interrupted
  7 timeout";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Yellow.on_default().bold())
    .usage(AnsiColor::Yellow.on_default().bold())
    .literal(AnsiColor::Green.on_default())
    .placeholder(AnsiColor::Cyan.on_default());

/// Command line of the Portal Capability Protocol.
///
/// Asks the daemon portal-pcpd what can be done on this device, has it done, and reads trails, manifests and
/// frames without the daemon. Prints tables on a terminal and one JSON envelope anywhere else.
#[derive(Debug, Parser)]
#[command(
    name = "pcp-cli",
    bin_name = "pcp-cli",
    version,
    styles = STYLES,
    after_help = EXIT_CODES,
    disable_help_subcommand = true,
    subcommand_required = true,
    subcommand_value_name = "VERB",
    subcommand_help_heading = "Verbs",
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The options that every verb has.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Options of every verb")]
pub(crate) struct Globals {
    /// The daemon's socket
    #[arg(long, global = true, value_name = "PATH", env = "PCP_SOCKET", default_value = SOCKET)]
    pub(crate) socket: PathBuf,
    /// The uid that has to serve the socket; without it user pcp, or the caller where there is no such user
    #[arg(long, global = true, value_name = "UID")]
    pub(crate) expect_uid: Option<u32>,
    /// Wait no longer for a reply; 30 unless said otherwise
    #[arg(long, global = true, value_name = "SECONDS", env = "PCP_TIMEOUT", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
    /// Print the JSON envelope, whatever --format says
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print a table or the JSON envelope; without it a table on a terminal and JSON anywhere else
    #[arg(long, global = true, value_enum, env = "PCP_FORMAT")]
    pub(crate) format: Option<Format>,
    /// Colour: auto, always, never; auto heeds NO_COLOR and CLICOLOR_FORCE
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) color: Colour,
}

/// What an answer is printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal that takes it.
    Auto,
    /// In any case.
    Always,
    /// In no case.
    Never,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (MIN_TIMEOUT_SECONDS..=MAX_TIMEOUT_SECONDS).contains(&seconds) => Ok(seconds),
        _ => Err(format!(
            "a number of seconds from {MIN_TIMEOUT_SECONDS} to {MAX_TIMEOUT_SECONDS} is expected"
        )),
    }
}

/// How strictly a verb keeps to the envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contract {
    /// Always one envelope whose error has two members.
    S3,
    /// An envelope for programs, a page for people.
    Ordinary,
}

macro_rules! verbs {
    ($($(#[$meta:meta])* $name:ident($args:ty);)+) => {
        /// The verbs, in the order of the help text.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $($(#[$meta])* $name($args),)+
        }

        impl Verb {
            /// Carries the verb out.
            pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
                match self { $(Self::$name(verb) => verb.run(context),)+ }
            }
        }
    };
}

verbs! {
    Ping(verbs::ping::Ping);
    Doctor(verbs::doctor::Doctor);
    List(verbs::list::List);
    Show(verbs::show::ShowCapability);
    Apps(verbs::apps::Apps);
    Snapshot(verbs::snapshot::Snapshot);
    Exec(verbs::exec::Exec);
    Status(verbs::status::Status);
    Audit(verbs::audit::Audit);
    Classify(verbs::classify::Classify);
    Capability(verbs::capability::Capability);
    Inspect(verbs::inspect::Inspect);
    Manifest(verbs::manifest::Manifest);
    Key(verbs::key::Key);
    Wire(verbs::wire::Wire);
    Completion(verbs::completion::Completion);
    Version(verbs::version::Version);
    Help(verbs::help::Help);
}

/// The verbs of S3, which always print its envelope.
pub(crate) const S3_VERBS: [&str; 1] = ["status"];

impl Verb {
    /// How the verb's answer is printed.
    pub(crate) fn contract(&self) -> Contract {
        match self {
            Self::Status(_) => Contract::S3,
            _ => Contract::Ordinary,
        }
    }
}

/// The whole command, complete with what clap adds.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wait_is_a_number_of_seconds_within_limits() {
        for (text, value) in [("0.001", Some(0.001)), ("3600", Some(3600.0)), ("1e1", Some(10.0))] {
            assert_eq!(seconds(text).ok(), value, "{text}");
        }
        for bad in ["0", "3600.1", "-1", "nan", "inf", "", "5s", "0.0009"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_stand_before_or_after_the_verb() {
        for line in [["pcp-cli", "--socket=/x", "ping"], ["pcp-cli", "ping", "--socket=/x"]] {
            let cli = Cli::try_parse_from(line).unwrap();
            assert_eq!(cli.globals.socket, PathBuf::from("/x"));
        }
    }

    #[test]
    fn every_verb_has_a_sentence_an_example_and_the_exit_codes() {
        for verb in command().get_subcommands() {
            let name = verb.get_name();
            assert!(verb.get_about().is_some(), "{name} has no sentence");
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Examples:\n"), "{name} has no example");
            assert!(help.contains("Exit codes:"), "{name} does not name its exit codes");
        }
    }
}
