//! The house rules that a compiler does not know: layers, the purity of core, words that have no place (DESIGN 2, 6).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// What a crate may import besides core.
enum May {
    /// These, and nothing else.
    Import(&'static [&'static str]),
    /// Whatever it needs.
    ImportAll,
}

/// The layer table. A folder with a star stands for every package below it.
const LAYERS: [(&str, May); 14] = [
    ("pcp-core", May::Import(&[])),
    ("pcp-stream", May::Import(&[])),
    ("pcp-trust", May::Import(&[])),
    ("pcp-registry", May::Import(&[])),
    ("pcp-durable", May::Import(&["pcp-trust"])),
    ("pcp-native", May::Import(&["pcp-trust"])),
    ("pcp-ipc", May::Import(&["pcp-stream"])),
    ("pcp-execution", May::Import(&["pcp-durable", "pcp-trust"])),
    ("pcp-cli", May::Import(&["pcp-ipc", "pcp-stream", "pcp-durable", "pcp-trust", "pcp-native"])),
    ("pcp-daemon", May::ImportAll),
    ("apps/*", May::Import(&["pcp-ipc", "pcp-stream", "pcp-trust"])),
    ("tests/*", May::ImportAll),
    ("tests/tools/*", May::ImportAll),
    ("benches", May::ImportAll),
];
/// Longest file of core, in lines; its tests are not counted.
const MAX_CORE_LINES: usize = 400;
/// What core may depend on.
const CORE_DEPENDENCIES: [&str; 5] = ["heapless", "serde", "serde_json", "sha2", "thiserror"];
/// What core may not name: the world, its clocks, its threads.
const IMPURE: [&str; 7] =
    ["std::fs", "std::net", "std::thread", "std::process", "Instant", "SystemTime", "tokio"];

fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap())
}

/// What cargo knows of the packages of this workspace.
fn packages() -> &'static [Value] {
    static PACKAGES: OnceLock<Vec<Value>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"];
        let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        metadata["packages"].as_array().unwrap().clone()
    })
}

fn package(name: &str) -> Option<&'static Value> {
    packages().iter().find(|package| package["name"] == name)
}

/// The folder of a package, relative to the workspace.
fn folder(package: &Value) -> PathBuf {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().strip_prefix(root()).unwrap().to_owned()
}

/// Dependencies that a user of the package gets, too.
fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"].is_null())
}

fn layer(package: &Value) -> Option<&'static May> {
    let name = package["name"].as_str().unwrap();
    let folder = folder(package);
    let parent = format!("{}/*", folder.parent().unwrap().display());
    let row = |wanted: &str| LAYERS.iter().find(|(row, _)| *row == wanted).map(|(_, may)| may);
    row(name).or_else(|| row(folder.to_str().unwrap())).or_else(|| row(&parent))
}

#[test]
fn imports_point_down_and_every_arrow_is_in_the_layer_table() {
    let ours: BTreeSet<&str> = packages().iter().map(|package| package["name"].as_str().unwrap()).collect();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        let may = layer(package)
            .unwrap_or_else(|| panic!("{name} is not in the layer table; add its row in its own commit"));
        let May::Import(allowed) = may else { continue };
        for dependency in dependencies(package).map(|dependency| dependency["name"].as_str().unwrap()) {
            let foreign = !ours.contains(dependency);
            let to_core = dependency == "pcp-core" && name != "pcp-core";
            assert!(
                foreign || to_core || allowed.contains(&dependency),
                "{name} imports {dependency}: add the edge to the layer table in its own commit, or find the lower \
                 home for what you need"
            );
        }
    }
}

#[test]
fn the_layer_table_names_nothing_that_does_not_exist() {
    for (row, may) in &LAYERS {
        let May::Import(allowed) = may else { continue };
        assert!(row.ends_with("/*") || package(row).is_some(), "{row}");
        for name in *allowed {
            assert!(package(name).is_some(), "{row}: {name}");
        }
    }
}

