//! A disk in memory that tells what is live from what is durable, and fails when told to.
//!
//! Every call is counted, so a test can let the n-th one fail for every n. [`FaultyDisk::after_power_loss`]
//! gives a disk as a power cut may leave it: the synced prefix and an arbitrary torn rest.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile};

mod power;

use power::{Dice, Renamed};

/// What the chosen call does instead of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// `ENOSPC`, once.
    NoSpace,
    /// `EIO`, once. A failed sync also loses what it should have written: later syncs lie, as Linux's do.
    Io,
    /// `EINTR`, once.
    Interrupted,
    /// Writes half of what was given and says so. Other calls are left alone.
    Short,
    /// This call does half of its work, and nothing works any more: the power is gone.
    PowerCut,
}

#[derive(Clone, Debug, Default)]
struct FileState {
    /// What a reader sees.
    live: Vec<u8>,
    /// What a power cut leaves at least.
    durable: Vec<u8>,
    /// The directory entry itself is durable.
    entered: bool,
    /// End of the reserved space.
    reserved: usize,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, FileState>,
    /// Removed, but not yet durably so.
    removed: BTreeMap<String, FileState>,
    capacity: Option<usize>,
    calls: u64,
    plan: Option<(u64, Fault)>,
    /// Calls on files with names that end like this fail, whatever the plan.
    broken: Option<(&'static str, nix::errno::Errno)>,
    /// Renamed, but not yet durably so.
    renamed: Vec<Renamed>,
    dead: bool,
}

/// A directory in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
}

impl FaultyDisk {
    /// An empty disk without faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the `call`-th call from now on (1 = the next) fail.
    pub fn fail(&self, call: u64, fault: Fault) {
        let mut state = self.lock();
        state.plan = Some((state.calls + call, fault));
    }

    /// Lets every call on a file fail whose name ends like this.
    pub fn break_files(&self, suffix: &'static str, errno: nix::errno::Errno) {
        self.lock().broken = Some((suffix, errno));
    }

    /// Bytes all files together may take, reserved space included; `None` = no limit.
    pub fn set_capacity(&self, bytes: Option<usize>) {
        self.lock().capacity = bytes;
    }

    /// Bytes all files take, reserved space included.
    #[must_use]
    pub fn used(&self) -> usize {
        self.lock().used()
    }

    /// Calls so far.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.lock().calls
    }

    /// Content of a file as a reader sees it.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().files.get(name).map(|file| file.live.clone())
    }

    /// Replaces a file, durably: what an attacker or a dying medium does.
    pub fn put(&self, name: &str, content: &[u8]) {
        let file = FileState {
            live: content.to_vec(),
            durable: content.to_vec(),
            entered: true,
            reserved: content.len(),
        };
        self.lock().files.insert(name.to_owned(), file);
    }

    /// The disk as a process finds it that was killed and started again: everything written is there.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        let state = self.lock();
        let files = state.files.clone();
        Self { state: Arc::new(Mutex::new(State { files, ..State::default() })) }
    }

    /// The disk as a power cut may leave it. Same seed, same image.
    #[must_use]
    pub fn after_power_loss(&self, seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut files = BTreeMap::new();
        let state = self.lock();
        for (name, file) in &state.names_after_power_loss(&mut dice) {
            if file.entered || dice.one_in(2) {
                files.insert(name.clone(), FileState::settled(file.survivor(&mut dice)));
            }
        }
        for (name, file) in &state.removed {
            if dice.one_in(2) {
                files.entry(name.clone()).or_insert_with(|| FileState::settled(file.survivor(&mut dice)));
            }
        }
        Self { state: Arc::new(Mutex::new(State { files, ..State::default() })) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn used(&self) -> usize {
        self.files.values().map(|file| file.live.len().max(file.reserved)).sum()
    }

    /// Counts a call and says which fault it has.
    fn enter(&mut self, name: &str) -> io::Result<Option<Fault>> {
        if self.dead {
            return Err(os_error(nix::errno::Errno::EIO));
        }
        self.calls += 1;
        if let Some((_, errno)) = self.broken.filter(|(suffix, _)| name.ends_with(suffix)) {
            return Err(os_error(errno));
        }
        let Some((_, fault)) = self.plan.filter(|(call, _)| *call == self.calls) else {
            return Ok(None);
        };
        match fault {
            Fault::NoSpace => Err(os_error(nix::errno::Errno::ENOSPC)),
            Fault::Interrupted => Err(os_error(nix::errno::Errno::EINTR)),
            Fault::Io | Fault::Short => Ok(Some(fault)),
            Fault::PowerCut => {
                self.dead = true;
                Ok(Some(fault))
            }
        }
    }

    /// For calls that have no half: a power cut or an error means they did not happen.
    fn enter_whole(&mut self, name: &str) -> io::Result<()> {
        match self.enter(name)? {
            Some(Fault::Io | Fault::PowerCut) => Err(os_error(nix::errno::Errno::EIO)),
            _ => Ok(()),
        }
    }

    /// Whether `file`, taken out of the table, may grow to `end`.
    fn room_for(&self, file: &FileState, end: usize) -> bool {
        self.capacity.is_none_or(|capacity| self.used() + end.max(file.reserved) <= capacity)
    }
}

fn os_error(errno: nix::errno::Errno) -> io::Error {
    io::Error::from(errno)
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("no file {name:?}"))
}

