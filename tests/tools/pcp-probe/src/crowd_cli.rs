//! The verbs that send crowds, and the one that asks once for everything.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Subcommand};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cli::print_json;
use crate::{Asks, Attack, Behaviour, Load, ProbeError, ask_each, attack, burst, read_vectors, run_load};

#[derive(Debug, Subcommand)]
pub(crate) enum CrowdVerb {
    /// An honest crowd; prints how long answers took. Exit 1 when anything was not served.
    Load(LoadArguments),
    /// Hostile clients; prints what became of each kind.
    Hostile(HostileArguments),
    /// Many pings at once; prints how many were served and how many told 429.
    Burst {
        /// Connections.
        #[arg(long, default_value_t = 1)]
        connections: usize,
        /// Pings over each.
        #[arg(long, default_value_t = 300)]
        pings: usize,
    },
    /// A well-formed request of each type over a connection of its own; prints who answered what.
    Each {
        /// A file with right frames, such as WIRE.md.
        #[arg(long)]
        vectors: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LoadArguments {
    /// Connections.
    #[arg(long, default_value_t = 200)]
    connections: usize,
    /// Requests a second over each.
    #[arg(long, default_value_t = 10)]
    per_second: u32,
    /// How long.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// What is asked.
    #[arg(long, value_enum, default_value = "pings")]
    asks: Asks,
}

#[derive(Debug, Args)]
pub(crate) struct HostileArguments {
    /// What they do and how many they are, such as `slow=100`; repeat it for several kinds at once.
    #[arg(long = "kind", value_parser = kind, required = true)]
    kinds: Vec<(Behaviour, usize)>,
    /// How long.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Frames after which a kind stops even so.
    #[arg(long, default_value_t = u64::MAX)]
    frames: u64,
    /// Where their numbers come from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// A file with right frames, such as WIRE.md.
    #[arg(long)]
    vectors: PathBuf,
}

fn kind(text: &str) -> Result<(Behaviour, usize), String> {
    let (name, count) = text.split_once('=').ok_or("KIND=COUNT, such as slow=100")?;
    let behaviour = clap::ValueEnum::from_str(name, false)?;
    Ok((behaviour, count.parse().map_err(|error| format!("{count}: {error}"))?))
}

pub(crate) fn act(socket: &Path, verb: &CrowdVerb) -> Result<bool, ProbeError> {
    // A crowd has more files open than a shell gives; where no more are to be had, connecting says so.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
    match verb {
        CrowdVerb::Load(arguments) => {
            let LoadArguments { connections, per_second, seconds, asks } = *arguments;
            let time = Duration::from_secs(seconds);
            let report = run_load(socket, &Load { connections, per_second, time, asks })?;
            print_json(&report);
            Ok(report.served == report.asked)
        }
        CrowdVerb::Hostile(arguments) => {
            let vectors = read_vectors(&arguments.vectors)?;
            let (seed, frames) = (arguments.seed, arguments.frames);
            let time = Duration::from_secs(arguments.seconds);
            std::thread::scope(|scope| {
                let attacks: Vec<_> = (arguments.kinds.iter())
                    .map(|&(behaviour, clients)| {
                        let one = Attack { behaviour, clients, time, frames, seed, vectors: &vectors };
                        scope.spawn(move || attack(socket, one))
                    })
                    .collect();
                for one in attacks {
                    if let Ok(report) = one.join() {
                        print_json(&report?);
                    }
                }
                Ok(true)
            })
        }
        CrowdVerb::Burst { connections, pings } => {
            print_json(&burst(socket, *connections, *pings)?);
            Ok(true)
        }
        CrowdVerb::Each { vectors } => {
            ask_each(socket, &read_vectors(vectors)?).iter().for_each(print_json);
            Ok(true)
        }
    }
}
