//! The store of an engine in the audit log: its claims are intent records, its ends terminal records.
//!
//! The daemon and a host in its own process keep operations by this one type, in the same files.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pcp_core::v2::{ActionAck, ClaimRecord, KeptOperation, Sha256Hash, Wire as _};
use pcp_core::{
    ActionHash, AuditEnd, AuditEntry, Clock, ErrorCode, PermissionRecord, RecordKind, Stage, Trail,
};
use pcp_durable::{
    AuditLog, LastRecord, Limits, OperationKey, Operations, RETENTION, RealDisk, Recovery, Standing,
    operation_binding,
};

use super::error::{ProtocolError, StoreError};
use super::facts::{ActionFacts, audit_end};
use super::store::{Known, OperationStore};

/// Keeps the operations of one caller in an audit log.
#[derive(Clone)]
pub struct DurableStore {
    operations: Arc<Operations>,
    clock: Arc<dyn Clock>,
    facts: Arc<Mutex<ActionFacts>>,
}

impl std::fmt::Debug for DurableStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DurableStore").field("facts", &*self.facts()).finish_non_exhaustive()
    }
}

impl DurableStore {
    /// A store over operations that are open already.
    #[must_use]
    pub fn new(operations: Arc<Operations>, clock: Arc<dyn Clock>, facts: ActionFacts) -> Self {
        Self { operations, clock, facts: Arc::new(Mutex::new(facts)) }
    }

    /// Opens a host's own log in a directory, making it if it is missing. What a crash left open there is unknown from
    /// now on, and said so in what comes back.
    ///
    /// # Errors
    /// [`StoreError`] with the words of the log: it is damaged, not private, or another process has it.
    pub fn open(
        directory: &Path,
        clock: Arc<dyn Clock>,
        facts: ActionFacts,
    ) -> Result<(Self, Recovery), StoreError> {
        let (log, recovery) =
            AuditLog::open_with(directory, Limits::default(), clock.wall_ms()).map_err(said)?;
        let disk = Arc::new(RealDisk::open_read_only(directory).map_err(said)?);
        let operations = Arc::new(Operations::new(Arc::new(log), disk, RETENTION));
        Ok((Self::new(operations, clock, facts), recovery))
    }

    /// What records say of the operation under way.
    pub fn facts(&self) -> MutexGuard<'_, ActionFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The latest wall time that the log has seen, for [`SteadyTime::since`](pcp_core::v2::SteadyTime::since).
    #[must_use]
    pub fn high_water_ms(&self) -> i64 {
        i64::try_from(self.operations.high_water_ms()).unwrap_or(i64::MAX)
    }

    /// Records that a request was not accepted at all. Nothing of it is bound.
    pub(super) async fn denied(&self, operation_id: &str, action_hash: Sha256Hash, error: &ProtocolError) {
        let (stage, error) = match error {
            ProtocolError::Conflict => (Stage::Execute, ErrorCode::Conflict),
            _ => (Stage::CheckPermissions, ErrorCode::PermissionDenied),
        };
        let params = serde_json::json!({ "kind": "action", "operation_id": operation_id }).to_string();
        let end = AuditEnd {
            stage,
            terminal: pcp_core::Terminal::Rejected,
            error: Some(error),
            effect: None,
            verification: "none",
            timed_out: false,
            duration_us: 0,
        };
        self.record_refusal(operation_id, action_hash, &params, end).await;
    }

    async fn record_refusal(&self, operation_id: &str, hash: Sha256Hash, params: &str, end: AuditEnd) {
        let facts = self.facts().clone();
        let of = Recorded {
            key: OperationKey::of(operation_id),
            binding: operation_binding(facts.caller.uid, operation_id, hash),
            hash: &hash,
            params,
            time_ms: self.clock.wall_ms(),
            end: Some(end),
        };
        let capability = facts.capability();
        self.operations.refuse(&Self::entry(&facts, &capability, &of, RecordKind::Refusal)).await;
    }

    fn binding(&self, operation_id: &str, action_hash: Sha256Hash) -> ActionHash {
        operation_binding(self.facts().caller.uid, operation_id, action_hash)
    }

    async fn known(
        &self,
        operation_id: &str,
        key: OperationKey,
        standing: Standing,
    ) -> Result<Known, StoreError> {
        Ok(match standing {
            Standing::Free => Known::Fresh,
            Standing::Running(_) => Known::Running,
            Standing::Unfinished(params) => Known::Unfinished(Box::new(kept(operation_id, &params)?.claim)),
            Standing::Ended(Some(record)) => ended(operation_id, record)?.1,
            Standing::Ended(None) => ended(operation_id, self.find(operation_id, key).await?)?.1,
            Standing::Conflict => Known::Conflict,
            Standing::Expired => Known::Forgotten,
            Standing::Ahead { ahead_ms } => {
                return Err(StoreError(format!(
                    "operation id {operation_id} is dated {ahead_ms} ms ahead of the device's clock"
                )));
            }
        })
    }

    /// Reads the operation's record from the disk, beside everything else that the runtime does.
    async fn find(&self, operation_id: &str, key: OperationKey) -> Result<LastRecord, StoreError> {
        let operations = Arc::clone(&self.operations);
        let found = tokio::task::spawn_blocking(move || operations.find(key)).await;
        let found = found.map_err(|_| StoreError("the log could not be read to its end".to_owned()))?;
        found
            .map_err(said)?
            .ok_or_else(|| StoreError(format!("the records of operation {operation_id} are gone")))
    }

