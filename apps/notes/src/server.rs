//! The application as the daemon sees it: five methods, each reached by one message.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use pcp_core::{
    AppId, BoxFuture, CapabilityFailure, CapabilityId, CapabilityResult, ErrorCode, IdError, InvalidParams,
    InvocationContext, PcpServer, StateSource,
};
use serde_json::json;

use crate::call::{APP_ID, Call};
use crate::error::Error;
use crate::store::Store;

/// Tells the time in milliseconds since 1970.
type Clock = fn() -> u64;

/// Serves one store.
#[derive(Debug)]
pub struct NotesServer {
    app_id: AppId,
    manifest: String,
    store: Arc<Mutex<Store>>,
    clock: Clock,
}

impl NotesServer {
    /// Serves `store` under `manifest`, which is given out byte for byte.
    ///
    /// # Errors
    /// None in practice: the application's own id is well formed.
    pub fn new(manifest: String, store: Store) -> Result<Self, IdError> {
        Self::with_clock(manifest, store, system_time)
    }

    /// The same with another clock, for tests.
    ///
    /// # Errors
    /// As [`NotesServer::new`].
    pub fn with_clock(manifest: String, store: Store, clock: Clock) -> Result<Self, IdError> {
        let store = Arc::new(Mutex::new(store));
        Ok(Self { app_id: AppId::parse(APP_ID)?, manifest, store, clock })
    }
}

impl PcpServer for NotesServer {
    fn app_id(&self) -> &AppId {
        &self.app_id
    }

    fn manifest(&self) -> &str {
        &self.manifest
    }

    fn invoke<'a>(
        &'a self,
        capability: &'a CapabilityId,
        _context: &'a InvocationContext,
        params: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(async move {
            let call = match Call::parse(capability, params) {
                Ok(call) => call,
                Err(error) => return failure(&error),
            };
            let (store, now_ms) = (Arc::clone(&self.store), (self.clock)());
            // Disks can take long; the thread that answers the daemon must not wait for them. Should the daemon
            // give up meanwhile, the change is still made whole, and the daemon reports it as unknown.
            let running = tokio::task::spawn_blocking(move || {
                // A panic leaves no change half made: each one ends with a single rename.
                call.run(&mut store.lock().unwrap_or_else(PoisonError::into_inner), now_ms)
            });
            match running.await {
                Ok(Ok(json)) => CapabilityResult::ok(json),
                Ok(Err(error)) => failure(&error),
                Err(stopped) => unknown(stopped.to_string()),
            }
        })
    }

    fn validate_params<'a>(
        &'a self,
        capability: &'a CapabilityId,
        params: &'a str,
    ) -> BoxFuture<'a, Result<(), InvalidParams>> {
        Box::pin(async move {
            match Call::parse(capability, params) {
                Ok(_) => Ok(()),
                Err(Error::Parameter { pointer, why }) => {
                    Err(InvalidParams { pointer: pointer.to_owned(), message: why })
                }
                Err(error) => Err(InvalidParams { pointer: String::new(), message: error.to_string() }),
            }
        })
    }

    fn query_dynamic_state<'a>(
        &'a self,
        topic: &'a str,
        _arguments: &'a str,
    ) -> BoxFuture<'a, CapabilityResult> {
        Box::pin(async move {
            if topic != "fill" {
                let message = format!("there is no state topic {topic:?}; there is \"fill\"");
                return CapabilityResult::refused(ErrorCode::NotFound, message);
            }
            let fill = self.store.lock().unwrap_or_else(PoisonError::into_inner).fill();
            CapabilityResult::ok(json!(fill).to_string())
        })
    }
}

fn failure(error: &Error) -> CapabilityResult {
    CapabilityResult {
        success: false,
        data_json: None,
        error: Some(error.to_failure()),
        state_source: StateSource::Rust,
    }
}

/// The call was cut short: whether it changed anything is not known, and that is what is said.
fn unknown(why: String) -> CapabilityResult {
    let error = CapabilityFailure { code: ErrorCode::ExecutionFailed, message: why, no_effect: false };
    CapabilityResult { success: false, data_json: None, error: Some(error), state_source: StateSource::Rust }
}

fn system_time() -> u64 {
    // A clock before 1970 gives 0: a note may have a wrong time, it may not be refused for it.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
