//! What passes remember of desktop files, and what a later process may be told of it.
//!
//! Nothing here is believed: every entry holds only as long as its files are as they were. Start with
//! [`DetectionCache`].

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::desktop::{Candidate, Standing, StatKey};
use crate::detector::DesktopApp;
use crate::program::Basis;

/// The highest number of a pass; the next one is 1 again. At ten a second that is six years.
const MAX_PASS: u32 = u32::MAX >> 1;

/// What is known of one desktop file.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) stat: StatKey,
    pub(crate) standing: Standing<Arc<DesktopApp>>,
    /// The files that the finding rests on, as they were.
    pub(crate) basis: Box<[Arc<Basis>]>,
    /// Whether its program was looked for in the search path, so that another one may come before it.
    pub(crate) searched: bool,
    /// Whether it has to be looked at again in any case.
    pub(crate) is_doubtful: bool,
    /// Whether an earlier process found it.
    pub(crate) is_stored: bool,
}

/// What holds for all files of one pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    pub(crate) pass: u32,
    pub(crate) folders_hold: bool,
}

impl Known {
    /// Whether the file and its program are as they were.
    pub(crate) fn holds(&self, candidate: &Candidate, round: Round) -> bool {
        !self.is_doubtful
            && self.stat == candidate.stat
            && (!self.searched || round.folders_hold)
            && self.basis.iter().all(|one| one.holds(round.pass))
    }

    /// Keeps the value that was there when it says the same, so that nobody takes it for changed.
    pub(crate) fn same_as(mut self, before: Option<Self>) -> Self {
        if let (Standing::Wins(now), Some(Self { standing: Standing::Wins(then), .. })) =
            (&self.standing, before)
            && *now == then
        {
            self.standing = Standing::Wins(then);
        }
        self
    }
}

/// What passes remember. One entry a desktop file, so that [`TreeLimits::files`](crate::desktop::TreeLimits) bounds it.
#[derive(Debug, Default)]
pub struct DetectionCache {
    /// By the path as it is written: a path is compared and hashed part by part, which costs as much as a stat.
    pub(crate) known: HashMap<OsString, Known>,
    /// The folders of the search path as they were, where that can be told.
    pub(crate) folders: Option<Vec<Option<StatKey>>>,
    /// Whether there is anything that was not stored.
    pub(crate) changes: bool,
    /// The number of the last pass.
    pass: u32,
}

/// What a later process may be told of one desktop file: what is certain and took a look to find out.
#[derive(Debug, Clone)]
pub struct Finding<'a> {
    /// The file's path.
    pub file: &'a OsStr,
    /// By what a change of it is seen.
    pub stat: StatKey,
    /// How it stands; never [`Standing::Passes`].
    pub standing: Standing<Arc<DesktopApp>>,
    /// The files that this rests on.
    pub basis: Box<[Arc<Basis>]>,
    /// Whether the search path was gone through for it.
    pub searched: bool,
}

impl DetectionCache {
    /// How many files are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Whether something was found since [`Self::stored`] that is not stored.
    #[must_use]
    pub const fn has_changes(&self) -> bool {
        self.changes
    }

    /// Everything is stored now.
    pub const fn stored(&mut self) {
        self.changes = false;
    }

    /// The folders of the search path as they were; `None` when that could not be told.
    #[must_use]
    pub fn folders(&self) -> Option<&[Option<StatKey>]> {
        self.folders.as_deref()
    }

    /// What may be stored, in no order.
    pub fn findings(&self) -> impl Iterator<Item = Finding<'_>> {
        let certain = |known: &Known| !known.is_doubtful && !matches!(known.standing, Standing::Passes(_));
        self.known.iter().filter(move |(_, known)| certain(known)).map(|(file, known)| Finding {
            file,
            stat: known.stat,
            standing: known.standing.clone(),
            basis: known.basis.clone(),
            searched: known.searched,
        })
    }

    /// Remembers what an earlier process found, with the folders of the search path as they were then.
    #[must_use]
    pub fn restored<'a>(
        folders: Option<Vec<Option<StatKey>>>,
        findings: impl ExactSizeIterator<Item = Finding<'a>>,
    ) -> Self {
        let mut known = HashMap::with_capacity(findings.len());
        known.extend(findings.map(|finding| {
            let Finding { file, stat, standing, basis, searched } = finding;
            let known = Known { stat, standing, basis, searched, is_doubtful: false, is_stored: true };
            (file.to_owned(), known)
        }));
        Self { known, folders, changes: false, pass: 0 }
    }

    /// The number of the pass that begins; none is zero.
    pub(crate) const fn next(&mut self) -> u32 {
        self.pass = self.pass % MAX_PASS + 1;
        self.pass
    }
}