    /// One record of an operation.
    fn entry<'e>(
        facts: &'e ActionFacts,
        capability: &'e str,
        of: &Recorded<'e>,
        kind: RecordKind,
    ) -> AuditEntry<'e> {
        AuditEntry {
            trail: Trail::Application,
            kind,
            time_ms: of.time_ms,
            operation_id: of.key.id(),
            caller: &facts.caller,
            capability,
            target_app: &facts.target_app,
            class: facts.class(),
            tier: facts.tier,
            permission: PermissionRecord { verdict: facts.verdict, rule: &facts.rule, gate: facts.gate },
            params: of.params,
            params_sha256: of.hash.as_bytes(),
            action_hash: of.binding,
            end: of.end,
        }
    }
}

/// The parts of a record that are the operation's own.
struct Recorded<'r> {
    key: OperationKey,
    binding: ActionHash,
    hash: &'r Sha256Hash,
    params: &'r str,
    time_ms: u64,
    end: Option<AuditEnd>,
}

impl OperationStore for DurableStore {
    async fn look_up(&self, operation_id: &str, action_hash: Sha256Hash) -> Result<Known, StoreError> {
        let key = OperationKey::of(operation_id);
        let binding = self.binding(operation_id, action_hash);
        let standing = self.operations.standing(key, Some(binding), self.clock.wall_ms()).map_err(said)?;
        self.known(operation_id, key, standing).await
    }

    async fn claim(&self, claim: &ClaimRecord) -> Result<Known, StoreError> {
        let key = OperationKey::of(&claim.operation_id);
        let params = KeptOperation::new(claim.clone(), None).write();
        let claimed = {
            let facts = ActionFacts { action: Some(claim.action_name), ..self.facts().clone() };
            let of = Recorded {
                key,
                binding: operation_binding(facts.caller.uid, &claim.operation_id, claim.action_hash),
                hash: &claim.action_hash,
                params: &params,
                time_ms: self.clock.wall_ms(),
                end: None,
            };
            let capability = facts.capability();
            self.operations.claim(key, &Self::entry(&facts, &capability, &of, RecordKind::Intent))
        };
        let ticket = match claimed.map_err(said)? {
            Ok(ticket) => ticket,
            Err(standing) => return self.known(&claim.operation_id, key, standing).await,
        };
        let mut waiting = Waiting { operations: &self.operations, key, done: false };
        let durable = self.operations.claimed(key, ticket).await;
        waiting.done = true;
        durable.map(|()| Known::Fresh).map_err(said)
    }

    async fn finish(&self, end: &ActionAck) -> Result<(), StoreError> {
        let key = OperationKey::of(&end.operation_id);
        let open = self.operations.open_claim(key);
        let open = open.ok_or_else(|| StoreError("the operation is not under way".to_owned()))?;
        let claim = kept(&end.operation_id, &open)?.claim;
        let facts = ActionFacts { action: Some(claim.action_name), ..self.facts().clone() };
        let params = KeptOperation::new(claim, Some(end.clone())).write();
        let of = Recorded {
            key,
            binding: operation_binding(facts.caller.uid, &end.operation_id, end.action_hash),
            hash: &end.action_hash,
            params: &params,
            time_ms: self.clock.wall_ms(),
            end: Some(audit_end(end, Stage::Verify)),
        };
        let capability = facts.capability();
        let terminal = Self::entry(&facts, &capability, &of, RecordKind::Terminal);
        self.operations.finish(key, &terminal).await.map_err(said)
    }

    async fn refused(&self, end: &ActionAck) {
        let params = serde_json::json!({ "kind": "action", "ack": end.to_value() }).to_string();
        let ended = audit_end(end, Stage::ResolveTarget);
        self.record_refusal(&end.operation_id, end.action_hash, &params, ended).await;
    }

    fn abandon(&self, operation_id: &str) {
        self.operations.abandon(OperationKey::of(operation_id));
    }

    async fn status(&self, operation_id: &str) -> Result<Option<(ClaimRecord, Known)>, StoreError> {
        let key = OperationKey::of(operation_id);
        let standing = self.operations.standing(key, None, self.clock.wall_ms()).map_err(said)?;
        let record = match standing {
            Standing::Running(params) => {
                return Ok(Some((kept(operation_id, &params)?.claim, Known::Running)));
            }
            Standing::Unfinished(params) => {
                let claim = kept(operation_id, &params)?.claim;
                return Ok(Some((claim.clone(), Known::Unfinished(Box::new(claim)))));
            }
            Standing::Ended(Some(record)) => record,
            Standing::Ended(None) => self.find(operation_id, key).await?,
            Standing::Free | Standing::Conflict | Standing::Expired | Standing::Ahead { .. } => {
                return Ok(None);
            }
        };
        // An intent under the same UUID is no operation of this protocol.
        Ok(ended(operation_id, record).ok())
    }
}

/// A claim whose future is dropped before its record is durable is nobody's.
struct Waiting<'o> {
    operations: &'o Operations,
    key: OperationKey,
    done: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.operations.abandon(self.key);
        }
    }
}

/// Reads what is kept, which has to be of this very operation.
fn kept(operation_id: &str, params: &str) -> Result<KeptOperation, StoreError> {
    let foreign = || StoreError(format!("the record of operation {operation_id} is not of protocol v2"));
    let kept = KeptOperation::read(params).map_err(|_| foreign())?;
    if kept.claim.operation_id == operation_id { Ok(kept) } else { Err(foreign()) }
}

fn ended(operation_id: &str, record: LastRecord) -> Result<(ClaimRecord, Known), StoreError> {
    let kept = kept(operation_id, &record.params)?;
    let claim = kept.claim.clone();
    let ack = kept.end(i64::try_from(record.time_ms).unwrap_or(i64::MAX));
    Ok((claim, Known::Ended(Box::new(ack))))
}

fn said(error: impl std::fmt::Display) -> StoreError {
    StoreError(error.to_string())
}
