//! Where desktop entries are looked for (XDG Base Directory Specification).

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Most folders that `XDG_DATA_DIRS` may name: a system has a handful, and each one costs every scan.
const MAX_DATA_DIRS: usize = 64;

/// The data folders, the most important one first, from the values of the environment.
///
/// Unset and empty are the same, and a path that is not absolute is ignored, as the specification says.
#[must_use]
pub fn data_dirs(
    xdg_data_home: Option<&OsStr>,
    home: Option<&Path>,
    xdg_data_dirs: Option<&OsStr>,
) -> Vec<PathBuf> {
    let absolute = |path: &Path| path.is_absolute().then(|| path.to_owned());
    let own = xdg_data_home.and_then(|path| absolute(Path::new(path)));
    let own = own.or_else(|| absolute(&home?.join(".local/share")));
    let listed = xdg_data_dirs.filter(|list| !list.is_empty());
    let listed = listed.unwrap_or_else(|| OsStr::new("/usr/local/share:/usr/share")).as_bytes();
    let listed = listed.split(|byte| *byte == b':').map(|path| Path::new(OsStr::from_bytes(path)));
    own.into_iter().chain(listed.filter_map(absolute)).take(MAX_DATA_DIRS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(own: Option<&str>, home: Option<&str>, dirs: Option<&str>) -> Vec<String> {
        let dirs = data_dirs(own.map(OsStr::new), home.map(Path::new), dirs.map(OsStr::new));
        dirs.iter().map(|dir| dir.display().to_string()).collect()
    }

    #[test]
    fn the_users_folder_comes_first_and_the_rest_in_the_order_written() {
        type Row<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
        let table: [Row<'_>; 6] = [
            (Some("/h"), Some("/home/u"), Some("/b:/a"), &["/h", "/b", "/a"]),
            (None, Some("/home/u"), Some("/a"), &["/home/u/.local/share", "/a"]),
            (
                Some(""),
                Some("/home/u"),
                Some(""),
                &["/home/u/.local/share", "/usr/local/share", "/usr/share"],
            ),
            (Some("rel"), None, None, &["/usr/local/share", "/usr/share"]),
            (None, Some("rel"), Some("x:/a::/b"), &["/a", "/b"]),
            (None, None, Some(":"), &[]),
        ];
        for (own, home, dirs, wanted) in table {
            assert_eq!(found(own, home, dirs), wanted, "{own:?} {home:?} {dirs:?}");
        }
    }

    #[test]
    fn no_more_folders_are_taken_than_the_limit() {
        assert_eq!(found(None, None, Some(&"/a:".repeat(MAX_DATA_DIRS + 1))).len(), MAX_DATA_DIRS);
    }
}
