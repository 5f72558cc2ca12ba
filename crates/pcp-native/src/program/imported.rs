//! The toolkit that a script imports: itself, in the modules it is made of, in the bundle it unpacks.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{Opened, Programs, file};
use crate::script::{Language, MAX_SCRIPT_BYTES, imports, modules};
use crate::toolkit::Toolkit;

/// Most files of a Python program that are read.
const MAX_FILES: usize = 24;

/// Most bytes of a bundle that are looked at: a quarter of the largest one found, where a hundred files import the
/// toolkit.
const MAX_BUNDLE_BYTES: usize = 256 * 1024;

/// Most names under which modules of a Python program are looked up.
const MAX_NAMES: usize = 256;

impl Programs<'_> {
    /// The toolkit that a script imports, with what tells it.
    pub(super) fn imported(
        &self,
        language: Language,
        text: &str,
        script: &Path,
    ) -> Option<(Toolkit, String)> {
        let own = imports::toolkit(language, text);
        let own = own.map(|(toolkit, line)| (self.installed(toolkit, line), format!("says {line}")));
        if own.as_ref().is_some_and(|(toolkit, _)| !imports::is_weak(*toolkit)) {
            return own;
        }
        let further = match language {
            Language::Python => self.in_modules(text, script),
            Language::Gjs => self.in_bundle(text, script),
            _ => None,
        };
        further.filter(|(toolkit, _)| own.is_none() || !imports::is_weak(*toolkit)).or(own)
    }

    fn in_modules(&self, text: &str, script: &Path) -> Option<(Toolkit, String)> {
        let mut folders = modules::folders(script, text);
        folders.retain(|folder| self.root.has(folder));
        let mut places: HashMap<String, Vec<PathBuf>> = HashMap::new();
        // Nearly every module comes with Python and stands in none of the folders: one look at each tells.
        let mut holding = |top: &str| {
            let look = || {
                let holds = |folder: &&PathBuf| {
                    self.root.has(&folder.join(top)) || self.root.has(&folder.join(format!("{top}.py")))
                };
                folders.iter().filter(holds).cloned().collect()
            };
            places.entry(top.to_owned()).or_insert_with(look).clone()
        };
        let mut names = modules::files(text, None, &mut holding);
        let mut seen: HashSet<PathBuf> = names.iter().cloned().collect();
        let (mut read, mut at, mut weak) = (0, 0, None);
        while let Some(name) = names.get(at).cloned().filter(|_| at < MAX_NAMES && read < MAX_FILES) {
            at += 1;
            let Some((file, opened)) = self.module(&name) else { continue };
            let Ok(text) = file::text(&opened, MAX_SCRIPT_BYTES) else { continue };
            read += 1;
            if let Some((toolkit, line)) = imports::toolkit(Language::Python, &text) {
                let found = (self.installed(toolkit, line), format!("{} says {line}", file.display()));
                if !imports::is_weak(toolkit) {
                    return Some(found);
                }
                weak.get_or_insert(found);
            }
            for more in modules::files(&text, file.parent(), &mut holding) {
                if names.len() < MAX_NAMES && seen.insert(more.clone()) {
                    names.push(more);
                }
            }
        }
        weak
    }

    /// The toolkit of a line that may leave it to the bindings that are installed: those of version 5 go first.
    fn installed(&self, toolkit: Toolkit, line: &str) -> Toolkit {
        let there =
            |names: [&str; 2]| names.iter().any(|name| self.root.has(&Path::new(modules::SYSTEM).join(name)));
        let only_six = || !there(["PyQt5", "PySide2"]) && there(["PyQt6", "PySide6"]);
        if toolkit == Toolkit::Qt5 && imports::stands_in(line) && only_six() { Toolkit::Qt6 } else { toolkit }
    }

    /// The file of a module: itself, or the first one of a package.
    fn module(&self, name: &Path) -> Option<(PathBuf, Opened)> {
        let files = [name.with_extension("py"), name.join("__init__.py")];
        files.into_iter().find_map(|file| self.open(&file).ok().map(|opened| (file, opened)))
    }

    /// An application of GNOME's JavaScript comes in a bundle beside its data, called like the script or like the
    /// package that the script names.
    fn in_bundle(&self, text: &str, script: &Path) -> Option<(Toolkit, String)> {
        let package = imports::package(text)?;
        let own = script.file_name().and_then(|name| name.to_str()).filter(|name| *name != package);
        own.into_iter().chain([package]).find_map(|name| {
            let file = PathBuf::from(format!("/usr/share/{package}/{name}.src.gresource"));
            let text = file::text(&self.open(&file).ok()?, MAX_BUNDLE_BYTES).ok()?;
            let (toolkit, line) = imports::toolkit(Language::Gjs, &text)?;
            Some((toolkit, format!("{} says {line}", file.display())))
        })
    }
}
