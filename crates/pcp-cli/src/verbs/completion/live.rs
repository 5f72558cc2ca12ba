//! `__complete`: the ids that fit a word being written, for the scripts of `completion`. Silent whatever goes wrong:
//! a person who presses Tab wants no error.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use pcp_core::Domain;
use pcp_ipc::Client;
use pcp_ipc::payloads::{RegistryQuery, RegistryRows};
use serde::Deserialize;

use super::wanted::{Kind, Wanted};
use crate::cli;
use crate::context::{Answer, Context};
use crate::error::Error;

/// Longest wait for the daemon: what a person does not notice. What came until then is offered.
const PATIENCE: Duration = Duration::from_millis(100);
/// Most ids that are offered: a shell lays them all out, and nobody reads more.
const MAX_OFFERED: usize = 10_000;

/// Print the ids that fit the last of some words
#[derive(Debug, clap::Args)]
#[command(hide = true)]
#[command(after_help = "\
Examples:
  pcp-cli __complete -- show app.org.

Exit codes: 0 ok (also when the daemon does not answer).")]
pub(crate) struct Complete {
    /// The words after the program's name, the last as far as it is written
    #[arg(value_name = "WORD", last = true)]
    words: Vec<String>,
}

/// A row as far as it matters here.
#[derive(Deserialize)]
struct Row {
    id: String,
    /// Of an application: what it offers.
    #[serde(default)]
    capabilities: Vec<String>,
}

impl Complete {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let wanted = Wanted::of(&cli::command(), &self.words);
        let Some(kind) = wanted.kind else { return Ok(Answer::Document(Vec::new())) };
        let socket = wanted.socket.as_ref().unwrap_or(&context.globals.socket).clone();
        let uid = wanted.expect_uid.unwrap_or_else(|| context.globals.daemon_uid());
        let queries = queries(kind, &wanted.begins);
        let (found, finds) = mpsc::channel();
        let until = Instant::now() + PATIENCE;
        // Even to connect may take longer than that; then the thread ends with the process.
        std::thread::spawn(move || {
            let Ok(mut client) = Client::connect(&socket, uid) else { return };
            client.set_timeout(PATIENCE);
            for query in queries {
                if ask(&mut client, &query, kind, &found).is_err() {
                    return;
                }
            }
        });
        let mut ids: Vec<String> = Vec::new();
        while ids.len() < MAX_OFFERED {
            match finds.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(more) => ids.extend(more.into_iter().filter(|id| id.starts_with(&wanted.begins))),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        ids.truncate(MAX_OFFERED);
        ids.sort();
        ids.dedup();
        ids.iter_mut().for_each(|id| id.push('\n'));
        Ok(Answer::Document(ids.concat().into_bytes()))
    }
}

/// The rows of applications name their capabilities, in a fraction of the bytes that the capabilities' own rows take.
/// Those of the other domains have no application to name them, and are few.
fn queries(kind: Kind, begins: &str) -> Vec<RegistryQuery<'static>> {
    let apps = RegistryQuery::all(RegistryRows::Apps);
    let of = |domain: &Domain| RegistryQuery {
        domain: Some(*domain),
        ..RegistryQuery::all(RegistryRows::Capabilities)
    };
    let may_be = |domain: &&Domain| {
        let part = format!("{domain}.");
        part.starts_with(begins) || begins.starts_with(&part)
    };
    match kind {
        Kind::App => vec![apps],
        Kind::Capability => {
            let others = Domain::ALL.iter().filter(|domain| **domain != Domain::App).filter(may_be).map(of);
            others.chain(may_be(&&Domain::App).then_some(apps)).collect()
        }
    }
}

fn ask(
    client: &mut Client,
    query: &RegistryQuery<'_>,
    kind: Kind,
    found: &Sender<Vec<String>>,
) -> Result<(), pcp_ipc::Error> {
    client.registry(query, |rows| {
        let rows: Vec<Row> = serde_json::from_str(rows.as_str()).unwrap_or_default();
        let ids = rows.into_iter().flat_map(|row| match (kind, query.what) {
            (Kind::Capability, RegistryRows::Apps) => row.capabilities,
            _ => vec![row.id],
        });
        // Nobody listens any more once the time is over.
        let _ = found.send(ids.collect());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rows_that_can_fit_are_asked_for() {
        let asked = |begins: &str| {
            let queries = queries(Kind::Capability, begins);
            queries
                .iter()
                .map(|query| query.domain.map_or("apps", |domain| domain.as_str()))
                .collect::<Vec<_>>()
        };
        let table: [(&str, &[&str]); 6] = [
            ("", &["compositor", "system", "apps"]),
            ("a", &["apps"]),
            ("app.org.x", &["apps"]),
            ("system.power", &["system"]),
            ("sys", &["system"]),
            ("x", &[]),
        ];
        for (begins, wanted) in table {
            assert_eq!(asked(begins), wanted, "{begins}");
        }
        assert_eq!(queries(Kind::App, "").len(), 1);
    }
}
