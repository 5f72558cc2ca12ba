//! Interpreters, whose own toolkit says nothing: the script they are given is what counts.

use super::program::{Launch, base_name};
use super::wrapper::is_shell;

/// An interpreter's options. Every other word that begins with `-` is an option without a value.
struct Interpreter {
    /// The name, digits and dots of a version left out.
    name: &'static str,
    /// Options whose value is the next word.
    with_value: &'static [&'static str],
    /// Options that take the place of a script.
    no_script: &'static [&'static str],
    /// The option that the script follows; the first plain word where there is none.
    script: Option<&'static str>,
}

const fn with(
    name: &'static str,
    with_value: &'static [&'static str],
    no_script: &'static [&'static str],
) -> Interpreter {
    Interpreter { name, with_value, no_script, script: None }
}

const INTERPRETERS: [Interpreter; 16] = [
    with("python", &["-W", "-X"], &["-c", "-m"]),
    with("pypy", &["-W", "-X"], &["-c", "-m"]),
    with("perl", &["-I", "-M"], &["-e", "-E"]),
    with("ruby", &["-I", "-r", "-C"], &["-e"]),
    with("node", &["-r", "--require", "--import", "--loader"], &["-e", "--eval", "-p", "--print"]),
    with("nodejs", &["-r", "--require", "--import", "--loader"], &["-e", "--eval", "-p", "--print"]),
    with("gjs", &["-I", "--include-path", "-C", "--coverage-prefix"], &["-c", "--command"]),
    with("gjs-console", &["-I", "--include-path"], &["-c", "--command"]),
    with("lua", &["-l"], &["-e"]),
    with("luajit", &["-l"], &["-e"]),
    with("php", &["-d", "-c"], &["-r"]),
    with("guile", &["-L", "-C", "-l"], &["-c"]),
    with("wish", &[], &[]),
    with("tclsh", &[], &[]),
    with("mono", &["--config"], &[]),
    Interpreter {
        name: "java",
        with_value: &[
            "-cp",
            "-classpath",
            "--class-path",
            "-p",
            "--module-path",
            "--add-opens",
            "--add-modules",
        ],
        no_script: &["-m", "--module"],
        script: Some("-jar"),
    },
];

const SHELL: Interpreter = with("sh", &["-o", "+o"], &["-s"]);

/// What a program starts when it is no wrapper.
pub(super) fn launch(program: &str, arguments: &[String]) -> Launch {
    let name = base_name(program);
    if matches!(name, "wine" | "wine64" | "wine-stable" | "wine-development") {
        return wine(name, arguments);
    }
    let unversioned = name.trim_end_matches(|char: char| char.is_ascii_digit() || char == '.');
    let known = INTERPRETERS.iter().find(|one| one.name == unversioned || one.name == name);
    let known = known.or_else(|| is_shell(name).then_some(&SHELL));
    let Some(interpreter) = known.filter(|_| !arguments.is_empty()) else {
        return Launch { program: Some(program.to_owned()), ..Launch::default() };
    };
    let script = script(interpreter, arguments);
    Launch {
        why: script.is_none().then_some("the interpreter is given no file"),
        program: script,
        interpreter: Some(name.to_owned()),
        sandbox: None,
    }
}

fn script(interpreter: &Interpreter, arguments: &[String]) -> Option<String> {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if interpreter.script == Some(word.as_str()) {
            return words.next().cloned();
        }
        if interpreter.no_script.contains(&word.as_str()) {
            return None;
        }
        if word == "--" {
            return words.next().cloned();
        }
        if !word.starts_with(['-', '+']) {
            // A class is no file.
            return interpreter.script.is_none().then(|| word.clone());
        }
        if interpreter.with_value.contains(&word.as_str()) {
            words.next();
        }
    }
    None
}

/// Programs of Windows are files here only where their path is one of this system.
fn wine(name: &str, arguments: &[String]) -> Launch {
    let program = arguments.iter().find(|word| !word.starts_with('-')).filter(|word| word.starts_with('/'));
    Launch {
        program: program.cloned(),
        interpreter: Some(name.to_owned()),
        sandbox: None,
        why: program.is_none().then_some("its path is one inside of Wine"),
    }
}
