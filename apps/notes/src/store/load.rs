//! From the files of a data folder to the index: done once, when the application starts.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use super::replace::{Watch, sweep};
use super::{Store, id_of};
use crate::error::Error;
use crate::note::{Header, MAX_HEADER_BYTES};

/// The file of the last recorded id.
pub(super) const LAST_ID: &str = "last-id";
/// The file that a running process locks.
const LOCK: &str = "lock";
/// Bytes of [`LAST_ID`]: the digits of the largest id, and a line end.
const MAX_LAST_ID_BYTES: u64 = 21;
/// Notes are nobody else's business.
const FOLDER_MODE: u32 = 0o700;
/// As for folders.
const FILE_MODE: u32 = 0o600;

impl Store {
    /// [`Store::open`] with an observer of every step.
    pub(crate) fn open_watched(root: &Path, watch: Watch) -> Result<Self, Error> {
        let (notes_dir, trash_dir) = (root.join("notes"), root.join("trash"));
        for folder in [root, &notes_dir, &trash_dir] {
            make_folder(folder)?;
        }
        let lock = lock(root)?;
        for folder in [root, &notes_dir, &trash_dir] {
            sweep(folder).map_err(failed("tidy", folder))?;
        }
        let mut problems = Vec::new();
        let mut highest = 0;
        let notes = load(&notes_dir, &mut highest, &mut problems)?;
        let mut trash = load(&trash_dir, &mut highest, &mut problems)?;
        // A power cut in the middle of a move can leave both names; the note itself wins.
        trash.retain(|id, _| !notes.contains_key(id));
        let recorded_id = recorded_id(&root.join(LAST_ID), &mut problems)?;
        let last_id = highest.max(recorded_id);
        let root = root.to_owned();
        Ok(Self {
            notes_dir,
            trash_dir,
            root,
            notes,
            trash,
            last_id,
            recorded_id,
            problems,
            watch,
            _lock: lock,
        })
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| Error::Disk { what, path: path.to_owned(), source }
}

fn make_folder(path: &Path) -> Result<(), Error> {
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(failed("create", path)),
    }
}

fn lock(root: &Path) -> Result<File, Error> {
    let path = root.join(LOCK);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(FILE_MODE)
        .open(&path)
        .map_err(failed("open", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { path: root.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed("lock", &path)(source)),
    }
}

/// The headers of a folder. A file that is no note is a problem, and its id counts as given.
fn load(folder: &Path, highest: &mut u64, problems: &mut Vec<Error>) -> Result<BTreeMap<u64, Header>, Error> {
    let mut headers = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let path = entry.map_err(failed("read", folder))?.path();
        let Some(id) = path.file_name().and_then(|name| id_of(name.to_str()?)) else {
            problems.push(Error::Broken { path, why: "its name is not NUMBER.note" });
            continue;
        };
        *highest = (*highest).max(id);
        match read_header(&path) {
            Ok(header) => {
                headers.insert(id, header);
            }
            Err(problem) => problems.push(problem),
        }
    }
    Ok(headers)
}

fn read_header(path: &Path) -> Result<Header, Error> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_HEADER_BYTES as u64).read_to_end(&mut bytes))
        .map_err(failed("read", path))?;
    // The body may be cut in the middle of a character; the header is before that.
    let text = match str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
    };
    let broken = |why| Error::Broken { path: path.to_owned(), why };
    Header::parse(text).map(|(header, _)| header).map_err(broken)
}

fn recorded_id(path: &Path, problems: &mut Vec<Error>) -> Result<u64, Error> {
    let mut text = String::new();
    match File::open(path).and_then(|file| file.take(MAX_LAST_ID_BYTES).read_to_string(&mut text)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(failed("read", path)(error)),
    }
    Ok(text.trim_end().parse().unwrap_or_else(|_| {
        problems.push(Error::Broken { path: path.to_owned(), why: "it holds no number" });
        0
    }))
}
