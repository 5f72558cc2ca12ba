//! Where programs lie: folders of the search path that are held open for one pass, and where folders really are.
//!
//! A program that is no link lies in the real place of its folder, which is asked for once a folder instead of once
//! a program.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

use crate::desktop::folder::joined;

use super::root::{OpenError, Opened, Root, open_within, path_of};

/// Most folders of the search path that are held open: each is a file descriptor. The others are found by their path.
pub(super) const MAX_HELD: usize = 16;
/// Most folders whose real place is remembered: ten times what a full desktop system has.
pub(super) const MAX_REMEMBERED: usize = 1024;

/// The folders of the search path, and the real places of others.
#[derive(Debug)]
pub(super) struct Places {
    search: Vec<Searched>,
    real: RefCell<HashMap<OsString, PathBuf>>,
}

#[derive(Debug)]
struct Searched {
    path: PathBuf,
    /// Opened when it is asked for first; none where it is not there, or not to be held.
    held: OnceCell<Option<Held>>,
}

#[derive(Debug)]
struct Held {
    handle: OwnedFd,
    real: PathBuf,
}

/// A program that was found.
pub(super) struct Found {
    /// By what path.
    pub(super) path: PathBuf,
    pub(super) opened: Opened,
    /// The file at the end of all links.
    pub(super) resolved: Option<PathBuf>,
}

impl Places {
    pub(super) fn new(search: impl IntoIterator<Item = PathBuf>) -> Self {
        let searched = |path| Searched { path, held: OnceCell::new() };
        Self { search: search.into_iter().map(searched).collect(), real: RefCell::default() }
    }

    /// The first file of this name in the search path that may be executed.
    pub(super) fn search(&self, root: &Root, name: &str) -> Option<Found> {
        for (number, searched) in self.search.iter().enumerate() {
            let is_held = root.is_system() && number < MAX_HELD;
            if !is_held {
                let path = searched.path.join(name);
                match root.open(&path) {
                    Ok(opened) if opened.executable => return Some(self.found(root, path, opened)),
                    _ => continue,
                }
            }
            let Some(held) = searched.held() else { continue };
            match open_within(&held.handle, name) {
                Ok(opened) if opened.executable => {
                    let resolved = resolved(&held.real, name.as_ref(), &opened);
                    return Some(Found { path: joined(&searched.path, name.as_ref()), opened, resolved });
                }
                _ => {}
            }
        }
        None
    }

    /// The file at `path`.
    pub(super) fn open(&self, root: &Root, path: &Path) -> Result<Found, OpenError> {
        let divided = divided(path).filter(|_| root.is_system());
        let searched = divided.and_then(|(folder, name)| {
            let mut held = self.search.iter().take(MAX_HELD);
            Some((held.find(|searched| searched.path.as_os_str() == folder)?.held()?, name))
        });
        if let Some((held, name)) = searched {
            let opened = open_within(&held.handle, name)?;
            let resolved = resolved(&held.real, name, &opened);
            return Ok(Found { path: path.to_owned(), opened, resolved });
        }
        let opened = root.open(path)?;
        Ok(self.found(root, path.to_owned(), opened))
    }

    fn found(&self, root: &Root, path: PathBuf, opened: Opened) -> Found {
        let resolved = match divided(&path).filter(|_| root.is_system() && !opened.is_link) {
            Some((folder, name)) => self.beside(folder, name, &opened),
            None => root.resolved(&opened),
        };
        Found { path, opened, resolved }
    }

    /// The file `name` of a folder, wherever that really is.
    fn beside(&self, folder: &OsStr, name: &OsStr, opened: &Opened) -> Option<PathBuf> {
        if let Some(real) = self.real.borrow().get(folder) {
            return Some(joined(real, name));
        }
        let path = path_of(&opened.file)?;
        let mut known = self.real.borrow_mut();
        if let Some(real) = path.parent().filter(|_| known.len() < MAX_REMEMBERED) {
            known.insert(folder.to_owned(), real.to_owned());
        }
        Some(path)
    }
}

