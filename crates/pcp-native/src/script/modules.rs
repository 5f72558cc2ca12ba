//! The modules of its own that a Python program is made of: distributions install a script of three lines.

use std::path::{Path, PathBuf};

use crate::script::imports::imported;

/// Most folders of a program's own in which its modules are looked up: those whose names stand in the script.
const MAX_FOLDERS: usize = 8;
/// Most modules that are taken from one file, in the order in which they stand there.
const MAX_MODULES: usize = 24;

/// The folder in which Debian installs modules.
const SYSTEM: &str = "/usr/lib/python3/dist-packages";

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

/// Where the modules of a script are looked up: beside it, in the folders it names, in the system's.
pub(crate) fn folders(script: &Path, text: &str) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = script.parent().map(Path::to_owned).into_iter().collect();
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

/// The files, without their ending, that may hold what `text` imports. `own` is the folder of a module's package, for
/// imports that begin with a full stop; a script has none.
pub(crate) fn files(text: &str, folders: &[PathBuf], own: Option<&Path>) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    let modules = text.lines().flat_map(|line| imported(line.trim()));
    let first = |module: &str| module.split('.').next().unwrap_or_default().to_owned();
    let modules = modules.filter(|module| STANDARD.binary_search(&first(module).as_str()).is_err());
    for module in modules.take(MAX_MODULES) {
        let dots = module.len() - module.trim_start_matches('.').len();
        let below = module.trim_matches('.').replace('.', "/");
        if below.is_empty() || below.contains(|c: char| !(c.is_alphanumeric() || c == '_' || c == '/')) {
            continue;
        }
        let bases: Vec<PathBuf> = if dots > 0 {
            own.and_then(|own| own.ancestors().nth(dots - 1)).map(Path::to_owned).into_iter().collect()
        } else {
            folders.to_vec()
        };
        for base in bases {
            // `from a import b`: b is a module of a, or a name in a.
            let whole = base.join(&below);
            let parent = whole.parent().filter(|parent| *parent != base).map(Path::to_owned);
            for file in [Some(whole), parent].into_iter().flatten() {
                if !files.contains(&file) {
                    files.push(file);
                }
            }
        }
    }
    files
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
        let files = files(text, &folders, None);
        assert_eq!(folders.last().unwrap(), Path::new(SYSTEM));
        assert!(files.contains(&PathBuf::from("/usr/share/mail/mail/window")), "{files:?}");
        assert!(files.iter().all(|file| !file.ends_with("os")), "{files:?}");
    }

    #[test]
    fn imports_that_begin_with_a_full_stop_belong_to_the_package() {
        let own = Path::new("/lib/a/b");
        let files = files("from .c import d\nfrom .. import e\n", &[PathBuf::from("/elsewhere")], Some(own));
        for file in ["/lib/a/b/c/d", "/lib/a/b/c", "/lib/a/e"] {
            assert!(files.contains(&PathBuf::from(file)), "{file}: {files:?}");
        }
        assert!(files.iter().all(|file| !file.starts_with("/elsewhere")), "{files:?}");
    }
}
