//! Where a trail begins once old segments are deleted: a record of the trail itself says so, and is durable before
//! the first file is gone.

use crate::Error;
use crate::disk::Disk;
use crate::index::Id;
use crate::line::{Chain, LineWriter, Link, MAX_LINE_BYTES, after_number, members, unhex};
use crate::segment::{self, Segment};
use crate::tail::Pieces;

/// What a record says of the beginning of its trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// The first segment that is kept.
    pub(crate) segment: u32,
    /// Where the chain stood before it.
    pub(crate) before: Chain,
    /// No operation up to this one is known any more unless it is found: none of them may run.
    pub(crate) forgotten: Id,
}

impl Begin {
    pub(crate) fn write(&self, line: &mut LineWriter<'_>) {
        line.text("kind", "begin").number("segment", self.segment.into());
        line.number("after", self.before.seq).hex("hash", &self.before.hash).hex("ids_to", &self.forgotten);
    }

    /// Whether a trail may begin with this segment, behind this line. What stands before the beginning that it names leads
    /// there by its chain.
    pub(crate) fn allows(&self, segment: u32, start: Chain) -> bool {
        segment < self.segment || (segment == self.segment && start == self.before)
    }

    /// Reads a line; `None` for every other record.
    pub(crate) fn read(line: &[u8]) -> Option<Self> {
        let rest = members(line)?.strip_prefix(b",\"kind\":\"begin\",\"segment\":")?;
        let (number, rest) = after_number(rest)?;
        let (seq, rest) = after_number(rest.strip_prefix(b",\"after\":")?)?;
        let (hash, rest) = rest.strip_prefix(b",\"hash\":\"")?.split_at_checked(64)?;
        let ids_to = rest.strip_prefix(b"\",\"ids_to\":\"")?.get(..32)?;
        let before = Chain { seq, hash: unhex(hash)? };
        Some(Self { segment: u32::try_from(number).ok()?, before, forgotten: unhex(ids_to)? })
    }
}

/// What the last such record of a trail says, and its number. It is looked for from the newest segment back.
pub(crate) fn find(disk: &dyn Disk, segments: &[Segment]) -> Result<Option<(Begin, u64)>, Error> {
    for segment in segments.iter().rev() {
        let file = disk.open(&segment.name).map_err(|source| Error::file("open", &segment.name, source))?;
        let mut pieces = Pieces { file: &*file, at: 0, piece: Vec::with_capacity(MAX_LINE_BYTES) };
        let mut last = None;
        while pieces.next().map_err(|source| Error::file("read", &segment.name, source))?.is_some() {
            let found = Begin::read(&pieces.piece);
            let found = found.and_then(|begin| Some((begin, Link::read(&pieces.piece).ok()?.seq)));
            last = found.or(last);
        }
        if last.is_some() {
            return Ok(last);
        }
    }
    Ok(None)
}

/// Where the chain of a trail begins. A trail that does not begin with its first segment must have a record that says
/// so; one that begins earlier than that was about to lose what is before.
///
/// # Errors
/// [`Error::SegmentMissing`] without such a record; [`Error::Disk`].
pub(crate) fn check(
    disk: &dyn Disk,
    trail: &str,
    segments: &[Segment],
) -> Result<(Chain, Option<(Begin, u64)>), Error> {
    let start = segment::start(disk, segments)?;
    let Some(first) = segments.first().map(|segment| segment.number) else { return Ok((start, None)) };
    let begin = if first > 1 { find(disk, segments)? } else { None };
    let fits = begin.is_some_and(|(begin, _)| begin.allows(first, start));
    if first > 1 && !fits {
        return Err(Error::SegmentMissing { file: Segment::new(trail, first - 1).name });
    }
    Ok((start, begin))
}
