//! The files that a finding rests on: as long as they are as they were, so is the finding.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::stat::stat;

use crate::desktop::StatKey;

/// A file that was looked at, as it was. All findings that rest on it share it, so that a pass asks for it once.
#[derive(Debug)]
pub struct Basis {
    path: Box<Path>,
    key: StatKey,
    /// The pass that asked last, and whether the file was as it was.
    asked: AtomicU32,
}

impl Basis {
    /// The file at `path`, links followed, as it was.
    #[must_use]
    pub fn new(path: &Path, key: StatKey) -> Self {
        Self { path: path.into(), key, asked: AtomicU32::new(0) }
    }

    /// By what path it was looked at.
    #[must_use]
    pub fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// By what a change of it is seen.
    #[must_use]
    pub const fn key(&self) -> StatKey {
        self.key
    }

    /// Whether it is as it was. `pass` is the number of the pass that asks, never zero.
    pub(crate) fn holds(&self, pass: u32) -> bool {
        let asked = self.asked.load(Ordering::Relaxed);
        if asked >> 1 == pass {
            return asked & 1 == 1;
        }
        let holds = stat_key(&self.path) == Some(self.key);
        self.asked.store(pass << 1 | u32::from(holds), Ordering::Relaxed);
        holds
    }
}

/// By what a change of the file is seen; `None` where there is none.
pub(crate) fn stat_key(path: &Path) -> Option<StatKey> {
    stat(path).ok().map(|facts| StatKey::of(&facts))
}
