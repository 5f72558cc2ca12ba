//! Every recorded desktop entry and tree through the program itself.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{Device, Plan};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data/desktop")
}

fn cases(kind: &str) -> Vec<Value> {
    let expected: Value = serde_json::from_slice(&fs::read(data().join("expected.json")).unwrap()).unwrap();
    let cases = expected["cases"].as_array().unwrap().iter();
    cases.filter(|case| case[kind].is_string()).cloned().collect()
}

fn keys(map: &Value) -> Vec<&String> {
    map.as_object().map(|map| map.keys().collect()).unwrap_or_default()
}

#[test]
fn every_recorded_desktop_case_is_read_as_recorded() {
    let device = Device::new(&Plan::default());
    let cases = cases("file");
    assert_eq!(cases.len(), 19);
    for case in &cases {
        let file = data().join(case["file"].as_str().unwrap()).display().to_string();
        let mut arguments = vec!["inspect", "desktop", &file];
        arguments.extend(keys(&case["localized"]).iter().flat_map(|locale| ["--locale", locale]));
        arguments.extend(keys(&case["shown_in"]).iter().flat_map(|desktop| ["--desktop", desktop]));

        let found = device.cli(&arguments).data()[0].clone();

        let name = &case["case"];
        assert_eq!(found["outcome"], case["outcome"], "{name}: {found}");
        if case["diagnostic"] == true {
            assert_eq!(found["diagnostic"], true, "{name}: {found}");
        }
        for member in ["argv", "program", "sandbox", "shown", "installed", "dbus_name"] {
            if let Some(wanted) = case.get(member) {
                assert_eq!(&found[member], wanted, "{name}: {member}: {found}");
            }
        }
        for member in ["values", "localized", "shown_in", "actions"] {
            for key in keys(&case[member]) {
                assert_eq!(found[member][key], case[member][key], "{name}: {member} {key}: {found}");
            }
        }
        for key in keys(&case["value_any_of"]) {
            let any = case["value_any_of"][key].as_array().unwrap();
            assert!(any.contains(&found["values"][key]), "{name}: {key}: {found}");
        }
        let forbidden = case["forbidden_argv0"].as_array();
        assert!(forbidden.is_none_or(|words| !words.contains(&found["argv"][0])), "{name}: {found}");
        assert_eq!(
            found["actions"].as_object().map_or(0, serde_json::Map::len),
            keys(&case["actions"]).len()
        );
    }
}

#[test]
fn every_recorded_tree_of_desktop_files_gives_the_files_that_must_win() {
    let cases = cases("tree");
    assert_eq!(cases.len(), 4);
    for case in &cases {
        let device = Device::new(&Plan::default());
        let tree = case["tree"].as_str().unwrap();
        copy(&data().join(tree), &device.path(tree));
        for link in case["links"].as_array().into_iter().flatten() {
            let place = device.path(tree).join(link[0].as_str().unwrap());
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            symlink(link[1].as_str().unwrap(), place).unwrap();
        }
        let place = |path: &Value| device.path(path.as_str().unwrap()).display().to_string();
        let dirs: Vec<String> = case["XDG_DATA_DIRS"].as_array().unwrap().iter().map(place).collect();
        let home = place(&case["XDG_DATA_HOME"]);
        let mut arguments = vec!["inspect", "tree", "--home", &home];
        arguments.extend(dirs.iter().flat_map(|dir| ["--data", dir]));

        let found = device.cli(&arguments).data();

        let name = &case["case"];
        let mut wanted = case["apps"].clone();
        for id in keys(&case["either"]) {
            wanted[id] = case["either"][id][0].clone();
        }
        assert_eq!(keys(&found["apps"]), keys(&wanted), "{name}: {found}");
        for id in keys(&wanted) {
            let winner = device.path(tree).join(wanted[id].as_str().unwrap()).display().to_string();
            assert_eq!(found["apps"][id], winner.as_str(), "{name}: {id}");
        }
        let links = case["links"].as_array().map_or(0, Vec::len);
        assert_eq!(found["skipped"].as_array().unwrap().len(), links, "{name}: {found}");
    }
}

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
