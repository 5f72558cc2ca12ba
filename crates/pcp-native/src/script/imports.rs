//! The lines of a script that name a toolkit.

use crate::script::Language;
use crate::toolkit::Toolkit;

/// Modules of Python that are a toolkit, or one of its bindings.
const PYTHON: [(&str, Toolkit); 11] = [
    ("PyQt6", Toolkit::Qt6),
    ("PySide6", Toolkit::Qt6),
    ("PyQt5", Toolkit::Qt5),
    ("PySide2", Toolkit::Qt5),
    // Where only version 6 is there it takes that one: `stands_in` says which module this is about.
    ("qtpy", Toolkit::Qt5),
    ("pygtk", Toolkit::Gtk2),
    ("gtk", Toolkit::Gtk2),
    ("wx", Toolkit::Gtk3),
    ("gi.repository.Adw", Toolkit::Gtk4),
    ("gi.repository.Handy", Toolkit::Gtk3),
    ("curses", Toolkit::Terminal),
];

/// Modules of Perl that are a toolkit.
const PERL: [(&str, Toolkit); 5] = [
    ("Gtk3", Toolkit::Gtk3),
    ("Gtk2", Toolkit::Gtk2),
    ("Wx", Toolkit::Gtk3),
    ("QtCore5", Toolkit::Qt5),
    ("Curses", Toolkit::Terminal),
];

/// Libraries whose version says which GTK: the name in the bindings, the version's beginning, the toolkit.
const VERSIONS: [(&str, &str, Toolkit); 5] = [
    ("Gtk", "4", Toolkit::Gtk4),
    ("Gtk", "3", Toolkit::Gtk3),
    ("Gtk", "2", Toolkit::Gtk2),
    ("Adw", "1", Toolkit::Gtk4),
    ("Handy", "", Toolkit::Gtk3),
];

/// The toolkit that a script names, and the line that does. What [`is_weak`] goes last.
pub(crate) fn toolkit(language: Language, text: &str) -> Option<(Toolkit, &str)> {
    let mut weak = None;
    for line in text.lines().map(str::trim) {
        match of_line(language, line) {
            Some(toolkit) if is_weak(toolkit) => drop(weak.get_or_insert((toolkit, line))),
            Some(toolkit) => return Some((toolkit, line)),
            None => {}
        }
    }
    weak
}

/// Whether another toolkit goes before it, wherever a program names that one: a terminal before which windows go, and
/// bindings of GTK 2, which old sources still try.
pub(crate) const fn is_weak(toolkit: Toolkit) -> bool {
    matches!(toolkit, Toolkit::Terminal | Toolkit::Gtk2)
}

/// Whether a line that names Qt 5 does so by `qtpy`, which stands in for whichever bindings are installed.
pub(crate) fn stands_in(line: &str) -> bool {
    imported(line).iter().any(|module| module.split('.').next() == Some("qtpy"))
}

fn of_line(language: Language, line: &str) -> Option<Toolkit> {
    match language {
        Language::Python if !line.starts_with('#') => python(line).or_else(|| versioned(line)),
        Language::Gjs if !line.starts_with("//") => versioned(line).or_else(|| gjs(line)),
        Language::Perl if !line.starts_with('#') => perl(line),
        _ => None,
    }
}

fn python(line: &str) -> Option<Toolkit> {
    let known = |module: &str| {
        let begins = |name: &str| {
            module.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        PYTHON.iter().find(|(name, _)| begins(name)).map(|(_, toolkit)| *toolkit)
    };
    imported(line).iter().find_map(|module| known(module))
}

/// The modules that a line of Python imports. `from a import b` names both `a.b` and, by it, `a`.
pub(crate) fn imported(line: &str) -> Vec<String> {
    if !line.starts_with("import ") && !line.starts_with("from ") {
        return Vec::new();
    }
    let code = line.split('#').next().unwrap_or_default();
    let names = |list: &str| -> Vec<String> {
        let list = list.trim_matches(|c: char| c == '(' || c == ')' || c == '\\' || c.is_whitespace());
        let name = |part: &str| part.split_whitespace().next().map(str::to_owned);
        list.split([',', ';']).filter_map(name).collect()
    };
    if let Some(list) = code.strip_prefix("import ") {
        return names(list);
    }
    let Some((module, list)) = code.strip_prefix("from ").and_then(|rest| rest.split_once(" import")) else {
        return Vec::new();
    };
    let module = module.trim();
    let joint = if module.ends_with('.') { "" } else { "." };
    let mut modules: Vec<String> =
        names(list).iter().map(|name| format!("{module}{joint}{}", name.trim_matches('*'))).collect();
    if modules.is_empty() {
        modules.push(module.to_owned());
    }
    modules
}

/// The package that a script of GNOME's JavaScript initialises.
pub(crate) fn package(text: &str) -> Option<&str> {
    let (_, call) = text.split_once("package.init(")?;
    let (_, name) = call.split_once("name:")?;
    let name = name.trim_start().trim_start_matches(['\'', '"']);
    let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))?;
    name.get(..end).filter(|name| !name.is_empty() && !name.starts_with('.'))
}

fn gjs(line: &str) -> Option<Toolkit> {
    let says = |word: &str| line.contains(word);
    if says("gi://Adw") || says("imports.gi.Adw") || says("gi://Gtk?version=4") {
        return Some(Toolkit::Gtk4);
    }
    (says("gi://Handy") || says("imports.gi.Handy") || says("gi://Gtk?version=3")).then_some(Toolkit::Gtk3)
}

