//! What answers each request. An execution goes to the pipeline and nowhere else; everything else reads.

use std::fmt::Write as _;
use std::pin::pin;
use std::time::Duration;

use pcp_core::glob::MAX_GLOB_BYTES;
use pcp_core::{
    AppEntry, AppId, AuthPrincipal, CapabilityId, CapabilityRegistry, Domain, ErrorCode, Intent, PcpError,
    StateSource, Terminal,
};
use pcp_execution::{ExecutionResult, Request as PipelineRequest, Scratch};
use pcp_ipc::payloads::{
    AckState, AppRow, CapabilityRow, ExecuteRequest, ExecuteResponse, GetManifest, ManifestResponse,
    OperationFailure, OperationResult, QueryState, RegistryPage, RegistryQuery, RegistryResponse,
    RegistryRows, StateResponse,
};
use pcp_ipc::{Error as IpcError, Json, Payload, Request, Tag};
use pcp_stream::StreamMessageType;
use pcp_trust::root_file::{FileRule, read_once};
use serde_json::Value;

use super::actions;
use super::detect::detect;
use super::outlet::Outlet;
use super::plan::plan_json;
use crate::daemon::Core;
use crate::{adapters, doctor, explain, policy};

/// A requester hears that its request was accepted when the end is not there by then: long enough that a read
/// costs no second message, short enough that a person does not wonder.
const ACK_AFTER: Duration = Duration::from_millis(100);
/// Rows looked up at once for a page; a page holds as many as fit its frame.
const ROWS_AT_ONCE: usize = 64;

/// Runs an intent through the pipeline and answers with its end.
pub(super) async fn execute(
    core: &Core,
    caller: &AuthPrincipal,
    request: &ExecuteRequest<'_>,
    scratch: &mut Scratch,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    let asked = PipelineRequest {
        envelope: request.envelope(),
        intent: request.intent(),
        names_element: request.intent.element.is_some(),
    };
    let result = {
        let mut run = pin!(core.pipeline.execute(caller, &asked, scratch));
        match tokio::time::timeout(ACK_AFTER, run.as_mut()).await {
            Ok(result) => result,
            Err(_) => {
                let ack = ExecuteResponse::new(request.operation_id, 0, AckState::Accepted);
                // A requester that is gone does not stop what is under way: its end is recorded all the same.
                let told = outlet.send(&ack).await;
                let result = run.await;
                told?;
                result
            }
        }
    };
    answer_execution(&asked.intent, &result, scratch, outlet).await
}

/// Whether a new operation with the same action cannot double an effect. A read or a dry run had none; an id older
/// than what is remembered is never run, and whether it once did is not known.
fn is_retry_safe(result: &ExecutionResult) -> bool {
    match result.terminal {
        Terminal::Succeeded => !result.replayed && result.effect.is_none(),
        Terminal::ExpiredBeforeEffect if result.replayed => false,
        terminal => terminal.retry_safe(),
    }
}

async fn answer_execution(
    intent: &Intent<'_>,
    result: &ExecutionResult,
    scratch: &Scratch,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    let hash = result.audit_hash.map(hex);
    let plan = match result.plan.as_ref().map(|plan| plan_json(intent, plan)).transpose() {
        Ok(plan) => plan,
        Err(error) => return outlet.refuse(&error).await,
    };
    let data = scratch.data();
    let answer = OperationResult {
        tag: Tag,
        success: result.error.is_none() && result.terminal == Terminal::Succeeded,
        operation_id: result.operation_id,
        terminal: result.terminal,
        effect: result.effect,
        error: result.error.as_ref().map(OperationFailure::from),
        audit_hash: hash.as_ref().map(|hash| hash.as_str().into()),
        state_source: result.state_source,
        tier: result.tier,
        duration_us: result.duration_us,
        replayed: result.replayed,
        retry_safe: is_retry_safe(result),
        plan: plan.as_deref().map(Json::from_checked),
        data_json: (!data.is_empty()).then(|| Json::from_checked(data)),
    };
    outlet.send(&answer).await
}

