//! What answers each request. An execution goes to the pipeline and nowhere else (R-056); everything else reads.

use std::fmt::Write as _;
use std::pin::pin;
use std::time::Duration;

use pcp_core::glob::MAX_GLOB_BYTES;
use pcp_core::{
    ActionClass, AppId, AuthPrincipal, CapabilityId, CapabilityRegistry, DetectionMethod, Domain, ErrorCode,
    Gate, Intent, PcpError, StateSource, Tier,
};
use pcp_execution::{ExecutionResult, Plan, Request as PipelineRequest, Scratch};
use pcp_ipc::payloads::{
    AckState, AppRow, CapabilityRow, ExecuteRequest, ExecuteResponse, GetManifest, ManifestResponse,
    OperationFailure, OperationResult, QueryState, RegistryPage, RegistryQuery, RegistryResponse,
    RegistryRows, StateResponse,
};
use pcp_ipc::{Error as IpcError, Json, Payload, Request, Tag};
use pcp_stream::FrameWriteHalf;
use pcp_trust::root_file::{FileRule, read_once};
use serde::Serialize;
use serde_json::value::RawValue;

use super::session::{answer_error, send};
use crate::daemon::Core;
use crate::doctor;

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
    writer: &mut FrameWriteHalf,
) -> Result<(), IpcError> {
    if request.intent.element.is_some() {
        let error = PcpError::new(
            ErrorCode::Unsupported,
            "an intent that names an element needs the accessibility tier",
        )
        .hint("leave the element out; this release serves tier 1");
        return answer_error(writer, &error).await;
    }
    let asked = PipelineRequest { envelope: request.envelope(), intent: request.intent() };
    let result = {
        let mut run = pin!(core.pipeline.execute(caller, &asked, scratch));
        match tokio::time::timeout(ACK_AFTER, run.as_mut()).await {
            Ok(result) => result,
            Err(_) => {
                let ack = ExecuteResponse::new(request.operation_id, 0, AckState::Accepted);
                // A requester that is gone does not stop what is under way: its end is recorded all the same.
                let told = send(writer, &ack).await;
                let result = run.await;
                told?;
                result
            }
        }
    };
    answer_execution(&asked.intent, &result, scratch, writer).await
}

async fn answer_execution(
    intent: &Intent<'_>,
    result: &ExecutionResult,
    scratch: &Scratch,
    writer: &mut FrameWriteHalf,
) -> Result<(), IpcError> {
    let hash = result.audit_hash.map(hex);
    let plan = match result.plan.as_ref().map(|plan| plan_json(intent, plan)).transpose() {
        Ok(plan) => plan,
        Err(error) => return answer_error(writer, &error).await,
    };
    let data = scratch.data();
    let answer = OperationResult {
        tag: Tag,
        success: result.error.is_none() && result.terminal == pcp_core::Terminal::Succeeded,
        operation_id: result.operation_id,
        terminal: result.terminal,
        effect: result.effect,
        error: result.error.as_ref().map(OperationFailure::from),
        audit_hash: hash.as_ref().map(|hash| hash.as_str().into()),
        state_source: result.state_source,
        tier: result.tier,
        duration_us: result.duration_us,
        replayed: result.replayed,
        retry_safe: result.terminal.retry_safe(),
        plan: plan.as_deref().map(Json::from_checked),
        data_json: (!data.is_empty()).then(|| Json::from_checked(data)),
    };
    send(writer, &answer).await
}

/// What a dry run answers: exactly the intent, and what would be done with it (R-013).
#[derive(Serialize)]
struct PlanText<'a> {
    intent: PlannedIntent<'a>,
    capability: &'a CapabilityId,
    class: ActionClass,
    rule: &'a str,
    gate: Gate,
    method: DetectionMethod,
    tier: Tier,
    claims: bool,
    undo_window_ms: Option<u64>,
    budget_ms: u64,
}

#[derive(Serialize)]
struct PlannedIntent<'a> {
    domain: Domain,
    action: &'a str,
    target_app: &'a str,
    /// Byte for byte: parsing would round numbers and drop what is there twice.
    parameters: &'a RawValue,
}

fn plan_json(intent: &Intent<'_>, plan: &Plan) -> Result<String, PcpError> {
    let fault = |error: &dyn std::fmt::Display| {
        PcpError::new(ErrorCode::InvalidRequest, format!("the plan cannot be written as JSON: {error}"))
            .hint("parameters of a dry run are nested at least one level less than others")
    };
    let text = serde_json::to_string(&PlanText {
        intent: PlannedIntent {
            domain: intent.domain,
            action: intent.action,
            target_app: intent.target_app,
            parameters: serde_json::from_str(intent.parameters).map_err(|error| fault(&error))?,
        },
        capability: &plan.capability,
        class: plan.class,
        rule: &plan.rule,
        gate: plan.gate,
        method: plan.method,
        tier: plan.method.tier(),
        claims: plan.claims,
        undo_window_ms: plan.undo_window_ms,
        budget_ms: plan.budget_ms,
    })
    .map_err(|error| fault(&error))?;
    Json::parse(&text).map_err(|error| fault(&error))?;
    Ok(text)
}

