//! `exec`: have the daemon carry something out.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pcp_core::{CapabilityId, Effect, Envelope, ErrorCode, Intent, OperationId, StateSource, Terminal, Tier};
use pcp_ipc::Client;
use pcp_ipc::payloads::{
    CapabilityRow, ExecuteRequest, ExecuteResponse, OperationResult, RegistryQuery, RegistryRows,
};
use pcp_stream::ProtocolError;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::{Answer, Context, Show};
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};
use crate::{daemon, nearest, params};

/// Where an operation id's ten random bytes come from. They need not be secret, only different.
const RANDOM_SOURCE: &str = "/dev/urandom";

/// Latest deadline that may be set, in milliseconds from now: a day, more than any operation lives.
const MAX_DEADLINE_MS: u64 = 24 * 60 * 60 * 1000;

/// Have the daemon carry out a capability
///
/// Without a daemon nothing is executed. Exit code 9 means that it may have happened: ask with the same
/// operation id again, never with a new one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli exec app.org.portal.notes.create title=Milk
  pcp-cli exec app.org.portal.notes.create title=Milk 'tags:=[\"home\",\"food\"]'
  pcp-cli exec system.audio.set_volume percent:=30 --dry-run
  echo '{\"title\":\"Milk\"}' | pcp-cli exec app.org.portal.notes.create --params -

Exit codes: 0 done, 2 usage, 3 daemon or protocol, 4 not registered, 5 denied,
6 a person has to confirm, 7 too late, 8 too many, 9 outcome unknown (never repeat it
under a new id), 10 failed or refused.")]
pub(crate) struct Exec {
    /// The capability's id: domain.app.action
    #[arg(value_name = "ID")]
    id: String,
    /// Parameters: name=text, or name:=JSON
    #[arg(value_name = "NAME=TEXT", conflicts_with_all = ["params", "params_json"])]
    words: Vec<String>,
    /// Read the parameters, one JSON object, from a file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "params_json")]
    params: Option<PathBuf>,
    /// The parameters as one JSON object
    #[arg(long, value_name = "JSON")]
    params_json: Option<String>,
    /// Do nothing: print the intent and what would be done
    #[arg(long)]
    dry_run: bool,
    /// Do not wait for a person: exit with code 6 if one has to confirm
    #[arg(long)]
    no_wait: bool,
    /// Do not begin later than this many milliseconds from now
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=MAX_DEADLINE_MS))]
    deadline: Option<u64>,
    /// The operation's id, a UUID of version 7; the same id with the same words gives the stored result
    #[arg(long, value_name = "UUID")]
    op: Option<String>,
}

/// What became of the operation.
#[derive(Debug, Serialize)]
struct Executed {
    operation_id: String,
    capability: String,
    terminal: Terminal,
    effect: Option<Effect>,
    tier: Option<Tier>,
    state_source: StateSource,
    duration_us: u64,
    audit_hash: Option<String>,
    replayed: bool,
    retry_safe: bool,
    data: Option<Box<RawValue>>,
    #[serde(skip)]
    problem: Option<Problem>,
}

/// What would be done: exactly the intent's four fields, and the plan.
#[derive(Debug, Serialize)]
struct DryRun {
    intent: FourFields,
    plan: Option<Box<RawValue>>,
}

#[derive(Debug, Serialize)]
struct FourFields {
    domain: String,
    action: String,
    target_app: String,
    parameters: Box<RawValue>,
}

