//! An audit log on a disk that can fail, and records to put into it.

#![allow(clippy::unwrap_used, dead_code, unreachable_pub)] // Each test file uses its part of this.

pub mod attack;
pub mod sealed;

use std::sync::Arc;

use pcp_core::{
    ActionClass, ActionHash, AuditEnd, AuditEntry, AuthPrincipal, Domain, Effect, ErrorCode, Modality,
    OperationId, PermissionRecord, RecordKind, Stage, Terminal, Tier, Trail, TrustLevel,
};
use pcp_durable::disk::FaultyDisk;
use pcp_durable::{AuditLog, Error, Limits, Recovery};

pub const TIME_MS: u64 = 1_780_000_000_000;

pub static CALLER: AuthPrincipal = AuthPrincipal {
    uid: 1000,
    pid: Some(4711),
    domain: Domain::App,
    trust: TrustLevel::USER,
    admin: false,
    confirmer: false,
    modality: Modality::Visual,
    rate_per_second: None,
};

pub fn op(n: u64) -> OperationId {
    OperationId::from_parts(TIME_MS + n, [0x5a; 10])
}

pub fn action(n: u8) -> ActionHash {
    ActionHash::from_bytes([n; 32])
}

pub fn end(terminal: Terminal) -> AuditEnd {
    let done = terminal == Terminal::Succeeded;
    AuditEnd {
        stage: if done { Stage::Audit } else { Stage::Execute },
        terminal,
        error: (!done).then_some(ErrorCode::ExecutionFailed),
        effect: done.then_some(Effect::Verified),
        verification: if done { "result" } else { "none" },
        timed_out: false,
        duration_us: 1234,
    }
}

pub fn entry(kind: RecordKind, n: u64) -> AuditEntry<'static> {
    AuditEntry {
        trail: Trail::Application,
        kind,
        time_ms: TIME_MS + n,
        operation_id: op(n),
        caller: &CALLER,
        capability: "app.org.example.notes.create",
        target_app: "org.example.notes",
        class: ActionClass::Activate,
        tier: Some(Tier::One),
        permission: PermissionRecord { verdict: "allowed", rule: "app.*", gate: "none" },
        params: "{\"title\":\"sha256:2c26b46b\"}",
        params_sha256: &[0xab; 32],
        action_hash: action(1),
        end: match kind {
            RecordKind::Intent => None,
            RecordKind::Terminal | RecordKind::Read => Some(end(Terminal::Succeeded)),
            RecordKind::Refusal => Some(end(Terminal::Rejected)),
        },
    }
}

pub fn open(disk: &FaultyDisk) -> Result<(AuditLog, Recovery), Error> {
    open_with(disk, Limits::default())
}

pub fn open_with(disk: &FaultyDisk, limits: Limits) -> Result<(AuditLog, Recovery), Error> {
    AuditLog::open_on(Arc::new(disk.clone()), limits, TIME_MS)
}