/// `"Gtk", "3.0"`, `'Gtk': '4.0'`, `versions.Gtk = "3.0"`, `versions["Gtk"] = "4.0"`: the name and then, with nothing
/// but signs between them, the version in quotes.
fn versioned(line: &str) -> Option<Toolkit> {
    const MAX_SIGNS: usize = 8;
    if !VERSIONS.iter().any(|(name, ..)| line.contains(name)) {
        return None;
    }
    let places = line.match_indices(['\'', '"', '.']).filter(|(at, _)| {
        // Only what stands in a call or a table of versions counts, not any text with a full stop before "Gtk".
        line.get(*at..).is_some_and(|rest| rest.len() > 4)
    });
    for (at, sign) in places {
        let rest = line.get(at + sign.len()..).unwrap_or_default();
        for (name, version, toolkit) in VERSIONS {
            let Some(after) = rest.strip_prefix(name) else { continue };
            let signs = after.find(|c: char| c.is_alphanumeric()).unwrap_or(after.len());
            let (between, value) = after.split_at(signs);
            let quoted = between.len() <= MAX_SIGNS && between.ends_with(['\'', '"']);
            if quoted && between.contains([',', ':', '=']) && value.starts_with(version) {
                return Some(toolkit);
            }
        }
    }
    None
}

fn perl(line: &str) -> Option<Toolkit> {
    let module = line.strip_prefix("use ").or_else(|| line.strip_prefix("require "))?.trim_start();
    let name = module.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    PERL.iter().find(|(known, _)| *known == name).map(|(_, toolkit)| *toolkit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_a_toolkit_are_known() {
        use Language::{Gjs, Perl, Python, Shell};
        let table = [
            (Python, "gi.require_version(\"Gtk\", \"3.0\")", Some(Toolkit::Gtk3)),
            (Python, "gi.require_version('Gtk','4.0')", Some(Toolkit::Gtk4)),
            (Python, "    gi.require_version( 'Gtk' , '4.0' )", Some(Toolkit::Gtk4)),
            (Python, "gi.require_versions({'GLib': '2.0', 'Gtk': '3.0'})", Some(Toolkit::Gtk3)),
            (Python, "gi.require_version('Adw', '1')", Some(Toolkit::Gtk4)),
            (Python, "gi.require_version('GtkSource', '4')", None),
            (Python, "# gi.require_version('Gtk', '3.0')", None),
            (Python, "from gi.repository import Gtk", None),
            (Python, "from gi.repository import GLib, Adw", Some(Toolkit::Gtk4)),
            (Python, "import gi", None),
            (Python, "from PyQt5.QtWidgets import QApplication", Some(Toolkit::Qt5)),
            (Python, "import PyQt6", Some(Toolkit::Qt6)),
            (Python, "import os, PySide6.QtCore as core", Some(Toolkit::Qt6)),
            (Python, "from PySide2 import (", Some(Toolkit::Qt5)),
            (Python, "import PyQt5x", None),
            (Python, "import wx", Some(Toolkit::Gtk3)),
            (Python, "import tkinter", None),
            (Python, "import curses", Some(Toolkit::Terminal)),
            (Python, "print('import PyQt5')", None),
            (Gjs, "imports.gi.versions.Gtk = '3.0';", Some(Toolkit::Gtk3)),
            (Gjs, "imports.gi.versions['Gtk'] = \"4.0\";", Some(Toolkit::Gtk4)),
            (Gjs, "import Gtk from 'gi://Gtk?version=4.0';", Some(Toolkit::Gtk4)),
            (Gjs, "import Adw from 'gi://Adw';", Some(Toolkit::Gtk4)),
            (Gjs, "pkg.require({ 'Gtk': '4.0' });", Some(Toolkit::Gtk4)),
            (Gjs, "// imports.gi.versions.Gtk = '3.0';", None),
            (Perl, "use Gtk3 -init;", Some(Toolkit::Gtk3)),
            (Perl, "use Gtk2;", Some(Toolkit::Gtk2)),
            (Perl, "use Gtk3::SimpleList;", Some(Toolkit::Gtk3)),
            (Perl, "use Tk;", None),
            (Shell, "gi.require_version(\"Gtk\", \"3.0\")", None),
        ];
        for (language, text, want) in table {
            assert_eq!(toolkit(language, text).map(|(toolkit, _)| toolkit), want, "{text}");
        }
    }

    #[test]
    fn a_module_that_stands_in_for_others_is_known_by_its_name() {
        for (line, want) in [
            ("from qtpy import QtCore", true),
            ("import os, qtpy.QtGui", true),
            ("from qtpy.QtCore import Qt", true),
            ("from PyQt5 import QtCore  # not qtpy", false),
            ("import qtpyx", false),
        ] {
            assert_eq!(stands_in(line), want, "{line}");
        }
    }

    #[test]
    fn a_script_of_javascript_names_its_package() {
        let text =
            "#!/usr/bin/gjs\nimports.package.init({\n  name: \"org.example.Foo\",\n  prefix: \"/usr\"});";
        assert_eq!(package(text), Some("org.example.Foo"));
        assert_eq!(package("imports.package.init({ name: '../x' })"), None);
        assert_eq!(package("imports.package.init({ name: '@NAME@' })"), None);
    }

    #[test]
    fn windows_of_today_go_before_the_terminal_and_before_bindings_of_yesterday() {
        let text = "import curses\ntry:\n    import gtk\nexcept ImportError:\n    import PyQt5\n";
        assert_eq!(toolkit(Language::Python, text), Some((Toolkit::Qt5, "import PyQt5")));
        assert_eq!(toolkit(Language::Python, "import pygtk"), Some((Toolkit::Gtk2, "import pygtk")));
    }
}
