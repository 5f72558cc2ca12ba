//! A trail's files: `{trail}.{number}.jsonl`, numbered without a gap, from 1 unless the oldest were deleted.

use crate::Error;
use crate::disk::Disk;
use crate::line::{Chain, Link, MAX_LINE_BYTES};
use crate::tail::Pieces;

/// One file of a trail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) number: u32,
    pub(crate) name: String,
}

impl Segment {
    pub(crate) fn new(trail: &str, number: u32) -> Self {
        Self { number, name: format!("{trail}.{number:06}.jsonl") }
    }

    /// The file of its index, once it is closed.
    pub(crate) fn index_name(&self) -> String {
        self.name.replace(".jsonl", ".index")
    }

    fn parse(trail: &str, name: &str) -> Option<Self> {
        let digits = name.strip_prefix(trail)?.strip_prefix('.')?.strip_suffix(".jsonl")?;
        let segment = Self::new(trail, digits.parse().ok()?);
        // The number has exactly one spelling; anything else is somebody's copy.
        (segment.name == name).then_some(segment)
    }
}

/// The segments of a trail in order; a gap is an error, for a record may never be skipped.
pub(crate) fn list(disk: &dyn Disk, trail: &str) -> Result<Vec<Segment>, Error> {
    let names = disk.list().map_err(|source| Error::file("list the directory of", trail, source))?;
    let mut segments: Vec<Segment> = names.iter().filter_map(|name| Segment::parse(trail, name)).collect();
    segments.sort_by_key(|segment| segment.number);
    let first = segments.first().map_or(1, |segment| segment.number);
    for (segment, number) in segments.iter().zip(first..) {
        if segment.number != number {
            return Err(Error::SegmentMissing { file: Segment::new(trail, number).name });
        }
    }
    Ok(segments)
}

/// Where the chain stood before the first of these segments: what its first line says. Whether that is so, a record of
/// the trail must say.
pub(crate) fn start(disk: &dyn Disk, segments: &[Segment]) -> Result<Chain, Error> {
    let Some(first) = segments.first().filter(|segment| segment.number > 1) else {
        return Ok(Chain::default());
    };
    let failed = |source| Error::file("read", &first.name, source);
    let file = disk.open(&first.name).map_err(failed)?;
    let mut pieces = Pieces { file: &*file, at: 0, piece: Vec::with_capacity(MAX_LINE_BYTES) };
    pieces.next().map_err(failed)?;
    // A line that cannot be read is named by whoever reads on from the beginning.
    let link = Link::read(&pieces.piece).ok();
    Ok(link.map_or(Chain::default(), |link| Chain { seq: link.seq - 1, hash: link.prev }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::FaultyDisk;

    #[test]
    fn segments_are_ordered_and_strangers_are_left_alone() {
        let disk = FaultyDisk::new();
        for name in [
            "a.000002.jsonl",
            "a.000001.jsonl",
            "a.jsonl",
            "a.1.jsonl",
            "a.+00001.jsonl",
            "a.000001.jsonl.bak",
            "b.000001.jsonl",
            "ab.000001.jsonl",
            "a.0000003.jsonl",
        ] {
            disk.put(name, b"");
        }

        let names: Vec<String> = list(&disk, "a").unwrap().into_iter().map(|segment| segment.name).collect();

        assert_eq!(names, ["a.000001.jsonl", "a.000002.jsonl"]);
    }

    #[test]
    fn a_missing_segment_is_named() {
        let disk = FaultyDisk::new();
        disk.put("a.000001.jsonl", b"");
        disk.put("a.000003.jsonl", b"");

        let error = list(&disk, "a").unwrap_err();

        assert!(error.to_string().contains("a.000002.jsonl"), "{error}");
    }
}
