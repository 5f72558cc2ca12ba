//! A command line that clap refuses, said the way every other error is said.
//!
//! The options were not read then, so that the form of the answer has to be found among the raw words.

use std::ffi::OsString;

use clap::error::{ContextKind, ErrorKind};
use pcp_core::ErrorCode;

use crate::cli::{Contract, S3_VERBS};
use crate::envelope::Problem;

/// Options of every verb that take a value, which therefore is no verb.
const WITH_VALUE: [&str; 5] = ["--socket", "--expect-uid", "--timeout", "--format", "--color"];

/// What a refused command line says about the form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guess {
    /// `Some` when the words or the environment ask for JSON or for a table.
    pub(crate) json: Option<bool>,
    /// The contract of the verb, as far as there is one.
    pub(crate) contract: Contract,
}

/// The first word that is neither an option nor the value of one.
pub(crate) fn verb(words: &[OsString]) -> Option<String> {
    let mut words = words.iter().map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        match &*word {
            "--" => return None,
            option if WITH_VALUE.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            verb => return Some(verb.to_owned()),
        }
    }
    None
}

impl Guess {
    /// Looks through the words after the program's name; `environment` is PCP_FORMAT.
    pub(crate) fn of(words: &[OsString], environment: Option<OsString>) -> Self {
        let mut json = environment.and_then(|word| asks_for_json(&word.to_string_lossy()));
        let is_s3 = verb(words).is_some_and(|verb| S3_VERBS.contains(&verb.as_str()));
        let mut words = words.iter().map(|word| word.to_string_lossy());
        while let Some(word) = words.next() {
            match &*word {
                "--" => break,
                "--json" => json = Some(true),
                option if WITH_VALUE.contains(&option) => {
                    let value = words.next().unwrap_or_default();
                    if option == "--format" {
                        json = asks_for_json(&value).or(json);
                    }
                }
                other => json = other.strip_prefix("--format=").and_then(asks_for_json).or(json),
            }
        }
        Self { json, contract: if is_s3 { Contract::S3 } else { Contract::Ordinary } }
    }
}

fn asks_for_json(word: &str) -> Option<bool> {
    match word {
        "json" => Some(true),
        "table" => Some(false),
        _ => None,
    }
}

/// Whether clap was asked for a text and gives it in place of an error.
pub(crate) fn is_help(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

/// The problem that clap found: its first paragraph, and its tip as the next step.
pub(crate) fn problem(error: &clap::Error) -> Problem {
    let text = error.render().to_string();
    let no_verb = [ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand, ErrorKind::MissingSubcommand];
    if no_verb.contains(&error.kind()) {
        let usage = text.lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or("pcp-cli VERB");
        return Problem::new(ErrorCode::Usage, "a verb is missing").hint(format!("usage: {usage}"));
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let mut paragraphs = text.split("\n\n").map(in_one_line);
    let message = paragraphs.next().filter(|text| !text.is_empty());
    let mut tip = None;
    let mut usage = None;
    for paragraph in paragraphs {
        if let Some(text) = paragraph.strip_prefix("tip: ") {
            tip.get_or_insert(text.to_owned());
        } else if let Some(text) = paragraph.strip_prefix("Usage: ") {
            usage.get_or_insert(format!("usage: {text}"));
        }
    }
    // A parameter of a capability is no option; clap would have it after a `--`.
    let takes_parameters = text.contains("[NAME=TEXT]");
    if let (ErrorKind::UnknownArgument, true) = (error.kind(), takes_parameters) {
        let word = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
        let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
        tip = tip.filter(|tip| !tip.starts_with("to pass"));
        tip = tip.or(Some(format!("a parameter is written {name}=TEXT, or {name}:=JSON")));
    }
    // One word for one thing: what clap calls a subcommand is a verb here.
    let message = message.map(|text| text.replacen("unrecognized subcommand", "unknown verb", 1));
    let tip = tip.map(|text| text.replacen("a similar subcommand", "a similar verb", 1));
    let hint = tip.or(usage).unwrap_or_else(|| "see `pcp-cli --help`".to_owned());
    let message = message.unwrap_or_else(|| "the command line is wrong".to_owned());
    Problem::new(ErrorCode::Usage, message).hint(hint)
}

fn in_one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect()
    }

    #[test]
    fn the_form_of_the_answer_is_found_among_refused_words() {
        let table = [
            ("ping --nope", None, None, Contract::Ordinary),
            ("--json pnig", None, Some(true), Contract::Ordinary),
            ("--socket --json status", None, None, Contract::S3),
            ("--socket /x status a b c", None, None, Contract::S3),
            ("ping status", None, None, Contract::Ordinary),
            ("--format json x", None, Some(true), Contract::Ordinary),
            ("--format=table x", Some("json"), Some(false), Contract::Ordinary),
            ("--format=nonsense x", Some("json"), Some(true), Contract::Ordinary),
            ("x -- --json", Some("rubbish"), None, Contract::Ordinary),
            ("--format", None, None, Contract::Ordinary),
            ("", None, None, Contract::Ordinary),
        ];
        for (line, environment, json, contract) in table {
            let guess = Guess::of(&words(line), environment.map(OsString::from));
            assert_eq!(guess, Guess { json, contract }, "{line}");
        }
    }

    #[test]
    fn a_refusal_is_one_sentence_with_a_next_step() {
        let table = [
            ("pnig", "unknown verb 'pnig'", "a similar verb exists: 'ping'"),
            ("ping --nope", "unexpected argument '--nope' found", "usage: pcp-cli ping [OPTIONS]"),
            ("show", "the following required arguments were not provided: <ID>", "usage: pcp-cli show <ID>"),
            ("key --json", "a verb is missing", "usage: pcp-cli key [OPTIONS] <VERB>"),
            (
                "exec app.x.y --titel Milk",
                "unexpected argument '--titel' found",
                "a parameter is written titel=TEXT, or titel:=JSON",
            ),
            (
                "exec app.x.y --dryrun",
                "unexpected argument '--dryrun' found",
                "a similar argument exists: '--dry-run'",
            ),
            ("key", "a verb is missing", "usage: pcp-cli key [OPTIONS] <VERB>"),
        ];
        for (line, message, hint) in table {
            let line = format!("pcp-cli {line}");
            let error = Cli::try_parse_from(words(&line)).unwrap_err();
            let problem = problem(&error);
            assert!(problem.message.starts_with(message), "{line}: {}", problem.message);
            assert!(problem.hint.clone().unwrap().starts_with(hint), "{line}: {problem:?}");
            assert!(!problem.message.contains('\n'));
        }
    }
}
