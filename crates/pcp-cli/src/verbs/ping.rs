//! `ping`: is the daemon there, and how long does a question take?

use std::time::Instant;

use serde::Serialize;

use crate::cli::Globals;
use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Page, Tone};

/// Most round trips of one call: what the daemon serves a connection in ten seconds.
const MAX_COUNT: u32 = 1000;

/// Ask whether the daemon is there
///
/// Connects, checks whose process listens, sends one Ping and waits for the Pong.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli ping
  pcp-cli ping --count 10
  pcp-cli ping --timeout 2 || echo down

Exit codes: 0 it answered, 3 it cannot be reached, 7 no answer in time, 8 too many in one second.")]
pub(crate) struct Ping {
    /// How many round trips on one connection, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_COUNT)))]
    count: u32,
}

#[derive(Debug, Serialize)]
struct Pongs {
    socket: String,
    count: u32,
    connect_us: u64,
    min_us: u64,
    mean_us: u64,
    max_us: u64,
}

impl Ping {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let globals: &Globals = context.globals;
        let begun = Instant::now();
        let mut client = globals.connect()?;
        let connect_us = micros(begun);
        let (mut min_us, mut max_us, mut sum_us) = (u64::MAX, 0, 0);
        for _ in 0..self.count {
            let sent = Instant::now();
            client.ping()?;
            let took = micros(sent);
            (min_us, max_us, sum_us) = (min_us.min(took), max_us.max(took), sum_us + took);
        }
        let mean_us = sum_us / u64::from(self.count);
        let socket = globals.socket.display().to_string();
        Ok(Answer::report(Pongs { socket, count: self.count, connect_us, min_us, mean_us, max_us }))
    }
}

fn micros(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Show for Pongs {
    fn show(&self, page: &mut Page) {
        let Self { socket, count, connect_us, min_us, mean_us, max_us } = self;
        if *count == 1 {
            page.line(
                Tone::Plain,
                format_args!("pong from {socket} in {mean_us} µs (connected in {connect_us} µs)"),
            );
        } else {
            page.line(
                Tone::Plain,
                format_args!(
                    "{count} pongs from {socket}: least {min_us} µs, mean {mean_us} µs, most {max_us} µs"
                ),
            );
        }
    }
}
