//! Carries invocations to the sockets of Tier-1 applications. Private to the pipeline (invariant 4, R-120, R-121).

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pcp_core::{AppId, DispatchFailure, Dispatcher, ErrorCode, Invocation, PcpError, Reply};
use pcp_ipc::AppClient;
use pcp_trust::{AppRegistration, PrincipalTable};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Invocations that one application serves at once; more wait inside their own budget.
pub const MAX_INVOCATIONS_PER_APP: usize = 4;

/// The sockets of all applications that root registered. The table does not change after start, so that no
/// slow application can hold up another.
#[derive(Debug)]
pub struct SocketDispatcher {
    apps: HashMap<AppId, AppSocket>,
}

#[derive(Debug)]
struct AppSocket {
    path: PathBuf,
    uid: u32,
    turns: Semaphore,
    /// Connections that nobody uses at the moment, the last used last.
    idle: Mutex<Vec<AppClient>>,
}

impl SocketDispatcher {
    /// One socket `{app_id}.sock` in `directory` for each application of the table.
    #[must_use]
    pub fn new(table: &PrincipalTable, directory: &Path) -> Self {
        Self { apps: table.apps().map(|app| (app.app_id.clone(), AppSocket::new(app, directory))).collect() }
    }

    fn socket(&self, app: &AppId) -> Result<&AppSocket, DispatchFailure> {
        self.apps.get(app).ok_or_else(|| {
            let message = format!("no application {app} is registered");
            DispatchFailure { error: PcpError::new(ErrorCode::CapabilityNotFound, message), no_effect: true }
        })
    }
}

impl AppSocket {
    fn new(app: &AppRegistration, directory: &Path) -> Self {
        Self {
            path: directory.join(format!("{}.sock", app.app_id)),
            uid: app.uid,
            turns: Semaphore::new(MAX_INVOCATIONS_PER_APP),
            idle: Mutex::new(Vec::with_capacity(MAX_INVOCATIONS_PER_APP)),
        }
    }

    /// A connection and the turn to use it. A future that is given up takes its connection with it, because a
    /// late answer would be taken for the next one's.
    async fn turn(&self) -> Result<(SemaphorePermit<'_>, AppClient), DispatchFailure> {
        let permit = self.turns.acquire().await.map_err(|_| {
            let error = PcpError::new(ErrorCode::Unavailable, "the daemon is shutting down");
            DispatchFailure { error, no_effect: true }
        })?;
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Ok((permit, kept.unwrap_or_else(|| AppClient::new(&self.path, self.uid))))
    }

    fn give_back(&self, client: AppClient) {
        if client.is_idle() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(client);
        }
    }
}

impl Dispatcher for SocketDispatcher {
    fn serves(&self, app: &AppId) -> bool {
        self.apps.get(app).is_some_and(|socket| {
            let kept = !socket.idle.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
            kept || socket.path.symlink_metadata().is_ok()
        })
    }

    async fn dispatch(
        &self,
        invocation: Invocation<'_>,
        data: &mut Vec<u8>,
    ) -> Result<Reply, DispatchFailure> {
        let socket = self.socket(&invocation.capability.app_id)?;
        let (_turn, mut client) = socket.turn().await?;
        let reply =
            client.invoke(&invocation.capability.id, invocation.context, invocation.parameters, data).await;
        socket.give_back(client);
        reply
    }

    async fn validate(&self, invocation: Invocation<'_>) -> Result<(), DispatchFailure> {
        let socket = self.socket(&invocation.capability.app_id)?;
        let (_turn, mut client) = socket.turn().await?;
        let judgement = client.validate(&invocation.capability.id, invocation.parameters).await;
        socket.give_back(client);
        judgement?.map_err(|invalid| {
            let message = format!("parameter {}: {}", invalid.pointer, invalid.message);
            DispatchFailure { error: PcpError::new(ErrorCode::InvalidParameters, message), no_effect: true }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_application_outside_the_table_is_not_found_and_nothing_is_sent() {
        let dispatcher = SocketDispatcher::new(&PrincipalTable::default(), Path::new("/nonexistent"));
        let ghost = AppId::parse("ghost.app").unwrap();

        let failure = dispatcher.socket(&ghost).unwrap_err();

        assert_eq!(failure.error.code, ErrorCode::CapabilityNotFound);
        assert_eq!(failure.error.message, "no application ghost.app is registered");
        assert!(failure.no_effect && !dispatcher.serves(&ghost));
    }
}
