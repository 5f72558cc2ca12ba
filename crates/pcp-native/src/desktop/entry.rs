//! One pass over the main group, and over the groups of actions where somebody asks for them.

use std::borrow::Cow;

use thiserror::Error;

use super::exec::{ExecError, Fields, arguments};
use super::fault::{Diagnostics, Fault};
use super::file::MAX_DESKTOP_FILE_BYTES;
use super::group::{Slots, read_group};
use super::key::Key;
use super::line::{Line, Lines};
use super::locale::Locale;
use super::program::{Launch, follow};
use super::sandbox::Sandbox;
use super::value;

/// Most actions of one entry: no menu shows more.
pub const MAX_ACTIONS: usize = 64;

/// Under what conditions an entry is read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Question<'q> {
    /// Whose translations count. `None`: nobody's.
    pub locale: Option<&'q Locale>,
    /// Where the file lies, which is what `%k` stands for.
    pub location: Option<&'q str>,
    /// Whether the groups of actions are read as well.
    pub actions: bool,
}

/// What a file is, and what in it breaks the format.
#[must_use]
#[derive(Debug, Clone)]
pub struct Parsed<'a> {
    /// What it is.
    pub verdict: Verdict<'a>,
    /// What was found on the way.
    pub diagnostics: Diagnostics,
}

/// The three things a file can be.
#[must_use]
#[derive(Debug, Clone)]
pub enum Verdict<'a> {
    /// An application.
    App(Box<DesktopEntry<'a>>),
    /// No valid entry.
    Reject(Rejection),
    /// A valid entry of something that is no application.
    Ignore(Ignored),
}

/// Why a file is no valid entry.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are what the sentences name")]
pub enum Rejection {
    /// Something else than `[Desktop Entry]` comes first, or nothing at all.
    #[error("the first group is not [Desktop Entry]")]
    NoMainGroup,
    /// More bytes than are read.
    #[error("{bytes} bytes exceed the {limit}-byte limit")]
    TooLarge { bytes: usize, limit: u64 },
    /// More keys than are read: one of those beyond might say Hidden.
    #[error("the main group has more than {limit} keys")]
    TooManyKeys { limit: usize },
    /// A key that every application has.
    #[error("key {0} is missing")]
    Missing(Key),
    /// A command line that cannot be carried out.
    #[error(transparent)]
    Exec(#[from] ExecError),
}

impl Rejection {
    /// The stable word for it.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoMainGroup => "no-main-group",
            Self::TooLarge { .. } | Self::TooManyKeys { .. } => "limit",
            Self::Missing(_) => "missing-key",
            Self::Exec(_) => "bad-exec",
        }
    }
}

/// Why a valid entry is no application.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Ignored {
    /// Deleted by the user: as if no file of this id were anywhere.
    #[error("Hidden is true: the entry counts as deleted")]
    Hidden,
    /// A link, a folder, or a type that is not known.
    #[error("its Type is {0:?}, not Application")]
    Type(String),
}

impl Ignored {
    /// The stable word for it.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::Type(_) => "not-an-application",
        }
    }
}

/// One more thing that an application offers in menus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action<'a> {
    /// Its identifier.
    pub id: Cow<'a, str>,
    /// What menus call it.
    pub name: Cow<'a, str>,
    /// Its command line. `None` where it is started over D-Bus alone.
    pub argv: Option<Vec<String>>,
}

/// An application's entry. Borrows what stands in the file as it is.
#[derive(Debug, Clone)]
pub struct DesktopEntry<'a> {
    slots: Slots<'a>,
    /// What menus call it.
    pub name: Cow<'a, str>,
    /// The categories of the menu specification that it names.
    pub categories: Vec<Cow<'a, str>>,
    /// The command line when it is started without files. `None` where it is started over D-Bus alone.
    pub argv: Option<Vec<String>>,
    /// What that command line starts.
    pub launch: Launch,
    /// Its actions in the order of the file, if they were asked for.
    pub actions: Vec<Action<'a>>,
}

impl<'a> DesktopEntry<'a> {
    /// The value of a key, its escapes undone, in the language that was asked for.
    #[must_use]
    pub fn text(&self, key: Key) -> Option<Cow<'a, str>> {
        self.slots.raw(key).map(value::text)
    }

    /// The elements of a list. `None` where the key does not stand at all.
    #[must_use]
    pub fn list(&self, key: Key) -> Option<Vec<Cow<'a, str>>> {
        self.slots.raw(key).map(value::list)
    }

    /// Whether a key is true.
    #[must_use]
    pub fn flag(&self, key: Key) -> bool {
        self.slots.raw(key).is_some_and(value::flag)
    }
}

/// Reads the bytes of one desktop entry.
pub fn parse<'a>(bytes: &'a [u8], question: &Question<'_>) -> Parsed<'a> {
    let mut diagnostics = Diagnostics::default();
    let verdict = read(bytes, question, &mut diagnostics).unwrap_or_else(Verdict::Reject);
    Parsed { verdict, diagnostics }
}

