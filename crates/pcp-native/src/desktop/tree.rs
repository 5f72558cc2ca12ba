//! The desktop files of all data folders, by stat alone, in the order in which they count.
//!
//! [`list`] opens no file: a cache is found valid without reading anything. [`Listing::resolve`] then settles which
//! file of an id counts, with whatever the caller knows of it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::dir::Type;
use nix::sys::stat::{FileStat, SFlag, makedev, stat};
use pcp_core::AppId;

use super::app_id::app_id;
use super::entry::Ignored;
use super::file::{StatKey, check, kind};
use super::folder::{Folder, joined};
use super::skip::{SkipReason, Skips};

/// Most desktop files of one scan: five times what a full desktop system has.
pub const MAX_DESKTOP_FILES: usize = 10_000;

/// Most folders between `applications` and a file: menus nest two deep, Wine's a few more.
pub const MAX_DEPTH: usize = 8;

/// Most folders of one scan: links could otherwise multiply them without a loop.
pub const MAX_DIRECTORIES: usize = 2000;

/// Most names of one folder that are looked at, of whatever kind: they are sorted in memory.
pub const MAX_DIRECTORY_NAMES: usize = 40_000;

/// Most folders of one scan that stay open while their files are read: each is a file descriptor. Those beyond are
/// found by their whole path.
pub const MAX_HELD_FOLDERS: usize = 32;

/// The limits of one scan.
#[derive(Debug, Clone, Copy)]
pub struct TreeLimits {
    /// See [`MAX_DESKTOP_FILES`].
    pub files: usize,
    /// See [`MAX_DEPTH`].
    pub depth: usize,
    /// See [`MAX_DIRECTORIES`].
    pub directories: usize,
    /// See [`MAX_DIRECTORY_NAMES`].
    pub names: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self {
            files: MAX_DESKTOP_FILES,
            depth: MAX_DEPTH,
            directories: MAX_DIRECTORIES,
            names: MAX_DIRECTORY_NAMES,
        }
    }
}

/// What stands behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backing {
    /// A regular file.
    File,
    /// A link to `/dev/null`: the way to say that no file of this id counts.
    Null,
}

/// A file that may count for its id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The desktop file id: the path below `applications`, with `-` for every `/`.
    pub id: String,
    /// Where it is.
    pub path: PathBuf,
    /// By what a change is seen.
    pub stat: StatKey,
    /// Whether there is anything to read.
    pub backing: Backing,
    /// The folder it lies in.
    pub(super) folder: Folder,
}

impl Candidate {
    /// The folder it lies in, if that is held open, and its name there.
    pub(super) fn held(&self) -> Option<(BorrowedFd<'_>, &OsStr)> {
        Some((self.folder.handle()?, self.path.file_name()?))
    }
}

/// What a scan found without opening a file.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The files, the one that counts most first among those of one id.
    pub candidates: Vec<Candidate>,
    /// What was left out.
    pub skipped: Skips,
    /// The folders that were looked through: a new file can only appear in one of them.
    pub directories: Vec<PathBuf>,
}

/// How a file stands once it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing<T> {
    /// It is the application of its id.
    Wins(T),
    /// It is none, and no other file of its id counts either.
    Masks(Ignored),
    /// It counts for nothing, and the next file of its id gets its turn.
    Passes(SkipReason),
}

/// An application that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Winner<T> {
    /// The application.
    pub app_id: AppId,
    /// Its file.
    pub candidate: Candidate,
    /// What the file says.
    pub value: T,
}

/// What counts.
#[derive(Debug, Clone)]
pub struct Resolved<T> {
    /// The applications, sorted by file id.
    pub winners: Vec<Winner<T>>,
    /// The files that say there is no application of their id.
    pub masks: Vec<(Candidate, Ignored)>,
    /// What was left out, here and in the listing.
    pub skipped: Skips,
    /// The folders that were looked through.
    pub directories: Vec<PathBuf>,
}

