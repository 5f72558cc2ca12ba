//! What probing a program found, for people and programs.

use serde::Serialize;

use crate::desktop::StatKey;
use crate::elf::Elf;
use crate::toolkit::Toolkit;

/// What a file is. The words are those of the test data's `expected.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProgramKind {
    /// A program or library that the kernel loads.
    Elf,
    /// Text that an interpreter reads.
    Script,
    /// Neither.
    Other,
    /// There is no such file.
    Missing,
    /// Refused: it cannot be read, or what it says cannot be.
    Error,
}

/// What probing a program found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProgramReport {
    /// The program as it was named.
    pub file: String,
    /// What it is.
    pub kind: ProgramKind,
    /// The file at the end of all links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolved: Option<String>,
    /// By what a change of that file is seen.
    #[serde(skip)]
    pub stat: Option<StatKey>,
    /// The toolkit, if it can be told.
    pub toolkit: Option<Toolkit>,
    /// What tells the toolkit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Why it was refused, or why nothing more can be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What an ELF file says about itself.
    #[serde(flatten)]
    pub elf: Option<Elf>,
    /// The interpreter that a script names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// What a script starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts: Option<Box<Self>>,
}

impl ProgramReport {
    pub(super) fn new(file: String, kind: ProgramKind) -> Self {
        Self {
            file,
            kind,
            resolved: None,
            stat: None,
            toolkit: None,
            evidence: None,
            why: None,
            elf: None,
            interpreter: None,
            starts: None,
        }
    }

    pub(super) fn refused(file: String, kind: ProgramKind, why: &dyn std::fmt::Display) -> Self {
        let why = Some(format!("{file}: {why}"));
        Self { why, ..Self::new(file, kind) }
    }

    pub(super) fn tell(&mut self, toolkit: Toolkit, evidence: String) {
        (self.toolkit, self.evidence) = (Some(toolkit), Some(evidence));
    }
}