impl Exec {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let id = super::capability::parse(&self.id)?;
        let parameters = self.parameters()?;
        let envelope = self.envelope()?;
        let intent = Intent {
            domain: id.domain(),
            action: id.action(),
            target_app: id.app(),
            parameters: &parameters,
        };
        let request = ExecuteRequest::new(&envelope, &intent)?;
        let mut client = context.globals.connect()?;
        let operation = envelope.operation_id;
        let result = client
            .execute(&request, |ack| announce(context, ack))
            .map_err(|error| self.explain(error, operation))?;
        let mut executed = Executed::read(&id, &result)?;
        let plan = result.plan.map(raw).transpose()?;
        match &mut executed.problem {
            None if self.dry_run => {
                return Ok(Answer::report(DryRun { intent: FourFields::of(&intent)?, plan }));
            }
            Some(problem) if problem.code == ErrorCode::InvalidParameters => {
                let meant = advice(&mut client, &id, &parameters);
                problem.hint = meant.or_else(|| problem.hint.take());
            }
            _ => {}
        }
        Ok(Answer::report(executed))
    }

    fn parameters(&self) -> Result<String, Error> {
        match (&self.params, &self.params_json) {
            (Some(path), _) => params::from_file(path),
            (None, Some(text)) => params::from_text(text.clone()),
            (None, None) => params::from_words(&self.words),
        }
    }

    fn envelope(&self) -> Result<Envelope, Error> {
        let now_ms = unix_ms();
        let operation_id = match &self.op {
            Some(text) => OperationId::parse(text)
                .map_err(|error| Error::usage(error.to_string(), "leave --op out, and one is made"))?,
            None => OperationId::from_parts(now_ms, entropy(Path::new(RANDOM_SOURCE))?),
        };
        Ok(Envelope {
            operation_id,
            deadline_ms: self.deadline.map(|ms| now_ms.saturating_add(ms)),
            wait: !self.no_wait,
            dry_run: self.dry_run,
        })
    }

    /// A request whose end did not come back may have been carried out, unless it certainly was not sent whole.
    fn explain(&self, error: pcp_ipc::Error, operation: OperationId) -> Error {
        use pcp_ipc::Error::{Protocol, Refused, Write};
        let certainly_not_sent = match &error {
            Refused(_) | Write { .. } => true,
            Protocol(ProtocolError::WriteStall { .. } | ProtocolError::FrameTooLarge { .. }) => true,
            Protocol(ProtocolError::Io(error)) => error.kind() == std::io::ErrorKind::BrokenPipe,
            _ => false,
        };
        if certainly_not_sent || self.dry_run {
            return Error::Daemon(error);
        }
        Error::Lost { operation, cause: error }
    }
}

fn unix_ms() -> u64 {
    // A clock before 1970 is for the daemon to refuse: it knows what time it was.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn entropy(source: &Path) -> Result<[u8; 10], Error> {
    let mut bytes = [0; 10];
    File::open(source)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|error| Error::file("read randomness from", source, error))?;
    Ok(bytes)
}

fn announce(context: &mut Context<'_>, ack: &ExecuteResponse<'_>) {
    if let Some(awaiting) = &ack.confirmation {
        context.notice(&format!(
            "waiting for a person to confirm prompt {} (operation {})",
            awaiting.prompt_id, ack.operation_id
        ));
    }
}

/// Which parameter was probably meant. That there is no advice is no reason to hide what the daemon said.
fn advice(client: &mut Client, id: &CapabilityId, parameters: &str) -> Option<String> {
    let query =
        RegistryQuery { id: Some(id.as_str().into()), ..RegistryQuery::all(RegistryRows::Capabilities) };
    let rows = daemon::rows(client, &query).ok()?;
    let row: CapabilityRow<'_> = serde_json::from_str(rows.first()?.get()).ok()?;
    nearest::advice(parameters, row.input_schema.as_str())
}

fn raw(json: pcp_ipc::Json<'_>) -> Result<Box<RawValue>, Error> {
    RawValue::from_string(json.as_str().to_owned()).map_err(|source| Error::Reply { what: "result", source })
}