impl Listing {
    /// Settles which file of each id counts. `read` is asked once for every file that may.
    pub fn resolve<T>(self, mut read: impl FnMut(&Candidate) -> Standing<T>) -> Resolved<T> {
        let mut skipped = self.skipped;
        let mut settled = HashSet::new();
        let mut standings = Vec::with_capacity(self.candidates.len());
        for candidate in &self.candidates {
            let standing = (!settled.contains(candidate.id.as_str())).then(|| read(candidate));
            if matches!(standing, Some(Standing::Wins(_) | Standing::Masks(_))) {
                settled.insert(candidate.id.as_str());
            }
            standings.push(standing);
        }
        drop(settled);
        let (mut won, mut masks) = (Vec::with_capacity(standings.len()), Vec::new());
        for (candidate, standing) in self.candidates.into_iter().zip(standings) {
            match standing {
                Some(Standing::Passes(reason)) => skipped.note(candidate.path, reason),
                Some(Standing::Masks(why)) => masks.push((candidate, why)),
                Some(Standing::Wins(value)) => won.push((candidate, value)),
                None => {}
            }
        }
        Resolved { winners: name(won, &mut skipped), masks, skipped, directories: self.directories }
    }
}

/// Gives every file its application id. Whose file id is one already comes before whose has to be changed.
fn name<T>(won: Vec<(Candidate, T)>, skipped: &mut Skips) -> Vec<Winner<T>> {
    let (mut winners, mut changed) = (Vec::with_capacity(won.len()), Vec::new());
    for (candidate, value) in won {
        let Some(app_id) = app_id(&candidate.id) else { continue };
        let kept = candidate.id.strip_suffix(".desktop") == Some(app_id.as_str());
        let list = if kept { &mut winners } else { &mut changed };
        list.push(Winner { app_id, candidate, value });
    }
    // Two file ids are never the same, so only a changed one can meet another.
    changed.sort_by(|a, b| a.candidate.id.cmp(&b.candidate.id));
    let mut taken: HashSet<AppId> = match changed.is_empty() {
        true => HashSet::new(),
        false => winners.iter().map(|winner| winner.app_id.clone()).collect(),
    };
    for winner in changed {
        if taken.insert(winner.app_id.clone()) {
            winners.push(winner);
        } else {
            skipped.note(winner.candidate.path, SkipReason::IdTaken { id: winner.app_id.to_string() });
        }
    }
    winners.sort_by(|a, b| a.candidate.id.cmp(&b.candidate.id));
    winners
}

/// Looks through the data folders, the most important one first. A folder that is absent is no finding.
#[must_use]
pub fn list(dirs: &[PathBuf], limits: TreeLimits) -> Listing {
    let mut walk = Walk { limits, found: Listing::default(), directories: 0, above: Vec::new() };
    let mut roots = HashSet::new();
    for dir in dirs {
        let root = dir.join("applications");
        match stat(&root) {
            // The same folder named twice, by whatever path, adds nothing the second time.
            Ok(facts) if !roots.insert((facts.st_dev, facts.st_ino)) => {}
            Ok(facts) => {
                if walk.enter(&root, "", &facts).is_break() {
                    break;
                }
            }
            Err(nix::errno::Errno::ENOENT) => {}
            Err(errno) => walk.found.skipped.note(root, SkipReason::of(errno)),
        }
    }
    walk.found
}

/// Whether the scan goes on.
type Flow = std::ops::ControlFlow<()>;

struct Walk {
    limits: TreeLimits,
    found: Listing,
    directories: usize,
    /// The folders above the one that is read.
    above: Vec<(u64, u64)>,
}

impl Walk {
    fn skip(&mut self, path: &Path, reason: SkipReason) -> Flow {
        self.found.skipped.note(path, reason);
        Flow::Continue(())
    }

