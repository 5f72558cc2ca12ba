//! The program of a desktop entry.

use crate::desktop::AppFacts;
use crate::toolkit::Toolkit;

use super::{ProgramKind, ProgramReport, Programs};

impl Programs<'_> {
    /// Probes the program of an application. One that its entry runs in a terminal, and that names no toolkit with
    /// windows of its own, is one for the terminal.
    #[must_use]
    pub fn probe_entry(&self, facts: &AppFacts) -> ProgramReport {
        let unknown = |why: &str| ProgramReport::refused(facts.name.clone(), ProgramKind::Other, &why);
        let mut report = match &facts.argv {
            _ if facts.launch.sandbox.is_some() => {
                unknown("runs inside a container, whose files are elsewhere")
            }
            Some(argv) => self.probe_command(argv),
            None => unknown("is started over D-Bus alone: its entry names no program"),
        };
        if facts.terminal && report.toolkit.is_none() {
            report.tell(Toolkit::Terminal, "its entry says Terminal=true".to_owned());
        }
        report
    }
}
