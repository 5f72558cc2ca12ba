//! `adapters`: what looks for applications, and how well it is (R-035, R-039).

use pcp_core::{AdapterState, DetectionMethod, Tier};
use pcp_ipc::Json;
use serde::{Deserialize, Serialize};

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// List the adapters that look for applications, each with its state
///
/// A failed adapter is never mended: another instance of it, the next generation, is tried after a while.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli adapters
  pcp-cli adapters --json | jq -r '.data.adapters[] | select(.state != \"ready\") | .reason'
  pcp-cli events --topic adapter_state_changed

Exit codes: 0 ok (whatever their states are), 3 daemon or protocol, 5 unknown caller.")]
pub(crate) struct Adapters {}

#[derive(Debug, Serialize, Deserialize)]
struct Listed {
    adapters: Vec<Row>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    name: String,
    method: DetectionMethod,
    tier: Tier,
    state: AdapterState,
    generation: u64,
    reason: Option<String>,
    abandoned: u64,
    held_back: bool,
    retry_in_ms: Option<u64>,
}

impl Adapters {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let mut client = context.globals.connect()?;
        let state = client.query_state("adapters", Json::EMPTY_OBJECT)?;
        let listed: Listed = serde_json::from_str(state.data_json.as_str())
            .map_err(|source| Error::Reply { what: "answer of topic adapters", source })?;
        Ok(Answer::report(listed))
    }
}

impl Row {
    /// Why it is as it is, and what comes next.
    fn remarks(&self) -> Option<String> {
        let mut remarks: Vec<String> = self.reason.iter().cloned().collect();
        if let Some(ms) = self.retry_in_ms {
            remarks.push(format!("retry in {} s", ms.div_ceil(1000)));
        }
        if self.held_back {
            remarks.push("held back: earlier instances hang".to_owned());
        }
        if self.abandoned > 0 {
            remarks.push(format!("{} abandoned", self.abandoned));
        }
        (!remarks.is_empty()).then(|| remarks.join("; "))
    }
}

impl Show for Listed {
    fn show(&self, page: &mut Page) {
        let row = |row: &Row| {
            vec![
                Cell::new(&row.name),
                Cell::new(row.method),
                Cell::new(row.tier),
                Cell::word(row.state),
                Cell::new(row.generation),
                Cell::maybe(row.remarks()),
            ]
        };
        let rows: Vec<_> = self.adapters.iter().map(row).collect();
        page.table(&["NAME", "METHOD", "TIER", "STATE", "GENERATION", "REASON"], &rows);
        page.gap();
        page.line(Tone::Faint, format_args!("{} adapters listed.", rows.len()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_says_why_and_when_it_is_tried_again() {
        let text = r#"{"adapters":[
            {"name":"native","method":"desktop","tier":"3","state":"ready","generation":1,"reason":null,
             "abandoned":0,"held_back":false,"retry_in_ms":null},
            {"name":"native","method":"desktop","tier":"3","state":"failed","generation":2,"reason":"it\nfailed",
             "abandoned":1,"held_back":true,"retry_in_ms":4001}]}"#;
        let listed: Listed = serde_json::from_str(text).unwrap();
        let mut page = Page::default();
        listed.show(&mut page);
        let expected = "\
NAME    METHOD   TIER  STATE   GENERATION  REASON
native  desktop  3     ready   1           -
native  desktop  3     failed  2           it\\nfailed; retry in 5 s; held back: earlier instances hang; 1 abandoned

2 adapters listed.
";
        assert_eq!(page.finish(false), expected);
    }
}