/// Answers everything that only reads.
pub(super) async fn answer(
    core: &Core,
    caller: &AuthPrincipal,
    request: &Request<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    match request {
        Request::Registry(query) => registry(core, caller, query, outlet).await,
        Request::Manifest(asked) => manifest(core, caller.domain, asked, outlet).await,
        Request::QueryState(asked) => state(core, caller, asked, outlet).await,
        Request::Cancel(asked) => {
            let message = format!("operation {} is not under way on this connection", asked.operation_id);
            outlet.refuse(&PcpError::new(ErrorCode::NotFound, message)).await
        }
        Request::CancelAction(asked) => actions::cancel(core, caller, asked, outlet).await,
        Request::Detect(asked) => detect(core, caller, asked, outlet).await,
        // Only a confirmer's connection sends it, and there is none yet.
        Request::Decide(_) => {
            let message_type = StreamMessageType::ConfirmationResponse.name();
            outlet.refuse(&IpcError::UnsupportedMessage { message_type }.to_pcp()).await
        }
        Request::Subscribe(_) | Request::Unsubscribe(_) | Request::Acknowledge(_) => {
            let message = "this request is answered elsewhere";
            outlet.refuse(&PcpError::new(ErrorCode::Internal, message)).await
        }
        Request::Ping | Request::Execute(_) | Request::Action(_) => {
            let message = "this request is answered elsewhere";
            outlet.refuse(&PcpError::new(ErrorCode::Internal, message)).await
        }
    }
}

/// One page of rows. A caller sees what it may reach: what lies behind its wall is absent (RELIABILITY L10).
async fn registry(
    core: &Core,
    caller: &AuthPrincipal,
    query: &RegistryQuery<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    if let Err(error) = check_query(query) {
        return outlet.refuse(&error).await;
    }
    let cursor = query.cursor.as_deref();
    let queued = outlet.send_as(RegistryResponse::TYPE, |out| {
        let mut page = RegistryPage::begin(out, query.what);
        let next = match query.what {
            RegistryRows::Capabilities => capability_rows(core, caller.domain, query, cursor, &mut page)?,
            RegistryRows::Apps => app_rows(core, caller.domain, query, cursor, &mut page)?,
        };
        page.finish(next.as_deref())
    });
    queued.await
}

/// A glob is matched against every row on the decision thread, so its length is everybody's time (TH-06).
fn check_query(query: &RegistryQuery<'_>) -> Result<(), PcpError> {
    match query.app.as_deref().map(str::len) {
        Some(bytes) if bytes > MAX_GLOB_BYTES => {
            let message = format!("the glob in `app` has {bytes} bytes, the limit is {MAX_GLOB_BYTES}");
            Err(PcpError::new(ErrorCode::InvalidRequest, message)
                .hint("one `*` matches any run of characters"))
        }
        _ => Ok(()),
    }
}

fn capability_rows(
    core: &Core,
    holds: Domain,
    query: &RegistryQuery<'_>,
    cursor: Option<&str>,
    page: &mut RegistryPage<'_>,
) -> Result<Option<String>, IpcError> {
    let parse = |text: &str| CapabilityId::parse(text).ok();
    if let Some(id) = query.id.as_deref() {
        let found = parse(id).and_then(|id| core.registry.get(&id)).filter(|one| holds.reaches(one.domain));
        if let Some(found) = found {
            page.push(&CapabilityRow::from(&*found))?;
        }
        return Ok(None);
    }
    let mut after = match cursor {
        None => None,
        Some(cursor) => Some(parse(cursor).ok_or_else(|| bad_cursor(cursor))?),
    };
    loop {
        let rows = core.registry.page(&query.filter(), after.as_ref(), ROWS_AT_ONCE);
        for row in rows.iter().filter(|row| holds.reaches(row.domain)) {
            if !page.push(&CapabilityRow::from(&**row))? {
                return Ok(after.map(|id| id.to_string()));
            }
            after = Some(row.id.clone());
        }
        match rows.last() {
            Some(last) if rows.len() == ROWS_AT_ONCE => after = Some(last.id.clone()),
            _ => return Ok(None),
        }
    }
}

