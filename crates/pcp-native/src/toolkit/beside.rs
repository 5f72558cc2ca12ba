//! The files beside a program that tell a browser engine: it is linked in, so that no library names it.

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
#[derive(Debug)]
pub(crate) enum Beside {
    /// A browser engine, with the file that tells.
    Engine(Toolkit, PathBuf),
    /// The library whose toolkit is the program's.
    Library(PathBuf),
}

/// Looks beside the program at `resolved`, the path at the end of all links.
pub(crate) fn look(root: &Root, resolved: &Path) -> Option<Beside> {
    let folder = resolved.parent().filter(|folder| !is_shared(folder))?;
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
    SHARED.iter().any(|shared| folder == Path::new(shared))
}
