//! The workspace as cargo and the file system know it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

/// The folder of the workspace.
pub(crate) fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap())
}

/// What cargo knows of the packages of this workspace.
pub(crate) fn packages() -> &'static [Value] {
    static PACKAGES: OnceLock<Vec<Value>> = OnceLock::new();
    PACKAGES.get_or_init(|| {
        let arguments = ["metadata", "--format-version=1", "--no-deps", "--offline", "--locked"];
        let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
        metadata["packages"].as_array().unwrap().clone()
    })
}

/// The package of this name.
pub(crate) fn package(name: &str) -> Option<&'static Value> {
    packages().iter().find(|package| package["name"] == name)
}

/// The folder of a package, relative to the workspace.
pub(crate) fn folder(package: &Value) -> PathBuf {
    let manifest = Path::new(package["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().strip_prefix(root()).unwrap().to_owned()
}

/// Dependencies that a user of the package gets, too.
pub(crate) fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"].is_null())
}

/// Every source file below `folder`.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    files_below(folder).into_iter().filter(|file| file.extension().is_some_and(|ext| ext == "rs")).collect()
}

/// Every file of the project below `folder`, without what was built.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
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
