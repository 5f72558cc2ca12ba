//! Programs probed without being run: what a file is, and which toolkit draws its windows.
//!
//! Opens files beneath a [`Root`], reads a bounded part of each, follows scripts to what they start. It runs nothing,
//! and what an application can do is not its word (`predict`'s). Start with [`Programs::probe`].

pub(crate) mod basis;
mod command;
pub(crate) mod entry;
pub(crate) mod file;
mod imported;
mod places;
pub mod report;
pub mod root;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

pub use basis::Basis;
pub use report::{ProgramKind, ProgramReport};
pub use root::{OpenError, Opened, Root};

use crate::elf::{Elf, lossy};
use crate::script::{Language, MAX_SCRIPT_BYTES, Shebang, imports, shell};
use crate::toolkit::beside::{Beside, Folders};
use crate::toolkit::libraries::Libraries;
use crate::toolkit::{Toolkit, curses, of_needed};
use command::Target;
use entry::Probed;
use file::{Head, read_elf};
use places::{Found, Places};

/// Most programs that start one another: a desktop entry's wrapper, its wrapper, the program, and one more.
pub const MAX_CHAIN: usize = 4;

/// Where the names that applications have on the bus are registered with their programs.
const SERVICES: &str = "/usr/share/dbus-1/services";

/// Most programs whose reports are remembered: as many as a full desktop system starts.
const MAX_REMEMBERED: usize = 4096;

/// Where programs are looked up. What many of them have in common is looked at once, so that a value is for one pass.
#[derive(Debug)]
pub struct Programs<'a> {
    root: &'a Root,
    places: Places,
    beside: Folders,
    libraries: Libraries,
    /// What was said of the program of this name.
    probed: RefCell<HashMap<String, Rc<Probed>>>,
    /// The files that were looked at since somebody asked.
    noted: RefCell<Vec<Arc<Basis>>>,
    /// Whether the search path was gone through since then.
    searched: Cell<bool>,
    /// The first bytes of a program, the room for which is used again.
    head: RefCell<Head>,
}

/// What was come through on the way to a program.
#[derive(Default)]
struct Trip {
    seen: Vec<(u64, u64)>,
}

impl<'a> Programs<'a> {
    /// Looks programs up in `root`, and those named without a path in the folders of `path`, in that order.
    pub fn new(root: &'a Root, path: impl IntoIterator<Item = PathBuf>) -> Self {
        Self {
            root,
            places: Places::new(path),
            beside: Folders::default(),
            libraries: Libraries::default(),
            probed: RefCell::default(),
            noted: RefCell::default(),
            searched: Cell::default(),
            head: RefCell::default(),
        }
    }

    /// Probes the program that a word names: a path, or a name that is looked up.
    #[must_use]
    pub fn probe(&self, program: &str) -> ProgramReport {
        self.named(program, None, &mut Trip::default())
    }

    /// Probes the program that a command line starts, behind wrappers and interpreters.
    #[must_use]
    pub fn probe_command(&self, command: &[String]) -> ProgramReport {
        let words: shell::Command = command.iter().cloned().map(Some).collect();
        let whole = || command.join(" ");
        self.command(&words, None, &mut Trip::default())
            .unwrap_or_else(|| ProgramReport::refused(whole(), ProgramKind::Other, &"names no program"))
    }

    /// Probes the file at `path`, whatever its name.
    #[must_use]
    pub fn probe_file(&self, path: &Path) -> ProgramReport {
        self.file(path, None, &mut Trip::default())
    }

    fn named(&self, program: &str, language: Option<Language>, trip: &mut Trip) -> ProgramReport {
        if program.contains('/') {
            return self.file(Path::new(program), language, trip);
        }
        self.searched.set(true);
        match self.places.search(self.root, program) {
            Some(found) => self.opened(found, language, trip),
            None => ProgramReport::refused(
                program.to_owned(),
                ProgramKind::Missing,
                &"not found in any folder of the search path",
            ),
        }
    }

    fn file(&self, path: &Path, language: Option<Language>, trip: &mut Trip) -> ProgramReport {
        match self.places.open(self.root, path) {
            Ok(found) => self.opened(found, language, trip),
            Err(error) => {
                let kind =
                    if error == OpenError::Missing { ProgramKind::Missing } else { ProgramKind::Error };
                ProgramReport::refused(path.display().to_string(), kind, &error)
            }
        }
    }

    /// Opens a file that a finding may rest on.
    fn open(&self, path: &Path) -> Result<Opened, OpenError> {
        let opened = self.root.open(path)?;
        self.note(path, &opened);
        Ok(opened)
    }