fn read<'a>(
    bytes: &'a [u8],
    question: &Question<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Verdict<'a>, Rejection> {
    if bytes.len() as u64 > MAX_DESKTOP_FILE_BYTES {
        return Err(Rejection::TooLarge { bytes: bytes.len(), limit: MAX_DESKTOP_FILE_BYTES });
    }
    let (mut lines, marked) = Lines::of(bytes);
    if marked {
        diagnostics.note(1, Fault::ByteOrderMark);
    }
    find_main_group(&mut lines)?;
    let mut slots = Slots::new();
    let next_group = read_group(&mut lines, question.locale, &mut slots, diagnostics)?;
    slots.check(diagnostics);
    let verdict = judge(slots, question, diagnostics)?;
    let verdict = match (verdict, next_group) {
        (Verdict::App(mut entry), group) if question.actions => {
            entry.actions = read_actions(&entry, group, &mut lines, question, diagnostics)?;
            Verdict::App(entry)
        }
        (verdict, _) => verdict,
    };
    if let Some(line) = lines.carriage_return {
        diagnostics.note(line, Fault::CarriageReturn);
    }
    Ok(verdict)
}

fn find_main_group(lines: &mut Lines<'_>) -> Result<(), Rejection> {
    match lines.find(|line| *line != Line::Nothing) {
        Some(Line::Group(b"Desktop Entry")) => Ok(()),
        _ => Err(Rejection::NoMainGroup),
    }
}

fn judge<'a>(
    slots: Slots<'a>,
    question: &Question<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Verdict<'a>, Rejection> {
    if slots.raw(Key::Hidden).is_some_and(value::flag) {
        return Ok(Verdict::Ignore(Ignored::Hidden));
    }
    let kind = slots.raw(Key::Type).ok_or(Rejection::Missing(Key::Type))?.trim_ascii();
    if kind != b"Application" {
        return Ok(Verdict::Ignore(Ignored::Type(shortened(&value::text(kind)))));
    }
    let name = slots.raw(Key::Name).map(value::text).filter(|name| !name.trim().is_empty());
    let name = name.ok_or(Rejection::Missing(Key::Name))?;
    let icon = slots.raw(Key::Icon).map(value::text);
    let argv = command(&slots, &name, icon.as_deref(), question, diagnostics)?;
    if argv.is_none() && !slots.raw(Key::DBusActivatable).is_some_and(value::flag) {
        return Err(Rejection::Missing(Key::Exec));
    }
    let launch = match (container(&slots), &argv) {
        (Some(sandbox), _) => Launch::inside(sandbox),
        (None, Some(argv)) => follow(argv),
        (None, None) => Launch::unknown("it is started over D-Bus"),
    };
    let categories = slots.raw(Key::Categories).map(value::list).unwrap_or_default();
    Ok(Verdict::App(Box::new(DesktopEntry { slots, name, categories, argv, launch, actions: Vec::new() })))
}

fn command(
    slots: &Slots<'_>,
    name: &str,
    icon: Option<&str>,
    question: &Question<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<Vec<String>>, ExecError> {
    let Some(slot) = slots.slot(Key::Exec) else { return Ok(None) };
    if std::str::from_utf8(slot.value).is_err() {
        return Err(ExecError::NotUtf8);
    }
    let fields = Fields { name, icon, location: question.location };
    arguments(&value::text(slot.value), fields, |fault| diagnostics.note(slot.line, fault)).map(Some)
}

/// Characters of an unknown type that are repeated.
const SHOWN_CHARS: usize = 80;

fn shortened(text: &str) -> String {
    text.chars().take(SHOWN_CHARS).collect()
}

/// The container that wrote the entry, by the key it adds.
fn container(slots: &Slots<'_>) -> Option<Sandbox> {
    let has = |key| slots.raw(key).is_some_and(|value| !value.is_empty());
    if has(Key::Flatpak) {
        return Some(Sandbox::Flatpak);
    }
    has(Key::SnapInstance).then_some(Sandbox::Snap)
}

fn read_actions<'a>(
    entry: &DesktopEntry<'a>,
    mut group: Option<&'a [u8]>,
    lines: &mut Lines<'a>,
    question: &Question<'_>,
    diagnostics: &mut Diagnostics,
) -> Result<Vec<Action<'a>>, Rejection> {
    let Some(slot) = entry.slots.slot(Key::Actions) else { return Ok(Vec::new()) };
    let mut named = entry.list(Key::Actions).unwrap_or_default();
    if named.len() > MAX_ACTIONS {
        diagnostics.note(slot.line, Fault::TooManyActions { limit: MAX_ACTIONS });
        named.truncate(MAX_ACTIONS);
    }
    let mut actions = Vec::new();
    while let Some(name) = group.filter(|_| !named.is_empty()) {
        let id = name.strip_prefix(b"Desktop Action ").map(String::from_utf8_lossy);
        let Some(at) = id.and_then(|id| named.iter().position(|named| *named == id)) else {
            group = lines.find_map(|line| if let Line::Group(name) = line { Some(name) } else { None });
            continue;
        };
        let id = named.swap_remove(at);
        let mut slots = Slots::new();
        group = read_group(lines, question.locale, &mut slots, diagnostics)?;
        slots.check(diagnostics);
        match action(id, &slots, entry, question, diagnostics) {
            Some(action) => actions.push(action),
            None => diagnostics.note(slot.line, Fault::ActionUndefined),
        }
    }
    for _ in named {
        diagnostics.note(slot.line, Fault::ActionUndefined);
    }
    Ok(actions)
}

fn action<'a>(
    id: Cow<'a, str>,
    slots: &Slots<'a>,
    entry: &DesktopEntry<'a>,
    question: &Question<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Action<'a>> {
    let name = slots.raw(Key::Name).map(value::text).filter(|name| !name.is_empty())?;
    let icon = slots.raw(Key::Icon).map(value::text).or_else(|| entry.text(Key::Icon));
    let argv = command(slots, &name, icon.as_deref(), question, diagnostics).ok()?;
    (argv.is_some() || entry.flag(Key::DBusActivatable)).then_some(Action { id, name, argv })
}
