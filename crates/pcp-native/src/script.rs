//! Programs that are text: which interpreter they name, which toolkit they import, what they start.
//!
//! Text is read, never run: no shell and no interpreter takes part. What simple words do not say stays unknown.
//! It opens nothing (`program` does). Start with [`Shebang::read`].

pub(crate) mod imports;
pub(crate) mod modules;
pub(crate) mod shell;
mod variables;
mod word;

/// Longest first line of a script in bytes: what Linux reads of it.
pub const MAX_SHEBANG_BYTES: usize = 255;
/// Most bytes of a script that are looked at: imports stand at the beginning, wrappers are short.
pub const MAX_SCRIPT_BYTES: usize = 64 * 1024;

/// The first line of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shebang {
    /// The program that reads the script: behind `env` the name that `env` looks up.
    pub interpreter: String,
    /// What the interpreter is told besides the script's name.
    pub arguments: Vec<String>,
}

impl Shebang {
    /// Reads the first line of a file that begins with `head`; `None` where it is no script.
    #[must_use]
    pub fn read(head: &[u8]) -> Option<Self> {
        let line = head.strip_prefix(b"#!")?;
        let line = line.get(..MAX_SHEBANG_BYTES - 2).unwrap_or(line);
        let line = line.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split([' ', '\t', '\r']).filter(|word| !word.is_empty()).map(str::to_owned);
        let first = words.next().unwrap_or_default();
        let rest: Vec<String> = words.collect();
        if base_name(&first) == "env"
            && let Some((interpreter, arguments)) = behind_env(&rest)
        {
            return Some(Self { interpreter, arguments });
        }
        Some(Self { interpreter: first, arguments: rest })
    }
}

/// The command behind `env` with its options and variables.
pub(crate) fn behind_env(words: &[String]) -> Option<(String, Vec<String>)> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-u" | "--unset" | "-C" | "--chdir" => drop(rest.next()),
            word if word.starts_with("--split-string=") => {
                return behind_env_split(word.trim_start_matches("--split-string="), rest.as_slice());
            }
            "-S" | "-i" | "-" | "--" => {}
            word if word.starts_with("-S") => {
                return behind_env_split(word.trim_start_matches("-S"), rest.as_slice());
            }
            word if word.starts_with('-') || word.contains('=') => {}
            word => return Some((word.to_owned(), rest.cloned().collect())),
        }
    }
    None
}

fn behind_env_split(first: &str, rest: &[String]) -> Option<(String, Vec<String>)> {
    let words: Vec<String> =
        first.split_whitespace().map(str::to_owned).chain(rest.iter().cloned()).collect();
    let mut words = words.into_iter().filter(|word| !word.contains('='));
    Some((words.next()?, words.collect()))
}

/// The language of a script, by the name of its interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Shell,
    Python,
    Gjs,
    Perl,
    Java,
    Other,
}

impl Language {
    /// The language that an interpreter of this name reads.
    pub(crate) fn of(interpreter: &str) -> Self {
        let name = base_name(interpreter);
        // python3.11 and python3 are python.
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "sh" | "bash" | "dash" | "ash" | "ksh" | "zsh" | "busybox" => Self::Shell,
            "python" | "pypy" => Self::Python,
            "gjs" | "gjs-console" | "cjs" => Self::Gjs,
            "perl" => Self::Perl,
            "java" => Self::Java,
            _ => Self::Other,
        }
    }
}

/// The last part of a path.
pub(crate) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_interpreter() {
        let table: [(&str, &str, &[&str]); 13] = [
            ("#!/bin/sh\n", "/bin/sh", &[]),
            ("#! /bin/sh -e\n", "/bin/sh", &["-e"]),
            ("#!/usr/bin/python3 -O\r\nimport x", "/usr/bin/python3", &["-O"]),
            ("#!/usr/bin/env python3\n", "python3", &[]),
            ("#!/usr/bin/env -S python3 -s\n", "python3", &["-s"]),
            ("#!/usr/bin/env -Spython3 -s\n", "python3", &["-s"]),
            ("#!/usr/bin/env --split-string=A=1 gjs -m\n", "gjs", &["-m"]),
            ("#!/usr/bin/env -i LANG=C bash\n", "bash", &[]),
            ("#!/usr/bin/env -u HOME bash", "bash", &[]),
            ("#!/usr/bin/env\n", "/usr/bin/env", &[]),
            ("#!\n", "", &[]),
            ("#!/bin/sh\0-x\n", "/bin/sh", &[]),
            ("#!\t/bin/sh\t-x\t\n", "/bin/sh", &["-x"]),
        ];
        for (text, interpreter, arguments) in table {
            let found = Shebang::read(text.as_bytes()).unwrap();
            assert_eq!(
                (found.interpreter.as_str(), found.arguments.as_slice()),
                (interpreter, &*arguments.iter().map(ToString::to_string).collect::<Vec<_>>()),
                "{text:?}"
            );
        }
        assert_eq!(Shebang::read(b"# !/bin/sh\n"), None);
    }

    #[test]
    fn no_more_of_the_first_line_is_read_than_linux_reads() {
        let at_limit = format!("#!/{}", "x".repeat(MAX_SHEBANG_BYTES - 3));
        let beyond = format!("{at_limit}yyy\n");
        assert_eq!(Shebang::read(beyond.as_bytes()).unwrap().interpreter, at_limit[2..]);
    }

    #[test]
    fn the_interpreters_name_tells_the_language() {
        for (name, language) in [
            ("/bin/sh", Language::Shell),
            ("bash", Language::Shell),
            ("/usr/bin/python3.11", Language::Python),
            ("python", Language::Python),
            ("/usr/bin/gjs", Language::Gjs),
            ("/usr/bin/perl5.36", Language::Perl),
            ("/usr/bin/wish", Language::Other),
            ("", Language::Other),
        ] {
            assert_eq!(Language::of(name), language, "{name}");
        }
    }
}