impl Searched {
    fn held(&self) -> Option<&Held> {
        let open = || {
            let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
            let handle = open(&self.path, flags, Mode::empty()).ok()?;
            Some(Held { real: path_of(&handle)?, handle })
        };
        self.held.get_or_init(open).as_ref()
    }
}

fn resolved(real: &Path, name: &OsStr, opened: &Opened) -> Option<PathBuf> {
    if opened.is_link { path_of(&opened.file) } else { Some(joined(real, name)) }
}

/// A path as a folder and a name in it; none where the last part is no plain name.
fn divided(path: &Path) -> Option<(&OsStr, &OsStr)> {
    let name = path.file_name()?;
    let is_last = path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes());
    Some((path.parent()?.as_os_str(), name)).filter(|(folder, _)| is_last && !folder.is_empty())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_is_found_where_it_really_is_by_name_and_by_path() {
        let space = tempfile::tempdir().unwrap();
        let at = |name: &str| space.path().canonicalize().unwrap().join(name);
        program(&at("real/app"));
        fs::create_dir(at("other")).unwrap();
        symlink(at("real/app"), at("other/link")).unwrap();
        symlink(at("real"), at("folder")).unwrap();
        symlink("round", at("real/round")).unwrap();
        let root = Root::system();
        let places = Places::new([at("absent"), at("other"), at("folder")]);
        let resolved = |found: Option<Found>| found.and_then(|found| found.resolved);
        let by_path = |name: &str| resolved(places.open(&root, &at(name)).ok());

        for _ in 0..2 {
            assert_eq!(
                resolved(places.search(&root, "app")),
                Some(at("real/app")),
                "a folder that is a link"
            );
            assert_eq!(resolved(places.search(&root, "link")), Some(at("real/app")), "a link");
            for name in ["real/app", "folder/app", "other/link", "other/../real/app"] {
                assert_eq!(by_path(name), Some(at("real/app")), "{name}");
            }
        }
        assert!(places.search(&root, "gone").is_none() && by_path("real/gone").is_none());
        assert_eq!(
            places.open(&root, &at("real/round")).err(),
            Some(OpenError::Refused(nix::errno::Errno::ELOOP))
        );
        assert_eq!(
            places.open(&root, &at("real/app/")).err().is_some(),
            root.open(&at("real/app/")).is_err()
        );
    }

    #[test]
    fn real_places_are_remembered_to_the_limit_and_asked_for_beyond_it() {
        let space = tempfile::tempdir().unwrap();
        let at = |number: usize| space.path().canonicalize().unwrap().join(format!("{number}/app"));
        let (root, places) = (Root::system(), Places::new([]));
        for number in 0..=MAX_REMEMBERED {
            program(&at(number));
            assert_eq!(
                places.open(&root, &at(number)).ok().and_then(|found| found.resolved),
                Some(at(number))
            );
        }
        assert_eq!(places.real.borrow().len(), MAX_REMEMBERED);
    }

    #[test]
    fn folders_of_the_search_path_are_held_to_the_limit_and_searched_beyond_it() {
        let space = tempfile::tempdir().unwrap();
        let at = |number: usize| space.path().canonicalize().unwrap().join(number.to_string());
        program(&at(MAX_HELD).join("last"));
        program(&at(MAX_HELD - 1).join("first"));
        let (root, places) = (Root::system(), Places::new((0..=MAX_HELD).map(at)));
        for (name, number) in [("first", MAX_HELD - 1), ("last", MAX_HELD)] {
            let found = places.search(&root, name).and_then(|found| found.resolved);
            assert_eq!(found, Some(at(number).join(name)));
        }
        let held = places.search.iter().filter(|searched| searched.held.get().is_some()).count();
        assert_eq!(held, MAX_HELD);
    }
}
