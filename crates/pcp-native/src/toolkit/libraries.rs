//! One level of private libraries: programs that are a shell around a library of their own name no toolkit.
//!
//! A library counts as private when it stands in the program's own folder or search path, or when it stands in a
//! folder of the system and is not one of the [`COMMON`] ones. The rule is wide on purpose: `geany` needs `libgeany`
//! from the system's folder. It is bounded by [`MAX_LIBRARIES`], and by looking one level down and no further.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use crate::elf::Elf;
use crate::program::file::{Head, read_elf};
use crate::program::{Basis, Root};
use crate::toolkit::{Toolkit, beside, of_needed};

/// Most private libraries of a program that are opened: programs that name no toolkit need few that are not common.
pub(crate) const MAX_LIBRARIES: usize = 16;

/// Most folders in which one library is looked up: the program's own, its search path, the system's.
const MAX_FOLDERS: usize = 16;

/// Most files that are remembered: ten times what the programs of a full desktop system look at.
const MAX_REMEMBERED: usize = 8192;

/// Most libraries of one search path that are remembered: as many as its folders hold private ones.
const MAX_REMEMBERED_OF_SHELF: usize = 2048;

/// Most search paths whose libraries are remembered: ten times what the programs of a full desktop system have.
const MAX_SHELVES: usize = 1024;

/// What libraries begin with that many programs need and that are no toolkit and need none.
const COMMON: [&str; 48] = [
    "ld-linux",
    "ld-musl",
    "libc.",
    "libm.",
    "libdl.",
    "librt.",
    "libpthread.",
    "libresolv.",
    "libutil.",
    "libstdc++.",
    "libgcc_s.",
    "libgomp.",
    "libatomic.",
    "libglib-2.",
    "libgobject-2.",
    "libgio-2.",
    "libgmodule-2.",
    "libglibmm-",
    "libgiomm-",
    "libsigc-",
    "libX",
    "libxcb",
    "libwayland-",
    "libxkbcommon",
    "libdbus-1.",
    "libz.",
    "libbz2.",
    "liblzma.",
    "libzstd.",
    "libpng",
    "libjpeg.",
    "libtiff.",
    "libcairo",
    "libpango",
    "libfreetype.",
    "libfontconfig.",
    "libharfbuzz",
    "libxml2.",
    "libssl.",
    "libcrypto.",
    "libcurl",
    "libsqlite3.",
    "libpython",
    "libperl.",
    "libncurses",
    "libtinfo.",
    "libreadline.",
    "libicu",
];

/// Where the system keeps libraries; the folders named after the machine go first.
const SYSTEM: [&str; 5] = ["/usr/lib", "/lib", "/usr/lib64", "/lib64", "/usr/local/lib"];

/// What a library is drawn with, and the name that tells.
type Named = Option<(Toolkit, String)>;

/// A library that was found, and what its names tell.
#[derive(Debug, Clone)]
struct Library {
    basis: Arc<Basis>,
    named: Option<(Toolkit, Rc<str>)>,
}

/// The libraries of one search path, by name; none stands for one that is not there or no ELF file.
#[derive(Debug)]
struct Shelf {
    folders: Vec<PathBuf>,
    seen: RefCell<HashMap<String, Option<Library>>>,
}

/// What was looked at: many programs stand in the same folder and need the same libraries.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    /// By the program's own folder and machine, for those without a search path of their own.
    shelves: RefCell<HashMap<PathBuf, Rc<Shelf>>>,
    /// By path, for those that stand in several search paths.
    files: RefCell<HashMap<OsString, Option<Library>>>,
}

impl Libraries {
    /// The toolkit that a private library of `elf` names, with the library and the name. `note` hears of every file
    /// that was looked at.
    pub(crate) fn look(
        &self,
        (root, head): (&Root, &RefCell<Head>),
        elf: &Elf,
        program: &Path,
        mut note: impl FnMut(&Arc<Basis>),
    ) -> Named {
        let mut private = elf.needed.iter().filter(|name| !is_common(name)).take(MAX_LIBRARIES).peekable();
        private.peek()?;
        let shelf = self.shelf(elf, program);
        private.find_map(|name| {
            let library = self.find(root, head, &shelf, name)?;
            note(&library.basis);
            let (toolkit, needs) = library.named?;
            Some((toolkit, format!("private library {name} needs {needs}")))
        })
    }

    /// Where the libraries of a program are looked up.
    fn shelf(&self, elf: &Elf, program: &Path) -> Rc<Shelf> {
        let own = program.parent().filter(|own| !beside::is_shared(own)).unwrap_or(Path::new(""));
        let make = || Rc::new(Shelf { folders: folders(elf, program), seen: RefCell::default() });
        if !elf.runpath.is_empty() {
            return make();
        }
        // Folders of the machine are told apart by its name, which no folder of a program is called behind a colon.
        let mut place = own.as_os_str().to_owned();
        place.push(":");
        place.push(&*elf.machine);
        let place = PathBuf::from(place);
        let mut shelves = self.shelves.borrow_mut();
        if let Some(known) = shelves.get(&place) {
            return known.clone();
        }
        let made = make();
        if shelves.len() < MAX_SHELVES {
            shelves.insert(place, made.clone());
        }
        made
    }

