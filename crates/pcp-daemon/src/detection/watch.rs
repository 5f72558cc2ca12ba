//! Folders that are watched: an event only says that a pass is due, the pass finds out what changed.
//!
//! That makes atomic saves, folders that go and come back, and a queue that overflowed one case.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use tokio::io::unix::AsyncFd;

/// Most folders that are watched: as many as a scan looks through, and those of manifests and keys.
pub const MAX_WATCHES: usize = 2_304;

/// What can make a pass due.
const EVENTS: AddWatchFlags = AddWatchFlags::IN_CREATE
    .union(AddWatchFlags::IN_DELETE)
    .union(AddWatchFlags::IN_MOVED_FROM)
    .union(AddWatchFlags::IN_MOVED_TO)
    .union(AddWatchFlags::IN_CLOSE_WRITE)
    .union(AddWatchFlags::IN_ATTRIB)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_ONLYDIR);

/// The watch itself is no longer what it was.
const ABOUT_THE_FOLDER: AddWatchFlags = AddWatchFlags::IN_DELETE_SELF
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_IGNORED)
    .union(AddWatchFlags::IN_UNMOUNT)
    .union(AddWatchFlags::IN_Q_OVERFLOW);

/// What of a folder matters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interest {
    /// Desktop files, and folders that may hold some.
    pub desktop: bool,
    /// These names.
    pub names: BTreeSet<OsString>,
}

impl Interest {
    fn is_met(&self, event: &InotifyEvent) -> bool {
        if event.mask.intersects(ABOUT_THE_FOLDER) {
            return true;
        }
        let Some(name) = &event.name else { return true };
        if self.names.contains(name) {
            return true;
        }
        // What is written or marked in place matters by its name; what comes or goes may be a link to a folder.
        let in_place = AddWatchFlags::IN_CLOSE_WRITE.union(AddWatchFlags::IN_ATTRIB);
        let is_desktop = name.as_encoded_bytes().ends_with(b".desktop");
        self.desktop
            && (is_desktop
                || !event.mask.intersects(in_place)
                || event.mask.contains(AddWatchFlags::IN_ISDIR))
    }
}

/// Folders and what of them matters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted(BTreeMap<PathBuf, Interest>);

impl Wanted {
    /// A folder of desktop files.
    pub fn desktop(&mut self, folder: PathBuf) {
        self.0.entry(folder).or_default().desktop = true;
    }

    /// A file, which may not be there; then whatever folder above it is.
    pub fn file(&mut self, path: &Path) {
        let mut name = path;
        for folder in path.ancestors().skip(1) {
            if folder.is_dir() {
                if let Some(name) = name.file_name() {
                    self.0.entry(folder.to_owned()).or_default().names.insert(name.to_owned());
                }
                return;
            }
            name = folder;
        }
    }

    /// How many folders.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Watches folders.
#[derive(Debug)]
pub struct Watcher {
    inotify: AsyncFd<InotifyFd>,
    armed: HashMap<WatchDescriptor, (PathBuf, Interest)>,
}

#[derive(Debug)]
struct InotifyFd(Inotify);

impl std::os::fd::AsFd for InotifyFd {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl std::os::fd::AsRawFd for InotifyFd {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Watcher {
    /// A watcher without folders.
    ///
    /// # Errors
    /// The kernel's; too many watchers of one user are `EMFILE`.
    pub fn new() -> io::Result<Self> {
        let inotify = Inotify::init(InitFlags::IN_NONBLOCK | InitFlags::IN_CLOEXEC)?;
        #[allow(unsafe_code, reason = "tokio wants it said that the descriptor stays the same")]
        // SAFETY: the descriptor is owned by the inotify instance, which the AsyncFd owns and nobody replaces or
        // closes before it is dropped; `as_raw_fd` always gives that one.
        let inotify = unsafe { AsyncFd::register(InotifyFd(inotify)) }?;
        Ok(Self { inotify, armed: HashMap::new() })
    }

    /// Watches exactly the wanted folders; gives whether one of them was not watched before, so that what happened in
    /// it until now may have gone unseen.
    ///
    /// # Errors
    /// The first folder that cannot be watched, and why; one that is gone meanwhile is no error.
    pub fn arm(&mut self, wanted: &Wanted) -> Result<bool, (PathBuf, Errno)> {
        if let Some(beyond) = wanted.0.keys().nth(MAX_WATCHES) {
            return Err((beyond.clone(), Errno::ENOSPC));
        }
        let inotify = &self.inotify.get_ref().0;
        let mut armed = HashMap::with_capacity(wanted.len());
        let mut news = false;
        for (folder, interest) in &wanted.0 {
            // Of a folder that is watched the kernel gives the same descriptor again.
            match inotify.add_watch(folder, EVENTS) {
                Ok(descriptor) => {
                    news |= self.armed.get(&descriptor).is_none_or(|(path, _)| path != folder);
                    armed.insert(descriptor, (folder.clone(), interest.clone()));
                }
                Err(Errno::ENOENT | Errno::ENOTDIR) => news = true,
                // It could not be looked through either: the pass has told so.
                Err(Errno::EACCES | Errno::ELOOP) => {}
                Err(errno) => return Err((folder.clone(), errno)),
            }
        }
        for descriptor in self.armed.keys().filter(|descriptor| !armed.contains_key(descriptor)) {
            // It may be gone already.
            let _ = inotify.rm_watch(*descriptor);
        }
        self.armed = armed;
        Ok(news)
    }

    /// How many folders are watched.
    #[must_use]
    pub fn len(&self) -> usize {
        self.armed.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.armed.is_empty()
    }

    /// Waits until something happened that matters.
    ///
    /// # Errors
    /// The kernel's; the watcher is of no use then.
    pub async fn changed(&mut self) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            match self.inotify.get_ref().0.read_events() {
                Ok(events) => {
                    let matters = |event: &InotifyEvent| {
                        event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)
                            || self.armed.get(&event.wd).is_some_and(|(_, interest)| interest.is_met(event))
                    };
                    if events.iter().any(matters) {
                        return Ok(());
                    }
                }
                Err(Errno::EAGAIN) => ready.clear_ready(),
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Forgets what happened until now: the pass that follows sees it all.
    pub fn drain(&mut self) {
        while matches!(self.inotify.get_ref().0.read_events(), Ok(events) if !events.is_empty()) {}
    }
}
