//! Notes in a folder: one file each, a trash beside them, and an index in memory.
//!
//! ```text
//! DATA/notes/17.note     a note; the name is its id
//! DATA/trash/12.note     a deleted one
//! DATA/last-id           an id that was given; with the names above it keeps ids from being given twice
//! DATA/lock              held while a process uses the folder
//! ```
//!
//! Every change is durable when its function returns. The store reads no clock: the time is an argument.

mod load;
mod replace;
mod search;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::error::Error;
use crate::note::{Header, MAX_FILE_BYTES, Note, check_body, check_title};
use replace::{Watch, move_file, replace};

pub(crate) use search::check_query;
pub use search::{MAX_MATCHES, MAX_QUERY_CHARS, MAX_SEARCH_BYTES, Match, SNIPPET_CHARS, SearchPage};

/// Most notes, those in the trash included: their headers are in memory, about 3 MiB at this limit.
pub const MAX_NOTES: usize = 10_000;
/// Most notes of one page of a list: 200 titles of four-byte characters are 160 KiB.
pub const MAX_PAGE: usize = 200;

/// Which note a change left at which revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// The note.
    pub id: u64,
    /// Its revision now.
    pub revision: u64,
}

/// What an edit changes; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// The new title.
    pub title: Option<String>,
    /// The new body.
    pub body: Option<String>,
    /// Refuse unless the note is at this revision.
    pub expected_revision: Option<u64>,
}

impl Change {
    /// Checks what can be checked without the store.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<(), Error> {
        if self.title.is_none() && self.body.is_none() {
            return Err(Error::parameter("", "an edit needs a title or a body"));
        }
        self.title.as_deref().map_or(Ok(()), check_title)?;
        self.body.as_deref().map_or(Ok(()), check_body)
    }
}

/// One page of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<'a> {
    /// Ids and headers, by id.
    pub notes: Vec<(u64, &'a Header)>,
    /// The `after` of the next page; `None` on the last one.
    pub next: Option<u64>,
}

/// How full the store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Fill {
    /// Notes.
    pub notes: usize,
    /// Deleted notes that can be restored.
    pub trash: usize,
    /// Most of both together.
    pub limit: usize,
}

/// The notes of one data folder, which it holds alone.
pub struct Store {
    notes_dir: PathBuf,
    trash_dir: PathBuf,
    root: PathBuf,
    notes: BTreeMap<u64, Header>,
    trash: BTreeMap<u64, Header>,
    last_id: u64,
    /// What `last-id` holds; never above `last_id`.
    recorded_id: u64,
    problems: Vec<Error>,
    watch: Watch,
    _lock: File,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("root", &self.root).field("fill", &self.fill()).finish_non_exhaustive()
    }
}

impl Store {
    /// Opens the folder, which is created if it is missing; its parent has to exist.
    ///
    /// # Errors
    /// [`Error::InUse`] if another process has it open, [`Error::Disk`] if it cannot be read.
    pub fn open(root: &Path) -> Result<Self, Error> {
        Self::open_watched(root, Box::new(|_| Ok(())))
    }

    /// Files that were found and are no notes. They are left where they are.
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    /// How full the store is.
    #[must_use]
    pub fn fill(&self) -> Fill {
        Fill { notes: self.notes.len(), trash: self.trash.len(), limit: MAX_NOTES }
    }

