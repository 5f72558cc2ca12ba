//! Programs that only start another one, and where in their arguments that one stands.

use super::program::base_name;
use super::shell;

/// What one word of a command line is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// No wrapper.
    Program,
    /// A wrapper: what it starts begins after so many arguments.
    Skip(usize),
    /// A wrapper that holds the words it starts inside of one.
    Instead(Vec<String>),
    /// What it starts cannot be known, and why.
    Unknown(&'static str),
}

/// A wrapper's options. Every other word that begins with `-` is an option without a value.
struct Wrapper {
    names: &'static [&'static str],
    /// Options whose value is the next word.
    with_value: &'static [&'static str],
    /// Arguments of its own before the program.
    own: usize,
}

const fn plain(names: &'static [&'static str]) -> Wrapper {
    Wrapper { names, with_value: &[], own: 0 }
}

const WRAPPERS: [Wrapper; 10] = [
    plain(&["nohup", "exec", "command", "dbus-launch", "time", "catchsegv", "padsp", "aoss", "vglrun"]),
    plain(&["gamemoderun", "mangohud", "prime-run", "optirun", "primusrun", "pw-jack", "setarch"]),
    Wrapper { names: &["setsid"], with_value: &[], own: 0 },
    Wrapper { names: &["nice"], with_value: &["-n", "--adjustment"], own: 0 },
    Wrapper { names: &["ionice"], with_value: &["-c", "--class", "-n", "--classdata"], own: 0 },
    Wrapper { names: &["dbus-run-session"], with_value: &["--config-file", "--dbus-daemon"], own: 0 },
    Wrapper {
        names: &["systemd-run"],
        with_value: &["-p", "--property", "-u", "--unit", "-E", "--setenv", "--slice", "--description"],
        own: 0,
    },
    Wrapper { names: &["timeout"], with_value: &["-k", "--kill-after", "-s", "--signal"], own: 1 },
    Wrapper { names: &["stdbuf"], with_value: &["-i", "-o", "-e"], own: 0 },
    Wrapper { names: &["taskset", "chrt"], with_value: &[], own: 1 },
];

/// Programs that run another one as somebody else: what they start has another user's rights and is not followed.
const ELEVATING: [&str; 8] = ["pkexec", "sudo", "su", "doas", "gksu", "gksudo", "kdesu", "beesu"];

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"];

/// Whether this is the base name of a shell.
pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(&name)
}

/// What the program of a command line is.
pub(super) fn step(program: &str, arguments: &[String]) -> Step {
    let name = base_name(program);
    match name {
        "env" => return env(arguments),
        "gtk-launch" | "gapplication" | "dex" => {
            return Step::Unknown("it starts another application by its id");
        }
        "busybox" if arguments.first().is_some_and(|word| is_shell(word)) => return Step::Skip(0),
        _ => {}
    }
    if is_shell(name) {
        return shell_command(arguments);
    }
    if ELEVATING.contains(&name) {
        return Step::Unknown("it is started with the rights of another user");
    }
    let found = WRAPPERS.iter().find(|wrapper| wrapper.names.contains(&name));
    found.map_or(Step::Program, |wrapper| behind_options(wrapper, arguments))
}

fn behind_options(wrapper: &Wrapper, arguments: &[String]) -> Step {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if word == "--" {
            at += 1;
            break;
        }
        if !word.starts_with('-') || word == "-" {
            break;
        }
        at += if wrapper.with_value.contains(&word.as_str()) { 2 } else { 1 };
    }
    Step::Skip(at + wrapper.own)
}

/// Options of `env` whose value is the next word; with `=`, or grown together with it, they are one word.
const ENV_WITH_VALUE: [&str; 6] = ["-u", "--unset", "-C", "--chdir", "-a", "--argv0"];

fn env(arguments: &[String]) -> Step {
    let mut at = 0;
    while let Some(word) = arguments.get(at) {
        if let Some((text, used)) = split_string(word, arguments.get(at + 1)) {
            let Some(mut words) = shell::words(text, shell::Variables::Refused) else {
                return Step::Unknown("env -S holds more than plain words");
            };
            // What is split takes the place of the option, options of env included.
            words.insert(0, "env".to_owned());
            words.extend(arguments.iter().skip(at + used).cloned());
            return Step::Instead(words);
        }
        if word == "--" {
            at += 1;
            break;
        }
        if !word.starts_with('-') {
            break;
        }
        at += if ENV_WITH_VALUE.contains(&word.as_str()) { 2 } else { 1 };
    }
    let assignments = arguments.iter().skip(at).take_while(|word| word.contains('='));
    Step::Skip(at + assignments.count())
}

/// The text of `-S` in one of its forms, and how many words it takes.
fn split_string<'a>(word: &'a str, next: Option<&'a String>) -> Option<(&'a str, usize)> {
    if let Some(text) = word.strip_prefix("--split-string=") {
        return Some((text, 1));
    }
    let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let grown = short.and_then(|rest| rest.trim_start_matches(['v', 'i', '0']).strip_prefix('S'));
    match grown {
        Some("") => next.map(|text| (text.as_str(), 2)),
        Some(text) => Some((text, 1)),
        None if word == "--split-string" => next.map(|text| (text.as_str(), 2)),
        None => None,
    }
}

/// `sh -c text`: followed where the text is one plain command, not guessed where it is a program.
fn shell_command(arguments: &[String]) -> Step {
    let mut at = 0;
    while let Some(option) = arguments.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
        at += 1;
        let is_command = !option.starts_with("--") && option.contains('c');
        if !is_command {
            continue;
        }
        let Some(text) = arguments.get(at) else { return Step::Unknown("the shell is given no command") };
        return match shell::words(text, shell::Variables::BehindProgram) {
            Some(words) if !words.is_empty() => Step::Instead(words),
            _ => Step::Unknown("the shell is given more than one plain command"),
        };
    }
    Step::Program
}