#[test]
fn core_depends_on_five_crates_that_touch_no_world() {
    let core = package("pcp-core").unwrap();
    let names: BTreeSet<&str> =
        dependencies(core).map(|dependency| dependency["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(CORE_DEPENDENCIES));
}

#[test]
fn core_reads_no_file_no_clock_and_no_socket_and_its_files_stay_small() {
    for file in rust_files(&root().join("crates/pcp-core/src")) {
        let text = fs::read_to_string(&file).unwrap();
        let text = text.split("\n#[cfg(test)]\nmod tests").next().unwrap();
        let count = text.lines().count();
        let name = file.display();
        assert!(count <= MAX_CORE_LINES, "{name} has {count} lines; look for the second idea");
        for (number, line) in code(text) {
            let grouped =
                line.contains("std::{") && ["fs", "net", "thread"].iter().any(|module| names(line, module));
            let impure = IMPURE.iter().find(|word| names(line, word));
            assert!(impure.is_none() && !grouped, "{name}:{number} names the world: {line}");
            assert!(!line.contains("async fn"), "{name}:{number} has an async body: {line}");
        }
    }
}

/// The lines that are no comment, numbered.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// Whether `word` stands in `line` as a word of its own.
fn names(line: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        !is_part(line[..at].chars().next_back()) && !is_part(line[at + word.len()..].chars().next())
    })
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files_below(folder).into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "rs")).collect()
}

/// Every file of the project below `folder`, without what was built.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let built = |path: &Path| {
        let name = path.file_name().unwrap();
        name == "target" || name == ".git" || path == root().join("image/out") || name == "__pycache__"
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let facts = fs::symlink_metadata(&path).unwrap();
        if facts.is_dir() && !built(&path) {
            files.extend(files_below(&path));
        } else if facts.is_file() {
            files.push(path);
        }
    }
    files.sort();
    files
}

#[test]
fn nothing_is_left_undone_or_left_out_in_the_sources() {
    let words = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("#[ig", "nore"),
        concat!("#[should_", "panic"),
    ];
    for file in rust_files(root()) {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            let found = words.iter().find(|word| line.contains(**word));
            assert!(found.is_none(), "{}:{number}: {line}", file.display());
        }
    }
}

#[test]
fn no_boards_name_stands_outside_the_folder_of_boards() {
    let boards: Vec<String> = fs::read_dir(root().join("board"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| root().join("board").join(name).is_dir())
        .collect();
    assert!(boards.len() >= 2, "{boards:?}");
    for top in ["crates", "apps", "benches", "image", "ci", "tests"] {
        for file in files_below(&root().join(top)) {
            if file.extension().is_some_and(|ext| ext == "md") {
                continue;
            }
            let Ok(text) = fs::read_to_string(&file) else { continue };
            let found = boards.iter().find(|board| text.contains(board.as_str()));
            assert!(found.is_none(), "{} names the board {found:?}; facts belong to board/", file.display());
        }
    }
}

#[test]
fn cross_is_configured_by_keys_that_exist_and_by_no_image() {
    let text = fs::read_to_string(root().join("Cross.toml")).unwrap();
    let config: toml::Table = text.parse().unwrap();
    assert_eq!(config.keys().map(String::as_str).collect::<Vec<_>>(), ["target"]);
    for (triple, table) in config["target"].as_table().unwrap() {
        let known = ["build-std", "dockerfile", "env", "image", "pre-build", "runner", "xargo", "zig"];
        for (key, value) in table.as_table().unwrap() {
            assert!(known.contains(&key.as_str()), "{triple}.{key}");
            assert_ne!(key, "image", "each version of cross has its own default image");
            if key == "env" {
                let keys: Vec<&str> = value.as_table().unwrap().keys().map(String::as_str).collect();
                assert!(keys.iter().all(|key| matches!(*key, "passthrough" | "volumes")), "{keys:?}");
            }
        }
    }
}

#[test]
fn the_compiler_is_pinned_and_nothing_else_is() {
    let text = fs::read_to_string(root().join("rust-toolchain.toml")).unwrap();
    let toolchain: toml::Table = text.parse().unwrap();
    let toolchain = toolchain["toolchain"].as_table().unwrap();
    let keys: BTreeSet<&str> = toolchain.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        BTreeSet::from(["channel", "components", "profile"]),
        "no targets: cross brings its own"
    );
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let channel = toolchain["channel"].as_str().unwrap();
    let version = workspace.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    assert!(channel.starts_with(version.trim_matches('"')), "{channel} and {version}");
}

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
        _ => Err("neither cargo nor a file of the project".to_owned()),
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
            let inner = if text.contains("mod tests {") { "tests::" } else { "" };
            let name = rest.split(['(', '<']).next().unwrap();
            tests.push(format!("{}::{inner}{name}", module.join("::")));
        }
    }
    tests
}
