//! Every recorded desktop entry and tree, and what an entry may not be.
#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use pcp_native::desktop::{
    DesktopQuestion, Locale, MAX_DESKTOP_FILE_BYTES, MAX_KEYS, MAX_LINE_BYTES, Question, Verdict,
    inspect_desktop, inspect_tree, parse,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data/desktop").canonicalize().unwrap()
}

fn cases(kind: &str) -> Vec<Value> {
    let expected: Value = serde_json::from_slice(&fs::read(data().join("expected.json")).unwrap()).unwrap();
    let cases = expected["cases"].as_array().unwrap().clone();
    cases.into_iter().filter(|case| case[kind].is_string()).collect()
}

fn keys(map: &Value) -> Vec<String> {
    map.as_object().map(|map| map.keys().cloned().collect()).unwrap_or_default()
}

fn inspected(file: &Path, locales: &[String], desktops: &[String]) -> Value {
    let question = DesktopQuestion { locales, desktops, search: OsStr::new("/usr/bin:/bin") };
    serde_json::to_value(inspect_desktop(file, question)).unwrap()
}

#[test]
fn every_recorded_entry_is_read_as_recorded() {
    let cases = cases("file");
    assert_eq!(cases.len(), 19);
    for case in cases {
        let (locales, desktops) = (keys(&case["localized"]), keys(&case["shown_in"]));
        let found = inspected(&data().join(case["file"].as_str().unwrap()), &locales, &desktops);

        let name = &case["case"];
        assert_eq!(found["outcome"], case["outcome"], "{name}: {found}");
        assert_eq!(found["diagnostic"], case["diagnostic"] == true || name == "D03", "{name}: {found}");
        for member in ["values", "localized", "shown_in", "actions"] {
            for key in keys(&case[member]) {
                assert_eq!(found[member][&key], case[member][&key], "{name}: {member} {key}: {found}");
            }
        }
        for member in ["argv", "program", "sandbox", "shown", "installed", "dbus_name"] {
            if let Some(wanted) = case.get(member) {
                assert_eq!(&found[member], wanted, "{name}: {member}: {found}");
            }
        }
        for key in keys(&case["value_any_of"]) {
            let any = case["value_any_of"][&key].as_array().unwrap();
            assert!(any.contains(&found["values"][&key]), "{name}: {found}");
        }
        let actions = keys(&case["actions"]).len();
        assert_eq!(keys(&found["actions"]).len(), actions, "{name}: no action but these");
    }
}

