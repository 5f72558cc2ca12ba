//! What a desktop entry, or a whole tree of them, turned out to be, for people and programs.
//!
//! The member names are those of the test data's `expected.json`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pcp_core::AppId;
use serde::Serialize;
use serde_json::Value;

use super::app_id::app_id;
use super::entry::{DesktopEntry, Question, Verdict, parse};
use super::facts::{AppFacts, examine};
use super::fault::Diagnostics;
use super::file::read;
use super::key::Key;
use super::line::{Line, Lines, translation};
use super::locale::{Locale, UNLOCALIZED};
use super::menu::{is_installed, is_shown_in};
use super::sandbox::Sandbox;
use super::skip::{SkipReason, Skips};
use super::tree::{TreeLimits, Winner, list};
use super::value;

/// Most translations of a name that a report lists: three times as many languages as any desktop speaks.
const MAX_LISTED_LOCALES: usize = 300;

/// What a person wants to know of an entry beyond what it says.
#[derive(Debug, Clone, Copy)]
pub struct DesktopQuestion<'a> {
    /// Locales whose name is shown, besides those that the file translates it for.
    pub locales: &'a [String],
    /// Values of `XDG_CURRENT_DESKTOP` to judge, besides the desktops that the file names.
    pub desktops: &'a [String],
    /// The value of `PATH`, where TryExec is looked for.
    pub search: &'a OsStr,
}

/// What one desktop file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DesktopReport {
    /// The file as it was named.
    pub file: String,
    /// `app`, `reject` or `ignore`.
    pub outcome: &'static str,
    /// The stable word of why it is no application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether the file breaks the format.
    pub diagnostic: bool,
    /// How, line by line.
    pub diagnostics: Vec<String>,
    /// What is kept of an application.
    #[serde(flatten)]
    pub app: Option<EntryReport>,
}

/// What an application's entry says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EntryReport {
    /// The application it becomes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// The keys of the main group, escapes undone, lists as lists.
    pub values: BTreeMap<String, Value>,
    /// The name in each language.
    pub localized: BTreeMap<String, String>,
    /// The command line without files.
    pub argv: Option<Vec<String>>,
    /// The word to be probed for a toolkit.
    pub program: Option<String>,
    /// The interpreter that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// The container tool.
    pub sandbox: Option<Sandbox>,
    /// Why no program can be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_why: Option<&'static str>,
    /// Whether menus show it, wherever it is not left to the desktop.
    pub shown: bool,
    /// Whether each desktop shows it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shown_in: BTreeMap<String, bool>,
    /// What the TryExec test says, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub installed: Option<bool>,
    /// The valid actions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub actions: BTreeMap<String, Option<Vec<String>>>,
    /// The name it is started by over D-Bus.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dbus_name: Option<String>,
}

/// Reads a desktop file that a person named.
#[must_use]
pub fn inspect_desktop(file: &Path, question: DesktopQuestion<'_>) -> DesktopReport {
    let mut bytes = Vec::new();
    if let Err(reason) = read(file, &mut bytes) {
        let why = format!("{}: {reason}", file.display());
        return blank(file, "reject", Some((reason.reason(), why)), &Diagnostics::default());
    }
    let location = file.to_str();
    let parsed = parse(&bytes, &Question { locale: None, location, actions: true });
    let found = &parsed.diagnostics;
    match parsed.verdict {
        Verdict::Reject(why) => blank(file, "reject", Some((why.reason(), why.to_string())), found),
        Verdict::Ignore(why) => blank(file, "ignore", Some((why.reason(), why.to_string())), found),
        Verdict::App(entry) => DesktopReport {
            app: Some(entry_report(file, &bytes, *entry, question)),
            ..blank(file, "app", None, found)
        },
    }
}