    /// The first file of that name that is ELF.
    fn find(&self, root: &Root, head: &RefCell<Head>, shelf: &Shelf, name: &str) -> Option<Library> {
        if let Some(known) = shelf.seen.borrow().get(name) {
            return known.clone();
        }
        let found = match name.contains('/') {
            true => self.read(root, head, PathBuf::from(name)),
            false => shelf.folders.iter().find_map(|folder| self.read(root, head, folder.join(name))),
        };
        let mut seen = shelf.seen.borrow_mut();
        if seen.len() < MAX_REMEMBERED_OF_SHELF {
            seen.insert(name.to_owned(), found.clone());
        }
        found
    }

    fn read(&self, root: &Root, head: &RefCell<Head>, path: PathBuf) -> Option<Library> {
        if let Some(known) = self.files.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let found = read(root, head, &path);
        let mut files = self.files.borrow_mut();
        if files.len() < MAX_REMEMBERED {
            files.insert(path.into_os_string(), found.clone());
        }
        found
    }
}

fn read(root: &Root, head: &RefCell<Head>, path: &Path) -> Option<Library> {
    let (stat, elf) = read_elf(root, path, head).ok()?;
    let named = of_needed(&elf.needed).map(|(toolkit, needs)| (toolkit, needs.into()));
    Some(Library { basis: Arc::new(Basis::new(path, stat)), named })
}

fn is_common(name: &str) -> bool {
    // All but the loaders begin with `lib`: the letter behind it leaves few to be compared.
    let letter = |name: &str| name.as_bytes().get(3).copied();
    COMMON.iter().any(|common| letter(common) == letter(name) && name.starts_with(common))
}

/// Where the loader would look, and the program's own folder where it is the program's alone.
fn folders(elf: &Elf, program: &Path) -> Vec<PathBuf> {
    let own = program.parent();
    let mut folders = Vec::new();
    folders.extend(elf.runpath.iter().filter_map(|entry| expand(entry, own)));
    folders.extend(own.filter(|own| !beside::is_shared(own)).map(Path::to_owned));
    let triplet = triplet(elf);
    let of_machine = triplet.iter().flat_map(|triplet| {
        ["/usr/lib", "/lib", "/usr/local/lib"].map(|folder| Path::new(folder).join(triplet))
    });
    folders.extend(of_machine);
    folders.extend(SYSTEM.map(PathBuf::from));
    // Compared as they are written: part by part would cost more than a look at a folder twice.
    let mut different: Vec<PathBuf> = Vec::with_capacity(MAX_FOLDERS);
    for folder in folders {
        if different.len() < MAX_FOLDERS && different.iter().all(|one| one.as_os_str() != folder.as_os_str())
        {
            different.push(folder);
        }
    }
    different
}

/// An entry of a search path with the program's own folder filled in. Relative ones are left out, because they would
/// depend on where the program is started; so are the loader's rare other words.
fn expand(entry: &str, own: Option<&Path>) -> Option<PathBuf> {
    let own = own.map(|own| own.to_string_lossy());
    let mut text = entry.to_owned();
    for word in ["$ORIGIN", "${ORIGIN}"] {
        if text.contains(word) {
            text = text.replace(word, own.as_deref()?);
        }
    }
    Some(PathBuf::from(text)).filter(|path| path.is_absolute() && !path.to_string_lossy().contains('$'))
}

/// The folder name by which Debian tells machines apart.
fn triplet(elf: &Elf) -> Option<&'static str> {
    Some(match &*elf.machine {
        "x86_64" => "x86_64-linux-gnu",
        "aarch64" => "aarch64-linux-gnu",
        "arm" => "arm-linux-gnueabihf",
        "i386" => "i386-linux-gnu",
        "riscv64" => "riscv64-linux-gnu",
        "ppc64le" => "powerpc64le-linux-gnu",
        "s390x" => "s390x-linux-gnu",
        "loongarch64" => "loongarch64-linux-gnu",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::Endian;

    fn program() -> Elf {
        Elf {
            bits: 64,
            endian: Endian::Little,
            machine: "x86_64".into(),
            dynamic: true,
            needed: Vec::new(),
            runpath: Vec::new(),
            loader: None,
            skipped: Vec::new(),
        }
    }

    #[test]
    fn libraries_are_remembered_to_the_limits_and_looked_up_beyond_them() {
        let (root, head, libraries) = (Root::system(), RefCell::default(), Libraries::default());
        let absent = |number: usize| PathBuf::from(format!("/proc/absent/lib{number}.so"));
        for number in 0..=MAX_REMEMBERED {
            assert!(libraries.read(&root, &head, absent(number)).is_none());
        }
        assert_eq!(libraries.files.borrow().len(), MAX_REMEMBERED);

        let shelf = Shelf { folders: Vec::new(), seen: RefCell::default() };
        for number in 0..=MAX_REMEMBERED_OF_SHELF {
            assert!(libraries.find(&root, &head, &shelf, &format!("lib{number}.so")).is_none());
        }
        assert_eq!(shelf.seen.borrow().len(), MAX_REMEMBERED_OF_SHELF);

        let elf = program();
        for number in 0..=MAX_SHELVES {
            let shelf = libraries.shelf(&elf, Path::new(&format!("/opt/{number}/program")));
            assert_eq!(shelf.folders[0], Path::new(&format!("/opt/{number}")));
        }
        assert_eq!(libraries.shelves.borrow().len(), MAX_SHELVES);
    }
}
