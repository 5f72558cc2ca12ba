//! `help`: the help text of a verb, or the whole tree of verbs for a program.

use clap::{Arg, ArgAction, Command};
use pcp_core::{ErrorCode, OutcomeKind};
use serde::Serialize;

use crate::cli::{self, Format};
use crate::context::{Answer, Context};
use crate::error::Error;

/// Print the help text of a verb, or the tree of verbs with --json
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli help exec
  pcp-cli help audit show
  pcp-cli help --json | jq -r '.verbs[].name'

Exit codes: 0 ok, 2 no such verb.")]
pub(crate) struct Help {
    /// The verb, and the verb below it
    #[arg(value_name = "VERB")]
    path: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Tree {
    name: String,
    about: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    arguments: Vec<Argument>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    verbs: Vec<Tree>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<Code>,
}

#[derive(Debug, Serialize)]
struct Argument {
    name: String,
    help: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<String>,
    required: bool,
    positional: bool,
}

#[derive(Debug, Serialize)]
struct Code {
    code: ErrorCode,
    kind: OutcomeKind,
    exit: u8,
}

impl Help {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let root = cli::command();
        let mut verb = &root;
        for name in &self.path {
            verb = verb.find_subcommand(name).ok_or_else(|| {
                Error::usage(format!("{} has no verb {name:?}", verb.get_name()), "see `pcp-cli help`")
            })?;
        }
        if context.globals.json || context.globals.format == Some(Format::Json) {
            let mut tree = tree(verb);
            if self.path.is_empty() {
                tree.arguments = arguments(&root, true);
                tree.errors = ErrorCode::ALL
                    .iter()
                    .map(|code| Code { code: *code, kind: code.kind(), exit: code.exit_code() })
                    .collect();
            }
            let mut document = serde_json::to_vec_pretty(&tree)?;
            document.push(b'\n');
            return Ok(Answer::Document(document));
        }
        let text = verb.clone().render_long_help().to_string();
        Ok(Answer::Document(text.into_bytes()))
    }
}

fn tree(verb: &Command) -> Tree {
    Tree {
        name: verb.get_name().to_owned(),
        about: verb.get_about().map(ToString::to_string).unwrap_or_default(),
        arguments: arguments(verb, false),
        verbs: verb.get_subcommands().filter(|verb| !verb.is_hide_set()).map(tree).collect(),
        errors: Vec::new(),
    }
}

/// The options that every verb has (`global`), or a verb's own.
fn arguments(verb: &Command, global: bool) -> Vec<Argument> {
    let own = |argument: &&Arg| {
        argument.is_global_set() == global && !matches!(argument.get_id().as_str(), "help" | "version")
    };
    verb.get_arguments().filter(own).map(argument).collect()
}

fn argument(argument: &Arg) -> Argument {
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let value = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let long = argument.get_long().map(|long| format!("--{long}"));
    let name = long.or_else(|| value.clone()).unwrap_or_else(|| argument.get_id().to_string());
    Argument {
        name,
        help: argument.get_help().map(ToString::to_string).unwrap_or_default(),
        value: value.filter(|_| takes_value),
        environment: argument.get_env().map(|name| name.to_string_lossy().into_owned()),
        required: argument.is_required_set(),
        positional: argument.is_positional(),
    }
}
