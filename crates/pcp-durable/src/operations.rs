//! Operations whose ids are free texts, kept in the same log and the same ledger as all others (R-181..R-183).
//!
//! A signed request of protocol v2 names its operation by up to 256 characters. Here such an id gets the key that the
//! ledger knows operations by: a UUID of version 7 is its own, every other text has one made of its hash and without a
//! time. A claim is an intent record and its end a terminal record; what belongs to the protocol stands in their
//! `params`. It knows nothing of that content. Start with [`Operations::claim`].

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pcp_core::v2::Sha256Hash;
use pcp_core::{
    ActionHash, AuditEntry, AuditError, AuditLogger, AuditTicket, Durability, OperationClaims, OperationId,
};
use sha2::{Digest, Sha256};

use crate::ledger::{MAX_AHEAD, MAX_RUNNING};
use crate::{AuditLog, Disk, Error};

mod find;

pub use find::LastRecord;

/// Ends that are kept in memory for whoever lost an answer and asks again: some two kilobytes each. Older ones are read
/// from the log.
pub const MAX_RECENT_ENDS: usize = 64;

/// By what the ledger knows an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationKey {
    id: OperationId,
    /// Whether the id carries its time, so that it can be too old.
    dated: bool,
}

impl OperationKey {
    /// The key of an operation id.
    #[must_use]
    pub fn of(operation_id: &str) -> Self {
        if let Ok(id) = OperationId::parse(operation_id) {
            return Self { id, dated: true };
        }
        let hash = digest(&[b"pcp-operation-2", operation_id.as_bytes()]);
        let mut entropy = [0; 10];
        entropy.copy_from_slice(&hash[..10]);
        Self { id: OperationId::from_parts(0, entropy), dated: false }
    }

    /// The id in records.
    #[must_use]
    pub const fn id(self) -> OperationId {
        self.id
    }
}

/// What an operation id is bound to: who asks, the id as it was written, and the action's own hash. Two texts of one key
/// are told apart by it, and so are two callers.
#[must_use]
pub fn operation_binding(uid: u32, operation_id: &str, action_hash: Sha256Hash) -> ActionHash {
    let parts: [&[u8]; 4] =
        [b"pcp-action-2", &uid.to_le_bytes(), operation_id.as_bytes(), action_hash.as_bytes()];
    ActionHash::from_bytes(digest(&parts))
}

fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// What is known of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "what is known of an operation decides whether it may run"]
pub enum Standing {
    /// Nothing; it may be claimed.
    Free,
    /// It is under way.
    Running(Box<str>),
    /// It was claimed, nobody is at it, and no end of it is stored. With the `params` of its claim.
    Unfinished(Box<str>),
    /// It ended; the record where it is in memory, and otherwise [`Operations::find`] has it.
    Ended(Option<LastRecord>),
    /// The id is bound to something else.
    Conflict,
    /// Nothing is known of it, and its id is older than what may still be claimed.
    Expired,
    /// Nothing is known of it, and its id is dated further ahead than any clock may be.
    Ahead {
        /// Milliseconds ahead of the latest time known.
        ahead_ms: u64,
    },
}

#[derive(Debug)]
struct Claim {
    binding: ActionHash,
    params: Box<str>,
    running: bool,
}

#[derive(Debug, Default)]
struct Memory {
    /// Claims without a stored end; at most [`MAX_RUNNING`].
    open: HashMap<OperationId, Claim>,
    /// The newest ends.
    recent: VecDeque<(OperationId, LastRecord)>,
}

/// The operations with free ids of one log. Recovery is that of the log: what it found without an end has got one.
#[derive(Debug)]
pub struct Operations {
    log: Arc<AuditLog>,
    disk: Arc<dyn Disk>,
    retention_ms: u64,
    memory: Mutex<Memory>,
}

impl Operations {
    /// The operations of `log`, whose files `disk` reads.
    #[must_use]
    pub fn new(log: Arc<AuditLog>, disk: Arc<dyn Disk>, retention: Duration) -> Self {
        let retention_ms = u64::try_from(retention.as_millis()).unwrap_or(u64::MAX);
        Self { log, disk, retention_ms, memory: Mutex::default() }
    }

    /// The latest wall time in the log, in Unix milliseconds.
    #[must_use]
    pub fn high_water_ms(&self) -> u64 {
        self.log.ledger().high_water_ms()
    }

    /// What is known of an operation; with `None` for the binding, whatever it is bound to. Nothing is written.
    ///
    /// # Errors
    /// [`Error`]: the segment that may hold it cannot be read. It is never taken for free.
    pub fn standing(
        &self,
        key: OperationKey,
        binding: Option<ActionHash>,
        wall_ms: u64,
    ) -> Result<Standing, Error> {
        self.standing_in(&self.lock(), key, binding, wall_ms)
    }

