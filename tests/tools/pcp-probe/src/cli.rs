//! The command line of the probe.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::crowd_cli::{self, CrowdVerb};
use crate::{ProbeError, Sending, exchange, judge_cases, judge_types};

/// Sends raw frames to a socket and judges what comes back. Exit 0: all as it should be, 1: not, 2: usage.
#[derive(Debug, Parser)]
#[command(name = "pcp-probe", version)]
struct Arguments {
    /// The socket to send to.
    #[arg(long, env = "PCP_SOCKET", default_value = "/run/portal/pcp/pcpd.sock", global = true)]
    socket: PathBuf,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Sends a file of raw bytes and prints what came back as one JSON object.
    Send {
        /// The file.
        file: PathBuf,
        /// Bytes a write; all at once when absent.
        #[arg(long, default_value_t = 0)]
        chunk: usize,
        /// Milliseconds between two writes.
        #[arg(long, default_value_t = 0)]
        pause_ms: u64,
        /// Close the writing side after the last byte.
        #[arg(long)]
        eof: bool,
    },
    /// Sends every case of a folder with an `expected.json` and judges each.
    Frames {
        /// The folder.
        folder: PathBuf,
    },
    /// Sends an empty frame of every type number from 0 to 255 and judges the answers.
    Types,
    #[command(flatten)]
    Crowd(CrowdVerb),
}

/// Runs the probe with the arguments of a process.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match act(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pcp-probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn act(arguments: &Arguments) -> Result<bool, ProbeError> {
    let socket = &arguments.socket;
    match &arguments.verb {
        Verb::Crowd(verb) => crowd_cli::act(socket, verb),
        Verb::Send { file, chunk, pause_ms, eof } => {
            let bytes =
                std::fs::read(file).map_err(|error| ProbeError::Input(file.clone(), error.to_string()))?;
            let pause = Duration::from_millis(*pause_ms);
            let seen = exchange(socket, &bytes, Sending { chunk: *chunk, pause, eof: *eof, enough: 0 })?;
            print_json(&seen);
            Ok(true)
        }
        Verb::Frames { folder } => {
            let verdicts = judge_cases(folder, socket)?;
            for verdict in &verdicts {
                match &verdict.problem {
                    None => println!("ok {} {}", verdict.case, verdict.file),
                    Some(problem) => println!("not ok {} {}: {problem}", verdict.case, verdict.file),
                }
            }
            let right = verdicts.iter().filter(|verdict| verdict.problem.is_none()).count();
            println!("{right} of {} frame cases right", verdicts.len());
            Ok(right == verdicts.len())
        }
        Verb::Types => {
            let verdicts = judge_types(socket)?;
            verdicts.iter().for_each(print_json);
            let right = verdicts.iter().filter(|verdict| verdict.problem.is_none()).count();
            println!("{right} of {} message types right", verdicts.len());
            Ok(right == verdicts.len())
        }
    }
}

pub(crate) fn print_json(value: &impl serde::Serialize) {
    println!("{}", serde_json::to_string(value).unwrap_or_default());
}
