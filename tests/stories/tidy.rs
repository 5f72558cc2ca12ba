//! The house rules that a compiler does not know: layers, the purity of core, words that have no place (DESIGN 2, 6).

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::support::workspace::{dependencies, files_below, folder, package, packages, root, rust_files};

/// What a crate may import besides core.
enum May {
    /// These, and nothing else.
    Import(&'static [&'static str]),
    /// Whatever it needs.
    ImportAll,
}

/// The layer table. A folder with a star stands for every package below it.
const LAYERS: [(&str, May); 15] = [
    ("pcp-core", May::Import(&[])),
    ("pcp-stream", May::Import(&[])),
    ("pcp-trust", May::Import(&[])),
    ("pcp-registry", May::Import(&[])),
    ("pcp-durable", May::Import(&["pcp-trust"])),
    ("pcp-push", May::Import(&["pcp-durable"])),
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
