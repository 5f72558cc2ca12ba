//! The key and the anchor on their disk: replaced in one step, the old key overwritten.
//!
//! At every moment, whatever a power cut leaves, there is one readable key, and an anchor that was made with it
//! or with the one that follows.

use std::io;
use std::sync::Arc;

use super::anchor::Anchor;
use super::key::EpochKey;
use crate::Error;
use crate::disk::Disk;
use crate::index::{create, read_exact, write_all};
use crate::line::Chain;

const KEY: &str = "key";
const NEXT_KEY: &str = "key.next";
const ANCHOR: &str = "anchor";
const NEXT_ANCHOR: &str = "anchor.next";

/// The first bytes of the key file: what it is, and the version of its layout.
const MAGIC: &[u8; 8] = b"PCPSEAL1";

/// Longest file that is read: the three heads or the key with the longest reason.
const MAX_FILE_BYTES: u64 = 1024;

/// The key of the present epoch, and why it took the place of another one.
#[derive(Debug)]
pub(crate) struct VaultState {
    pub(crate) key: EpochKey,
    /// Why the keys were replaced; empty unless the present epoch is the first one of new keys.
    pub(crate) reason: String,
    pub(crate) anchor: Anchor,
}

impl VaultState {
    /// Reads the key and the anchor and changes nothing.
    ///
    /// # Errors
    /// [`Error::SealKey`] when no key can be read, [`Error::Anchor`] when the anchor is none of that key.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Self, Error> {
        let mut why = "there is none".to_owned();
        for name in [KEY, NEXT_KEY] {
            match read_file(disk, name) {
                Ok(bytes) => {
                    if let Some((key, reason)) = decode(&bytes) {
                        let anchor = read_anchor(disk, &key)?;
                        return Ok(Self { key, reason, anchor });
                    }
                    why = format!("{name} is damaged");
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(Error::file("read the sealing key", name, error)),
            }
        }
        Err(Error::SealKey { why })
    }
}

fn read_anchor(disk: &dyn Disk, key: &EpochKey) -> Result<Anchor, Error> {
    match read_file(disk, ANCHOR) {
        Ok(bytes) => {
            Anchor::decode(&bytes, key).ok_or(Error::Anchor { epoch: key.epoch(), file: ANCHOR.to_owned() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::NoAnchor),
        Err(error) => Err(Error::file("read the anchor", ANCHOR, error)),
    }
}

/// The disk of the key and the anchor.
#[derive(Debug)]
pub(crate) struct Vault {
    disk: Arc<dyn Disk>,
}

impl Vault {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk }
    }

    /// Reads what is there and finishes a step of the key that a power cut interrupted.
    pub(crate) fn open(&self) -> Result<VaultState, Error> {
        let mut state = VaultState::read(&*self.disk)?;
        if state.anchor.epoch > state.key.epoch() {
            let next = state.key.next();
            self.put_key(&next, "").map_err(|error| Error::file("replace", KEY, error))?;
            (state.key, state.reason) = (next, String::new());
        } else {
            let failed = |error| Error::file("put in place", KEY, error);
            match read_file(&*self.disk, KEY).ok().and_then(|bytes| decode(&bytes)) {
                Some(_) => drop(self.disk.remove(NEXT_KEY)),
                None => self.disk.rename(NEXT_KEY, KEY).map_err(failed)?,
            }
        }
        Ok(state)
    }

    /// Notes where the trails stand.
    pub(crate) fn put_anchor(&self, key: &EpochKey, heads: &[Chain]) -> io::Result<()> {
        self.put(NEXT_ANCHOR, &Anchor::encode(key, heads))?;
        self.disk.rename(NEXT_ANCHOR, ANCHOR)
    }

    /// Ends an epoch: the anchor goes over to the next key, then the old one is overwritten.
    pub(crate) fn step(&self, key: &EpochKey, heads: &[Chain]) -> io::Result<EpochKey> {
        let next = key.next();
        self.put_anchor(&next, heads)?;
        self.put_key(&next, "")?;
        Ok(next)
    }

    /// Puts a key in place of the one that is there.
    pub(crate) fn put_key(&self, key: &EpochKey, reason: &str) -> io::Result<()> {
        self.put(NEXT_KEY, &encode(key, reason))?;
        // From here on the next key is there after a power cut, and so is the anchor that goes with it.
        self.disk.sync_dir()?;
        match self.disk.erase(KEY) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        self.disk.rename(NEXT_KEY, KEY)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = create(&*self.disk, name)?;
        write_all(&mut *file, bytes)?;
        file.sync_data()
    }
}

fn read_file(disk: &dyn Disk, name: &str) -> io::Result<Vec<u8>> {
    let file = disk.open(name)?;
    let size = file.size()?;
    if size > MAX_FILE_BYTES {
        return Ok(Vec::new());
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    read_exact(&*file, 0, &mut bytes).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(bytes)
}

fn encode(key: &EpochKey, reason: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAGIC.len() + 8 + 32 + reason.len() + 4);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&key.epoch().to_le_bytes());
    out.extend_from_slice(key.secret());
    out.extend_from_slice(reason.as_bytes());
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<(EpochKey, String)> {
    let (body, crc) = bytes.split_last_chunk::<4>()?;
    let (epoch, rest) = body.strip_prefix(MAGIC)?.split_first_chunk()?;
    let (secret, reason) = rest.split_first_chunk()?;
    if crc32fast::hash(body) != u32::from_le_bytes(*crc) {
        return None;
    }
    let reason = std::str::from_utf8(reason).ok()?.to_owned();
    Some((EpochKey::new(u64::from_le_bytes(*epoch), *secret), reason))
}
