//! The command line as clap reads it: the options that every verb has, and the table of verbs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::context::{Answer, Context};
use crate::error::Error;
use crate::{usage, verbs};

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
    ($($name:ident = $word:literal, $args:ty;)+) => {
        /// The verbs, in the order of the help text.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Verb {
            $(#[command(name = $word)] $name($args),)+
        }

        impl Verb {
            /// Carries the verb out.
            pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
                match self { $(Self::$name(verb) => verb.run(context),)+ }
            }

            /// The one verb of this name, as clap describes it.
            fn described(name: &str) -> Option<clap::Command> {
                $(if name == $word {
                    return Some(<$args as Args>::augment_args(clap::Command::new($word)));
                })+
                None
            }
        }
    };
}

verbs! {
    Ping = "ping", verbs::ping::Ping;
    Doctor = "doctor", verbs::doctor::Doctor;
    List = "list", verbs::list::List;
    Show = "show", verbs::show::ShowCapability;
    Apps = "apps", verbs::apps::Apps;
    App = "app", verbs::app::App;
    Adapters = "adapters", verbs::adapters::Adapters;
    Events = "events", verbs::events::Events;
    Snapshot = "snapshot", verbs::snapshot::Snapshot;
    Exec = "exec", verbs::exec::Exec;
    Explain = "explain", verbs::explain::Explain;
    Status = "status", verbs::status::Status;
    Capabilities = "capabilities", verbs::backend::Capabilities;
    Surfaces = "surfaces", verbs::backend::Surfaces;
    Observe = "observe", verbs::backend::Observe;
    ObserveSurface = "observe-surface", verbs::backend::ObserveSurface;
    Audit = "audit", verbs::audit::Audit;
    Policy = "policy", verbs::policy::Policy;
    Classify = "classify", verbs::classify::Classify;
    Capability = "capability", verbs::capability::Capability;
    Inspect = "inspect", verbs::inspect::Inspect;
    Manifest = "manifest", verbs::manifest::Manifest;
    Key = "key", verbs::key::Key;
    Wire = "wire", verbs::wire::Wire;
    Completion = "completion", verbs::completion::Completion;
    Complete = "__complete", verbs::completion::live::Complete;
    Version = "version", verbs::version::Version;
    Help = "help", verbs::help::Help;
}

/// The verbs of S3, which always print its envelope.
pub(crate) const S3_VERBS: [&str; 5] = ["status", "capabilities", "surfaces", "observe", "observe-surface"];

impl Verb {
    /// How the verb's answer is printed.
    pub(crate) fn contract(&self) -> Contract {
        match self {
            Self::Status(_)
            | Self::Capabilities(_)
            | Self::Surfaces(_)
            | Self::Observe(_)
            | Self::ObserveSurface(_) => Contract::S3,
            _ => Contract::Ordinary,
        }
    }
}

impl Cli {
    /// Reads `args`, the program's name first.
    ///
    /// Describing every verb costs clap more than all the rest of a ping. So the verb that stands there is
    /// described alone first, and all of them only when the words do not fit it: for help and for errors.
    pub(crate) fn read(args: &[OsString]) -> Result<Self, clap::Error> {
        let words = args.get(1..).unwrap_or_default();
        let verb = usage::verb(words).and_then(|name| Verb::described(&name));
        let matches = verb.and_then(|verb| {
            let alone = Globals::augment_args(clap::Command::new("pcp-cli").disable_help_subcommand(true));
            let alone = alone.subcommand(verb);
            alone.try_get_matches_from(args).ok()
        });
        match matches.map(|matches| Self::from_arg_matches(&matches)) {
            Some(Ok(cli)) => Ok(cli),
            _ => Self::try_parse_from(args),
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
    fn a_verb_described_alone_is_read_as_among_all_of_them() {
        for line in [
            "ping --count 3 --socket /x --timeout 2.5",
            "--socket /x --format table --color=never exec app.x.y a=1 b:=2 --no-wait --deadline 5 --json",
            "--expect-uid 7 audit show --last 3 --op 0191e7a0-0000-7000-8000-000000000001",
            "manifest sign --key k in --out out",
            "key gen --out -",
            "help audit show --json",
            "completion bash",
            "wire --list",
            "events -f --topic app_added,app_removed --topic capability_diff --v1 --queue 8 --count 3",
            "snapshot",
            "snapshot diff a - --json",
            "app show org.x",
            "app list --toolkit gtk4",
            "__complete -- show --socket /x app.",
            "status --ledger l 0191e7a0-0000-7000-8000-000000000001",
            "observe-surface 00",
            "capabilities --json",
        ] {
            let args: Vec<OsString> =
                ["pcp-cli"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let whole = Cli::try_parse_from(&args).unwrap();
            assert!(usage::verb(&args[1..]).and_then(|name| Verb::described(&name)).is_some(), "{line}");
            assert_eq!(format!("{:?}", Cli::read(&args).unwrap()), format!("{whole:?}"), "{line}");
        }
        for line in ["pnig", "ping --nope", "PING", "", "--help", "ping --help", "key", "-- ping"] {
            let args: Vec<OsString> =
                ["pcp-cli"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let whole = Cli::try_parse_from(&args).unwrap_err();
            let read = Cli::read(&args).unwrap_err();
            assert_eq!(read.render().to_string(), whole.render().to_string(), "{line}");
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
