//! The command line of the harness.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::device::Device;
use crate::error::Error;
use crate::story::{self, Story};
use crate::target::{Settings, Target};
use crate::verbs;
use crate::verbs::run::Way;

/// Exit status when the harness itself could not do what was asked; a device's command has its own.
const EXIT_TROUBLE: u8 = 70;

/// Drives a device wherever it is: QEMU, SSH or serial.
#[derive(Debug, Parser)]
#[command(name = "pcp-harness", version)]
struct Arguments {
    /// qemu, ssh://USER@HOST[:PORT] or serial:/dev/ttyX[@BAUD]; one for the console and one for SSH may be given
    #[arg(long = "target", global = true, default_value = "qemu")]
    targets: Vec<Target>,
    /// Image file to boot (qemu); it is not changed
    #[arg(long, global = true, value_name = "FILE")]
    image: Option<PathBuf>,
    /// U-Boot for QEMU; default: u-boot.bin beside the image, then the one of the package u-boot-qemu
    #[arg(long, global = true, value_name = "FILE")]
    bios: Option<PathBuf>,
    /// Facts of the emulated board; default: the board.conf below board/ that says RUNS="qemu"
    #[arg(long, global = true, value_name = "FILE")]
    board: Option<PathBuf>,
    /// Private key of the operator
    #[arg(long, global = true, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// Known hosts for ssh:// targets; default: your own
    #[arg(long, global = true, value_name = "FILE")]
    known_hosts: Option<PathBuf>,
    /// Write everything the console says to this file
    #[arg(long, global = true, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Wait this many times as long as usual, on a slow host
    #[arg(long, global = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=20))]
    patience: u32,
    /// Go on although the device says that it is not ready, to see why
    #[arg(long, global = true)]
    unready: bool,
    /// Answer in JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Boot to ready, print times and memory, switch off
    Boot,
    /// See the console from power-on and type on it yourself; Ctrl-] leaves
    Shell,
    /// Run one command on the device; its status is the exit status
    Run {
        /// Which way; default: the console if there is one
        #[arg(long)]
        over: Option<Way>,
        /// Seconds to wait for its end
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// The command, for the device's shell
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Tell a story, or all; list them with `story list`
    Story {
        /// Name of the story
        name: String,
    },
}

/// Runs the command line with the given stories.
pub fn main(stories: &[Story]) -> ExitCode {
    match dispatch(Arguments::parse(), stories) {
        Ok(status) => u8::try_from(status).map_or(ExitCode::FAILURE, ExitCode::from),
        Err(error) => {
            eprintln!("pcp-harness: {error}");
            ExitCode::from(EXIT_TROUBLE)
        }
    }
}

fn dispatch(arguments: Arguments, stories: &[Story]) -> Result<i32, Error> {
    let Arguments { targets, image, bios, board, ssh_key, known_hosts, log, patience, unready, json, verb } =
        arguments;
    let settings = Settings { image, bios, board, ssh_key, known_hosts, log, patience, unready };
    let device = || Device::new(&targets, &settings);
    match verb {
        Verb::Boot => verbs::boot::boot(device()?, json),
        Verb::Shell => verbs::shell::shell(device()?),
        Verb::Run { over, seconds, command } => {
            let limit = Duration::from_secs(seconds).saturating_mul(patience);
            verbs::run::run(device()?, &command.join(" "), over, limit, json)
        }
        Verb::Story { name } if name == "list" => {
            stories.iter().for_each(|story| println!("{:<12} {}", story.name, story.about));
            Ok(0)
        }
        Verb::Story { name } => {
            let chosen = story::named(stories, &name)?;
            verbs::story::story(device()?, &chosen, json)
        }
    }
}