    /// The notes with an id above `after`, at most `limit` (and [`MAX_PAGE`]) of them.
    #[must_use]
    pub fn list(&self, after: u64, limit: usize) -> Page<'_> {
        let limit = limit.clamp(1, MAX_PAGE);
        let mut rows = self.notes.range(after.saturating_add(1)..).map(|(id, header)| (*id, header));
        let notes: Vec<_> = rows.by_ref().take(limit).collect();
        let next = rows.next().and(notes.last()).map(|(id, _)| *id);
        Page { notes, next }
    }

    /// A note.
    ///
    /// # Errors
    /// [`Error::NoNote`], [`Error::Disk`] or [`Error::Broken`].
    pub fn read(&self, id: u64) -> Result<Note, Error> {
        if !self.notes.contains_key(&id) {
            return Err(Error::NoNote { id });
        }
        read_note(&self.notes_dir.join(file_name(id)))
    }

    /// Makes a note of a new id, higher than every id that was ever given.
    ///
    /// # Errors
    /// [`Error::Parameter`], [`Error::Full`], or one of the disk.
    pub fn create(&mut self, title: &str, body: &str, now_ms: u64) -> Result<Saved, Error> {
        check_title(title)?;
        check_body(body)?;
        if self.notes.len() + self.trash.len() >= MAX_NOTES {
            return Err(Error::Full);
        }
        let header = Header { revision: 1, created_ms: now_ms, changed_ms: now_ms, title: title.to_owned() };
        let id = self.last_id.saturating_add(1);
        // Given even if writing fails: another note must never answer to an id that somebody may have seen.
        self.last_id = id;
        self.write(id, Note { header, body: body.to_owned() })
    }

    /// Changes a note and counts its revision up.
    ///
    /// # Errors
    /// [`Error::NoNote`], [`Error::Stale`], [`Error::Parameter`], or one of the disk.
    pub fn edit(&mut self, id: u64, change: Change, now_ms: u64) -> Result<Saved, Error> {
        change.check()?;
        self.expect(id, change.expected_revision)?;
        let mut note = self.read(id)?;
        note.header.revision = note.header.revision.saturating_add(1);
        note.header.changed_ms = now_ms;
        if let Some(title) = change.title {
            note.header.title = title;
        }
        if let Some(body) = change.body {
            note.body = body;
        }
        self.write(id, note)
    }

    /// Moves a note to the trash, from where [`Store::restore`] brings it back.
    ///
    /// # Errors
    /// [`Error::NoNote`], [`Error::Stale`], or one of the disk.
    pub fn delete(&mut self, id: u64, expected_revision: Option<u64>) -> Result<Saved, Error> {
        let revision = self.expect(id, expected_revision)?;
        self.record_id(id)?;
        let moved = move_file(&self.notes_dir, &self.trash_dir, &file_name(id), &mut self.watch);
        if took_effect(&moved)
            && let Some(header) = self.notes.remove(&id)
        {
            self.trash.insert(id, header);
        }
        moved.map(|()| Saved { id, revision })
    }

    /// Brings a deleted note back as it was. It takes what [`Store::delete`] takes, so that an undo can repeat the
    /// parameters of the deletion.
    ///
    /// # Errors
    /// [`Error::NotInTrash`], [`Error::Stale`], or one of the disk.
    pub fn restore(&mut self, id: u64, expected_revision: Option<u64>) -> Result<Saved, Error> {
        let revision = self.trash.get(&id).ok_or(Error::NotInTrash { id })?.revision;
        same_revision(id, expected_revision, revision)?;
        let moved = move_file(&self.trash_dir, &self.notes_dir, &file_name(id), &mut self.watch);
        if took_effect(&moved)
            && let Some(header) = self.trash.remove(&id)
        {
            self.notes.insert(id, header);
        }
        moved.map(|()| Saved { id, revision })
    }

    fn expect(&self, id: u64, expected: Option<u64>) -> Result<u64, Error> {
        let found = self.notes.get(&id).ok_or(Error::NoNote { id })?.revision;
        same_revision(id, expected, found).map(|()| found)
    }

    fn write(&mut self, id: u64, note: Note) -> Result<Saved, Error> {
        let bytes = note.to_file();
        let written = replace(&self.notes_dir, &file_name(id), bytes.as_bytes(), &mut self.watch);
        let saved = Saved { id, revision: note.header.revision };
        if took_effect(&written) {
            self.notes.insert(id, note.header);
        }
        written.map(|()| saved)
    }

    /// Notes durably that `id` was given. Only deletion needs it: while a note's file is there, its name says so,
    /// but a person may empty the trash.
    fn record_id(&mut self, id: u64) -> Result<(), Error> {
        if id <= self.recorded_id {
            return Ok(());
        }
        let text = format!("{}\n", self.last_id);
        match replace(&self.root, load::LAST_ID, text.as_bytes(), &mut self.watch) {
            Ok(()) => {
                self.recorded_id = self.last_id;
                Ok(())
            }
            // No note has changed yet, whatever became of this file.
            Err(
                Error::Disk { path, source, .. }
                | Error::Unconfirmed { path, source }
                | Error::Unsettled { path, source },
            ) => Err(Error::Disk { what: "record the last id in", path, source }),
            Err(other) => Err(other),
        }
    }
}

fn same_revision(id: u64, expected: Option<u64>, found: u64) -> Result<(), Error> {
    match expected.filter(|expected| *expected != found) {
        Some(expected) => Err(Error::Stale { id, expected, found }),
        None => Ok(()),
    }
}

/// Whether the files are changed, whatever else went wrong: the index has to say what they say.
fn took_effect(result: &Result<(), Error>) -> bool {
    result.as_ref().map_or_else(|error| !error.no_effect(), |()| true)
}

fn file_name(id: u64) -> String {
    format!("{id}.note")
}

/// The id of a file, if its name is exactly what [`file_name`] makes.
fn id_of(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".note")?.parse().ok()?;
    (id > 0 && file_name(id) == name).then_some(id)
}

fn read_note(path: &Path) -> Result<Note, Error> {
    let failed = |source| Error::Disk { what: "read", path: path.to_owned(), source };
    let mut bytes = Vec::new();
    // One byte more than allowed tells a full file from one that is too long.
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(failed)?;
    let broken = |why| Error::Broken { path: path.to_owned(), why };
    if bytes.len() > MAX_FILE_BYTES {
        return Err(broken("it is larger than any note"));
    }
    Note::parse(&bytes).map_err(broken)
}
