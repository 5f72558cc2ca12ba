//! Runs one operation a number of times and nothing else, for an instruction counter: `count OPERATION TIMES`.
//! `ci/gate` runs it twice with different numbers; the difference is the operation alone.

use std::process::ExitCode;

use pcp_benches::detection::{Detection, Kind};
use pcp_benches::{Lifecycle, Wire};

/// Applications of one detection: few, because every one of them is a file.
const APPS: usize = 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let times = arguments.get(2).and_then(|times| times.parse::<u64>().ok());
    match (arguments.get(1).map(String::as_str), times) {
        (Some("wire"), Some(times)) => {
            let mut wire = Wire::new();
            (0..times).for_each(|_| {
                std::hint::black_box(wire.round());
            });
        }
        (Some("lifecycle"), Some(times)) => match Lifecycle::new() {
            Ok(mut lifecycle) => (0..times).for_each(|_| lifecycle.read()),
            Err(error) => {
                eprintln!("count: {error}");
                return ExitCode::FAILURE;
            }
        },
        (Some("detection"), Some(times)) => match Detection::new(APPS, Kind::Made) {
            Ok(mut system) => (0..times).for_each(|_| {
                std::hint::black_box(system.cold());
            }),
            Err(error) => {
                eprintln!("count: {error}");
                return ExitCode::FAILURE;
            }
        },
        _ => {
            eprintln!("usage: count wire|lifecycle|detection TIMES");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