    fn enter(&mut self, folder: &Path, prefix: &str, facts: &FileStat) -> Flow {
        let own = (facts.st_dev, facts.st_ino);
        if self.above.contains(&own) {
            return self.skip(folder, SkipReason::DirectoryLoop);
        }
        if self.above.len() > self.limits.depth {
            return self.skip(folder, SkipReason::TooDeep { limit: self.limits.depth });
        }
        if self.directories == self.limits.directories {
            let _ = self.skip(folder, SkipReason::TooManyDirectories { limit: self.limits.directories });
            return Flow::Break(());
        }
        self.directories += 1;
        self.found.directories.push(folder.to_owned());
        let (handle, names) = self.names(folder);
        self.above.push(own);
        let mut names = names.into_iter();
        let flow = names.try_for_each(|(name, kind)| self.look(folder, &handle, prefix, &name, kind));
        self.above.pop();
        flow
    }

    /// The names that may matter, sorted, so that every scan gives the same answer.
    fn names(&mut self, path: &Path) -> (Folder, Vec<(OsString, Option<Type>)>) {
        let mut names = Vec::new();
        let skipped = &mut self.found.skipped;
        let listed = Folder::list(path, |number, name, kind| {
            if number == self.limits.names {
                skipped.note(path, SkipReason::TooManyNames { limit: self.limits.names });
                return Flow::Break(());
            }
            if may_matter(name, kind) {
                names.push((name.to_owned(), kind));
            }
            Flow::Continue(())
        });
        let folder = listed.unwrap_or_else(|errno| {
            skipped.note(path, SkipReason::of(errno));
            Folder::default()
        });
        names.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let is_held = self.directories <= MAX_HELD_FOLDERS;
        (if is_held { folder } else { Folder::default() }, names)
    }

    fn look(
        &mut self,
        folder: &Path,
        handle: &Folder,
        prefix: &str,
        name: &OsString,
        listed: Option<Type>,
    ) -> Flow {
        let path = joined(folder, name);
        let facts = match handle.stat(name, &path) {
            Ok(facts) => facts,
            // A link to nowhere that is called like no desktop file would have been ignored as a file too.
            Err(_) if !is_desktop(name) && listed != Some(Type::Directory) => return Flow::Continue(()),
            Err(errno) => return self.skip(&path, SkipReason::of_listed(errno)),
        };
        let is_folder = kind(&facts) == SFlag::S_IFDIR;
        if !is_folder && !is_desktop(name) {
            return Flow::Continue(());
        }
        let Some(text) = name.to_str() else { return self.skip(&path, SkipReason::NameNotUtf8) };
        if is_folder {
            return self.enter(&path, &[prefix, text, "-"].concat(), &facts);
        }
        self.file(path, handle, [prefix, text].concat(), &facts)
    }

    fn file(&mut self, path: PathBuf, handle: &Folder, id: String, facts: &FileStat) -> Flow {
        let backing = if is_null(facts) { Backing::Null } else { Backing::File };
        if backing == Backing::File
            && let Err(reason) = check(facts)
        {
            return self.skip(&path, reason);
        }
        if self.found.candidates.len() == self.limits.files {
            let _ = self.skip(&path, SkipReason::TooManyFiles { limit: self.limits.files });
            return Flow::Break(());
        }
        let (stat, folder) = (StatKey::of(facts), handle.clone());
        self.found.candidates.push(Candidate { id, path, stat, backing, folder });
        Flow::Continue(())
    }
}

fn is_desktop(name: &OsStr) -> bool {
    name.as_bytes().ends_with(b".desktop")
}

/// Files that are called otherwise are never stat'ed: icon caches and the like.
fn may_matter(name: &OsStr, kind: Option<Type>) -> bool {
    is_desktop(name) || matches!(kind, None | Some(Type::Directory | Type::Symlink))
}

/// Whether these are the facts of `/dev/null`, by its number on Linux.
fn is_null(facts: &FileStat) -> bool {
    kind(facts) == SFlag::S_IFCHR && facts.st_rdev == makedev(1, 3)
}
