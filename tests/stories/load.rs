//! A client that asks the same thing again and again on one connection, in rounds that its parent starts.
//!
//! It is a process of its own, so that nothing it allocates is counted as the daemon's.

use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use pcp_core::{CapabilityId, Envelope, Intent, OperationId};
use pcp_ipc::Client;
use pcp_ipc::payloads::ExecuteRequest;

/// Runs `load SOCKET UID ping|CAPABILITY COUNT`: each line on standard input starts a round of COUNT requests,
/// each end of a round is a line on standard output.
pub(crate) fn main(words: &[OsString]) -> ExitCode {
    match run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[OsString]) -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let [_, socket, uid, what, count] = words.as_slice() else { return Err("wrong arguments".into()) };
    let mut client = Client::connect(Path::new(socket), uid.parse()?)?;
    let (count, mut number): (u64, u64) = (count.parse()?, 0);
    let capability = if *what == "ping" { None } else { Some(CapabilityId::parse(what)?) };
    for line in std::io::stdin().lock().lines() {
        line?;
        for _ in 0..count {
            number += 1;
            match &capability {
                None => client.ping()?,
                Some(id) => read(&mut client, id, number)?,
            }
        }
        println!("done");
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn read(client: &mut Client, id: &CapabilityId, number: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut entropy = [7; 10];
    entropy[2..].copy_from_slice(&number.to_be_bytes());
    let operation_id = OperationId::from_parts(1_700_000_000_000, entropy);
    let envelope = Envelope { operation_id, deadline_ms: None, wait: true, dry_run: false };
    let intent = Intent { domain: id.domain(), action: id.action(), target_app: id.app(), parameters: "{}" };
    let result = client.execute(&ExecuteRequest::new(&envelope, &intent)?, |_| {})?;
    if result.success { Ok(()) } else { Err(format!("{id} ended as {}", result.terminal).into()) }
}
