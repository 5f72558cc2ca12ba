//! Scripts in a tree of unpacked packages, as real packages lay them out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use pcp_native::{Programs, Root, Toolkit};

/// A tree of these files, and what the program `/usr/bin/app` in it turns out to be drawn by.
fn toolkit(files: &[(&str, &str)]) -> Option<Toolkit> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let root = Root::beneath(folder.path()).unwrap();
    Programs::new(&root, [PathBuf::from("/usr/bin")]).probe_file(Path::new("/usr/bin/app")).toolkit
}

#[test]
fn a_bundle_may_be_called_like_the_script_or_like_its_package() {
    let script =
        ("usr/bin/app", "#!/usr/bin/gjs\nimports.package.init({ name: \"gnome-app\", prefix: \"/usr\" });\n");
    let import = "import Adw from 'gi://Adw';\n";
    for bundle in ["usr/share/gnome-app/app.src.gresource", "usr/share/gnome-app/gnome-app.src.gresource"] {
        assert_eq!(toolkit(&[script, (bundle, import)]), Some(Toolkit::Gtk4), "{bundle}");
    }
    assert_eq!(toolkit(&[script]), None);
}

#[test]
fn a_bundle_is_looked_at_up_to_its_limit() {
    const LIMIT: usize = 256 * 1024;
    let script = ("usr/bin/app", "#!/usr/bin/gjs\nimports.package.init({ name: 'a' });\n");
    let import = "import Adw from 'gi://Adw'";
    let bundle = |before: usize| format!("{}\n{import}", "x".repeat(before - 1));
    let name = "usr/share/a/app.src.gresource";
    assert_eq!(toolkit(&[script, (name, &bundle(LIMIT - import.len()))]), Some(Toolkit::Gtk4));
    assert_eq!(toolkit(&[script, (name, &bundle(LIMIT))]), None);
}

#[test]
fn modules_stand_below_share_in_a_folder_called_like_the_script() {
    let script = ("usr/bin/app", "#!/usr/bin/python3\ninit_paths()\nimport own.gtk\n");
    let module = "gi.require_version(\"Gtk\", \"3.0\")\n";
    for file in ["usr/share/app/lib/own/gtk.py", "usr/share/app/own/gtk.py"] {
        assert_eq!(toolkit(&[script, (file, module)]), Some(Toolkit::Gtk3), "{file}");
    }
    assert_eq!(toolkit(&[script, ("usr/share/other/own/gtk.py", module)]), None);
}

#[test]
fn a_module_that_stands_in_for_others_is_of_the_version_that_is_installed() {
    let script = ("usr/bin/app", "#!/usr/bin/python3\nfrom qtpy import QtCore\n");
    let five = ("usr/lib/python3/dist-packages/PyQt5/__init__.py", "");
    let six = ("usr/lib/python3/dist-packages/PyQt6/__init__.py", "");
    assert_eq!(toolkit(&[script, six]), Some(Toolkit::Qt6));
    assert_eq!(toolkit(&[script, five, six]), Some(Toolkit::Qt5));
    assert_eq!(toolkit(&[script]), Some(Toolkit::Qt5));
    let plain = ("usr/bin/app", "#!/usr/bin/python3\nfrom PyQt5 import QtCore\n");
    assert_eq!(toolkit(&[plain, six]), Some(Toolkit::Qt5));
}

#[test]
fn a_fallback_to_old_bindings_in_one_module_does_not_hide_those_of_another() {
    let script = ("usr/bin/app", "#!/usr/bin/python3\nfrom base import utils\nfrom ui import window\n");
    let old = ("usr/share/app/base/utils.py", "def message():\n    import gtk\n");
    let new = ("usr/share/app/ui/window.py", "from PyQt5.QtGui import *\n");
    assert_eq!(toolkit(&[script, old, new]), Some(Toolkit::Qt5));
    assert_eq!(toolkit(&[script, old]), Some(Toolkit::Gtk2));
}
