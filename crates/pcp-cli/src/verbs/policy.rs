//! `policy list|test|matrix`: what is allowed, what a person confirms, and why.

use pcp_ipc::Json;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Say what the policy allows, what needs a person's confirmation, and why
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli policy list
  pcp-cli policy matrix
  pcp-cli policy test me app.org.portal.notes.delete
  pcp-cli policy test operator system.power.shutdown --json

Exit codes: 0 ok (also when the verdict is deny), 2 no capability id, 3 daemon or protocol, 4 no such principal,
5 another's principal, asked from below the system domain.")]
pub(crate) struct Policy {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// List the rules and the gated globs, each with where it comes from
    List,
    /// Print each action class with its severity, gate, least trust and undo window
    Matrix,
    /// Say what a principal may do with a capability, and which rule decides
    Test {
        /// A uid, a name of principals.d, an application's id, or me
        #[arg(value_name = "PRINCIPAL")]
        principal: String,
        /// The capability's id: domain.app.action
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Serialize, Deserialize)]
struct Rules {
    rules: Vec<Rule>,
    gated: Vec<Rule>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Rule {
    says: String,
    pattern: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    source: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Matrix {
    classes: Vec<Class>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Class {
    class: String,
    severity: String,
    safety: String,
    gate: String,
    minimum_trust: u8,
    undo_window_ms: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Judgement {
    principal: Principal,
    capability: String,
    registered: Option<bool>,
    class: String,
    verdict: String,
    rule: String,
    source: String,
    reason: Option<String>,
    would_allow: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Principal {
    uid: u32,
    domain: String,
    trust: u8,
}

impl Policy {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::List => Ok(Answer::report(ask::<Rules>(context, &json!({ "ask": "list" }))?)),
            Verb::Matrix => Ok(Answer::report(ask::<Matrix>(context, &json!({ "ask": "matrix" }))?)),
            Verb::Test { principal, id } => {
                let id = super::capability::parse(id)?;
                let asked = json!({ "ask": "test", "principal": principal, "capability": id });
                Ok(Answer::report(ask::<Judgement>(context, &asked)?))
            }
        }
    }
}

fn ask<T: DeserializeOwned>(context: &Context<'_>, arguments: &serde_json::Value) -> Result<T, Error> {
    let arguments = arguments.to_string();
    let arguments = Json::parse(&arguments)?;
    let mut client = context.globals.connect()?;
    let state = client.query_state("policy", arguments)?;
    serde_json::from_str(state.data_json.as_str())
        .map_err(|source| Error::Reply { what: "answer of topic policy", source })
}

impl Show for Rules {
    fn show(&self, page: &mut Page) {
        let row = |rule: &Rule| {
            vec![
                Cell::word(&rule.says),
                Cell::new(&rule.pattern),
                Cell::maybe(rule.from.as_ref()),
                Cell::new(&rule.source),
            ]
        };
        let rows: Vec<_> = self.rules.iter().chain(&self.gated).map(row).collect();
        page.table(&["SAYS", "PATTERN", "FROM DOMAIN", "SOURCE"], &rows);
        page.gap();
        page.line(Tone::Faint, "What no rule allows is denied; every source can only tighten.");
    }
}

impl Show for Matrix {
    fn show(&self, page: &mut Page) {
        let row = |class: &Class| {
            vec![
                Cell::new(&class.class),
                Cell::new(&class.severity),
                Cell::word(&class.gate),
                Cell::new(class.minimum_trust),
                Cell::maybe(class.undo_window_ms.map(|ms| format!("{} s", ms / 1000))),
                Cell::new(&class.safety),
            ]
        };
        let rows: Vec<_> = self.classes.iter().map(row).collect();
        page.table(&["CLASS", "SEVERITY", "GATE", "TRUST", "UNDO", "SAFETY"], &rows);
    }
}

impl Show for Judgement {
    fn show(&self, page: &mut Page) {
        let who = &self.principal;
        page.fields(&[
            ("Principal", Cell::new(format!("uid {}, {} domain, trust {}", who.uid, who.domain, who.trust))),
            ("Capability", Cell::new(&self.capability)),
            ("Registered", Cell::maybe(self.registered.map(|there| if there { "yes" } else { "no" }))),
            ("Class", Cell::new(&self.class)),
            ("Verdict", Cell::word(&self.verdict)),
            ("Rule", Cell::new(format!("{} ({})", self.rule, self.source))),
            ("Reason", Cell::maybe(self.reason.as_ref())),
            ("Would allow", Cell::maybe(self.would_allow.as_ref())),
        ]);
    }
}
