//! Checks trails where they lie, without changing a byte: the first bad line is named, never skipped.

use std::path::Path;

use crate::Error;
use crate::disk::{Disk, RealDisk};
use crate::line::Chain;
use crate::scan::Scanner;
use crate::segment;

/// What checking a trail came to.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Every line is whole and follows from the one before it.
    Whole,
    /// The content is wrong; the error names the first bad line.
    Broken(Error),
    /// The content could not be read, so nothing is known about it.
    Unchecked(Error),
}

/// The result of checking one trail or file.
#[derive(Clone, Debug)]
pub struct TrailReport {
    /// The trail or the file.
    pub name: String,
    /// Good lines, up to the first bad one.
    pub lines: u64,
    /// The last good line.
    pub head: Chain,
    /// Whether all of it is good.
    pub verdict: Verdict,
}

impl TrailReport {
    fn of(name: &str, mut scanner: Scanner<'_>) -> Self {
        let mut lines = 0;
        let verdict = loop {
            match scanner.next() {
                Ok(Some(_)) => lines += 1,
                Ok(None) => break Verdict::Whole,
                Err(error) => break Verdict::from(error),
            }
        };
        Self { name: name.to_owned(), lines, head: scanner.chain(), verdict }
    }

    fn without_lines(name: &str, error: Error) -> Self {
        Self { name: name.to_owned(), lines: 0, head: Chain::default(), verdict: Verdict::from(error) }
    }

    /// True when everything was read and found good.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        matches!(self.verdict, Verdict::Whole)
    }
}

impl From<Error> for Verdict {
    fn from(error: Error) -> Self {
        if error.is_damage() { Self::Broken(error) } else { Self::Unchecked(error) }
    }
}

/// Checks one trail of a directory. A trail without a first segment is broken: opening a log makes one.
#[must_use]
pub fn verify_trail(disk: &dyn Disk, trail: &str) -> TrailReport {
    match segment::list(disk, trail) {
        Ok(segments) if segments.is_empty() => {
            let file = segment::Segment::new(trail, 1).name;
            TrailReport::without_lines(trail, Error::SegmentMissing { file })
        }
        Ok(segments) => TrailReport::of(trail, Scanner::over(disk, segments)),
        Err(error) => TrailReport::without_lines(trail, error),
    }
}

/// Checks one journal file, wherever it lies. A file that begins with a later line is taken as the
/// continuation it says it is; what came before it is not checked.
#[must_use]
pub fn verify_lone_file(path: &Path) -> TrailReport {
    let name = path.display().to_string();
    match RealDisk::open_lone_file(path) {
        Ok(file) => TrailReport::of(&name, Scanner::lone(name.clone(), file)),
        Err(source) => TrailReport::without_lines(&name, Error::disk("open", path, source)),
    }
}
