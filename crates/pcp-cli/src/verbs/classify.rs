//! `classify`: what the classifier makes of a name, and how it is gated. Needs no daemon.

use pcp_core::{ActionClass, ConfirmationConfig, Gate, IntentClassifier};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Cell, Page};

/// Say which class a capability's name has, and how it is gated
///
/// Judges the name alone. A manifest or a rule can only make the gate stricter.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli classify app.mail.delete_read_messages
  pcp-cli classify system.power.shutdown --json

Exit codes: 0 ok, 2 no capability id.")]
pub(crate) struct Classify {
    /// The capability's id: domain.app.action
    #[arg(value_name = "ID")]
    id: String,
}

#[derive(Debug, Serialize)]
struct Class {
    id: String,
    class: ActionClass,
    matches: Vec<Match>,
    gate_class: ActionClass,
    confidence: f32,
    service: bool,
    gate: Gate,
    gated_by: Option<&'static str>,
    severity: String,
    safety: String,
    undo_window_ms: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Match {
    class: ActionClass,
    word: &'static str,
}

impl Classify {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        let id = super::capability::parse(&self.id)?;
        let found = IntentClassifier.classify(&id);
        let gates = ConfirmationConfig::default();
        // A service capability has no authority of its own and is not gated.
        let gate = if found.service { Gate::Allow } else { gates.gate(&id, found.gate_class, false, false) };
        Ok(Answer::report(Class {
            id: id.to_string(),
            class: found.class,
            matches: found.matches.iter().map(|(class, word)| Match { class: *class, word }).collect(),
            gate_class: found.gate_class,
            confidence: found.confidence,
            service: found.service,
            gate,
            gated_by: gates.gated_by(&id),
            severity: found.gate_class.severity().to_string(),
            safety: found.gate_class.safety().to_string(),
            undo_window_ms: found.gate_class.undo_window_ms(),
        }))
    }
}

impl Show for Class {
    fn show(&self, page: &mut Page) {
        let matches: Vec<String> = self.matches.iter().map(|m| format!("{} ({})", m.word, m.class)).collect();
        let undo = self.undo_window_ms.map(|ms| format!("{ms} ms"));
        page.fields(&[
            ("Id", Cell::new(&self.id)),
            ("Class", Cell::new(self.class)),
            ("Matches", Cell::maybe((!matches.is_empty()).then(|| matches.join(", ")))),
            ("Gated as", Cell::new(self.gate_class)),
            ("Confidence", Cell::new(self.confidence)),
            ("Gate", Cell::word(self.gate)),
            ("Gated by", Cell::maybe(self.gated_by)),
            ("Severity", Cell::new(&self.severity)),
            ("Safety", Cell::new(&self.safety)),
            ("Undo window", Cell::maybe(undo)),
            ("Service", Cell::new(if self.service { "yes" } else { "no" })),
        ]);
    }
}
