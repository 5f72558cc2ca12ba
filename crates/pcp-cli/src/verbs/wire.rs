//! `wire`: the message types of the protocol. Needs no daemon.

use pcp_stream::{Role, StreamMessageType};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::error::Error;
use crate::page::{Cell, Page};

/// Print the message types of the wire protocol
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli wire --list
  pcp-cli wire --list --json

Directions: c client, d daemon, a application, confirmer: a client through which a person confirms.
Prints 27 plain lines anywhere but with --json.

Exit codes: 0 ok.")]
pub(crate) struct Wire {
    /// Number, name and direction of every message type, one a line
    #[arg(long, required = true)]
    list: bool,
}

#[derive(Debug, Serialize)]
struct Types(Vec<Type>);

#[derive(Debug, Serialize)]
struct Type {
    number: u32,
    title: &'static str,
    name: &'static str,
    directions: Vec<&'static str>,
}

/// Every direction a message can have, in the order in which they are written.
const DIRECTIONS: [(&str, Role, Role); 6] = [
    ("c→d", Role::Client, Role::Daemon),
    ("d→c", Role::Daemon, Role::Client),
    ("d→a", Role::Daemon, Role::App),
    ("a→d", Role::App, Role::Daemon),
    ("d→confirmer", Role::Daemon, Role::Confirmer),
    ("confirmer→d", Role::Confirmer, Role::Daemon),
];

impl Wire {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let types = Types(StreamMessageType::ALL.into_iter().map(describe).collect());
        if context.globals.json || context.globals.format == Some(crate::cli::Format::Json) {
            return Ok(Answer::report(types));
        }
        // A count of lines is a count of types, on a terminal and in a pipe.
        let mut page = Page::default();
        types.show(&mut page);
        Ok(Answer::Document(page.finish(false).into_bytes()))
    }
}

fn describe(message: StreamMessageType) -> Type {
    let travels =
        |name: &str| DIRECTIONS.iter().any(|(known, from, to)| *known == name && message.travels(*from, *to));
    let directions = DIRECTIONS.iter().filter(|(name, from, to)| {
        // A confirmer is a client: it is named only where a client may not.
        let as_client = match *name {
            "d→confirmer" => travels("d→c"),
            "confirmer→d" => travels("c→d"),
            _ => false,
        };
        message.travels(*from, *to) && !as_client
    });
    Type {
        number: message.discriminant(),
        title: message.title(),
        name: message.name(),
        directions: directions.map(|(name, _, _)| *name).collect(),
    }
}

impl Show for Types {
    fn show(&self, page: &mut Page) {
        let cells = |kind: &Type| {
            vec![
                Cell::new(format_args!("{:>2}", kind.number)),
                Cell::new(kind.title),
                Cell::new(kind.directions.join(" ")),
            ]
        };
        page.rows(&self.0.iter().map(cells).collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_line_for_each_of_the_27_types() {
        let types = Types(StreamMessageType::ALL.into_iter().map(describe).collect());
        let mut page = Page::default();
        types.show(&mut page);
        let text = page.finish(false);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 27);
        assert_eq!(lines[0], " 0  Ping                    c→d");
        assert_eq!(lines[2], " 2  ErrorResponse           c→d d→c d→a a→d");
        assert_eq!(lines[24], "24  ConfirmationRequest     d→confirmer");
        assert_eq!(lines[25], "25  ConfirmationResponse    confirmer→d");
    }
}
