//! What is kept of an entry once its bytes are gone.

use std::path::PathBuf;

use super::entry::{DesktopEntry, Ignored, Question, Verdict, parse};
use super::file::read_listed;
use super::key::Key;
use super::locale::Locale;
use super::program::Launch;
use super::tree::{Backing, Candidate, Standing};

/// An application as its entry declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppFacts {
    /// What menus call it.
    pub name: String,
    /// The categories of the menu specification that it names.
    pub categories: Vec<String>,
    /// Its command line when it is started without files. `None` where it is started over D-Bus alone.
    pub argv: Option<Vec<String>>,
    /// What that command line starts.
    pub launch: Launch,
    /// The folder it is started in.
    pub working_folder: Option<PathBuf>,
    /// The program whose presence tells that it is installed.
    pub try_exec: Option<String>,
    /// The class of its windows.
    pub window_class: Option<String>,
    /// Whether it runs in a terminal.
    pub terminal: bool,
    /// Whether menus leave it out.
    pub no_display: bool,
    /// Whether it is started over D-Bus.
    pub dbus_activatable: bool,
    /// Whether its file breaks the format somewhere.
    pub diagnosed: bool,
}

impl AppFacts {
    /// Keeps the facts of an entry.
    #[must_use]
    pub fn of(entry: DesktopEntry<'_>) -> Self {
        let text = |key| entry.text(key).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned);
        Self {
            working_folder: text(Key::Path).map(PathBuf::from),
            try_exec: text(Key::TryExec),
            window_class: text(Key::StartupWmClass),
            terminal: entry.flag(Key::Terminal),
            no_display: entry.flag(Key::NoDisplay),
            dbus_activatable: entry.flag(Key::DBusActivatable),
            name: entry.name.into_owned(),
            categories: entry.categories.into_iter().map(std::borrow::Cow::into_owned).collect(),
            argv: entry.argv,
            launch: entry.launch,
            diagnosed: false,
        }
    }
}

/// Reads a candidate and says how it stands. `buffer` is used again for every file of a scan.
pub fn examine(candidate: &Candidate, buffer: &mut Vec<u8>, locale: Option<&Locale>) -> Standing<AppFacts> {
    if candidate.backing == Backing::Null {
        return Standing::Masks(Ignored::Hidden);
    }
    if let Err(reason) = read_listed(candidate, buffer) {
        return Standing::Passes(reason);
    }
    let location = candidate.path.to_str();
    let parsed = parse(buffer, &Question { locale, location, actions: false });
    match parsed.verdict {
        Verdict::App(entry) => {
            Standing::Wins(AppFacts { diagnosed: !parsed.diagnostics.is_empty(), ..AppFacts::of(*entry) })
        }
        Verdict::Ignore(why) => Standing::Masks(why),
        Verdict::Reject(rejection) => Standing::Passes(rejection.into()),
    }
}