fn blank(
    file: &Path,
    outcome: &'static str,
    why: Option<(&'static str, String)>,
    found: &Diagnostics,
) -> DesktopReport {
    let mut diagnostics: Vec<String> = found.kept().iter().map(ToString::to_string).collect();
    if found.left_off() > 0 {
        diagnostics.push(format!("and {} more", found.left_off()));
    }
    let (reason, why) = why.unzip();
    let (file, diagnostic) = (file.display().to_string(), !diagnostics.is_empty());
    DesktopReport { file, outcome, reason, why, diagnostic, diagnostics, app: None }
}

fn entry_report(
    file: &Path,
    bytes: &[u8],
    entry: DesktopEntry<'_>,
    question: DesktopQuestion<'_>,
) -> EntryReport {
    let name = file.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let try_exec = entry.text(Key::TryExec).filter(|program| !program.is_empty());
    let installed = try_exec.map(|program| is_installed(&program, question.search));
    let dbus_name = entry.flag(Key::DBusActivatable).then(|| name.strip_suffix(".desktop").unwrap_or(name));
    EntryReport {
        app_id: app_id(name),
        values: values(bytes),
        localized: localized(bytes, &entry, question.locales),
        program: entry.launch.program.clone(),
        interpreter: entry.launch.interpreter.clone(),
        sandbox: entry.launch.sandbox,
        program_why: entry.launch.why,
        shown: !entry.flag(Key::NoDisplay) && installed != Some(false),
        shown_in: shown_in(&entry, question.desktops),
        installed,
        dbus_name: dbus_name.filter(|name| name.contains('.')).map(str::to_owned),
        actions: entry.actions.into_iter().map(|action| (action.id.into_owned(), action.argv)).collect(),
        argv: entry.argv,
    }
}

/// The lines of the main group.
fn main_group(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let lines = Lines::of(bytes).0.skip_while(|line| !matches!(line, Line::Group(_))).skip(1);
    lines.take_while(|line| !matches!(line, Line::Group(_)))
}

fn values(bytes: &[u8]) -> BTreeMap<String, Value> {
    let pairs = main_group(bytes).filter_map(|line| match line {
        Line::Pair { key, value } => Some((std::str::from_utf8(key).ok()?, value)),
        _ => None,
    });
    let read = |(key, raw): (&str, &[u8])| {
        let is_list = Key::of(key.as_bytes()).is_some_and(Key::is_list);
        let read = if is_list { Value::from(value::list(raw)) } else { Value::from(value::text(raw)) };
        (key.to_owned(), read)
    };
    pairs.map(read).collect()
}

fn localized(bytes: &[u8], entry: &DesktopEntry<'_>, asked: &[String]) -> BTreeMap<String, String> {
    let names: Vec<_> = main_group(bytes)
        .filter_map(|line| match line {
            Line::Localized { key: b"Name", rest } => {
                let (locale, value) = translation(rest)?;
                Some((std::str::from_utf8(locale).ok()?, value))
            }
            _ => None,
        })
        .take(MAX_LISTED_LOCALES)
        .collect();
    let best = |wanted: &str| {
        let locale = Locale::parse(wanted);
        let rank = |of: &str| locale.as_ref().and_then(|locale| locale.rank(of.as_bytes()));
        let ranked = names.iter().filter_map(|(of, raw)| Some((rank(of)?, *raw)));
        let best = ranked.filter(|(rank, _)| *rank > UNLOCALIZED).max_by_key(|(rank, _)| *rank);
        let name = best.map_or_else(|| entry.name.clone(), |(_, raw)| value::text(raw));
        (wanted.to_owned(), name.into_owned())
    };
    let locales = names.iter().map(|(locale, _)| *locale).chain(asked.iter().map(String::as_str));
    locales.map(best).collect()
}

fn shown_in(entry: &DesktopEntry<'_>, asked: &[String]) -> BTreeMap<String, bool> {
    let (only, not) = (entry.list(Key::OnlyShowIn), entry.list(Key::NotShowIn));
    let named = only.iter().chain(&not).flatten().map(std::convert::AsRef::as_ref);
    let other = (only.is_some() || not.is_some()).then_some("");
    let desktops = named.chain(other).chain(asked.iter().map(String::as_str));
    desktops.map(|name| (name.to_owned(), is_shown_in(name, only.as_deref(), not.as_deref()))).collect()
}

/// What a tree of data folders holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TreeReport {
    /// The user's folder.
    #[serde(rename = "XDG_DATA_HOME")]
    pub home: Option<String>,
    /// The system's, in order.
    #[serde(rename = "XDG_DATA_DIRS")]
    pub data: Vec<String>,
    /// The file that counts for each desktop file id.
    pub apps: BTreeMap<String, String>,
    /// The same with what each says.
    pub entries: Vec<AppReport>,
    /// The ids that a file says have no application, and why.
    pub masked: BTreeMap<String, &'static str>,
    /// What was left out.
    pub skipped: Vec<SkipReport>,
    /// How many more were left out.
    pub skipped_more: usize,
}

/// One application of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppReport {
    /// The desktop file id.
    pub id: String,
    /// The application.
    pub app_id: AppId,
    /// Its file.
    pub file: String,
    /// What menus call it.
    pub name: String,
    /// Its categories.
    pub categories: Vec<String>,
    /// The word to be probed for a toolkit.
    pub program: Option<String>,
    /// The interpreter that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// The container tool.
    pub sandbox: Option<Sandbox>,
    /// Whether the file breaks the format.
    pub diagnostic: bool,
}

/// One thing that was left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkipReport {
    /// Where it is.
    pub path: String,
    /// The stable word.
    pub reason: &'static str,
    /// The same in a sentence.
    pub why: String,
}

impl SkipReport {
    /// What was left out, for a report.
    #[must_use]
    pub fn of(path: &Path, reason: &SkipReason) -> Self {
        let path = path.display().to_string();
        Self { reason: reason.reason(), why: format!("{path}: {reason}"), path }
    }
}

/// Scans the data folders that a person named, the user's first.
#[must_use]
pub fn inspect_tree(home: Option<&Path>, data: &[PathBuf], locale: Option<&Locale>) -> TreeReport {
    let dirs: Vec<PathBuf> = home.into_iter().map(Path::to_owned).chain(data.iter().cloned()).collect();
    let mut buffer = Vec::new();
    let found =
        list(&dirs, TreeLimits::default()).resolve(|candidate| examine(candidate, &mut buffer, locale));
    let shown = |path: &Path| path.display().to_string();
    let file = |winner: &Winner<AppFacts>| (winner.candidate.id.clone(), shown(&winner.candidate.path));
    TreeReport {
        home: home.map(shown),
        data: data.iter().map(|path| shown(path)).collect(),
        apps: found.winners.iter().map(file).collect(),
        masked: found.masks.into_iter().map(|(candidate, why)| (candidate.id, why.reason())).collect(),
        skipped: skipped(&found.skipped),
        skipped_more: found.skipped.left_off(),
        entries: found.winners.into_iter().map(app_report).collect(),
    }
}

fn skipped(skips: &Skips) -> Vec<SkipReport> {
    skips.kept().iter().map(|skip| SkipReport::of(&skip.path, &skip.reason)).collect()
}

fn app_report(winner: Winner<AppFacts>) -> AppReport {
    let Winner { app_id, candidate, value } = winner;
    AppReport {
        id: candidate.id,
        app_id,
        file: candidate.path.display().to_string(),
        name: value.name,
        categories: value.categories,
        program: value.launch.program,
        interpreter: value.launch.interpreter,
        sandbox: value.launch.sandbox,
        diagnostic: value.diagnosed,
    }
}