/// A copy of a recorded tree with its links, which the project's data does not hold.
fn planted(case: &Value) -> TempDir {
    fn copy(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                copy(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let folder = TempDir::new().unwrap();
    let tree = case["tree"].as_str().unwrap();
    copy(&data().join(tree), &folder.path().join(tree));
    for link in case["links"].as_array().into_iter().flatten() {
        let place = folder.path().join(tree).join(link[0].as_str().unwrap());
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        symlink(link[1].as_str().unwrap(), place).unwrap();
    }
    folder
}

#[test]
fn every_recorded_tree_gives_the_file_that_must_win() {
    let cases = cases("tree");
    assert_eq!(cases.len(), 4);
    for case in cases {
        let folder = planted(&case);
        let place = |path: &Value| folder.path().join(path.as_str().unwrap());
        let dirs: Vec<_> = case["XDG_DATA_DIRS"].as_array().unwrap().iter().map(place).collect();

        let found = inspect_tree(Some(&place(&case["XDG_DATA_HOME"])), &dirs, None);

        let tree = place(&case["tree"]);
        let mut apps = json!(found.apps);
        for (_, path) in apps.as_object_mut().unwrap() {
            *path = json!(Path::new(path.as_str().unwrap()).strip_prefix(&tree).unwrap());
        }
        let mut wanted = case["apps"].clone();
        for key in keys(&case["either"]) {
            wanted[&key] = case["either"][&key][0].clone();
        }
        assert_eq!(apps, wanted, "{}", case["case"]);
        let links = case["links"].as_array().map_or(0, Vec::len);
        assert_eq!(found.skipped.len(), links, "{}: {:?}", case["case"], found.skipped);
        for id in case["absent"].as_array().into_iter().flatten() {
            assert_eq!(found.masked[id.as_str().unwrap()], "hidden", "{}", case["case"]);
        }
    }
}

const ENTRY: &[u8] = b"[Desktop Entry]\nType=Application\nName=X\nExec=x\n";

fn outcome(bytes: &[u8]) -> String {
    match parse(bytes, &Question { actions: true, ..Question::default() }).verdict {
        Verdict::App(_) => "app".to_owned(),
        Verdict::Reject(why) => why.to_string(),
        Verdict::Ignore(why) => why.to_string(),
    }
}

#[test]
fn an_entry_that_does_not_count_says_what_is_missing() {
    let app = |lines: &str| format!("[Desktop Entry]\nType=Application\n{lines}");
    let table = [
        (String::new(), "the first group is not [Desktop Entry]"),
        ("[Other]\n[Desktop Entry]\n".to_owned(), "the first group is not [Desktop Entry]"),
        ("# comment\n\n[Desktop Entry]\nName=X\n".to_owned(), "key Type is missing"),
        (app("Exec=x\n"), "key Name is missing"),
        (app("Name=\nExec=x\n"), "key Name is missing"),
        (app("Name=\0\nExec=x\n"), "key Name is missing"),
        (app("Name=X\n"), "key Exec is missing"),
        (app("Name=X\nExec=x\0y\n"), "key Exec is missing"),
        (app("Name=X\nExec=\n"), "the command line of Exec is empty; name a program"),
        (
            app("Name=X\nExec=x %q\n"),
            "the command line of Exec has the unknown field code %q; a percent sign is written %%",
        ),
        (app("Name=X\nExec=\"x\n"), "the command line of Exec opens a quote and never closes it"),
        (app("Name=X\nExec=x\n[Other]\nName\n"), "app"),
        (app("Name=X\nDBusActivatable=true\n"), "app"),
        ("[Desktop Entry]\nHidden=true\n".to_owned(), "Hidden is true: the entry counts as deleted"),
        ("[Desktop Entry]\nType=Service\n".to_owned(), "its Type is \"Service\", not Application"),
    ];
    for (text, wanted) in table {
        assert_eq!(outcome(text.as_bytes()), wanted, "{text:?}");
    }
    assert_eq!(
        outcome(b"[Desktop Entry]\nType=Application\nName=X\nExec=\xff\n"),
        "the command line of Exec is not UTF-8"
    );
}

#[test]
fn an_entry_at_its_limits_is_read_and_one_more_is_refused_or_said() {
    let keys = |count: usize| [ENTRY, "K=\n".repeat(count - 3).as_bytes()].concat();
    assert_eq!(outcome(&keys(MAX_KEYS)), "app");
    assert_eq!(outcome(&keys(MAX_KEYS + 1)), "the main group has more than 4096 keys");

    let whole =
        [ENTRY, &vec![b'\n'; usize::try_from(MAX_DESKTOP_FILE_BYTES).unwrap() - ENTRY.len()]].concat();
    assert_eq!(outcome(&whole), "app");
    assert_eq!(outcome(&[whole, b"\n".to_vec()].concat()), "262145 bytes exceed the 262144-byte limit");

    let line = |bytes: usize| [ENTRY, b"Comment=", &vec![b'x'; bytes - 8]].concat();
    let faults = |bytes: &[u8]| parse(bytes, &Question::default()).diagnostics.kept().len();
    assert_eq!((faults(&line(MAX_LINE_BYTES)), faults(&line(MAX_LINE_BYTES + 1))), (0, 1));

    let actions = |count: usize| {
        let named: String = (0..count).map(|number| format!("a{number};")).collect();
        let groups = (0..count).map(|number| format!("[Desktop Action a{number}]\nName=x\nExec=x\n"));
        [ENTRY, format!("Actions={named}\n{}", groups.collect::<String>()).as_bytes()].concat()
    };
    for (count, said) in [(64, 0), (65, 1)] {
        let bytes = actions(count);
        let parsed = parse(&bytes, &Question { actions: true, ..Question::default() });
        let Verdict::App(entry) = parsed.verdict else { panic!("{count}") };
        assert_eq!((entry.actions.len(), parsed.diagnostics.kept().len()), (64, said));
    }
}

#[test]
fn the_name_of_the_file_and_of_the_language_reach_the_command_line() {
    let locale = Locale::parse("de_AT.UTF-8").unwrap();
    let bytes = b"[Desktop Entry]\nType=Application\nName=N\nName[de]=M M\nExec=x %c %k\n";
    let question = Question { locale: Some(&locale), location: Some("/a b.desktop"), actions: false };
    let Verdict::App(entry) = parse(bytes, &question).verdict else { panic!() };
    assert_eq!(entry.argv.unwrap(), ["x", "M M", "/a b.desktop"]);
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = parse(&bytes, &Question { actions: true, ..Question::default() });
    }

    #[test]
    fn anything_that_looks_like_an_entry_is_judged_alike_twice(
        lines in proptest::collection::vec(
            "(\\[Desktop (Entry|Action [ab])\\]|(Name|Type|Exec|Icon|Actions|Categories|Hidden)(\\[de\\])? ?= ?(Application|[ -~]{0,40}|true|a;b;)|[ -~]{0,20})\r?",
            0..30,
        ),
        main in any::<bool>(),
    ) {
        let text = if main { "[Desktop Entry]\nType=Application\n" } else { "" }.to_owned() + &lines.join("\n");
        let question = Question { actions: true, ..Question::default() };
        let once = format!("{:?}", parse(text.as_bytes(), &question));
        prop_assert_eq!(&once, &format!("{:?}", parse(text.as_bytes(), &question)));
        prop_assert!(parse(text.as_bytes(), &question).diagnostics.kept().len() <= 16);
    }
}
