//! The files beside a program that tell a browser engine: it is linked in, so that no library names it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::program::Root;
use crate::toolkit::Toolkit;

/// Folders that hold programs of many packages: what stands there says nothing about one of them.
const SHARED: [&str; 9] = [
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/games",
    "/usr/local/games",
    "/bin",
    "/sbin",
    "/usr/libexec",
];

/// An Electron application's code, in the places that Electron looks for it.
const ELECTRON: [&str; 3] =
    ["resources/app.asar", "resources/app/package.json", "resources/default_app.asar"];

/// Parts of Chromium. One may be borrowed (`icudtl.dat` comes with other engines), two are not.
const CHROMIUM: [&str; 6] = [
    "chrome_100_percent.pak",
    "icudtl.dat",
    "v8_context_snapshot.bin",
    "snapshot_blob.bin",
    "chrome-sandbox",
    "chrome_crashpad_handler",
];

/// How many parts of Chromium tell it.
const CHROMIUM_PARTS: usize = 2;

/// The library that holds all of Firefox and Thunderbird. The program beside it loads it by hand.
const GECKO: &str = "libxul.so";

/// What the files in a program's own folder say.
#[derive(Debug, Clone)]
pub(crate) enum Beside {
    /// A browser engine, with the file that tells.
    Engine(Toolkit, PathBuf),
    /// The library whose toolkit is the program's.
    Library(PathBuf),
}

/// Most folders that are remembered: ten times what a full desktop system has beside the shared ones.
const MAX_REMEMBERED: usize = 1024;

/// The folders that were looked through: programs of one package stand together.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    seen: RefCell<HashMap<OsString, Option<Beside>>>,
}

impl Folders {
    /// Looks beside the program at `resolved`, the path at the end of all links.
    pub(crate) fn look(&self, root: &Root, resolved: &Path) -> Option<Beside> {
        let folder = resolved.parent().filter(|folder| !is_shared(folder))?;
        if let Some(known) = self.seen.borrow().get(folder.as_os_str()) {
            return known.clone();
        }
        let found = look(root, folder);
        let mut seen = self.seen.borrow_mut();
        if seen.len() < MAX_REMEMBERED {
            seen.insert(folder.as_os_str().to_owned(), found.clone());
        }
        found
    }
}

fn look(root: &Root, folder: &Path) -> Option<Beside> {
    let there = |name: &&str| root.has(&folder.join(name));
    if let Some(name) = ELECTRON.iter().copied().find(|name| there(name)) {
        return Some(Beside::Engine(Toolkit::Electron, folder.join(name)));
    }
    let parts: Vec<&str> = CHROMIUM.iter().copied().filter(|name| there(name)).take(CHROMIUM_PARTS).collect();
    if let (Some(name), CHROMIUM_PARTS) = (parts.first(), parts.len()) {
        return Some(Beside::Engine(Toolkit::Electron, folder.join(name)));
    }
    there(&GECKO).then(|| Beside::Library(folder.join(GECKO)))
}

/// Whether programs of many packages stand in this folder.
pub(crate) fn is_shared(folder: &Path) -> bool {
    SHARED.iter().any(|shared| folder.as_os_str() == *shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_remembered_to_the_limit_and_looked_through_beyond_it() {
        let space = tempfile::tempdir().unwrap();
        let (root, folders) = (Root::system(), Folders::default());
        for number in 0..MAX_REMEMBERED {
            assert!(folders.look(&root, &space.path().join(format!("{number}/program"))).is_none());
        }
        std::fs::create_dir_all(space.path().join("last/resources")).unwrap();
        std::fs::write(space.path().join("last/resources/app.asar"), "").unwrap();
        for _ in 0..2 {
            let found = folders.look(&root, &space.path().join("last/program"));
            assert!(matches!(found, Some(Beside::Engine(Toolkit::Electron, _))));
        }
        assert_eq!(folders.seen.borrow().len(), MAX_REMEMBERED);
    }
}
