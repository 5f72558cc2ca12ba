//! The toolkit that a script imports: itself, in the modules it is made of, in the bundle it unpacks.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::{Opened, Programs, file};
use crate::script::{Language, imports, modules};
use crate::toolkit::Toolkit;

/// Most files of a Python program that are read.
const MAX_FILES: usize = 24;

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
        if let Some((toolkit, line)) = imports::toolkit(language, text) {
            return Some((toolkit, format!("says {line}")));
        }
        match language {
            Language::Python => self.in_modules(text, script),
            Language::Gjs => self.in_bundle(text),
            _ => None,
        }
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
        let (mut read, mut at) = (0, 0);
        while let Some(name) = names.get(at).cloned().filter(|_| at < MAX_NAMES && read < MAX_FILES) {
            at += 1;
            let Some((file, opened)) = self.module(&name) else { continue };
            let Ok(text) = file::text(&opened) else { continue };
            read += 1;
            if let Some((toolkit, line)) = imports::toolkit(Language::Python, &text) {
                return Some((toolkit, format!("{} says {line}", file.display())));
            }
            for more in modules::files(&text, file.parent(), &mut holding) {
                if names.len() < MAX_NAMES && seen.insert(more.clone()) {
                    names.push(more);
                }
            }
        }
        None
    }

    /// The file of a module: itself, or the first one of a package.
    fn module(&self, name: &Path) -> Option<(PathBuf, Opened)> {
        let files = [name.with_extension("py"), name.join("__init__.py")];
        files.into_iter().find_map(|file| self.root.open(&file).ok().map(|opened| (file, opened)))
    }

    /// An application of GNOME's JavaScript comes in a bundle beside its data; the script only names it.
    fn in_bundle(&self, text: &str) -> Option<(Toolkit, String)> {
        let name = imports::package(text)?;
        let file = PathBuf::from(format!("/usr/share/{name}/{name}.src.gresource"));
        let opened = self.root.open(&file).ok()?;
        let text = file::text(&opened).ok()?;
        let (toolkit, line) = imports::toolkit(Language::Gjs, &text)?;
        Some((toolkit, format!("{} says {line}", file.display())))
    }
}
