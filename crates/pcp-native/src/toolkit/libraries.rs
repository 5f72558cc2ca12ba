//! One level of private libraries: programs that are a shell around a library of their own name no toolkit.
//!
//! A library counts as private when it stands in the program's own folder or search path, or when it stands in a
//! folder of the system and is not one of the [`COMMON`] ones. The rule is wide on purpose: `geany` needs `libgeany`
//! from the system's folder. It is bounded by [`MAX_LIBRARIES`], and by looking one level down and no further.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::elf::Elf;
use crate::program::Root;
use crate::program::file::read_elf;
use crate::toolkit::{Toolkit, beside, of_needed};

/// Most private libraries of a program that are opened: programs that name no toolkit need few that are not common.
pub(crate) const MAX_LIBRARIES: usize = 16;

/// Most folders in which one library is looked up: the program's own, its search path, the system's.
const MAX_FOLDERS: usize = 16;

/// Most files that are remembered: ten times what the programs of a full desktop system look at.
const MAX_REMEMBERED: usize = 8192;

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

/// The libraries that were looked at: many programs need the same ones. `None` stands for a file that is not there or
/// no ELF file.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    seen: RefCell<HashMap<OsString, Option<Named>>>,
}

impl Libraries {
    /// The toolkit that a private library of `elf` names, with the library and the name.
    pub(crate) fn look(&self, root: &Root, elf: &Elf, program: Option<&Path>) -> Named {
        let mut private = elf.needed.iter().filter(|name| !is_common(name)).take(MAX_LIBRARIES).peekable();
        private.peek()?;
        let folders = folders(elf, program);
        private.find_map(|name| {
            let (toolkit, needs) = self.find(root, &folders, name)??;
            Some((toolkit, format!("private library {name} needs {needs}")))
        })
    }

    /// The first file of that name that is ELF.
    fn find(&self, root: &Root, folders: &[PathBuf], name: &str) -> Option<Named> {
        if name.contains('/') {
            return self.read(root, PathBuf::from(name));
        }
        folders.iter().find_map(|folder| self.read(root, folder.join(name)))
    }

    fn read(&self, root: &Root, path: PathBuf) -> Option<Named> {
        if let Some(known) = self.seen.borrow().get(path.as_os_str()) {
            return known.clone();
        }
        let named = |elf: Elf| of_needed(&elf.needed).map(|(toolkit, needs)| (toolkit, needs.to_owned()));
        let found = read_elf(root, &path).ok().map(named);
        let mut seen = self.seen.borrow_mut();
        if seen.len() < MAX_REMEMBERED {
            seen.insert(path.into_os_string(), found.clone());
        }
        found
    }
}

fn is_common(name: &str) -> bool {
    // All but the loaders begin with `lib`: the letter behind it leaves few to be compared.
    let letter = |name: &str| name.as_bytes().get(3).copied();
    COMMON.iter().any(|common| letter(common) == letter(name) && name.starts_with(common))
}

/// Where the loader would look, and the program's own folder where it is the program's alone.
fn folders(elf: &Elf, program: Option<&Path>) -> Vec<PathBuf> {
    let own = program.and_then(Path::parent);
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
    Some(match elf.machine.as_str() {
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
