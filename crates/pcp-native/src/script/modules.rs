//! The modules of its own that a Python program is made of: distributions install a script of three lines.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::script::imports::imported;

/// Most folders of a program's own in which its modules are looked up: those whose names stand in the script.
const MAX_FOLDERS: usize = 8;
/// Most modules that are taken from one file, in the order in which they stand there.
const MAX_MODULES: usize = 24;

/// Longest name of a package in bytes: longer ones are no names.
const MAX_PACKAGE_BYTES: usize = 100;

/// The folder in which Debian installs modules.
pub(crate) const SYSTEM: &str = "/usr/lib/python3/dist-packages";

/// Modules that come with Python and are no toolkit: looking for them would find nothing.
const STANDARD: [&str; 56] = [
    "__future__",
    "argparse",
    "ast",
    "asyncio",
    "atexit",
    "base64",
    "builtins",
    "codecs",
    "collections",
    "configparser",
    "contextlib",
    "copy",
    "csv",
    "ctypes",
    "datetime",
    "enum",
    "errno",
    "faulthandler",
    "fcntl",
    "functools",
    "getopt",
    "getpass",
    "gettext",
    "gi",
    "glob",
    "hashlib",
    "importlib",
    "inspect",
    "io",
    "itertools",
    "json",
    "locale",
    "logging",
    "math",
    "multiprocessing",
    "optparse",
    "os",
    "pathlib",
    "pickle",
    "pkg_resources",
    "platform",
    "queue",
    "random",
    "re",
    "shlex",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "string",
    "subprocess",
    "sys",
    "tempfile",
    "threading",
    "time",
    "warnings",
];

/// Where the modules of a script are looked up: beside it, in the folders it names, in the one below `share` that is
/// called like the script, in the system's.
pub(crate) fn folders(script: &Path, text: &str) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = script.parent().map(Path::to_owned).into_iter().collect();
    folders.extend(shared(script).into_iter().flatten());
    for part in text.split(['\'', '"']) {
        if folders.len() > MAX_FOLDERS {
            break;
        }
        let plain = |c: char| c.is_ascii_graphic() && !matches!(c, '%' | '{' | '*' | '<' | '>');
        if part.starts_with('/') && part.len() > 1 && part.chars().all(plain) {
            folders.push(PathBuf::from(part));
        }
    }
    folders.push(PathBuf::from(SYSTEM));
    folders
}

/// A script of `/usr/bin` finds its own modules from where it stands itself, in words that are not a path.
fn shared(script: &Path) -> Option<[PathBuf; 2]> {
    let share = script.parent().filter(|folder| folder.ends_with("bin"))?.parent()?.join("share");
    let own = share.join(script.file_stem()?);
    Some([own.join("lib"), own])
}

/// The files, without their ending, that may hold what `text` imports. `own` is the folder of a module's package, for
/// imports that begin with a full stop; a script has none. `holding` says which folders have a module of a name.
pub(crate) fn files(
    text: &str,
    own: Option<&Path>,
    holding: &mut impl FnMut(&str) -> Vec<PathBuf>,
) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    let mut seen = HashSet::new();
    let imports = text.lines().flat_map(|line| imported(line.trim()));
    let first = |module: &str| module.split('.').next().unwrap_or_default().to_owned();
    let imports = imports.filter(|module| STANDARD.binary_search(&first(module).as_str()).is_err());
    for module in entry_point(text).into_iter().chain(imports).take(MAX_MODULES) {
        let dots = module.len() - module.trim_start_matches('.').len();
        let below = module.trim_matches('.').replace('.', "/");
        if below.is_empty() || below.contains(|c: char| !(c.is_alphanumeric() || c == '_' || c == '/')) {
            continue;
        }
        let bases: Vec<PathBuf> = if dots > 0 {
            own.and_then(|own| own.ancestors().nth(dots - 1)).map(Path::to_owned).into_iter().collect()
        } else {
            holding(&first(&module))
        };
        for base in bases {
            // `from a import b`: b is a module of a, or a name in a.
            let whole = base.join(&below);
            let parent = whole.parent().filter(|parent| *parent != base).map(Path::to_owned);
            for file in [Some(whole), parent].into_iter().flatten() {
                if seen.insert(file.clone()) {
                    files.push(file);
                }
            }
        }
    }
    files
}

/// The modules in which a program usually begins whose script was generated at installation: such a script names the
/// package alone, and the rest stands in a file whose name depends on the version of Python.
fn entry_point(text: &str) -> Vec<String> {
    let package = text.split_once("__requires__ = '").and_then(|(_, rest)| rest.split_once("=="));
    let Some((package, _)) = package.filter(|(name, _)| !name.is_empty() && name.len() < MAX_PACKAGE_BYTES)
    else {
        return Vec::new();
    };
    let package = package.replace('-', "_");
    let usual = ["main", "__main__", "app", "gui", "ui", package.as_str()];
    usual.iter().map(|module| format!("{package}.{module}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_standard_modules_is_sorted() {
        assert!(STANDARD.is_sorted());
    }

    #[test]
    fn modules_are_looked_up_beside_the_script_and_where_it_says() {
        let text =
            "import sys\nsys.path.insert(1, '/usr/share/mail')\nfrom mail.window import Window\nimport os\n";
        let folders = folders(Path::new("/usr/bin/mail"), text);
        let own = ["/usr/share/mail/lib", "/usr/share/mail"];
        assert_eq!(folders, ["/usr/bin", own[0], own[1], own[1], SYSTEM].map(PathBuf::from));
        let mut asked = Vec::new();
        let files = files(text, None, &mut |top: &str| {
            asked.push(top.to_owned());
            vec![folders[2].clone()]
        });
        assert_eq!(
            files,
            ["mail/window/Window", "mail/window"].map(|file| Path::new("/usr/share/mail").join(file))
        );
        assert_eq!(asked, ["mail"], "what comes with Python is not looked for");
    }

    #[test]
    fn imports_that_begin_with_a_full_stop_belong_to_the_package() {
        let own = Path::new("/lib/a/b");
        let files = files("from .c import d\nfrom .. import e\n", Some(own), &mut |_: &str| unreachable!());
        for file in ["/lib/a/b/c/d", "/lib/a/b/c", "/lib/a/e"] {
            assert!(files.contains(&PathBuf::from(file)), "{file}: {files:?}");
        }
    }

    #[test]
    fn a_generated_script_names_its_package_alone() {
        let text = "__requires__ = 'my-mail==1.0'\nimport re\nsys.exit(load_entry_point('my-mail==1.0', 'x', 'y')())\n";
        let files = files(text, None, &mut |_: &str| vec![PathBuf::from("/m")]);
        assert!(files.contains(&PathBuf::from("/m/my_mail/main")), "{files:?}");
        assert!(files.contains(&PathBuf::from("/m/my_mail/my_mail")), "{files:?}");
    }
}