    fn note(&self, path: &Path, opened: &Opened) {
        self.noted.borrow_mut().push(Arc::new(Basis::new(path, opened.stat)));
    }

    fn opened(&self, found: Found, language: Option<Language>, trip: &mut Trip) -> ProgramReport {
        let Found { path, opened, resolved } = found;
        let name = shown(&path);
        self.note(&path, &opened);
        let refused =
            |why: &dyn std::fmt::Display| ProgramReport::refused(name.clone(), ProgramKind::Error, why);
        let identity = (opened.stat.dev, opened.stat.ino);
        if trip.seen.contains(&identity) {
            return refused(&"starts itself");
        }
        trip.seen.push(identity);
        if trip.seen.len() > MAX_CHAIN {
            return refused(&format_args!("more than {MAX_CHAIN} programs start one another"));
        }
        let mut head = self.head.take();
        if let Err(error) = head.read(&opened) {
            return refused(&error);
        }
        let place = resolved.as_deref().unwrap_or(&path);
        let mut report = if let Some(elf) = head.elf(&opened) {
            self.head.replace(head);
            match elf {
                Ok(elf) => self.elf(name, place, elf),
                Err(error) => refused(&error),
            }
        } else if language.is_some() || head.bytes().starts_with(b"#!") {
            match head.text(&opened, MAX_SCRIPT_BYTES) {
                Ok(text) => self.script(name, place, &head, &text, language, trip),
                Err(error) => refused(&error),
            }
        } else {
            other(name, head.bytes())
        };
        report.resolved = resolved.map(|path| shown(&path));
        report.stat = Some(opened.stat);
        report
    }

    fn elf(&self, name: String, place: &Path, elf: Elf) -> ProgramReport {
        let mut report = ProgramReport::new(name, ProgramKind::Elf);
        match self.drawn(place, &elf) {
            Some((toolkit, evidence)) => report.tell(toolkit, evidence),
            None if elf.needed.is_empty() => {
                report.why = Some("needs no library that could name a toolkit".to_owned())
            }
            None => report.why = Some("no library it needs names a toolkit".to_owned()),
        }
        report.elf = Some(elf);
        report
    }

    /// The toolkit of an ELF program and what tells it, the cheapest question first.
    fn drawn(&self, place: &Path, elf: &Elf) -> Option<(Toolkit, String)> {
        let direct = of_needed(&elf.needed).map(|(toolkit, name)| (toolkit, ["needs ", name].concat()));
        if let Some((Toolkit::Qt5 | Toolkit::Qt6 | Toolkit::Electron, _)) = &direct {
            return direct;
        }
        // An engine that is linked in needs GTK for its dialogs alone.
        match self.beside.look(self.root, place) {
            Some(Beside::Engine(toolkit, file)) => {
                return Some((toolkit, format!("stands beside {}", file.display())));
            }
            Some(Beside::Library(library)) if direct.is_none() => {
                let read = read_elf(self.root, &library, &self.head).ok();
                if let Some((stat, _)) = &read {
                    self.noted.borrow_mut().push(Arc::new(Basis::new(&library, *stat)));
                }
                let needed = read.as_ref().and_then(|(_, elf)| of_needed(&elf.needed));
                if let Some((toolkit, needs)) = needed {
                    return Some((
                        toolkit,
                        format!("stands beside {}, which needs {needs}", library.display()),
                    ));
                }
            }
            _ => {}
        }
        direct
            .or_else(|| curses(&elf.needed).map(|name| (Toolkit::Terminal, format!("needs {name}"))))
            .or_else(|| {
                let note = |basis: &Arc<Basis>| self.noted.borrow_mut().push(basis.clone());
                self.libraries.look((self.root, &self.head), elf, place, note)
            })
    }

    fn script(
        &self,
        name: String,
        place: &Path,
        head: &Head,
        text: &str,
        language: Option<Language>,
        trip: &mut Trip,
    ) -> ProgramReport {
        let mut report = ProgramReport::new(name, ProgramKind::Script);
        let shebang = Shebang::read(head.bytes());
        report.interpreter = shebang.as_ref().map(|shebang| shebang.interpreter.clone());
        let named = || Language::of(report.interpreter.as_deref().unwrap_or_default());
        let language = language.unwrap_or_else(named);
        if language == Language::Shell {
            self.follow(&mut report, shell::commands(text, place), place, trip);
        } else if language == Language::Java {
            report.tell(Toolkit::Java, "is read by java".to_owned());
        } else if let Some((toolkit, evidence)) = self.imported(language, text, place) {
            report.tell(toolkit, evidence);
        }
        if report.toolkit.is_none() && report.why.is_none() {
            report.why = Some("nothing in the script names a toolkit".to_owned());
        }
        report
    }

