//! `status`: how an operation ended, read off the ledger without the daemon. A verb of S3: always its
//! envelope, and every failure of the ledger is its `protocol_error`.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use pcp_core::v2::{AckState, ActionAck, KeptOperation, is_identifier};
use pcp_core::{Effect, ErrorCode, OperationId, Terminal, Tier};
use pcp_durable::{AUDIT_DIRECTORY, LastRecord, OperationStatus, status_in_directory, status_in_file};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::digits::hex;
use crate::error::Error;
use crate::page::Page;

/// Where the kernel tells who holds which file.
const LOCKS: &str = "/proc/locks";

/// Print how an operation ended, from the ledger on disk
///
/// Needs no daemon and changes nothing. `data` is null when the ledger does not know the operation. An operation of
/// protocol v2 is told by its last acknowledgement: `executing` while somebody writes the ledger, and without an end
/// `outcome_unknown` when nobody does. For an intent a claim without an end has state "claimed".
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli status 0191e7a0-0000-7000-8000-000000000001
  pcp-cli status op-1 --ledger ./copy-of-audit
  pcp-cli status --ledger application.000001.jsonl 0191e7a0-0000-7000-8000-000000000001

Exit codes: 0 ok (also when it is not known), 2 usage, 3 the ledger cannot be read or the id is none.")]
pub(crate) struct Status {
    /// The operation's id: a UUID of version 7, or 1 to 256 of A-Z a-z 0-9 - _ :
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
#[serde(untagged)]
enum Ledger {
    Intent(Box<Known>),
    Action(Box<ActionAck>),
    Nothing,
}

impl Status {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        let told = |error: pcp_durable::Error| Error::Ledger(error.to_string());
        if !is_identifier(&self.operation) {
            return Err(Error::Ledger("the operation id is not 1 to 256 of A-Z a-z 0-9 - _ :".to_owned()));
        }
        let last = LastRecord::offline(&self.ledger, &self.operation).map_err(told)?;
        if let Some(ack) = last.and_then(|last| self.acknowledged(&last)) {
            return Ok(Answer::report(Ledger::Action(Box::new(ack))));
        }
        // What is no operation of protocol v2 is an intent, whose id is a UUID.
        let Ok(id) = OperationId::parse(&self.operation) else { return Ok(Answer::report(Ledger::Nothing)) };
        let found = if self.ledger.is_dir() {
            status_in_directory(&self.ledger, id)
        } else {
            status_in_file(&self.ledger, id)
        };
        Ok(Answer::report(match found.map_err(told)? {
            Some(status) => Ledger::Intent(Box::new(known(id, &status))),
            None => Ledger::Nothing,
        }))
    }

    /// The last acknowledgement, if the record is of this very operation.
    fn acknowledged(&self, last: &LastRecord) -> Option<ActionAck> {
        let kept = KeptOperation::read(&last.params).ok()?;
        if kept.claim.operation_id != self.operation {
            return None;
        }
        if !last.ends && is_held(&self.ledger) {
            return Some(kept.claim.ack(AckState::Executing {}));
        }
        Some(kept.end(i64::try_from(last.time_ms).unwrap_or(i64::MAX)))
    }
}

/// Whether somebody writes the ledger now, as the kernel tells it; asking by a lock could keep a daemon from starting.
fn is_held(ledger: &Path) -> bool {
    let folder = if ledger.is_dir() { Some(ledger) } else { ledger.parent() };
    let Some(facts) = folder.and_then(|folder| std::fs::metadata(folder).ok()) else { return false };
    let locks = std::fs::read_to_string(LOCKS).unwrap_or_default();
    let node = format!(":{}", facts.ino());
    locks
        .lines()
        .any(|line| line.contains("FLOCK") && line.split_whitespace().any(|word| word.ends_with(&node)))
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