/// Whether an application is on the caller's side of the wall: one that offers nothing is on both, so that
/// people see its problem.
pub(super) fn is_seen(app: &AppEntry, holds: Domain) -> bool {
    app.capabilities.is_empty() || reached(app, holds).next().is_some()
}

pub(super) fn reached(app: &AppEntry, holds: Domain) -> impl Iterator<Item = &CapabilityId> {
    app.ids().filter(move |id| holds.reaches(id.domain()))
}

fn app_rows(
    core: &Core,
    holds: Domain,
    query: &RegistryQuery<'_>,
    cursor: Option<&str>,
    page: &mut RegistryPage<'_>,
) -> Result<Option<String>, IpcError> {
    let mut last = None;
    for app in core.registry.apps() {
        let id = app.id.as_str();
        let wanted = is_seen(&app, holds)
            && query.id.as_deref().is_none_or(|wanted| wanted == id)
            && query.method.is_none_or(|method| method == app.method)
            && query.app.as_deref().is_none_or(|glob| pcp_core::glob::spans(glob, id))
            && cursor.is_none_or(|cursor| id > cursor);
        if wanted {
            let mut row = AppRow::from(&*app);
            row.capabilities = reached(&app, holds).map(|id| id.as_str().into()).collect();
            if !page.push(&row)? {
                return Ok(last);
            }
            last = Some(id.to_owned());
        }
    }
    Ok(None)
}

async fn manifest(
    core: &Core,
    holds: Domain,
    asked: &GetManifest<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    match manifest_text(core, holds, asked) {
        Ok(text) => match Json::parse(&text) {
            Ok(manifest) => outlet.send(&ManifestResponse { tag: Tag, manifest }).await,
            Err(error) => outlet.refuse(&error.to_pcp()).await,
        },
        Err(error) => outlet.refuse(&error).await,
    }
}

/// The manifest as it is installed, byte for byte; so whoever may not see all of it gets none of it, and is told
/// the same as of one that is not there.
fn manifest_text(core: &Core, holds: Domain, asked: &GetManifest<'_>) -> Result<String, PcpError> {
    let name = asked.app.as_deref().ok_or_else(|| {
        PcpError::new(
            ErrorCode::InvalidRequest,
            "the daemon has no manifest of its own; name an application in `app`",
        )
    })?;
    let id =
        AppId::parse(name).map_err(|error| PcpError::new(ErrorCode::InvalidRequest, error.to_string()))?;
    let whole = |app: &AppEntry| reached(app, holds).count() == app.capabilities.len();
    let app = core
        .table
        .app(&id)
        .filter(|_| core.registry.app(&id).is_some_and(|entry| whole(&entry)))
        .ok_or_else(|| PcpError::new(ErrorCode::NotFound, format!("no application {id} is registered")))?;
    let rule = FileRule {
        owner: Some(core.config.identity.files_owner),
        max_bytes: pcp_core::manifest::MAX_MANIFEST_BYTES,
    };
    let bytes = read_once(&app.manifest, rule)
        .map_err(|error| PcpError::new(ErrorCode::InvalidManifest, error.to_string()))?;
    String::from_utf8(bytes)
        .map_err(|_| PcpError::new(ErrorCode::InvalidManifest, format!("the manifest of {id} is not UTF-8")))
}

/// A cursor is the last id of the page before; what is none would begin again at the first page.
fn bad_cursor(cursor: &str) -> IpcError {
    let start: String = cursor.chars().take(80).collect();
    let error = PcpError::new(ErrorCode::InvalidRequest, format!("cursor {start:?} came from no page"));
    IpcError::Refused(Box::new(pcp_ipc::Refusal { error, retry_safe: true }))
}

async fn state(
    core: &Core,
    caller: &AuthPrincipal,
    asked: &QueryState<'_>,
    outlet: &Outlet,
) -> Result<(), IpcError> {
    let data = match actions::TOPICS.contains(&&*asked.topic) {
        true => Box::pin(actions::state(core, caller, asked)).await,
        false => state_of(core, caller, asked),
    };
    let data = match data {
        Ok(data) => data,
        Err(error) => return outlet.refuse(&error).await,
    };
    let data = data.to_string();
    let topic = asked.topic.clone();
    let answer = StateResponse {
        tag: Tag,
        topic,
        state_source: StateSource::Rust,
        data_json: Json::from_checked(&data),
    };
    outlet.send(&answer).await
}

