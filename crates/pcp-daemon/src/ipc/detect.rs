//! DetectRequest: an application is looked at again, now.

use std::time::Duration;

use pcp_core::{AppId, AuthPrincipal, CapabilityId, ErrorCode, PcpError};
use pcp_ipc::payloads::{DetectRequest, DetectResponse};
use pcp_ipc::{Error as IpcError, MAX_ERROR_TEXT_BYTES, Tag, Text};
use tokio::sync::oneshot;

use super::handlers::{is_seen, reached};
use super::outlet::Outlet;
use crate::daemon::Core;
use crate::detection;

/// How long a pass of detection is waited for: a full scan of a very full device, several times over.
const DETECT_WAIT: Duration = Duration::from_secs(5);

/// Has the files looked at again and says what became of the application.
pub(super) async fn detect(
    core: &Core,
    caller: &AuthPrincipal,
    asked: &DetectRequest<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    let app = match AppId::parse(asked.app.as_str()) {
        Ok(app) => app,
        Err(error) => {
            return outlet.refuse(&PcpError::new(ErrorCode::InvalidRequest, error.to_string())).await;
        }
    };
    let (answer, told) = oneshot::channel();
    if core.detect.try_send(detection::Request { app: app.clone(), answer }).is_err() {
        let message = format!("{} requests wait for detection, the limit", detection::MAX_WAITING_REQUESTS);
        return outlet
            .refuse(&PcpError::new(ErrorCode::LimitReached, message).hint("ask again in a moment"))
            .await;
    }
    let diff = match tokio::time::timeout(DETECT_WAIT, told).await {
        Ok(Ok(diff)) => diff,
        _ => {
            let message = format!("detection did not come to {app} within {} s", DETECT_WAIT.as_secs());
            return outlet.refuse(&PcpError::new(ErrorCode::Timeout, message)).await;
        }
    };
    let entry = core.registry.app(&app).filter(|entry| is_seen(entry, caller.domain));
    // What lies behind the wall changes nothing that this caller hears of.
    let seen = |id: &CapabilityId| caller.domain.reaches(id.domain());
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let diff = diff.as_ref();
    let response = DetectResponse {
        tag: Tag,
        app: app.as_str().into(),
        found: entry.is_some(),
        method: entry.as_ref().map(|entry| entry.method),
        confidence_percent: entry
            .as_ref()
            .map(|entry| entry.declared.as_ref().map_or(100, |declared| declared.confidence_percent)),
        capabilities: count(entry.as_ref().map_or(0, |entry| reached(entry, caller.domain).count())),
        added: count(diff.map_or(0, |diff| diff.added.iter().filter(|one| seen(&one.id)).count())),
        removed: count(diff.map_or(0, |diff| diff.removed.iter().filter(|id| seen(id)).count())),
        changed: count(diff.map_or(0, |diff| diff.changed.iter().filter(|one| seen(&one.id)).count())),
        problem: entry.as_ref().and_then(|entry| entry.problem.as_deref()).map(cut_problem),
    };
    outlet.send(&response).await
}

fn cut_problem(problem: &str) -> Text<'_> {
    problem.get(..problem.floor_char_boundary(MAX_ERROR_TEXT_BYTES)).unwrap_or_default().into()
}
