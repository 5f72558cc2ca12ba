//! Which part of a command line is the program: behind `env`, `nice` and the like, or what an interpreter reads.

use std::borrow::Cow;

use crate::script::{Language, base_name, behind_env};
use crate::toolkit::Toolkit;

/// Most wrappers before a program.
const MAX_WRAPPERS: usize = 8;

/// Programs that start another one, with those of their options that take a value of their own.
const WRAPPERS: [(&str, &[&str]); 15] = [
    ("nice", &["-n"]),
    ("ionice", &["-c", "-n"]),
    ("nohup", &[]),
    ("setsid", &[]),
    ("command", &[]),
    ("exec", &["-a"]),
    ("stdbuf", &["-i", "-o", "-e"]),
    ("padsp", &["-n", "-m"]),
    ("dbus-run-session", &["--config-file"]),
    ("dbus-launch", &[]),
    ("pkexec", &["--user"]),
    ("sudo", &["-u", "-g"]),
    ("gksu", &["-u"]),
    ("kdesu", &["-u", "-c"]),
    ("catchsegv", &[]),
];

/// The names by which Java is started; the last is that of Debian's wrapper library.
const JAVA: [&str; 4] = ["java", "javaw", "javaws", "run_java"];

/// Programs that hand a name on to a service or into a container: what is drawn then is no part of them.
const ELSEWHERE: [&str; 9] = [
    "flatpak",
    "snap",
    "toolbox",
    "distrobox",
    "gtk-launch",
    "gapplication",
    "xdg-open",
    "gio",
    "systemd-run",
];

/// What a command line comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A program, by path or by name.
    Program(String),
    /// A file that an interpreter reads.
    Script(String, Language),
    /// A module of Python.
    Module(String),
    /// Code on the command line.
    Code(String, Language),
    /// An application by its name on the bus.
    Service(String),
    /// A program whose interpreter alone tells the toolkit.
    Drawn(Toolkit, String),
    /// Nothing that can be known.
    Unknown,
}

/// Takes a command line apart.
pub(super) fn target(command: &[Option<String>]) -> Target {
    let mut words = Cow::Borrowed(command);
    for _ in 0..MAX_WRAPPERS {
        let Some((first, rest)) = words.split_first() else { return Target::Unknown };
        let Some(first) = first else {
            // Which Java is found by the script itself; that it is one shows in its option.
            let jar = rest.iter().flatten().any(|word| word == "-jar");
            return if jar { Target::Drawn(Toolkit::Java, "-jar".to_owned()) } else { Target::Unknown };
        };
        let name = base_name(first);
        if name == "env" {
            let known: Vec<String> = rest.iter().map(|word| word.clone().unwrap_or_default()).collect();
            let Some((program, arguments)) = behind_env(&known) else { return Target::Unknown };
            words = std::iter::once(program).chain(arguments).map(Some).collect::<Vec<_>>().into();
        } else if let Some((_, valued)) = WRAPPERS.iter().find(|(wrapper, _)| *wrapper == name) {
            words = behind(rest, valued).to_vec().into();
        } else {
            return program(first, name, rest);
        }
    }
    Target::Unknown
}

/// What follows the options.
fn behind<'a>(words: &'a [Option<String>], valued: &[&str]) -> &'a [Option<String>] {
    let mut rest = words;
    while let Some((Some(word), after)) = rest.split_first() {
        if !word.starts_with('-') || word == "--" {
            return if word == "--" { after } else { rest };
        }
        let skip = usize::from(valued.contains(&word.as_str()));
        rest = after.get(skip..).unwrap_or_default();
    }
    rest
}

