//! Programs told from their files, through the command line that anybody can try files of their own with (R-022,
//!

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Device, Plan};

/// The fields that a case may give an answer for, besides its kind.
const FIELDS: [&str; 7] = ["bits", "endian", "machine", "dynamic", "needed", "toolkit", "interpreter"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// The recorded files with the links that a copy of them may have lost, and the list of cases.
fn cases(device: &Device) -> (std::path::PathBuf, Vec<Value>) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/elf");
    let place = device.path("elf");
    copy(&data, &place);
    let expected: Value = serde_json::from_slice(&fs::read(data.join("expected.json")).unwrap()).unwrap();
    let cases = expected["cases"].as_array().unwrap().clone();
    for link in cases.iter().filter_map(|case| case["links"].as_array()).flatten() {
        let path = place.join(link[0].as_str().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(link[1].as_str().unwrap(), path).unwrap();
    }
    (place.canonicalize().unwrap(), cases)
}

#[test]
fn every_recorded_program_is_told_as_recorded() {
    let device = Device::new(&Plan::default());
    let (place, cases) = cases(&device);
    assert_eq!(cases.len(), 18);
    for case in &cases {
        let name = &case["case"];
        let file = place.join(case["file"].as_str().unwrap()).display().to_string();

        let answer = device.cli(&["inspect", "elf", &file]);

        let report = answer.envelope()["data"][0].clone();
        let right = report["kind"] == case["kind"];
        let alternatives = case["alternatives"].as_array().cloned().unwrap_or_default();
        assert!(right || alternatives.contains(&report["kind"]), "{name}: {report}");
        assert_eq!(answer.code, if report["kind"] == "missing" { 4 } else { 0 }, "{name}: {report}");
        if matches!(report["kind"].as_str(), Some("error" | "missing")) {
            assert!(report["why"].as_str().unwrap().starts_with(&file), "{name} names its file: {report}");
        }
        if !right {
            continue;
        }
        for field in FIELDS.into_iter().filter(|field| case.get(field).is_some()) {
            assert_eq!(report[field], case[field], "{name} {field}: {report}");
        }
        if let Some(resolved) = case["resolved"].as_str() {
            assert_eq!(report["resolved"], json!(place.join(resolved)), "{name}");
        }
        for forbidden in case["forbidden"].as_array().into_iter().flatten() {
            assert!(!report.to_string().contains(forbidden.as_str().unwrap()), "{name}: {report}");
        }
    }
}

#[test]
fn a_tree_that_is_not_the_running_system_is_told_from_within() {
    let device = Device::new(&Plan::default());
    let (place, _) = cases(&device);
    symlink("/trees/electron-app/chatter.sh", place.join("start")).unwrap();

    let report =
        device.cli(&["inspect", "elf", "--root", place.to_str().unwrap(), "/start"]).data()[0].clone();

    assert_eq!(report["kind"], "script", "{report}");
    assert_eq!(report["toolkit"], "electron", "{report}");
    assert_eq!(report["resolved"], "/trees/electron-app/chatter.sh", "{report}");
    assert_eq!(report["starts"]["file"], "/trees/electron-app/chatter", "{report}");
}