    /// Follows a wrapper to the first of its commands that names a program that is there.
    fn follow(
        &self,
        report: &mut ProgramReport,
        commands: Vec<shell::Command>,
        place: &Path,
        trip: &mut Trip,
    ) {
        let mut missing = None;
        for command in commands {
            let length = trip.seen.len();
            let Some(started) = self.command(&command, place.parent(), trip) else { continue };
            let elsewhere = matches!(started.kind, ProgramKind::Missing | ProgramKind::Error);
            if elsewhere && started.toolkit.is_none() {
                // A bare name that is not there may be a word of the script's own, and is not worth a line.
                if started.file.contains('/') {
                    missing.get_or_insert(started);
                }
                trip.seen.truncate(length);
                continue;
            }
            missing = Some(started);
            break;
        }
        if let Some(started) = missing {
            (report.toolkit, report.evidence) = (started.toolkit, started.evidence.clone());
            report.starts = Some(Box::new(started));
        }
    }

    fn command(
        &self,
        command: &[Option<String>],
        folder: Option<&Path>,
        trip: &mut Trip,
    ) -> Option<ProgramReport> {
        self.targeted(command::target(command), folder, trip)
    }

    fn targeted(&self, target: Target, folder: Option<&Path>, trip: &mut Trip) -> Option<ProgramReport> {
        match target {
            Target::Program(program) => Some(self.named(&program, None, trip)),
            Target::Script(file, language) => {
                let path = folder.map_or_else(|| PathBuf::from(&file), |folder| folder.join(&file));
                Some(self.file(&path, Some(language), trip))
            }
            Target::Module(module) => {
                let mut report = ProgramReport::new(format!("python3 -m {module}"), ProgramKind::Script);
                let text = format!("import {module}.__main__");
                match self.imported(
                    Language::Python,
                    &text,
                    folder.unwrap_or(Path::new("/")).join("-").as_path(),
                ) {
                    Some((toolkit, evidence)) => report.tell(toolkit, evidence),
                    None => report.why = Some("nothing in the module names a toolkit".to_owned()),
                }
                Some(report)
            }
            Target::Code(code, Language::Shell) => {
                let mut report = ProgramReport::new(format!("sh -c {code}"), ProgramKind::Script);
                let place = Path::new("/-");
                self.follow(&mut report, shell::commands(&code, place), place, trip);
                Some(report)
            }
            Target::Code(code, language) => {
                let mut report = ProgramReport::new(code, ProgramKind::Script);
                if let Some((toolkit, line)) = imports::toolkit(language, &report.file) {
                    report.tell(toolkit, format!("says {line}"));
                }
                Some(report)
            }
            Target::Service(name) => self.service(&name, trip),
            Target::Drawn(toolkit, by) => {
                let mut report = match by.starts_with('-') {
                    true => ProgramReport::new(by.clone(), ProgramKind::Other),
                    false => self.named(&by, None, trip),
                };
                report.tell(toolkit, format!("is started by {by}"));
                Some(report)
            }
            Target::Unknown => None,
        }
    }

    /// The program of an application that is started by its name on the bus.
    fn service(&self, name: &str, trip: &mut Trip) -> Option<ProgramReport> {
        let file = Path::new(SERVICES).join(format!("{name}.service"));
        let text = file::text(&self.open(&file).ok()?, MAX_SCRIPT_BYTES).ok()?;
        let command = text.lines().find_map(|line| line.strip_prefix("Exec="))?;
        let words: shell::Command = command.split_whitespace().map(|word| Some(word.to_owned())).collect();
        // A service that is started by its own name again would go round.
        match command::target(&words) {
            Target::Service(_) => None,
            _ => self.command(&words, None, trip),
        }
    }
}

/// A path as people read it.
fn shown(path: &Path) -> String {
    lossy(path.as_os_str().as_encoded_bytes())
}

/// A file that is neither ELF nor a script.
fn other(name: String, head: &[u8]) -> ProgramReport {
    let mut report = ProgramReport::new(name, ProgramKind::Other);
    if head.starts_with(b"PK\x03\x04") && Path::new(&report.file).extension().is_some_and(|end| end == "jar")
    {
        report.tell(Toolkit::Java, "is a jar".to_owned());
    } else if head.is_empty() {
        report.why = Some("is empty".to_owned());
    } else {
        report.why = Some("begins neither like ELF nor like a script".to_owned());
    }
    report
}
