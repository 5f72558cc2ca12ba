//! Records of a range as they stand, with all that is needed to check them elsewhere: the chain from the first of
//! them to the seal that covers the last.

use pcp_core::Trail;

use crate::Error;
use crate::disk::Disk;
use crate::line::Chain;
use crate::scan::Scanner;
use crate::seal::epoch_of;
use crate::segment;

/// What an export came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The first record of the trail that is asked for and there, and the last line that was given.
    pub records: Option<(u64, u64)>,
    /// The epoch whose seal is the last line, if there was one.
    pub sealed_by: Option<u64>,
}

/// Gives every line of a trail from record `from` to record `to`, and on to the next seal if there is one, each
/// without its LF. All lines are checked on the way; put one behind the other with LFs they are a journal file.
///
/// # Errors
/// [`Error::Damaged`], [`Error::SegmentMissing`], [`Error::Disk`]; what `give` says.
pub fn export<E: From<Error>>(
    disk: &dyn Disk,
    trail: Trail,
    (from, to): (u64, u64),
    give: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<Exported, E> {
    let mut scanner = Scanner::over(disk, segment::list(disk, trail.as_str())?);
    let mut exported = Exported { records: None, sealed_by: None };
    while let Some(line) = scanner.next()? {
        if line.link.seq < from {
            continue;
        }
        if line.link.seq > to && exported.records.is_none() {
            break;
        }
        give(line.bytes)?;
        exported.records = Some((exported.records.map_or(line.link.seq, |(first, _)| first), line.link.seq));
        exported.sealed_by = epoch_of(line.bytes);
        if line.link.seq >= to && exported.sealed_by.is_some() {
            break;
        }
    }
    Ok(exported)
}

/// Where a trail stands, every line of it checked.
///
/// # Errors
/// As [`export`].
pub fn head(disk: &dyn Disk, trail: Trail) -> Result<Chain, Error> {
    let mut scanner = Scanner::over(disk, segment::list(disk, trail.as_str())?);
    while scanner.next()?.is_some() {}
    Ok(scanner.chain())
}
