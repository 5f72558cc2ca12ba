//! `run`: one command, its output, its status.

use std::time::Duration;

use serde::Serialize;

use crate::device::{Device, Shell};
use crate::error::Error;
use crate::story::Need;

/// Which way a command goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Way {
    /// As root on the console.
    Console,
    /// As the operator over SSH.
    Ssh,
}

#[derive(Debug, Serialize)]
struct Report<'a> {
    way: &'a str,
    command: &'a str,
    status: i32,
    output: &'a str,
}

pub(crate) fn run(
    mut device: Device,
    command: &str,
    way: Option<Way>,
    limit: Duration,
    json: bool,
) -> Result<i32, Error> {
    let shell: &mut dyn Shell = match way {
        Some(Way::Console) => device.root()?,
        Some(Way::Ssh) => {
            device.has(Need::Ssh).map_err(|reason| Error::Usage(reason.to_owned()))?;
            device.operator()?
        }
        None => device.shell()?,
    };
    let way = shell.name();
    let answer = shell.run(command, limit)?;
    device.close()?;
    if json {
        let report = Report { way, command, status: answer.status, output: &answer.output };
        println!("{}", serde_json::to_string(&report).map_err(|error| Error::Finding(error.to_string()))?);
    } else if !answer.output.is_empty() {
        println!("{}", answer.output);
    }
    Ok(answer.status)
}
