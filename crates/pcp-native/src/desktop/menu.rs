//! Whether menus show an entry: who it is for, and whether its program is there.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use nix::unistd::{AccessFlags, access};

/// Whether a desktop shows the entry, by OnlyShowIn and NotShowIn.
///
/// `current` is the value of `XDG_CURRENT_DESKTOP`: names divided by colons, the most particular one first. The first
/// of them that either list names decides.
#[must_use]
pub fn is_shown_in(current: &str, only: Option<&[Cow<'_, str>]>, not: Option<&[Cow<'_, str>]>) -> bool {
    for name in current.split(':').filter(|name| !name.is_empty()) {
        let stands_in =
            |list: Option<&[Cow<'_, str>]>| list.is_some_and(|list| list.iter().any(|item| item == name));
        if stands_in(only) {
            return true;
        }
        if stands_in(not) {
            return false;
        }
    }
    only.is_none()
}

/// The TryExec test: whether the program is there and may be run. `search` is the value of `PATH`.
#[must_use]
pub fn is_installed(program: &str, search: &OsStr) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    if program.contains('/') {
        return runs(Path::new(program));
    }
    let folders =
        search.as_bytes().split(|byte| *byte == b':').map(|folder| Path::new(OsStr::from_bytes(folder)));
    !program.is_empty()
        && folders.filter(|folder| folder.is_absolute()).any(|folder| runs(&folder.join(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_desktop_that_a_list_names_decides() {
        let (only, not) = (["GNOME".into(), "Budgie".into()], ["Classic".into()]);
        type List<'a> = Option<&'a [Cow<'a, str>]>;
        let (only, not): (List<'_>, List<'_>) = (Some(&only), Some(&not));
        let table = [
            ("GNOME", only, None, true),
            ("Classic:GNOME", only, None, true),
            ("Classic:GNOME", only, not, false),
            ("GNOME:Classic", only, not, true),
            ("gnome", only, None, false),
            ("", only, None, false),
            ("", None, not, true),
            ("KDE", None, None, true),
            ("Classic", None, not, false),
            ("KDE", Some(&[] as &[_]), None, false),
        ];
        for (current, only, not, shown) in table {
            assert_eq!(is_shown_in(current, only, not), shown, "{current} {only:?} {not:?}");
        }
    }

    #[test]
    fn a_program_is_installed_where_the_path_leads_to_a_file_that_may_run() {
        let table = [
            ("sh", "/nowhere:/bin", true),
            ("/bin/sh", "", true),
            ("sh", "/nowhere", false),
            ("/etc/passwd", "/bin", false),
            ("/bin", "/bin", false),
            ("", "/bin", false),
            ("sh", "bin:", false),
        ];
        for (program, search, installed) in table {
            assert_eq!(is_installed(program, OsStr::new(search)), installed, "{program} {search}");
        }
    }
}
