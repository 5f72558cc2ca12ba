//! The operating system's directory, entered once and never by path again.
//!
//! Every file is opened relative to one directory descriptor without following links, and must be a
//! plain file with one name, owned by the directory's owner and closed to everybody else.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::{FallocateFlags, OFlag, fallocate, openat, renameat};
use nix::sys::stat::Mode;
use nix::sys::statvfs::fstatvfs;
use nix::unistd::{UnlinkatFlags, geteuid, unlinkat};

use super::{Disk, DiskFile};
use crate::Error;

/// What a key is overwritten with.
const ZEROS: [u8; 64] = [0; 64];

/// Permission bits a private directory or file must not have.
const OPEN_TO_OTHERS: u32 = 0o077;

/// A private directory of the operating system.
#[derive(Debug)]
pub struct RealDisk {
    directory: File,
    owner: u32,
    writable: bool,
}

impl RealDisk {
    /// Opens a directory for writing, makes it (mode 0700) if it is missing, and locks it against a
    /// second writer.
    ///
    /// # Errors
    /// [`Error::NotPrivate`] if the directory is a link, another user's or open to others;
    /// [`Error::InUse`] if another process writes here; [`Error::Disk`] for the rest.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let disk = match Self::enter(path, true) {
            Err(Error::Disk { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Self::make(path).map_err(|source| Error::disk("make directory", path, source))?;
                Self::enter(path, true)?
            }
            other => other?,
        };
        match disk.directory.try_lock() {
            Ok(()) => Ok(disk),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: path.display().to_string() }),
            Err(TryLockError::Error(source)) => Err(Error::disk("lock directory", path, source)),
        }
    }

    /// Opens an existing directory for reading only; nothing in it is changed or locked.
    ///
    /// # Errors
    /// As [`RealDisk::open`]. The superuser may read another user's private directory.
    pub fn open_read_only(path: &Path) -> Result<Self, Error> {
        Self::enter(path, false)
    }

    /// Opens one regular file for reading, wherever it lies: a copy of a segment need not be private.
    ///
    /// # Errors
    /// Whatever the operating system says, also for a link or anything but a plain file.
    pub fn open_lone_file(path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Box::new(RealFile { file }))
    }

    fn make(path: &Path) -> io::Result<()> {
        DirBuilder::new().mode(0o700).create(path)?;
        match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
            _ => File::open(".")?.sync_all(),
        }
    }

    fn enter(path: &Path, writable: bool) -> Result<Self, Error> {
        let directory = OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits())
            .open(path)
            .map_err(|source| Self::explain_open(path, source))?;
        let facts = directory.metadata().map_err(|source| Error::disk("stat", path, source))?;
        let me = geteuid().as_raw();
        let may_enter = facts.uid() == me || (!writable && me == 0);
        if !may_enter {
            return Err(Error::not_private(path, format!("owned by uid {}, not {me}", facts.uid())));
        }
        if facts.mode() & OPEN_TO_OTHERS != 0 {
            return Err(Error::not_private(path, open_to_others(facts.mode(), "0700")));
        }
        Ok(Self { directory, owner: facts.uid(), writable })
    }

    /// The kernel refuses a link in two words; say which one it was.
    fn explain_open(path: &Path, source: io::Error) -> Error {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|facts| facts.is_symlink());
        if is_link {
            return Error::not_private(path, "a symbolic link; name the directory itself".into());
        }
        Error::disk("open directory", path, source)
    }

    fn open_file(&self, name: &str, flags: OFlag) -> io::Result<Box<dyn DiskFile>> {
        check_name(name)?;
        let access = if self.writable { OFlag::O_RDWR | OFlag::O_APPEND } else { OFlag::O_RDONLY };
        // O_NONBLOCK: a FIFO put in place of a segment must not hang the open.
        let always = OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let descriptor =
            openat(self.directory.as_fd(), name, access | always | flags, Mode::S_IRUSR | Mode::S_IWUSR)?;
        let file = File::from(descriptor);
        let facts = file.metadata()?;
        let denied = |why: String| io::Error::new(io::ErrorKind::PermissionDenied, why);
        if !facts.is_file() {
            return Err(denied("not a regular file".into()));
        }
        if facts.uid() != self.owner {
            return Err(denied(format!("owned by uid {}, not {}", facts.uid(), self.owner)));
        }
        if facts.mode() & OPEN_TO_OTHERS != 0 {
            return Err(denied(open_to_others(facts.mode(), "0600")));
        }
        if facts.nlink() != 1 {
            return Err(denied(format!("has {} names; a segment must have one", facts.nlink())));
        }
        Ok(Box::new(RealFile { file }))
    }
}

fn open_to_others(mode: u32, wanted: &str) -> String {
    format!("mode {:04o} is open to other users; chmod it to {wanted}", mode & 0o7777)
}

/// Names come from code, but a name that leaves the directory must not be possible at all.
fn check_name(name: &str) -> io::Result<()> {
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("bad file name {name:?}")));
    }
    Ok(())
}

