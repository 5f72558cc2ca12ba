//! The program of a desktop entry.

use std::rc::Rc;
use std::sync::Arc;

use super::command::{Target, target};
use super::{Basis, MAX_REMEMBERED, ProgramKind, ProgramReport, Programs, Trip};
use crate::desktop::AppFacts;
use crate::toolkit::Toolkit;

/// What says that an application is one for the terminal where nothing else does.
const IN_TERMINAL: &str = "its entry says Terminal=true";

/// What is kept of a probed program.
#[derive(Debug)]
pub(crate) struct Probed {
    pub(crate) toolkit: Option<Toolkit>,
    /// What tells the toolkit, or why nothing does.
    pub(crate) told: Option<Arc<str>>,
    /// The program at the end of a chain of scripts, at the end of all links.
    pub(crate) program: Option<Arc<str>>,
    /// The files that this rests on.
    pub(crate) basis: Box<[Arc<Basis>]>,
    /// Whether the search path was gone through for it.
    pub(crate) searched: bool,
    /// Whether a file was not there, so that its coming would go unseen.
    pub(crate) is_missing: bool,
}

impl Programs<'_> {
    /// Probes the program of an application. One that its entry runs in a terminal, and that names no toolkit with
    /// windows of its own, is one for the terminal.
    #[must_use]
    pub fn probe_entry(&self, facts: &AppFacts) -> ProgramReport {
        let mut report = match (&facts.argv, unknown(facts)) {
            (Some(argv), None) => self.probe_command(argv),
            (_, why) => why.unwrap_or_else(|| nameless(facts)),
        };
        if facts.terminal && report.toolkit.is_none() {
            report.tell(Toolkit::Terminal, IN_TERMINAL.to_owned());
        }
        report
    }

    /// The same in short; a program that several entries start is probed once.
    pub(crate) fn probed(&self, facts: &AppFacts) -> Rc<Probed> {
        let probed = match (&facts.argv, unknown(facts)) {
            (Some(argv), None) => self.started(argv),
            (_, why) => self.kept(|_| why.unwrap_or_else(|| nameless(facts))),
        };
        if !facts.terminal || probed.toolkit.is_some() {
            return probed;
        }
        let (toolkit, told) = (Some(Toolkit::Terminal), Some(IN_TERMINAL.into()));
        let (program, basis) = (probed.program.clone(), probed.basis.clone());
        Rc::new(Probed { toolkit, told, program, basis, ..*probed })
    }

    fn started(&self, argv: &[String]) -> Rc<Probed> {
        let words: Vec<Option<String>> = argv.iter().cloned().map(Some).collect();
        match target(&words) {
            Target::Program(program) => {
                if let Some(known) = self.probed.borrow().get(&program) {
                    return known.clone();
                }
                let probed = self.kept(|programs| programs.probe(&program));
                let mut known = self.probed.borrow_mut();
                if known.len() < MAX_REMEMBERED {
                    known.insert(program, probed.clone());
                }
                probed
            }
            target => self.kept(|programs| {
                let report = programs.targeted(target, None, &mut Trip::default());
                report.unwrap_or_else(|| programs.probe_command(argv))
            }),
        }
    }

    /// Keeps what is worth it of a report, and what was looked at for it.
    fn kept(&self, report: impl FnOnce(&Self) -> ProgramReport) -> Rc<Probed> {
        self.noted.borrow_mut().clear();
        self.searched.set(false);
        let report = report(self);
        let told = report.evidence.as_deref().or(report.why.as_deref());
        Rc::new(Probed {
            toolkit: report.toolkit,
            told: told.map(Arc::from),
            program: last(&report).resolved.as_deref().map(Arc::from),
            basis: self.noted.borrow().as_slice().into(),
            searched: self.searched.get(),
            is_missing: is_missing(&report),
        })
    }
}

/// Why the program of an application cannot be looked at.
fn unknown(facts: &AppFacts) -> Option<ProgramReport> {
    let why = "runs inside a container, whose files are elsewhere";
    facts.launch.sandbox.is_some().then(|| refused(facts, why))
}

fn nameless(facts: &AppFacts) -> ProgramReport {
    refused(facts, "is started over D-Bus alone: its entry names no program")
}

fn refused(facts: &AppFacts, why: &str) -> ProgramReport {
    ProgramReport::refused(facts.name.clone(), ProgramKind::Other, &why)
}

/// The program at the end of a chain of scripts.
fn last(report: &ProgramReport) -> &ProgramReport {
    report.starts.as_deref().map_or(report, last)
}

/// Whether a file of the chain is not there.
fn is_missing(report: &ProgramReport) -> bool {
    let own = report.resolved.is_none() && matches!(report.kind, ProgramKind::Missing | ProgramKind::Error);
    own || report.starts.as_deref().is_some_and(is_missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desktop::Launch;
    use crate::program::Root;

    fn facts(program: &str) -> AppFacts {
        AppFacts {
            name: "One".into(),
            categories: Vec::new(),
            argv: Some(vec![program.into(), "--new".into()]),
            launch: Launch::default(),
            working_folder: None,
            try_exec: None,
            window_class: None,
            terminal: false,
            no_display: false,
            dbus_activatable: false,
            diagnosed: false,
        }
    }

    #[test]
    fn a_program_of_several_entries_is_probed_once_to_the_limit_and_each_time_beyond_it() {
        let root = Root::system();
        let programs = Programs::new(&root, []);
        for number in 0..=MAX_REMEMBERED {
            assert!(programs.probed(&facts(&format!("gone{number}"))).is_missing);
        }
        assert_eq!(programs.probed.borrow().len(), MAX_REMEMBERED);
        let same = |name: &str| Rc::ptr_eq(&programs.probed(&facts(name)), &programs.probed(&facts(name)));
        assert!(same("gone0") && !same(&format!("gone{MAX_REMEMBERED}")));
    }

    #[test]
    fn in_short_a_program_is_what_its_report_says() {
        let root = Root::system();
        let programs = Programs::new(&root, ["/usr/bin".into(), "/bin".into()]);
        for (name, terminal) in
            [("sh", false), ("sh", true), ("gone", false), ("/bin/sh", false), ("env", true)]
        {
            let facts = AppFacts { terminal, ..facts(name) };
            let (short, report) = (programs.probed(&facts), programs.probe_entry(&facts));
            let told = report.evidence.as_deref().or(report.why.as_deref());
            assert_eq!(
                (short.toolkit, short.told.as_deref(), short.program.as_deref()),
                (report.toolkit, told, last(&report).resolved.as_deref()),
                "{name}"
            );
        }
    }
}