impl Executed {
    fn read(id: &CapabilityId, result: &OperationResult<'_>) -> Result<Self, Error> {
        Ok(Self {
            operation_id: result.operation_id.to_string(),
            capability: id.to_string(),
            terminal: result.terminal,
            effect: result.effect,
            tier: result.tier,
            state_source: result.state_source,
            duration_us: result.duration_us,
            audit_hash: result.audit_hash.as_ref().map(ToString::to_string),
            replayed: result.replayed,
            retry_safe: result.retry_safe,
            data: result.data_json.map(raw).transpose()?,
            problem: problem(result),
        })
    }
}

/// Why it was not done, `None` when it was.
fn problem(result: &OperationResult<'_>) -> Option<Problem> {
    let mut problem = match (&result.error, result.terminal) {
        (None, Terminal::Succeeded) if result.success => return None,
        (_, Terminal::OutcomeUnknown) => {
            let said = result.error.as_ref().map(|error| error.message.to_string());
            let message = said.unwrap_or_else(|| "it may have been carried out".to_owned());
            let hint = "do not repeat it under a new operation id: look at the application first";
            let stage = result.error.as_ref().and_then(|error| error.stage);
            Problem { stage, ..Problem::new(ErrorCode::OutcomeUnknown, message).hint(hint) }
        }
        (Some(error), _) => Problem::from(&error.to_pcp()),
        (None, terminal) => {
            let when =
                if result.replayed { "the stored result of this operation is" } else { "the operation was" };
            Problem::new(code_of(terminal), format!("{when} {terminal}"))
        }
    };
    problem.audit_hash = result.audit_hash.as_ref().map(ToString::to_string);
    Some(problem)
}

/// The code of an end whose own code is not told, such as a stored one.
const fn code_of(terminal: Terminal) -> ErrorCode {
    match terminal {
        Terminal::OutcomeUnknown => ErrorCode::OutcomeUnknown,
        Terminal::CancelledBeforeEffect => ErrorCode::CancelledBeforeEffect,
        Terminal::ExpiredBeforeEffect => ErrorCode::ExpiredBeforeEffect,
        Terminal::Succeeded | Terminal::Rejected | Terminal::Failed => ErrorCode::ExecutionFailed,
    }
}

impl FourFields {
    fn of(intent: &Intent<'_>) -> Result<Self, Error> {
        Ok(Self {
            domain: intent.domain.to_string(),
            action: intent.action.to_owned(),
            target_app: intent.target_app.to_owned(),
            parameters: RawValue::from_string(intent.parameters.to_owned())?,
        })
    }
}

impl Show for Executed {
    fn show(&self, page: &mut Page) {
        let stored = if self.replayed { " (stored result; nothing was done now)" } else { "" };
        page.fields(&[
            ("Operation", Cell::new(&self.operation_id)),
            ("Capability", Cell::new(&self.capability)),
            ("Terminal", Cell::word(self.terminal)),
            ("Effect", self.effect.map_or_else(|| Cell::maybe(None::<u8>), Cell::word)),
            ("Tier", Cell::maybe(self.tier)),
            ("State source", Cell::new(self.state_source)),
            ("Duration", Cell::new(format_args!("{} µs{stored}", self.duration_us))),
            ("Audit hash", Cell::maybe(self.audit_hash.as_ref())),
        ]);
        if let Some(data) = &self.data {
            page.gap();
            page.line(Tone::Heading, "Result");
            page.json(data.get());
        }
    }

    fn problem(&self) -> Option<Problem> {
        self.problem.clone()
    }
}

impl Show for DryRun {
    fn show(&self, page: &mut Page) {
        page.line(Tone::Faint, "Dry run: nothing was done.");
        page.fields(&[
            ("Domain", Cell::new(&self.intent.domain)),
            ("Action", Cell::new(&self.intent.action)),
            ("Application", Cell::new(&self.intent.target_app)),
            ("Parameters", Cell::new(self.intent.parameters.get())),
        ]);
        page.gap();
        page.line(Tone::Heading, "Plan");
        page.json(self.plan.as_ref().map_or("null", |plan| plan.get()));
    }
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;
