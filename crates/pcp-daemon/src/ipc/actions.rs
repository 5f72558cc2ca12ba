//! The messages of signed actions: to execute, to cancel, to observe, to ask how far an operation is (C46, R-197).

use pcp_core::v2::{ActionRequest, Wire as _};
use pcp_core::{AppId, AuthPrincipal, CapabilityRegistry as _, ErrorCode, PcpError, StateSource};
use pcp_execution::engine::ProtocolError;
use pcp_ipc::payloads::{ActionReport, CancelAction, ExecuteAction, QueryState, StateResponse};
use pcp_ipc::{Error as IpcError, Json, Tag};
use serde::Deserialize;
use serde_json::Value;

use super::handlers::is_seen;
use super::outlet::Outlet;
use crate::daemon::Core;
use crate::engine::Door;

/// The topics that are answered here.
pub(super) const TOPICS: [&str; 3] = ["actions", "observation", "operation"];

/// Executes a signed request and answers with all its acknowledgements.
pub(super) async fn execute(
    core: &Core,
    caller: &AuthPrincipal,
    request: &ExecuteAction<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    let report = match door(core) {
        Err(error) => Err(error),
        Ok(door) => match ActionRequest::parse(request.action.as_str().as_bytes()) {
            Err(invalid) => Err(refusal(&invalid.into())),
            Ok(action) => {
                core.pipeline.execute_action(caller, action, door).await.map_err(|error| refusal(&error))
            }
        },
    };
    match report {
        Ok(report) => {
            let report = report.to_value().to_string();
            outlet.send(&ActionReport::new(Json::from_checked(&report))).await
        }
        Err(error) => outlet.refuse(&error).await,
    }
}

/// Cancels one of the caller's own operations.
pub(super) async fn cancel(
    core: &Core,
    caller: &AuthPrincipal,
    asked: &CancelAction<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    let cancelled = door(core).map(|door| door.cancel(caller.uid, &asked.operation_id));
    match cancelled {
        Ok(true) => {
            let data_json = Json::from_checked(r#"{"cancelled":true}"#);
            let topic = "cancel".into();
            outlet.send(&StateResponse { tag: Tag, topic, state_source: StateSource::Rust, data_json }).await
        }
        Ok(false) => {
            let message = "no such operation of the caller is under way";
            outlet.refuse(&PcpError::new(ErrorCode::NotFound, message)).await
        }
        Err(error) => outlet.refuse(&error).await,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Observe {
    app: AppId,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    operation_id: String,
}

/// Answers a topic of [`TOPICS`].
pub(super) async fn state(
    core: &Core,
    caller: &AuthPrincipal,
    asked: &QueryState<'_>,
) -> Result<Value, PcpError> {
    let (door, arguments) = (door(core)?, asked.arguments());
    match &*asked.topic {
        "observation" => {
            let Observe { app } = read(&asked.topic, arguments, r#"{"app":"org.example.app"}"#)?;
            // What lies behind the caller's wall is absent for it.
            let seen =
                core.registry.apps().iter().any(|entry| entry.id == app && is_seen(entry, caller.domain));
            if !seen {
                return Err(PcpError::new(
                    ErrorCode::NotFound,
                    format!("no application {app} is registered"),
                ));
            }
            let observed = core.pipeline.observe_application(caller, &app, door).await;
            let observed = observed
                .map_err(|error| PcpError::new(ErrorCode::ObservationError, format!("{app}: {error}")))?;
            Ok(observed.to_value())
        }
        "operation" => {
            let Operation { operation_id } = read(&asked.topic, arguments, r#"{"operation_id":"op-1"}"#)?;
            if !pcp_core::v2::is_identifier(&operation_id) {
                return Err(PcpError::new(
                    ErrorCode::InvalidRequest,
                    "operation_id is no identifier of protocol v2",
                ));
            }
            let known = core.pipeline.action_status(caller, &operation_id, door).await;
            Ok(known.map_err(|error| refusal(&error))?.to_value())
        }
        _ => Ok(door.capabilities().to_value()),
    }
}

fn read<'a, T: Deserialize<'a>>(
    topic: &str,
    arguments: Json<'a>,
    example: &'static str,
) -> Result<T, PcpError> {
    serde_json::from_str(arguments.as_str()).map_err(|error| {
        let message = format!("the arguments of topic {topic}: {error}");
        PcpError::new(ErrorCode::InvalidRequest, message).hint(example)
    })
}

fn door(core: &Core) -> Result<&Door, PcpError> {
    core.actions.as_ref().map_err(Clone::clone)
}

/// Why nothing was accepted.
fn refusal(error: &ProtocolError) -> PcpError {
    let code = match error {
        ProtocolError::AuthorityDenied(_) => ErrorCode::PermissionDenied,
        ProtocolError::Conflict => ErrorCode::Conflict,
        ProtocolError::Store(_) => ErrorCode::AuditUnavailable,
        _ => ErrorCode::InvalidRequest,
    };
    PcpError::new(code, error.to_string())
}
