//! `status`: how an operation ended, read off the ledger without the daemon. A verb of S3: always its
//! envelope, and every failure of the ledger is its `protocol_error`.

use std::path::PathBuf;

use pcp_core::{Effect, ErrorCode, OperationId, Terminal, Tier};
use pcp_durable::{AUDIT_DIRECTORY, OperationStatus, status_in_directory, status_in_file};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::digits::hex;
use crate::error::Error;
use crate::page::Page;

/// Print how an operation ended, from the ledger on disk
///
/// Needs no daemon and changes nothing. `data` is null when the ledger does not know the operation. A claim
/// without an end has state "claimed": under way while a daemon runs, and otherwise unknown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli status 0191e7a0-0000-7000-8000-000000000001
  pcp-cli status --ledger ./copy-of-audit 0191e7a0-0000-7000-8000-000000000001
  pcp-cli status --ledger application.000001.jsonl 0191e7a0-0000-7000-8000-000000000001

Exit codes: 0 ok (also when it is not known), 2 usage, 3 the ledger cannot be read or the id is none.")]
pub(crate) struct Status {
    /// The operation's id, a UUID of version 7
    #[arg(value_name = "OP")]
    operation: String,
    /// The audit directory, or one of its files
    #[arg(long, value_name = "PATH", default_value = AUDIT_DIRECTORY)]
    ledger: PathBuf,
}

#[derive(Debug, Serialize)]
struct Known {
    operation_id: String,
    state: &'static str,
    terminal: Option<Terminal>,
    effect: Option<Effect>,
    error: Option<ErrorCode>,
    tier: Option<Tier>,
    action_hash: String,
    audit_hash: String,
    duration_us: u64,
    retry_safe: bool,
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Ledger(Option<Known>);

impl Status {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        let id = OperationId::parse(&self.operation).map_err(|error| Error::Ledger(error.to_string()))?;
        let found = if self.ledger.is_dir() {
            status_in_directory(&self.ledger, id)
        } else {
            status_in_file(&self.ledger, id)
        };
        let found = found.map_err(|error| Error::Ledger(error.to_string()))?;
        Ok(Answer::report(Ledger(found.map(|status| known(id, &status)))))
    }
}

fn known(id: OperationId, status: &OperationStatus) -> Known {
    Known {
        operation_id: id.to_string(),
        state: if status.terminal.is_some() { "ended" } else { "claimed" },
        terminal: status.terminal,
        effect: status.effect,
        error: status.error,
        tier: status.tier,
        action_hash: status.action_hash.to_string(),
        audit_hash: hex(&status.audit_hash),
        duration_us: status.duration_us,
        retry_safe: status.terminal.is_some_and(Terminal::retry_safe),
    }
}

impl Show for Ledger {
    fn show(&self, _: &mut Page) {}
}
