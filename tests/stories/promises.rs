//! SPEC.md: every promise names a command, and every command runs something that exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::workspace::{folder, package, root, rust_files};

/// A row of SPEC.md.
struct Promise {
    id: String,
    commands: Vec<String>,
    state: String,
}

fn promises() -> Vec<Promise> {
    let text = fs::read_to_string(root().join("SPEC.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| id "));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, _, command, _, state] = cells[..] else {
            panic!("id, promise, command, where, state: {row}")
        };
        let commands = command.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Promise { id: id.to_owned(), commands, state: state.to_owned() }
    })
    .collect()
}

#[test]
fn every_promise_names_a_command_and_every_command_something_that_exists() {
    let promises = promises();
    assert!(promises.len() > 20, "{}", promises.len());
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for Promise { id, commands, state } in &promises {
        if !ids.insert(id) {
            wrong.push(format!("{id} is promised twice"));
        }
        if commands.is_empty() && state != "open" {
            wrong.push(format!("{id} has no command and is not open"));
        }
        wrong.extend(
            commands
                .iter()
                .filter_map(|command| Some(format!("{id}: `{command}`: {}", exists(command).err()?))),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_command_that_would_prove_nothing_is_noticed() {
    for command in [
        "cargo test -p pcp-none",
        "cargo test -p pcp-core no_such_test",
        "cargo test -p pcp-core --test none",
        "cargo test -p pcp-tests --test stories promises::no_such_story",
        "cargo run -p pcp-core --example none",
        "ci/none",
        "none",
        "make all",
    ] {
        assert!(exists(command).is_err(), "{command}");
    }
    for command in [
        "cargo test -p pcp-core --lib",
        "cargo test -p pcp-tests --test stories promises::a_command",
        "cargo fmt",
    ] {
        assert_eq!(exists(command), Ok(()), "{command}");
    }
}

/// Whether what a command is about is there.
fn exists(command: &str) -> Result<(), String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    match words.as_slice() {
        ["cargo", "test", rest @ ..] => test_exists(rest),
        ["cargo", "run", rest @ ..] => example_exists(rest),
        ["cargo", ..] => Ok(()),
        [program, ..] if program.contains('/') => {
            root().join(program).is_file().then_some(()).ok_or_else(|| format!("there is no file {program}"))
        }
        [story] => {
            let file = root().join(format!("tests/harness/src/stories/{story}.rs"));
            file.is_file().then_some(()).ok_or_else(|| format!("there is no device story {story}"))
        }
        _ => Err("neither cargo, nor a file of the project, nor a device story".to_owned()),
    }
}

/// The value of an option, and the words that belong to none.
fn parse<'a>(words: &[&'a str]) -> (BTreeMap<&'a str, &'a str>, Vec<&'a str>) {
    let (mut options, mut free) = (BTreeMap::new(), Vec::new());
    let mut words = words.iter().copied().filter(|word| *word != "--");
    while let Some(word) = words.next() {
        if word.starts_with('-') {
            options.insert(word, words.next().unwrap_or_default());
        } else {
            free.push(word);
        }
    }
    (options, free)
}

fn target_exists(package: &Value, kind: &str, name: &str) -> Result<PathBuf, String> {
    let targets = package["targets"].as_array().unwrap();
    let target = targets.iter().find(|target| target["name"] == name && target["kind"][0] == kind);
    let target = target.ok_or_else(|| format!("{} has no {kind} {name}", package["name"]))?;
    Ok(PathBuf::from(target["src_path"].as_str().unwrap()))
}

fn example_exists(words: &[&str]) -> Result<(), String> {
    let (options, _) = parse(words);
    let package =
        package(options.get("-p").copied().unwrap_or_default()).ok_or("there is no such package")?;
    options.get("--example").map_or(Ok(()), |name| target_exists(package, "example", name).map(|_| ()))
}

fn test_exists(words: &[&str]) -> Result<(), String> {
    let (options, filters) = parse(words);
    if options.contains_key("--workspace") {
        return Ok(());
    }
    let package =
        package(options.get("-p").copied().unwrap_or_default()).ok_or("there is no such package")?;
    let folder = root().join(folder(package));
    let files = match options.get("--test") {
        // A test of one file beside its modules' folder, or a folder with a main.rs.
        Some(name) => {
            let source = target_exists(package, "test", name)?;
            let modules = source.parent().unwrap().to_owned();
            if source.ends_with("main.rs") { rust_files(&modules) } else { vec![source] }
        }
        None => rust_files(&folder),
    };
    let paths: Vec<String> = files.iter().flat_map(|file| tests_of(&folder, file)).collect();
    match filters.iter().find(|filter| !paths.iter().any(|path| path.contains(**filter))) {
        Some(filter) => Err(format!("no test has {filter:?} in its name")),
        None if paths.is_empty() => Err("it has no tests".to_owned()),
        None => Ok(()),
    }
}

/// The tests of a file, as the test runner names them: module path and function.
fn tests_of(package: &Path, file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(package).unwrap().with_extension("");
    let module: Vec<&str> = inside
        .iter()
        .map(|part| part.to_str().unwrap())
        .filter(|part| !matches!(*part, "src" | "lib" | "main" | "mod" | "tests"))
        .collect();
    let text = fs::read_to_string(file).unwrap();
    let mut tests = Vec::new();
    let mut marked = false;
    for line in text.lines().map(str::trim_start) {
        marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        let Some(rest) = line.strip_prefix("fn ").or_else(|| line.strip_prefix("async fn ")) else {
            continue;
        };
        if std::mem::take(&mut marked) {
            let inner = if text.contains("\nmod tests {") { "tests::" } else { "" };
            let name = rest.split(['(', '<']).next().unwrap();
            tests.push(format!("{}::{inner}{name}", module.join("::")));
        }
    }
    tests
}
