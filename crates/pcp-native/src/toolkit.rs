//! Which toolkit draws a program: the second half of what static detection knows of an application.
//!
//! Names of libraries tell most toolkits, the files beside a program tell browser engines that are linked in. It opens
//! no program (`program` does). Start with [`Toolkit`]; [`Toolkit::named_by`] is the table.

pub(crate) mod beside;
pub(crate) mod libraries;

use std::fmt;

use serde::{Serialize, Serializer};

/// What draws a program and answers for its elements. An application whose toolkit cannot be told has none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Toolkit {
    /// GTK 2.
    Gtk2,
    /// GTK 3.
    Gtk3,
    /// GTK 4, libadwaita.
    Gtk4,
    /// Qt 5, KDE Frameworks 5.
    Qt5,
    /// Qt 6, KDE Frameworks 6.
    Qt6,
    /// Electron, CEF and Chromium itself: one browser engine.
    Electron,
    /// Swing, AWT, SWT or JavaFX.
    Java,
    /// Runs within a terminal.
    Terminal,
}

impl Toolkit {
    /// All of them, in the order of the columns of the prediction table.
    pub const ALL: [Self; 8] = [
        Self::Gtk2,
        Self::Gtk3,
        Self::Gtk4,
        Self::Qt5,
        Self::Qt6,
        Self::Electron,
        Self::Java,
        Self::Terminal,
    ];

    /// The word for it in every report.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gtk2 => "gtk2",
            Self::Gtk3 => "gtk3",
            Self::Gtk4 => "gtk4",
            Self::Qt5 => "qt5",
            Self::Qt6 => "qt6",
            Self::Electron => "electron",
            Self::Java => "java",
            Self::Terminal => "terminal",
        }
    }

    /// The toolkit of this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|toolkit| toolkit.as_str() == word)
    }

    /// The toolkit that a library of this name belongs to, if it names one.
    #[must_use]
    pub fn named_by(library: &str) -> Option<Self> {
        let library = library.rsplit('/').next().unwrap_or(library);
        // Nearly every library a program needs is none of these, and is told by its first letters.
        let name = library.strip_prefix("lib")?;
        let first = name.as_bytes().first();
        let begins = |prefix: &str| prefix.as_bytes().first() == first && name.starts_with(prefix);
        TABLE.iter().find(|(prefix, _)| begins(prefix)).map(|(_, toolkit)| *toolkit)
    }
}

/// What the names of libraries begin with after `lib`. Only libraries that nothing but an application of the toolkit
/// links: a name stands here for the toolkit's own library or for one of its widget sets.
const TABLE: [(&str, Toolkit); 30] = [
    ("cef.so", Toolkit::Electron),
    ("gtk-3.", Toolkit::Gtk3),
    ("gtk-4.", Toolkit::Gtk4),
    ("gtk-x11-2.", Toolkit::Gtk2),
    ("Qt5", Toolkit::Qt5),
    ("Qt6", Toolkit::Qt6),
    ("KF5", Toolkit::Qt5),
    ("KF6", Toolkit::Qt6),
    ("adwaita-1.", Toolkit::Gtk4),
    ("handy-1.", Toolkit::Gtk3),
    ("handy-0.", Toolkit::Gtk3),
    ("gtkmm-2.", Toolkit::Gtk2),
    ("gtkmm-3.", Toolkit::Gtk3),
    ("gtkmm-4.", Toolkit::Gtk4),
    ("gtksourceview-3.", Toolkit::Gtk3),
    ("gtksourceview-4.", Toolkit::Gtk3),
    ("gtksourceview-5.", Toolkit::Gtk4),
    ("vte-2.91.", Toolkit::Gtk3),
    ("vte-2.91-gtk4.", Toolkit::Gtk4),
    ("webkit2gtk-4.", Toolkit::Gtk3),
    ("webkitgtk-6.", Toolkit::Gtk4),
    ("granite.", Toolkit::Gtk3),
    ("granite-7.", Toolkit::Gtk4),
    ("gdk-3.", Toolkit::Gtk3),
    ("gdk-x11-2.", Toolkit::Gtk2),
    ("wx_gtk2u_", Toolkit::Gtk2),
    ("wx_gtk3u_", Toolkit::Gtk3),
    ("wx_qtu_", Toolkit::Qt5),
    ("jvm.so", Toolkit::Java),
    ("jli.so", Toolkit::Java),
];