impl Disk for RealDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut directory = nix::dir::Dir::openat(
            self.directory.as_fd(),
            ".",
            OFlag::O_DIRECTORY | OFlag::O_RDONLY | OFlag::O_CLOEXEC,
            Mode::empty(),
        )?;
        let mut names = Vec::new();
        for entry in directory.iter() {
            // A name that is not UTF-8 is none of ours.
            if let Ok(name) = entry?.file_name().to_str()
                && !name.starts_with('.')
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open_file(name, OFlag::empty())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        self.open_file(name, OFlag::O_CREAT | OFlag::O_EXCL)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        Ok(unlinkat(self.directory.as_fd(), name, UnlinkatFlags::NoRemoveDir)?)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        check_name(from)?;
        check_name(to)?;
        Ok(renameat(self.directory.as_fd(), from, self.directory.as_fd(), to)?)
    }

    fn erase(&self, name: &str) -> io::Result<()> {
        // By the rules of every other file first; that descriptor can only append.
        let size = self.open(name)?.size()?;
        let flags = OFlag::O_WRONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC | OFlag::O_NONBLOCK;
        let file = File::from(openat(self.directory.as_fd(), name, flags, Mode::empty())?);
        let mut at = 0;
        while at < size {
            let piece = usize::try_from(size - at).unwrap_or(ZEROS.len()).min(ZEROS.len());
            file.write_all_at(&ZEROS[..piece], at)?;
            at += piece as u64;
        }
        file.sync_all()
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.directory.sync_all()
    }

    fn remaining_bytes(&self) -> io::Result<u64> {
        let facts = fstatvfs(self.directory.as_fd())?;
        Ok(facts.blocks_available().saturating_mul(facts.fragment_size()))
    }
}

#[derive(Debug)]
struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(into, offset)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
        Ok(fallocate(self.file.as_fd(), FallocateFlags::FALLOC_FL_KEEP_SIZE, offset, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn fresh() -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("audit");
        (root, path)
    }

    #[test]
    fn a_missing_directory_is_made_private() {
        let (_root, path) = fresh();

        let disk = RealDisk::open(&path).unwrap();
        disk.create("a.jsonl").unwrap().append(b"x").unwrap();

        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(fs::metadata(path.join("a.jsonl")).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(disk.list().unwrap(), ["a.jsonl"]);
    }

    #[test]
    fn a_directory_open_to_others_is_refused_in_every_mode() {
        for mode in [0o777, 0o750, 0o705, 0o701, 0o710] {
            let (_root, path) = fresh();
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();

            let refused = RealDisk::open(&path).unwrap_err();

            assert!(matches!(refused, Error::NotPrivate { .. }), "{mode:o}: {refused}");
            assert!(refused.to_string().contains(&format!("{mode:04o}")), "{refused}");
        }
    }

    #[test]
    fn a_link_to_a_private_directory_is_refused() {
        let (root, path) = fresh();
        drop(RealDisk::open(&path).unwrap());
        let link = root.path().join("link");
        symlink(&path, &link).unwrap();

        let refused = RealDisk::open(&link).unwrap_err();

        assert!(refused.to_string().contains("symbolic link"), "{refused}");
    }

    #[test]
    fn files_that_are_not_private_plain_and_single_are_refused() {
        let (root, path) = fresh();
        let disk = RealDisk::open(&path).unwrap();
        fs::write(root.path().join("elsewhere"), b"").unwrap();
        symlink(root.path().join("elsewhere"), path.join("link")).unwrap();
        fs::write(path.join("open"), b"").unwrap();
        fs::set_permissions(path.join("open"), Permissions::from_mode(0o640)).unwrap();
        disk.create("twice").unwrap();
        fs::hard_link(path.join("twice"), path.join("again")).unwrap();
        fs::create_dir(path.join("folder")).unwrap();
        nix::unistd::mkfifo(&path.join("fifo"), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();

        for name in ["link", "open", "twice", "again", "folder", "fifo", "../elsewhere", "", ".x"] {
            assert!(disk.open(name).is_err(), "{name:?} was opened");
        }
        assert!(disk.create("link").is_err());
    }

    #[test]
    fn two_writers_of_one_directory_are_refused() {
        let (_root, path) = fresh();
        let first = RealDisk::open(&path).unwrap();

        assert!(matches!(RealDisk::open(&path), Err(Error::InUse { .. })));
        assert!(RealDisk::open_read_only(&path).is_ok());
        drop(first);
        assert!(RealDisk::open(&path).is_ok());
    }

    #[test]
    fn reserved_space_does_not_stand_in_the_file() {
        let (_root, path) = fresh();
        let disk = RealDisk::open(&path).unwrap();
        let mut file = disk.create("a").unwrap();

        match file.reserve(0, 65_536) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => return,
            other => other.unwrap(),
        }
        file.append(b"line").unwrap();

        assert_eq!(file.size().unwrap(), 4);
        assert!(fs::metadata(path.join("a")).unwrap().blocks() * 512 >= 65_536);
    }
}
