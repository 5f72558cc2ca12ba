//! `explain`: why an operation ended as it did, or what would happen to an intent and what would allow it.

use pcp_core::OperationId;
use pcp_ipc::Json;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Say why: each stage of an operation that ran, or of one that would
///
/// With an operation's id: the seven stages with when they began, how long they took, and which one refused or
/// failed. With a capability's id: what each stage would say now, the rule that decides, and what would allow it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli explain 0191e7a0-0000-7000-8000-000000000001
  pcp-cli explain app.org.portal.notes.delete
  pcp-cli explain system.power.shutdown --as operator
  pcp-cli explain app.org.portal.notes.delete --json | jq -r .data.would_allow

Exit codes: 0 ok (also when the answer is no), 2 neither an operation nor a capability, 3 daemon or protocol,
4 no such operation or principal, 5 another's principal, asked from below the system domain.")]
pub(crate) struct Explain {
    /// An operation's id, or a capability's: domain.app.action
    #[arg(value_name = "ID")]
    id: String,
    /// For this principal: a uid, a name of principals.d, an application's id; without it the caller
    #[arg(long = "as", value_name = "PRINCIPAL")]
    principal: Option<String>,
}

/// What happened to an operation.
#[derive(Debug, Serialize, Deserialize)]
struct Happened {
    operation_id: String,
    capability: String,
    uid: u32,
    class: String,
    verdict: String,
    rule: String,
    source: String,
    gate: Option<String>,
    tier: Option<String>,
    fallback: bool,
    dry_run: bool,
    replayed: bool,
    terminal: String,
    error: Option<String>,
    timed_out: bool,
    duration_us: u64,
    stages: Vec<Ran>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Ran {
    number: u8,
    stage: String,
    start_us: Option<u64>,
    duration_us: Option<u64>,
    outcome: String,
}

/// What would happen to an intent.
#[derive(Debug, Serialize, Deserialize)]
struct Would {
    capability: String,
    principal: Value,
    would: String,
    because: String,
    would_allow: Option<String>,
    stages: Vec<Says>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Says {
    number: u8,
    stage: String,
    says: String,
    detail: String,
}

impl Explain {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let is_operation = self.id.parse::<OperationId>().is_ok();
        if is_operation && self.principal.is_some() {
            return Err(Error::usage(
                "--as asks about a capability; an operation has its caller already",
                "leave --as out, or name the capability",
            ));
        }
        let asked = if is_operation {
            json!({ "operation": self.id })
        } else {
            let id = super::capability::parse(&self.id)?;
            json!({ "capability": id, "principal": self.principal.as_deref().unwrap_or("me") })
        };
        let asked = asked.to_string();
        let mut client = context.globals.connect()?;
        let state = client.query_state("explain", Json::parse(&asked)?)?;
        let text = state.data_json.as_str();
        let fault = |source| Error::Reply { what: "answer of topic explain", source };
        if is_operation {
            Ok(Answer::report(serde_json::from_str::<Happened>(text).map_err(fault)?))
        } else {
            Ok(Answer::report(serde_json::from_str::<Would>(text).map_err(fault)?))
        }
    }
}

/// Microseconds as people read them.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} µs"),
        1_000..1_000_000 => format!("{}.{} ms", us / 1_000, us % 1_000 / 100),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

impl Show for Happened {
    fn show(&self, page: &mut Page) {
        let mut notes = Vec::new();
        for (is, word) in [
            (self.dry_run, "dry run"),
            (self.replayed, "replayed"),
            (self.fallback, "by fallback"),
            (self.timed_out, "timed out"),
        ] {
            if is {
                notes.push(word);
            }
        }
        page.fields(&[
            ("Operation", Cell::new(&self.operation_id)),
            ("Capability", Cell::new(&self.capability)),
            ("Caller", Cell::new(format!("uid {}", self.uid))),
            ("Class", Cell::new(&self.class)),
            ("Permission", Cell::new(format!("{} by {} ({})", self.verdict, self.rule, self.source))),
            ("Gate", Cell::maybe(self.gate.as_ref())),
            ("Tier", Cell::maybe(self.tier.as_ref())),
            ("Terminal", Cell::word(&self.terminal)),
            ("Error", Cell::maybe(self.error.as_ref())),
            ("Notes", Cell::maybe((!notes.is_empty()).then(|| notes.join(", ")))),
            ("Took", Cell::new(time(self.duration_us))),
        ]);
        page.gap();
        let row = |stage: &Ran| {
            vec![
                Cell::new(stage.number),
                Cell::new(&stage.stage),
                Cell::maybe(stage.start_us.map(time)),
                Cell::maybe(stage.duration_us.map(time)),
                Cell::word(&stage.outcome),
            ]
        };
        let rows: Vec<_> = self.stages.iter().map(row).collect();
        page.table(&["#", "STAGE", "START", "TOOK", "OUTCOME"], &rows);
    }
}

impl Show for Would {
    fn show(&self, page: &mut Page) {
        let tone = match self.would.as_str() {
            "run" => Tone::Good,
            "refuse" => Tone::Bad,
            _ => Tone::Careful,
        };
        page.marked(tone, &self.would, &format!(": {}", self.because));
        if let Some(allow) = &self.would_allow {
            page.line(Tone::Plain, format_args!("would allow it: {allow}"));
        }
        page.gap();
        let row = |stage: &Says| {
            vec![
                Cell::new(stage.number),
                Cell::new(&stage.stage),
                Cell::word(&stage.says),
                Cell::new(&stage.detail),
            ]
        };
        let rows: Vec<_> = self.stages.iter().map(row).collect();
        page.table(&["#", "STAGE", "SAYS", "BECAUSE"], &rows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_people_read() {
        for (us, text) in
            [(0, "0 µs"), (999, "999 µs"), (1_000, "1.0 ms"), (15_980, "15.9 ms"), (5_000_123, "5.0 s")]
        {
            assert_eq!(time(us), text);
        }
    }

    #[test]
    fn the_answer_says_first_whether_it_would_run_and_what_would_allow_it() {
        let would = Would {
            capability: "system.power.shutdown".into(),
            principal: Value::Null,
            would: "refuse".into(),
            because: "permission_denied: it needs the system domain; the caller holds app".into(),
            would_allow: Some("a principal of the system domain asks itself".into()),
            stages: vec![Says {
                number: 3,
                stage: "check_permissions".into(),
                says: "deny".into(),
                detail: "rule domain-wall".into(),
            }],
        };
        let mut page = Page::default();
        would.show(&mut page);
        let expected = "\
refuse: permission_denied: it needs the system domain; the caller holds app
would allow it: a principal of the system domain asks itself

#  STAGE              SAYS  BECAUSE
3  check_permissions  deny  rule domain-wall
";
        assert_eq!(page.finish(false), expected);
    }
}