/// The closed list of read-only topics, each with whom it is for.
fn state_of(core: &Core, caller: &AuthPrincipal, asked: &QueryState<'_>) -> Result<Value, PcpError> {
    match &*asked.topic {
        // Whose files are broken and who may do what is the business of those who can change it.
        "doctor" if caller.domain == Domain::System || caller.admin => Ok(doctor::report(core)),
        "doctor" => Err(PcpError::new(
            ErrorCode::PermissionDenied,
            format!("the doctor's report needs the system domain; the caller holds {}", caller.domain),
        )),
        "adapters" => Ok(adapters::report(&core.adapters.borrow(), core.now_us())),
        "explain" => explain::answer(core, caller, asked.arguments().as_str()),
        "policy" => policy::answer(core, caller, asked.arguments().as_str()),
        topic => {
            let message = format!(
                "no state topic {topic:?} (one of actions, adapters, doctor, explain, observation, operation, policy)"
            );
            Err(PcpError::new(ErrorCode::NotFound, message))
        }
    }
}

fn hex(bytes: [u8; 32]) -> heapless::String<64> {
    let mut text = heapless::String::new();
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use pcp_core::{CapabilityDescriptor, DetectionMethod};

    #[test]
    fn a_glob_that_would_hold_up_everybody_is_refused_before_it_is_matched() {
        let query = |glob: &str| {
            let mut query = RegistryQuery::all(RegistryRows::Capabilities);
            query.app = Some(glob.to_owned().into());
            check_query(&query).map_err(|error| (error.code, error.message.into_owned()))
        };
        assert_eq!(query(&"*".repeat(MAX_GLOB_BYTES)), Ok(()));
        let message = "the glob in `app` has 256 bytes, the limit is 255".to_owned();
        assert_eq!(query(&"*".repeat(MAX_GLOB_BYTES + 1)), Err((ErrorCode::InvalidRequest, message)));
    }

    fn capability(id: &str) -> CapabilityDescriptor {
        let (id, empty): (_, Arc<str>) = (CapabilityId::parse(id).unwrap(), "".into());
        CapabilityDescriptor {
            domain: id.domain(),
            id,
            app_id: AppId::parse("org.x").unwrap(),
            name: empty.clone(),
            description: empty.clone(),
            category: empty.clone(),
            input_schema: empty.clone(),
            output_schema: empty.clone(),
            method: DetectionMethod::Desktop,
            stability: pcp_core::StabilityLevel::Stable,
            version: empty,
            side_effects: false,
            confirmation_required: false,
            minimum_trust: pcp_core::TrustLevel::USER,
            validates_params: false,
            executable: false,
            signature: pcp_core::SignatureStatus::Verified,
            clear_parameters: [].into(),
        }
    }

    #[test]
    fn an_application_behind_the_callers_wall_is_not_seen() {
        let app = |ids: &[&str]| AppEntry {
            id: AppId::parse("org.x").unwrap(),
            version: "1".into(),
            method: DetectionMethod::Desktop,
            signature: pcp_core::SignatureStatus::Verified,
            problem: None,
            declared: None,
            capabilities: ids.iter().map(|id| Arc::new(capability(id))).collect(),
        };
        let (hidden, mixed) = (app(&["system.x.get"]), app(&["app.org.x.get", "system.x.get"]));
        for (entry, holds, seen, ids) in [
            (&hidden, Domain::App, false, 0),
            (&hidden, Domain::System, true, 1),
            (&mixed, Domain::App, true, 1),
            (&mixed, Domain::System, true, 2),
            (&app(&[]), Domain::App, true, 0),
        ] {
            assert_eq!(
                (is_seen(entry, holds), reached(entry, holds).count()),
                (seen, ids),
                "{entry:?} {holds}"
            );
        }
    }
}
