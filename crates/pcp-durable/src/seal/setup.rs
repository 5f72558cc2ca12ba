//! The first key of a log, and new keys in place of lost ones.

use std::sync::Arc;

use pcp_core::Trail;

use super::VerificationKey;
use super::line::epoch_of;
use super::vault::{Vault, VaultState};
use crate::Error;
use crate::disk::Disk;
use crate::line::Chain;
use crate::scan::Scanner;
use crate::segment;

/// Longest reason for new keys: it stands in the seals.
pub const MAX_REASON_BYTES: usize = 200;

/// Makes the keys of a log that nobody writes meanwhile, from a secret that nobody knows. What it gives is to be
/// kept off the device: from the next epoch on it cannot be found there any more.
///
/// # Errors
/// [`Error::KeysExist`] if there are keys, or seals of keys that are gone, and no reason to replace them is given;
/// [`Error::Reason`] for a reason that is empty or longer than [`MAX_REASON_BYTES`]; [`Error::Damaged`],
/// [`Error::SegmentMissing`], [`Error::Disk`].
pub fn set_up_keys(
    trails: Option<&dyn Disk>,
    seals: Arc<dyn Disk>,
    secret: [u8; 32],
    replace: Option<&str>,
) -> Result<VerificationKey, Error> {
    if replace.is_some_and(|reason| reason.is_empty() || reason.len() > MAX_REASON_BYTES) {
        let bytes = replace.map_or(0, str::len);
        return Err(Error::Reason { bytes, limit: MAX_REASON_BYTES });
    }
    let names = seals.list().map_err(|source| Error::file("list the directory of", "key", source))?;
    let present = match VaultState::read(&*seals) {
        Ok(state) => Some(state.key.epoch().max(state.anchor.epoch)),
        Err(error @ Error::Disk { .. }) => return Err(error),
        Err(_) => names.iter().any(|name| name.starts_with("key") || name.starts_with("anchor")).then_some(1),
    };
    let (heads, sealed) = trails.map_or_else(|| Ok((vec![Chain::default(); Trail::ALL.len()], 0)), look)?;
    let epoch = present.unwrap_or(1).max(sealed + 1);
    if replace.is_none() && (present.is_some() || sealed > 0) {
        return Err(Error::KeysExist { epoch });
    }
    let key = VerificationKey::new(epoch, secret);
    let vault = Vault::new(seals);
    let failed = |source| Error::file("write the sealing key", "key", source);
    vault.put_anchor(&key.begin(), &heads).map_err(failed)?;
    vault.put_key(&key.begin(), replace.unwrap_or_default()).map_err(failed)?;
    Ok(key)
}

/// Where the trails stand, and the latest epoch that is sealed in any of them.
fn look(disk: &dyn Disk) -> Result<(Vec<Chain>, u64), Error> {
    let (mut heads, mut sealed) = (Vec::new(), 0);
    for trail in Trail::ALL {
        let mut scanner = Scanner::over(disk, segment::list(disk, trail.as_str())?);
        while let Some(line) = scanner.next()? {
            sealed = epoch_of(line.bytes).unwrap_or(0).max(sealed);
        }
        heads.push(scanner.chain());
    }
    Ok((heads, sealed))
}
