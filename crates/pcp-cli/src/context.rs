//! What a verb is given, and what it gives back.

use std::io::Write;

use serde::Serialize;

use crate::cli::Globals;
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::Page;

/// What a verb may use.
pub(crate) struct Context<'a> {
    /// The options that every verb has.
    pub(crate) globals: &'a Globals,
    /// Where a verb that waits says so, `None` where nobody would read it.
    pub(crate) notices: Option<&'a mut dyn Write>,
}

impl Context<'_> {
    /// Tells the person at the terminal what is being waited for.
    pub(crate) fn notice(&mut self, text: &str) {
        if let Some(out) = &mut self.notices {
            // A notice that cannot be shown changes nothing about the answer.
            let _ = writeln!(out, "{}", crate::escape::plain(text));
        }
    }
}

/// An answer that can be shown to a person, besides being serialised for a program.
pub(crate) trait Show {
    /// Lays the answer out.
    fn show(&self, page: &mut Page);

    /// What is wrong, where the answer is that something is wrong.
    fn problem(&self) -> Option<Problem> {
        None
    }
}

/// An answer whose type is forgotten.
pub(crate) trait Report {
    /// The answer as JSON.
    fn data(&self) -> Result<String, Error>;
    /// As [`Show::show`].
    fn page(&self, page: &mut Page);
    /// As [`Show::problem`].
    fn trouble(&self) -> Option<Problem>;
}

impl<T: Serialize + Show> Report for T {
    fn data(&self) -> Result<String, Error> {
        Ok(serde_json::to_string(self)?)
    }

    fn page(&self, page: &mut Page) {
        self.show(page);
    }

    fn trouble(&self) -> Option<Problem> {
        self.problem()
    }
}

/// What a verb found.
pub(crate) enum Answer {
    /// Facts: an envelope for programs, a page for people.
    Report(Box<dyn Report>),
    /// A document for other programs, printed as it is.
    Document(Vec<u8>),
    /// Facts that come one after the other: an object a line for programs, a line each for people.
    Stream(Box<dyn Follow>),
}

/// What is waited for. Each report is printed before the next one is asked for.
pub(crate) trait Follow {
    /// The next thing that happened; `None` when enough has.
    fn next(&mut self) -> Result<Option<Box<dyn Report>>, Error>;
}

impl Answer {
    /// An answer of facts.
    pub(crate) fn report(report: impl Serialize + Show + 'static) -> Self {
        Self::Report(Box::new(report))
    }

    /// An answer that goes on.
    pub(crate) fn stream(follow: impl Follow + 'static) -> Self {
        Self::Stream(Box::new(follow))
    }
}
