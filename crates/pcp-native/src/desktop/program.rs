//! From a command line to the program whose toolkit counts: wrappers are followed, interpreters and containers named.

use std::borrow::Cow;

use super::interpreter;
use super::sandbox::Sandbox;
use super::wrapper::{self, Step};

/// Most wrappers that are followed one behind another: nobody means more, and a loop ends.
pub const MAX_WRAPPERS: usize = 16;

/// What a command line starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The word to be probed for a toolkit, as it stands in the command line. `None` where none can be known.
    pub program: Option<String>,
    /// The interpreter, where the program is a script or runs inside of one.
    pub interpreter: Option<String>,
    /// The container it runs in.
    pub sandbox: Option<Sandbox>,
    /// Why the program cannot be known.
    pub why: Option<&'static str>,
}

impl Launch {
    /// A program that cannot be known.
    pub(super) fn unknown(why: &'static str) -> Self {
        Self { why: Some(why), ..Self::default() }
    }

    /// A program inside a container.
    pub(super) fn inside(sandbox: Sandbox) -> Self {
        Self { sandbox: Some(sandbox), why: Some("it runs inside a container"), ..Self::default() }
    }
}

/// Follows a command line to what it starts. Nothing is started, and no file is looked at.
#[must_use]
pub fn follow(argv: &[String]) -> Launch {
    let mut words = Cow::Borrowed(argv);
    for _ in 0..=MAX_WRAPPERS {
        let Some((program, arguments)) = words.split_first() else {
            return Launch::unknown("a wrapper starts nothing");
        };
        if let Some(sandbox) = Sandbox::entered(program, arguments) {
            return Launch::inside(sandbox);
        }
        match wrapper::step(program, arguments) {
            Step::Program if program.is_empty() || program.contains('=') => {
                return Launch::unknown("its first word is no program");
            }
            Step::Program => return interpreter::launch(program, arguments),
            Step::Unknown(why) => return Launch::unknown(why),
            Step::Skip(count) => {
                words = Cow::Owned(arguments.get(count..).unwrap_or_default().to_vec());
            }
            Step::Instead(other) => words = Cow::Owned(other),
        }
    }
    Launch::unknown("it has too many wrappers")
}