    fn standing_in(
        &self,
        memory: &Memory,
        key: OperationKey,
        binding: Option<ActionHash>,
        wall_ms: u64,
    ) -> Result<Standing, Error> {
        let differs = |bound: ActionHash| binding.is_some_and(|binding| binding != bound);
        if let Some(claim) = memory.open.get(&key.id) {
            return Ok(match claim.running {
                _ if differs(claim.binding) => Standing::Conflict,
                true => Standing::Running(claim.params.clone()),
                false => Standing::Unfinished(claim.params.clone()),
            });
        }
        if let Some(status) = self.log.ledger().look_up(key.id)? {
            if differs(status.action_hash) {
                return Ok(Standing::Conflict);
            }
            let recent = memory.recent.iter().rev().find(|(id, _)| *id == key.id);
            return Ok(Standing::Ended(recent.map(|(_, record)| record.clone())));
        }
        if key.dated {
            let id_ms = key.id.unix_ms();
            let ahead_ms = id_ms.saturating_sub(self.high_water_ms().max(wall_ms));
            if u128::from(ahead_ms) > MAX_AHEAD.as_millis() {
                return Ok(Standing::Ahead { ahead_ms });
            }
            if id_ms.saturating_add(self.retention_ms) < wall_ms || self.log.ledger().has_forgotten(key.id) {
                return Ok(Standing::Expired);
            }
        }
        Ok(Standing::Free)
    }

    /// Claims an operation of which nothing is known by its intent record, and otherwise says what is known of it. Of
    /// several at once one gets the ticket; nothing may happen before [`Operations::claimed`] says that it is durable.
    ///
    /// # Errors
    /// [`Error::is_unavailable`]: the record cannot be kept, and the id stays free.
    pub fn claim(
        &self,
        key: OperationKey,
        intent: &AuditEntry<'_>,
    ) -> Result<Result<AuditTicket, Standing>, Error> {
        let mut memory = self.lock();
        match self.standing_in(&memory, key, Some(intent.action_hash), intent.time_ms)? {
            Standing::Free => {}
            known => return Ok(Err(known)),
        }
        if memory.open.len() >= MAX_RUNNING {
            return Err(Error::TooManyWaiting { limit: MAX_RUNNING });
        }
        let ticket = self.log.append(intent, Durability::Durable)?;
        let claim = Claim { binding: intent.action_hash, params: intent.params.into(), running: true };
        memory.open.insert(key.id, claim);
        Ok(Ok(AuditTicket { trail: intent.trail, seq: ticket.seq, hash: ticket.hash }))
    }

    /// Waits until the claim is durable.
    ///
    /// # Errors
    /// It is not, and nothing may happen. Where the disk was full the id is free again.
    pub async fn claimed(&self, key: OperationKey, ticket: AuditTicket) -> Result<(), AuditError> {
        let durable = self.durable(&ticket).await;
        if durable.is_err() {
            if self.log.fence().is_none() {
                // The record was taken back with its number.
                self.lock().open.remove(&key.id);
                self.log.ledger().forget(key.id);
            } else {
                self.abandon(key);
            }
        }
        durable
    }

    /// Stores the end of a claimed operation.
    ///
    /// # Errors
    /// It is not stored; the operation stays without an end.
    pub async fn finish(&self, key: OperationKey, terminal: &AuditEntry<'_>) -> Result<(), AuditError> {
        let ticket = AuditLogger::append(&*self.log, terminal, Durability::Durable)?;
        self.durable(&ticket).await?;
        let mut memory = self.lock();
        memory.open.remove(&key.id);
        if memory.recent.len() >= MAX_RECENT_ENDS {
            memory.recent.pop_front();
        }
        let params = terminal.params.into();
        memory.recent.push_back((key.id, LastRecord { time_ms: terminal.time_ms, params, ends: true }));
        Ok(())
    }

    /// Records that an operation was refused before its claim, once there is room; a disk that is full costs the record
    /// and nothing else, for nothing was done.
    pub async fn refuse(&self, refusal: &AuditEntry<'_>) {
        poll_fn(|cx| self.log.poll_room(refusal.trail, refusal.kind, cx)).await;
        drop(self.log.append(refusal, Durability::Lazy));
    }

    /// The `params` of a claim without a stored end.
    #[must_use]
    pub fn open_claim(&self, key: OperationKey) -> Option<Box<str>> {
        self.lock().open.get(&key.id).map(|claim| claim.params.clone())
    }

    /// Nobody is at a claimed operation any more.
    pub fn abandon(&self, key: OperationKey) {
        if let Some(claim) = self.lock().open.get_mut(&key.id) {
            claim.running = false;
        }
    }

    /// Reads the last record of an operation from the log. May take as long as a segment takes to be read.
    ///
    /// # Errors
    /// [`Error::Damaged`], [`Error::SegmentMissing`] or [`Error::Disk`].
    pub fn find(&self, key: OperationKey) -> Result<Option<LastRecord>, Error> {
        find::in_trail(&*self.disk, pcp_core::Trail::Application, key.id)
    }

    async fn durable(&self, ticket: &AuditTicket) -> Result<(), AuditError> {
        poll_fn(|cx| self.log.poll_durable(ticket, cx)).await
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
