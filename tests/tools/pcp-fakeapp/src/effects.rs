//! The count of effects: one line per effect, on the disk before the effect counts as done.
//!
//! `effects.log` has `OPERATION CAPABILITY` for each effect; beside it `effects.log.invocations` has the same for
//! everything that was invoked at all. They are written by the application in its own process, whatever the daemon
//! records.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pcp_core::{CapabilityId, OperationId};

use crate::error::Error;

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effect {
    /// The operation that caused it.
    pub operation: OperationId,
    /// What was done.
    pub capability: CapabilityId,
}

/// Appends effects, each durable when its call returns.
#[derive(Debug)]
pub struct EffectLog {
    effects: Mutex<File>,
    invocations: Mutex<File>,
}

impl EffectLog {
    /// Opens or creates the two files. A last line that a power cut has torn is no effect and is cut off.
    ///
    /// # Errors
    /// [`Error::File`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let second = invocations_file(path);
        let open = |path: &Path| open(path).map(Mutex::new).map_err(Error::file("open", path));
        Ok(Self { effects: open(path)?, invocations: open(&second)? })
    }

    /// Notes durably that the effect happened.
    ///
    /// # Errors
    /// What the system said; then the line may be there or not.
    pub fn record(&self, operation: OperationId, capability: &CapabilityId) -> io::Result<()> {
        let mut file = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        append(&mut file, operation, capability)?;
        file.sync_data()
    }

    /// Notes that the capability was invoked, whatever becomes of it. Survives the process, not a power cut.
    ///
    /// # Errors
    /// What the system said.
    pub fn invoked(&self, operation: OperationId, capability: &CapabilityId) -> io::Result<()> {
        let mut file = self.invocations.lock().unwrap_or_else(PoisonError::into_inner);
        append(&mut file, operation, capability)
    }
}

/// The file of invocations that belongs to an effects file.
#[must_use]
pub fn invocations_file(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".invocations");
    name.into()
}

/// All effects of a file, in order; none if there is no file.
///
/// # Errors
/// [`Error::File`], [`Error::BrokenLog`].
pub fn effects(path: &Path) -> Result<Vec<Effect>, Error> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file("read", path)(error)),
    };
    // A line without its end was being written when its process or the power ended.
    let whole = text.rfind('\n').and_then(|end| text.get(..=end)).unwrap_or_default();
    let read = |(at, line): (usize, &str)| {
        parse(line).ok_or_else(|| Error::BrokenLog { path: path.to_owned(), line: at + 1 })
    };
    whole.lines().enumerate().map(read).collect()
}

/// How often an operation had its effect: 1 is what at-most-once allows.
///
/// # Errors
/// As [`effects`].
pub fn count(path: &Path, operation: OperationId) -> Result<usize, Error> {
    Ok(effects(path)?.iter().filter(|effect| effect.operation == operation).count())
}

fn parse(line: &str) -> Option<Effect> {
    let (operation, capability) = line.split_once(' ')?;
    let operation = OperationId::parse(operation).ok()?;
    Some(Effect { operation, capability: CapabilityId::parse(capability).ok()? })
}

/// One write for the whole line: a kill leaves all of it or nothing.
fn append(file: &mut File, operation: OperationId, capability: &CapabilityId) -> io::Result<()> {
    file.write_all(format!("{operation} {capability}\n").as_bytes())
}

fn open(path: &Path) -> io::Result<File> {
    let new = !path.exists();
    let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    if whole != bytes.len() {
        file.set_len(whole as u64)?;
    }
    if new && let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        File::open(folder)?.sync_all()?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(last: u8) -> OperationId {
        OperationId::from_parts(1_700_000_000_000, [0, 0, 0, 0, 0, 0, 0, 0, 0, last])
    }

    fn capability() -> CapabilityId {
        CapabilityId::parse("app.org.example.fake.create").unwrap()
    }

    #[test]
    fn effects_are_counted_per_operation_over_restarts() {
        let space = tempfile::tempdir().unwrap();
        let path = space.path().join("effects.log");
        assert_eq!(count(&path, operation(1)).unwrap(), 0);
        EffectLog::open(&path).unwrap().record(operation(1), &capability()).unwrap();
        let log = EffectLog::open(&path).unwrap();
        log.record(operation(2), &capability()).unwrap();
        log.record(operation(1), &capability()).unwrap();
        log.invoked(operation(3), &capability()).unwrap();

        assert_eq!(count(&path, operation(1)).unwrap(), 2);
        assert_eq!(count(&path, operation(2)).unwrap(), 1);
        assert_eq!(count(&path, operation(3)).unwrap(), 0);
        assert_eq!(count(&invocations_file(&path), operation(3)).unwrap(), 1);
        assert_eq!(effects(&path).unwrap()[1], Effect { operation: operation(2), capability: capability() });
    }

    #[test]
    fn the_line_format_is_fixed() {
        let space = tempfile::tempdir().unwrap();
        let path = space.path().join("effects.log");
        EffectLog::open(&path).unwrap().record(operation(1), &capability()).unwrap();
        let line = format!("{} app.org.example.fake.create\n", operation(1));
        assert_eq!(fs::read_to_string(&path).unwrap(), line);
    }

    #[test]
    fn a_torn_last_line_is_no_effect_and_is_cut_off_at_the_next_start() {
        let space = tempfile::tempdir().unwrap();
        let path = space.path().join("effects.log");
        EffectLog::open(&path).unwrap().record(operation(1), &capability()).unwrap();
        let whole = fs::read(&path).unwrap();
        fs::write(&path, [&whole[..], &whole[..20]].concat()).unwrap();
        assert_eq!(effects(&path).unwrap().len(), 1);

        EffectLog::open(&path).unwrap().record(operation(2), &capability()).unwrap();

        assert_eq!(effects(&path).unwrap().len(), 2);
    }

    #[test]
    fn a_line_that_nobody_here_wrote_is_an_error_and_not_skipped() {
        let space = tempfile::tempdir().unwrap();
        let path = space.path().join("effects.log");
        fs::write(&path, "junk\n").unwrap();
        assert!(matches!(effects(&path), Err(Error::BrokenLog { line: 1, .. })));
    }
}
