//! Changes of files that are there whole or not at all, whenever power or process end.
//!
//! New content goes to a temporary file, which is synced before it gets its name, and the folder is synced
//! before the caller hears of success. A failure says which side of the rename it was on.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::Error;

/// How temporary files begin; what a killed process left is known by it.
pub(super) const TEMPORARY: &str = ".new-";

/// The steps of a change, in their order. A change without new content begins at [`Step::Rename`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The temporary file gets its content.
    Write,
    /// The content is made durable.
    SyncFile,
    /// The new name takes effect.
    Rename,
    /// The name is made durable.
    SyncFolder,
}

/// Sees every step before it is taken and can refuse it: how the tests cut a change at each step.
pub(crate) type Watch = Box<dyn FnMut(Step) -> io::Result<()> + Send>;

/// Gives the file `name` in `folder` the content `bytes`.
pub(super) fn replace(folder: &Path, name: &str, bytes: &[u8], watch: &mut Watch) -> Result<(), Error> {
    let path = folder.join(name);
    let failed = |what| {
        let path = path.clone();
        move |source| Error::Disk { what, path, source }
    };
    let file = written(folder, bytes, watch).map_err(failed("write"))?;
    if let Err(error) = file.persist(&path) {
        // While the temporary name is there, the rename did not happen.
        return Err(match fs::symlink_metadata(error.file.path()) {
            Ok(_) => failed("rename to")(error.error),
            Err(_) => Error::Unsettled { path, source: error.error },
        });
    }
    confirm(&[folder], &path, watch)
}

/// A temporary file in `folder` whose content is durable; its name goes when it is dropped.
fn written(folder: &Path, bytes: &[u8], watch: &mut Watch) -> io::Result<NamedTempFile> {
    watch(Step::Write)?;
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
    file.write_all(bytes)?;
    watch(Step::SyncFile)?;
    file.as_file().sync_all()?;
    watch(Step::Rename)?;
    Ok(file)
}

/// Moves the file `name` from one folder to another.
pub(super) fn move_file(from: &Path, to: &Path, name: &str, watch: &mut Watch) -> Result<(), Error> {
    let (old, new) = (from.join(name), to.join(name));
    if let Err(source) = watch(Step::Rename).and_then(|()| fs::rename(&old, &new)) {
        return Err(match fs::symlink_metadata(&old) {
            Ok(_) => Error::Disk { what: "move to", path: new, source },
            Err(_) => Error::Unsettled { path: new, source },
        });
    }
    // The folder that received it first: after a power cut twice is better than nowhere.
    confirm(&[to, from], &new, watch)
}

fn confirm(folders: &[&Path], path: &Path, watch: &mut Watch) -> Result<(), Error> {
    folders
        .iter()
        .try_for_each(|folder| watch(Step::SyncFolder).and_then(|()| File::open(folder)?.sync_all()))
        .map_err(|source| Error::Unconfirmed { path: path.to_owned(), source })
}

/// Removes what a killed process left half-written in `folder`.
pub(super) fn sweep(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
