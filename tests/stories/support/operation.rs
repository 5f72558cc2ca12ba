//! Requests as a program makes them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use pcp_core::{CapabilityId, Envelope, Intent, OperationId};
use pcp_ipc::payloads::ExecuteRequest;

static NEXT: AtomicU64 = AtomicU64::new(0);

/// An operation id of now that no other operation of any test run has.
pub(crate) fn new_operation() -> OperationId {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut entropy = [0; 10];
    entropy[..2].copy_from_slice(&(since.subsec_nanos() as u16).to_be_bytes());
    entropy[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    OperationId::from_parts(u64::try_from(since.as_millis()).unwrap(), entropy)
}

/// An ExecuteRequest for the capability `id`.
pub(crate) fn request<'a>(
    operation_id: OperationId,
    id: &'a CapabilityId,
    parameters: &'a str,
) -> ExecuteRequest<'a> {
    let envelope = Envelope { operation_id, deadline_ms: None, wait: true, dry_run: false };
    let intent = Intent { domain: id.domain(), action: id.action(), target_app: id.app(), parameters };
    ExecuteRequest::new(&envelope, &intent).unwrap()
}