/// A program's name without its folder.
pub(super) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(line: &str) -> Launch {
        follow(&words(line))
    }

    /// Divides at blanks; `_` stands for a blank inside a word.
    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(|word| word.replace('_', " ")).collect()
    }

    #[test]
    fn a_wrapper_is_followed_to_the_program_behind_it() {
        let table = [
            ("sketch --new", "sketch"),
            ("env A=1 B=2 sketch --new", "sketch"),
            ("/usr/bin/env -i -u X --unset=Y -uZ -C /tmp --chdir=/ -- A=1 sketch", "sketch"),
            ("env - sketch", "sketch"),
            ("env -S A=1_sketch_--new more", "sketch"),
            ("env -vS -i_sketch", "sketch"),
            ("env --split-string=sketch_a", "sketch"),
            ("nice sketch", "sketch"),
            ("nice -n 5 sketch", "sketch"),
            ("nice -5 sketch", "sketch"),
            ("ionice -c 3 -t nice -n5 sketch", "sketch"),
            ("nohup setsid -f -w sketch", "sketch"),
            ("dbus-run-session -- sketch", "sketch"),
            ("dbus-launch --exit-with-session sketch -x", "sketch"),
            ("exec sketch", "sketch"),
            ("gamemoderun mangohud prime-run sketch", "sketch"),
            ("systemd-run --user --scope -p X=1 sketch", "sketch"),
            ("timeout -k 5 10 sketch", "sketch"),
            ("stdbuf -oL -e 0 sketch", "sketch"),
            ("taskset -c 0,1 sketch", "sketch"),
            ("sh -c sketch", "sketch"),
            ("sh -c exec_sketch_--new_\"$@\" sh", "sketch"),
            ("/bin/bash -lc A=1_B='x_y'_/opt/My\\_App/run_$1", "/opt/My App/run"),
            ("env A=1 sh -e -c nice_env_C=2_sketch", "sketch"),
            ("/opt/Forge_Editor/bin/forge.sh", "/opt/Forge Editor/bin/forge.sh"),
        ];
        for (line, wanted) in table {
            let found = launch(line);
            assert_eq!(found.program.as_deref(), Some(wanted), "{line}: {found:?}");
            assert_eq!((found.interpreter, found.sandbox, found.why), (None, None, None), "{line}");
        }
    }

    #[test]
    fn what_cannot_be_known_is_not_guessed() {
        for line in [
            "env",
            "env A=1",
            "env -u",
            "sh -c cd_/x_&&_./run",
            "sh -c a_|_b",
            "sh -c a;b",
            "sh -c a_>_b",
            "sh -c $APP_x",
            "sh -c `which_x`",
            "sh -c sketch_$(id)",
            "sh -c \"open",
            "sh -c for_x_in_y",
            "sh -c source_x",
            "sh -c",
            "pkexec sketch",
            "sudo -E sketch",
            "gtk-launch org.example.Other",
            "A=1 sketch",
            "python3 -m sketch",
            "python3 -c import_x",
            "nice",
        ] {
            let found = launch(line);
            assert_eq!(found.program, None, "{line}: {found:?}");
            assert!(found.why.is_some(), "{line}");
        }
    }

    #[test]
    fn an_interpreter_is_named_and_its_script_is_the_program() {
        let table = [
            ("python3 /usr/share/x/main.py a", "python3", Some("/usr/share/x/main.py")),
            ("/usr/bin/python3.11 -u -W ignore -- x.py", "python3.11", Some("x.py")),
            ("python3 -Es /x.py", "python3", Some("/x.py")),
            ("perl -w -I lib /x.pl", "perl", Some("/x.pl")),
            ("perl -e print", "perl", None),
            ("node --no-warnings -r esm /x.js", "node", Some("/x.js")),
            ("gjs -m /x.js", "gjs", Some("/x.js")),
            ("gjs -I lib -c 1", "gjs", None),
            ("ruby -I lib /x.rb", "ruby", Some("/x.rb")),
            ("java -Xmx1g -jar /x.jar -jar /y.jar", "java", Some("/x.jar")),
            ("java -cp /a.jar org.example.Main", "java", None),
            ("mono /x.exe", "mono", Some("/x.exe")),
            ("sh -e /x.sh", "sh", Some("/x.sh")),
            ("env A=1 bash /x.sh", "bash", Some("/x.sh")),
            ("wine C:\\x.exe", "wine", None),
            ("wine /x.exe", "wine", Some("/x.exe")),
        ];
        for (line, interpreter, program) in table {
            let found = launch(line);
            assert_eq!(found.interpreter.as_deref(), Some(interpreter), "{line}");
            assert_eq!(found.program.as_deref(), program, "{line}");
            assert_eq!(found.why.is_some(), program.is_none(), "{line}");
        }
        assert_eq!(launch("python3").program.as_deref(), Some("python3"), "alone it is the program");
    }

    #[test]
    fn a_container_is_named_and_its_program_is_not_guessed() {
        let table = [
            ("/usr/bin/flatpak run --command=x org.example.Chat", Sandbox::Flatpak),
            ("flatpak --user run org.example.Chat", Sandbox::Flatpak),
            ("/var/lib/flatpak/exports/bin/org.example.Chat", Sandbox::Flatpak),
            ("env BAMF_DESKTOP_FILE_HINT=/x /snap/bin/chat", Sandbox::Snap),
            ("snap run chat", Sandbox::Snap),
            ("bwrap --ro-bind / / chat", Sandbox::Bwrap),
            ("firejail --net=none chat", Sandbox::Firejail),
            ("distrobox-enter -n box -- chat", Sandbox::Distrobox),
            ("toolbox run chat", Sandbox::Toolbox),
        ];
        for (line, sandbox) in table {
            let found = launch(line);
            assert_eq!((found.sandbox, found.program), (Some(sandbox), None), "{line}");
        }
        assert_eq!(launch("flatpak update").program.as_deref(), Some("flatpak"));
    }

    #[test]
    fn wrappers_are_followed_to_the_limit_and_no_further() {
        let line = |count: usize| "nohup ".repeat(count) + "sketch";
        assert_eq!(launch(&line(MAX_WRAPPERS)).program.as_deref(), Some("sketch"));
        assert_eq!(launch(&line(MAX_WRAPPERS + 1)).program, None);
    }
}