/// Answers everything that only reads.
pub(super) async fn answer(
    core: &Core,
    caller: &AuthPrincipal,
    request: &Request<'_>,
    writer: &mut FrameWriteHalf,
) -> Result<(), IpcError> {
    match request {
        Request::Registry(query) => registry(core, caller, query, writer).await,
        Request::Manifest(asked) => manifest(core, asked, writer).await,
        Request::QueryState(asked) => state(core, asked, writer).await,
        Request::Cancel(asked) => {
            let message = format!("operation {} is not under way on this connection", asked.operation_id);
            answer_error(writer, &PcpError::new(ErrorCode::NotFound, message)).await
        }
        Request::Ping | Request::Execute(_) => {
            let message = "this request is answered elsewhere";
            answer_error(writer, &PcpError::new(ErrorCode::Internal, message)).await
        }
    }
}

/// One page of rows. A caller sees what it may reach: what lies behind its wall is absent (RELIABILITY L10).
async fn registry(
    core: &Core,
    caller: &AuthPrincipal,
    query: &RegistryQuery<'_>,
    writer: &mut FrameWriteHalf,
) -> Result<(), IpcError> {
    if let Err(error) = check_query(query) {
        return answer_error(writer, &error).await;
    }
    let cursor = query.cursor.as_deref();
    let queued = writer.queue(RegistryResponse::TYPE, |out| {
        let mut page = RegistryPage::begin(out, query.what);
        let next = match query.what {
            RegistryRows::Capabilities => capability_rows(core, caller.domain, query, cursor, &mut page)?,
            RegistryRows::Apps => app_rows(core, query, cursor, &mut page)?,
        };
        page.finish(next.as_deref())
    });
    match queued {
        Ok(()) => Ok(writer.flush().await?),
        Err(error) => answer_error(writer, &error.to_pcp()).await,
    }
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
    let mut after = cursor.and_then(parse);
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

fn app_rows(
    core: &Core,
    query: &RegistryQuery<'_>,
    cursor: Option<&str>,
    page: &mut RegistryPage<'_>,
) -> Result<Option<String>, IpcError> {
    let mut last = None;
    for app in core.registry.apps() {
        let id = app.id.as_str();
        let wanted = query.id.as_deref().is_none_or(|wanted| wanted == id)
            && query.method.is_none_or(|method| method == app.method)
            && query.app.as_deref().is_none_or(|glob| pcp_core::glob::spans(glob, id))
            && cursor.is_none_or(|cursor| id > cursor);
        if wanted {
            if !page.push(&AppRow::from(&*app))? {
                return Ok(last);
            }
            last = Some(id.to_owned());
        }
    }
    Ok(None)
}

async fn manifest(core: &Core, asked: &GetManifest<'_>, writer: &mut FrameWriteHalf) -> Result<(), IpcError> {
    match manifest_text(core, asked) {
        Ok(text) => match Json::parse(&text) {
            Ok(manifest) => send(writer, &ManifestResponse { tag: Tag, manifest }).await,
            Err(error) => answer_error(writer, &error.to_pcp()).await,
        },
        Err(error) => answer_error(writer, &error).await,
    }
}

/// The manifest as it is installed, byte for byte.
fn manifest_text(core: &Core, asked: &GetManifest<'_>) -> Result<String, PcpError> {
    let name = asked.app.as_deref().ok_or_else(|| {
        PcpError::new(
            ErrorCode::InvalidRequest,
            "the daemon has no manifest of its own; name an application in `app`",
        )
    })?;
    let id =
        AppId::parse(name).map_err(|error| PcpError::new(ErrorCode::InvalidRequest, error.to_string()))?;
    let app = core
        .table
        .app(&id)
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

async fn state(core: &Core, asked: &QueryState<'_>, writer: &mut FrameWriteHalf) -> Result<(), IpcError> {
    let data = match &*asked.topic {
        "doctor" => doctor::report(core),
        topic => {
            let message = format!("no state topic {topic:?} (one of doctor)");
            return answer_error(writer, &PcpError::new(ErrorCode::NotFound, message)).await;
        }
    };
    let data = data.to_string();
    let topic = asked.topic.clone();
    let answer = StateResponse {
        tag: Tag,
        topic,
        state_source: StateSource::Rust,
        data_json: Json::from_checked(&data),
    };
    send(writer, &answer).await
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

    #[test]
    fn a_plan_repeats_the_intent_byte_for_byte_or_says_that_it_cannot() {
        let id = CapabilityId::parse("app.x.set_value").unwrap();
        let plan = Plan {
            capability: id.clone(),
            class: ActionClass::InputText,
            rule: "app.*.*".to_owned(),
            gate: Gate::Allow,
            method: DetectionMethod::Desktop,
            claims: true,
            undo_window_ms: None,
            budget_ms: 5,
        };
        let text = |parameters: &str| {
            let intent =
                Intent { domain: id.domain(), action: id.action(), target_app: id.app(), parameters };
            plan_json(&intent, &plan).map_err(|error| error.code)
        };
        let parameters = r#"{"z":123456789012345678901234567890, "a":1.0e2}"#;
        assert!(text(parameters).unwrap().contains(parameters));
        let nested =
            |levels: usize| format!("{{\"v\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1));
        assert!(text(&nested(29)).is_ok());
        assert_eq!(text(&nested(30)), Err(ErrorCode::InvalidRequest), "as deep as a request may carry");
    }
}