fn program(first: &str, name: &str, rest: &[Option<String>]) -> Target {
    if let ("gapplication", [Some(verb), Some(service), ..]) = (name, rest)
        && verb == "launch"
        && !service.contains('/')
    {
        return Target::Service(service.clone());
    }
    if name.is_empty() || ELSEWHERE.contains(&name) {
        return Target::Unknown;
    }
    if JAVA.contains(&name) {
        return Target::Drawn(Toolkit::Java, first.to_owned());
    }
    if name.trim_end_matches(|c: char| c.is_ascii_digit()) == "electron" {
        return Target::Drawn(Toolkit::Electron, first.to_owned());
    }
    let language = Language::of(first);
    let valued: &[&str] = match language {
        Language::Shell => &["-o"],
        Language::Python => &["-W", "-X"],
        Language::Perl => &["-I"],
        Language::Gjs => &["-I"],
        Language::Java | Language::Other => return Target::Program(first.to_owned()),
    };
    let mut words = rest;
    while let Some((Some(word), after)) = words.split_first() {
        let next = after.first().cloned().flatten();
        match (word.as_str(), language, next) {
            ("-m", Language::Python, Some(module)) => return Target::Module(module),
            ("-c", Language::Shell | Language::Python | Language::Gjs, Some(code))
            | ("-e", Language::Perl, Some(code)) => return Target::Code(code, language),
            ("--", _, Some(file)) => return Target::Script(file, language),
            (option, ..) if option.starts_with('-') => {
                words = after.get(usize::from(valued.contains(&option))..).unwrap_or_default();
            }
            (file, ..) => return Target::Script(file.to_owned(), language),
        }
    }
    // The interpreter is the program where it gets nothing to read.
    if words.is_empty() { Target::Program(first.to_owned()) } else { Target::Unknown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Target {
        let words = line.split_whitespace().map(|word| (word != "?").then(|| word.to_owned()));
        target(&words.collect::<Vec<_>>())
    }

    #[test]
    fn the_program_stands_behind_wrappers_and_interpreters() {
        let program = |name: &str| Target::Program(name.to_owned());
        let script = |name: &str, language| Target::Script(name.to_owned(), language);
        let table = [
            ("foo --bar", program("foo")),
            ("env A=1 -u B foo", program("foo")),
            ("/usr/bin/env foo", program("foo")),
            ("nice -n 10 foo", program("foo")),
            ("pkexec --user root /usr/sbin/foo", program("/usr/sbin/foo")),
            ("dbus-run-session -- foo", program("foo")),
            ("env nice nohup foo", program("foo")),
            ("sh /usr/share/foo.sh", script("/usr/share/foo.sh", Language::Shell)),
            ("python3 -O /usr/share/foo.py %U", script("/usr/share/foo.py", Language::Python)),
            ("python3 -W ignore foo.py", script("foo.py", Language::Python)),
            ("python3 -m foo.bar", Target::Module("foo.bar".to_owned())),
            ("sh -c foo", Target::Code("foo".to_owned(), Language::Shell)),
            ("gjs -m /usr/share/foo.js", script("/usr/share/foo.js", Language::Gjs)),
            ("java -jar foo.jar", Target::Drawn(Toolkit::Java, "java".to_owned())),
            (
                "/usr/lib/jvm/x/bin/java Foo",
                Target::Drawn(Toolkit::Java, "/usr/lib/jvm/x/bin/java".to_owned()),
            ),
            ("? -jar foo.jar", Target::Drawn(Toolkit::Java, "-jar".to_owned())),
            ("electron25 /usr/lib/foo", Target::Drawn(Toolkit::Electron, "electron25".to_owned())),
            ("python3", program("python3")),
            ("bash ?", Target::Unknown),
            ("?", Target::Unknown),
            ("", Target::Unknown),
            ("env A=1", Target::Unknown),
            ("flatpak run org.example.Foo", Target::Unknown),
            ("gapplication launch org.example.Foo", Target::Service("org.example.Foo".to_owned())),
            ("gapplication launch ../x/y", Target::Unknown),
            ("gapplication list-apps", Target::Unknown),
        ];
        for (line, want) in table {
            assert_eq!(of(line), want, "{line}");
        }
        assert_eq!(of(&"nice ".repeat(MAX_WRAPPERS)), Target::Unknown);
        assert_eq!(of(&("nice ".repeat(MAX_WRAPPERS - 1) + "foo")), program("foo"));
    }
}