impl Disk for FaultyDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.lock();
        state.enter_whole("")?;
        Ok(state.files.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        state.enter_whole(name)?;
        if !state.files.contains_key(name) {
            return Err(missing(name));
        }
        Ok(Box::new(FaultyFile { disk: self.clone(), name: name.to_owned() }))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.lock();
        state.enter_whole(name)?;
        if state.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.files.insert(name.to_owned(), FileState::default());
        Ok(Box::new(FaultyFile { disk: self.clone(), name: name.to_owned() }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.enter_whole(name)?;
        let file = state.files.remove(name).ok_or_else(|| missing(name))?;
        if file.entered {
            state.removed.insert(name.to_owned(), file);
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        state.enter_whole(from)?;
        let mut file = state.files.remove(from).ok_or_else(|| missing(from))?;
        let was = file.clone();
        let before = state.files.remove(to);
        // A name that is there stays there, with the one content or the other.
        file.entered |= before.as_ref().is_some_and(|before| before.entered);
        state.files.insert(to.to_owned(), file);
        let (from, to) = ((from.to_owned(), was), (to.to_owned(), before));
        state.renamed.push(Renamed { from, to });
        Ok(())
    }

    fn erase(&self, name: &str) -> io::Result<()> {
        let mut state = self.lock();
        let fault = state.enter(name)?;
        let file = state.files.get_mut(name).ok_or_else(|| missing(name))?;
        file.live.fill(0);
        match fault {
            Some(Fault::Io | Fault::PowerCut) => Err(os_error(nix::errno::Errno::EIO)),
            _ => {
                file.durable.clone_from(&file.live);
                Ok(())
            }
        }
    }

    fn sync_dir(&self) -> io::Result<()> {
        let mut state = self.lock();
        state.enter_whole("")?;
        state.removed.clear();
        state.renamed.clear();
        state.files.values_mut().for_each(|file| file.entered = true);
        Ok(())
    }

    fn remaining_bytes(&self) -> io::Result<u64> {
        let mut state = self.lock();
        state.enter_whole("")?;
        let left = state.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(state.used()));
        Ok(left as u64)
    }
}

#[derive(Debug)]
struct FaultyFile {
    disk: FaultyDisk,
    name: String,
}

impl FaultyFile {
    fn with<T>(&self, act: impl FnOnce(&mut State, &mut FileState) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.lock();
        let mut file = state.files.remove(&self.name).ok_or_else(|| missing(&self.name))?;
        let result = act(&mut state, &mut file);
        state.files.insert(self.name.clone(), file);
        result
    }
}

impl DiskFile for FaultyFile {
    fn size(&self) -> io::Result<u64> {
        self.with(|state, file| state.enter_whole(&self.name).map(|()| file.live.len() as u64))
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.with(|state, file| {
            state.enter_whole(&self.name)?;
            let from = usize::try_from(offset).unwrap_or(usize::MAX).min(file.live.len());
            let count = into.len().min(file.live.len() - from);
            into[..count].copy_from_slice(&file.live[from..from + count]);
            Ok(count)
        })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.with(|state, file| {
            let half = match state.enter(&self.name)? {
                Some(Fault::Io) => return Err(os_error(nix::errno::Errno::EIO)),
                Some(_) => bytes.len() / 2,
                None => bytes.len(),
            };
            let mut count = half;
            while count > 0 && !state.room_for(file, file.live.len() + count) {
                count -= 1;
            }
            if count == 0 && half > 0 {
                return Err(os_error(nix::errno::Errno::ENOSPC));
            }
            file.live.extend_from_slice(&bytes[..count]);
            if state.dead { Err(os_error(nix::errno::Errno::EIO)) } else { Ok(count) }
        })
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.with(|state, file| {
            match state.enter(&self.name)? {
                Some(Fault::Io) => {
                    // The pages are marked clean although they never reached the medium: zeros from now on.
                    let synced = file.durable.len().min(file.live.len());
                    file.live[synced..].fill(0);
                    Err(os_error(nix::errno::Errno::EIO))
                }
                Some(Fault::PowerCut) => Err(os_error(nix::errno::Errno::EIO)),
                _ => {
                    file.durable = file.live.clone();
                    Ok(())
                }
            }
        })
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.with(|state, file| {
            state.enter_whole(&self.name)?;
            let size = usize::try_from(size).unwrap_or(usize::MAX).min(file.live.len());
            file.live.truncate(size);
            file.reserved = size;
            Ok(())
        })
    }

    fn reserve(&mut self, offset: u64, bytes: u64) -> io::Result<()> {
        self.with(|state, file| {
            state.enter_whole(&self.name)?;
            let end = usize::try_from(offset.saturating_add(bytes)).unwrap_or(usize::MAX);
            if !state.room_for(file, end) {
                return Err(os_error(nix::errno::Errno::ENOSPC));
            }
            file.reserved = file.reserved.max(end);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