/// Where a program links several: what draws the windows goes before what draws a dialog or an icon in a panel.
const RANK: [Toolkit; 7] = [
    Toolkit::Electron,
    Toolkit::Qt6,
    Toolkit::Qt5,
    Toolkit::Gtk4,
    Toolkit::Gtk3,
    Toolkit::Gtk2,
    Toolkit::Java,
];

/// Libraries that draw on a character screen.
const CURSES: [&str; 5] = ["libncurses", "libtinfo", "libslang.", "libnotcurses", "libcurses"];

/// Libraries that only a program with a window of its own links.
const WINDOWS: [&str; 9] = [
    "libX11.",
    "libxcb.",
    "libXt.",
    "libXaw",
    "libwayland-client.",
    "libSDL",
    "libfltk",
    "libEGL.",
    "libGL.",
];

/// The toolkit that a list of needed libraries names, with the library that does.
pub(crate) fn of_needed(needed: &[String]) -> Option<(Toolkit, &str)> {
    let named = needed.iter().filter_map(|library| Some((Toolkit::named_by(library)?, library.as_str())));
    let rank = |toolkit: Toolkit| RANK.iter().position(|ranked| *ranked == toolkit);
    named.min_by_key(|(toolkit, _)| rank(*toolkit))
}

/// The library by which a program is one for the terminal: it draws characters and has no window of its own.
pub(crate) fn curses(needed: &[String]) -> Option<&str> {
    let begins = |library: &str, with: &[&str]| with.iter().any(|prefix| library.starts_with(prefix));
    if needed.iter().any(|library| begins(library, &WINDOWS)) {
        return None;
    }
    needed.iter().map(String::as_str).find(|library| begins(library, &CURSES))
}

impl fmt::Display for Toolkit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Toolkit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn names_of_libraries_tell_the_toolkit() {
        let table = [
            ("libgtk-3.so", Some(Toolkit::Gtk3)),
            ("libgtk-3.so.0", Some(Toolkit::Gtk3)),
            ("libgtk-4.so.1", Some(Toolkit::Gtk4)),
            ("libgtk-x11-2.0.so.0", Some(Toolkit::Gtk2)),
            ("libQt6Core.so", Some(Toolkit::Qt6)),
            ("libQt5Widgets.so.5", Some(Toolkit::Qt5)),
            ("libcef.so", Some(Toolkit::Electron)),
            ("/opt/x/libcef.so", Some(Toolkit::Electron)),
            ("libvte-2.91.so.0", Some(Toolkit::Gtk3)),
            ("libvte-2.91-gtk4.so.0", Some(Toolkit::Gtk4)),
            ("libgtk-30.so.0", None),
            ("libgtk.so", None),
            ("libQt4Core.so", None),
            ("xlibgtk-3.so.0", None),
            ("libcef.sox", Some(Toolkit::Electron)),
            ("", None),
        ];
        for (library, toolkit) in table {
            assert_eq!(Toolkit::named_by(library), toolkit, "{library}");
        }
    }

    #[test]
    fn of_several_toolkits_the_one_that_draws_the_windows_counts() {
        let needed = names("libc.so.6 libgtk-3.so.0 libQt6Widgets.so.6 libQt6Core.so.6");
        assert_eq!(of_needed(&needed), Some((Toolkit::Qt6, "libQt6Widgets.so.6")));
        assert_eq!(of_needed(&names("libc.so.6 libm.so.6")), None);
    }

    #[test]
    fn a_program_of_the_terminal_draws_characters_and_has_no_window() {
        assert_eq!(curses(&names("libncursesw.so.6 libtinfo.so.6 libc.so.6")), Some("libncursesw.so.6"));
        assert_eq!(curses(&names("libXaw.so.7 libtinfo.so.6 libX11.so.6")), None, "a terminal emulator");
        assert_eq!(curses(&names("libc.so.6")), None);
    }

    #[test]
    fn every_toolkit_has_one_word() {
        for toolkit in Toolkit::ALL {
            assert_eq!(Toolkit::from_word(toolkit.as_str()), Some(toolkit));
        }
        assert_eq!(Toolkit::from_word("unknown"), None);
    }
}
