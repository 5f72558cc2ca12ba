//! Which word of a command line is being written, and whether an id belongs there.

use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

/// What an id is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A capability.
    Capability,
    /// An application.
    App,
}

impl Kind {
    /// One word for one thing: what a value is called in the help text says what it is everywhere.
    fn of(argument: &Arg) -> Option<Self> {
        match argument.get_value_names()?.first()?.as_str() {
            "ID" => Some(Self::Capability),
            "APP" | "GLOB" => Some(Self::App),
            _ => None,
        }
    }
}

/// What has to be offered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// What the word that is being written will be, where an id belongs there.
    pub(super) kind: Option<Kind>,
    /// The word as far as it is written.
    pub(super) begins: String,
    /// Where the line says that the daemon listens.
    pub(super) socket: Option<PathBuf>,
    /// Whom the line wants to listen there.
    pub(super) expect_uid: Option<u32>,
}

impl Wanted {
    /// Reads `words`, those after the program's name, of which the last is being written.
    pub(super) fn of(root: &Command, words: &[String]) -> Self {
        let Some((begins, before)) = words.split_last() else { return Self::default() };
        let mut wanted = Self { begins: begins.clone(), ..Self::default() };
        let mut verb = root;
        let mut place = 0;
        let mut option: Option<&Arg> = None;
        let mut options_end = false;
        for word in before {
            match option {
                // bash takes --app=x for three words.
                Some(_) if word == "=" => {}
                Some(argument) => {
                    wanted.note(argument, word);
                    option = None;
                }
                None if options_end => place += 1,
                None if word == "--" => options_end = true,
                None if word.starts_with('-') && word.len() > 1 => {
                    let (name, value) =
                        word.split_once('=').map_or((&**word, None), |(name, value)| (name, Some(value)));
                    let argument = option_named(root, verb, name);
                    match (argument, value) {
                        (Some(argument), Some(value)) => wanted.note(argument, value),
                        (argument, _) => option = argument,
                    }
                }
                None => match verb.find_subcommand(word) {
                    Some(below) if place == 0 => verb = below,
                    _ => place += 1,
                },
            }
        }
        if begins == "=" {
            wanted.begins.clear();
        }
        wanted.kind = match option {
            Some(argument) => Kind::of(argument),
            None if begins.starts_with('-') && !options_end => None,
            None => verb.get_positionals().nth(place).and_then(Kind::of),
        };
        wanted
    }

    fn note(&mut self, argument: &Arg, value: &str) {
        match argument.get_id().as_str() {
            "socket" => self.socket = Some(value.into()),
            "expect_uid" => self.expect_uid = value.parse().ok(),
            _ => {}
        }
    }
}

/// The option of this name that takes a value.
fn option_named<'a>(root: &'a Command, verb: &'a Command, name: &str) -> Option<&'a Arg> {
    let long = name.strip_prefix("--")?;
    let takes_value = |argument: &&Arg| {
        matches!(argument.get_action(), ArgAction::Set | ArgAction::Append) && !argument.is_positional()
    };
    let mut arguments = verb.get_arguments().chain(root.get_arguments()).filter(takes_value);
    arguments.find(|argument| argument.get_long() == Some(long))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    fn wanted(line: &str) -> Wanted {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        Wanted::of(&cli::command(), &words)
    }

    #[test]
    fn an_id_belongs_where_the_help_text_says_so() {
        let (capability, app) = (Some(Kind::Capability), Some(Kind::App));
        let table = [
            ("show ", capability),
            ("show app.org", capability),
            ("--socket /x show app.org", capability),
            ("--socket=/x --json show app.org", capability),
            ("show --timeout 3 app", capability),
            ("exec ", capability),
            ("exec --dry-run app", capability),
            ("exec --op 1 app", capability),
            ("explain app", capability),
            ("classify app", capability),
            ("policy test me app.", capability),
            ("capability parse app", capability),
            ("app show org", app),
            ("apps org", app),
            ("list --app org", app),
            ("events --app = org", app),
            ("events --app =", app),
            ("show -- app", capability),
            ("policy test me", None),
            ("exec app.x.y title", None),
            ("show app.x.y app", None),
            ("show --", None),
            ("show --socket ", None),
            ("list app", None),
            ("status 01", None),
            ("sho", None),
            ("", None),
            ("app sh", None),
            ("pnig x", None),
            ("completion ba", None),
        ];
        for (line, kind) in table {
            assert_eq!(wanted(line).kind, kind, "{line}");
        }
        assert_eq!(Wanted::of(&cli::command(), &[]), Wanted::default());
    }

    #[test]
    fn the_daemon_is_the_one_that_the_line_names() {
        for line in ["--socket /x --expect-uid 7 show app", "--socket=/x show --expect-uid=7 app"] {
            let wanted = wanted(line);
            assert_eq!((wanted.socket, wanted.expect_uid), (Some("/x".into()), Some(7)), "{line}");
            assert_eq!(wanted.begins, "app");
        }
        assert_eq!(wanted("show app").socket, None);
        assert_eq!(wanted("events --app =").begins, "");
    }
}
