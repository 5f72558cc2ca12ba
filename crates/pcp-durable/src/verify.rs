//! Checks trails where they lie, without changing a byte: the first bad line is named, never skipped.

use std::path::Path;

use pcp_core::Trail;

use crate::Error;
use crate::begin::{self, Begin};
use crate::disk::{Disk, RealDisk};
use crate::line::{Chain, Hash};
use crate::scan::Scanner;
use crate::seal::{ANCHOR, Checker, SealFault, Sealed, VaultState, VerificationKey, cut_short};
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
    /// What its seals came to; `None` where they were not looked at.
    pub sealed: Option<Sealed>,
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
        Self { name: name.to_owned(), lines, head: scanner.chain(), sealed: None, verdict }
    }

    fn without_lines(name: &str, error: Error) -> Self {
        let (name, head, verdict) = (name.to_owned(), Chain::default(), Verdict::from(error));
        Self { name, lines: 0, head, sealed: None, verdict }
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
        Ok(segments) => match begin::check(disk, trail, &segments) {
            Ok(_) => TrailReport::of(trail, Scanner::over(disk, segments)),
            Err(error) => TrailReport::without_lines(trail, error),
        },
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

/// Checks one journal file, which may be an export, and its seals as those of a trail. Other trails are not there, so
/// what the seals say of those is not looked at.
#[must_use]
pub fn verify_sealed_file(path: &Path, trail: Trail, keys: &[VerificationKey]) -> TrailReport {
    let name = path.display().to_string();
    let file = match RealDisk::open_lone_file(path) {
        Ok(file) => file,
        Err(source) => return TrailReport::without_lines(&name, Error::disk("open", path, source)),
    };
    let names: Vec<&str> = Trail::ALL.iter().map(|trail| trail.as_str()).collect();
    let at = Trail::ALL.iter().position(|known| *known == trail).unwrap_or(0);
    let mut checker = Checker::new(&names, keys);
    (0..names.len()).filter(|other| *other != at).for_each(|other| checker.give_up(other));
    checker.is_part(at);
    let scanner = Some(Scanner::lone(name.clone(), file));
    let mut walk =
        Walk { name, scanner, lines: 0, number: 0, unsaid: None, is_said: false, first: 1, verdict: None };
    while walk.verdict.is_none() {
        walk.go(at, &mut checker);
    }
    let sealed = checker.sealed(at);
    walk.report(sealed)
}

/// A head that was noted elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The trail.
    pub trail: Trail,
    /// Number of the record.
    pub seq: u64,
    /// SHA-256 of its line.
    pub hash: Hash,
}

/// What a log is held against, besides itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proofs<'a> {
    /// The key and the anchor.
    pub seals: Option<&'a dyn Disk>,
    /// The trails are a copy, so that it is no news when there is no anchor.
    pub is_copy: bool,
    /// First keys, as they were printed.
    pub keys: &'a [VerificationKey],
    /// Heads that must be in the trails.
    pub pins: &'a [Pin],
}

/// The result of checking a log.
#[derive(Clone, Debug)]
pub struct LogReport {
    /// The three trails.
    pub trails: Vec<TrailReport>,
    /// The key and the anchor.
    pub seals: SealsReport,
}

/// What was found of seals outside the trails.
#[derive(Clone, Debug)]
pub struct SealsReport {
    /// There is a key, or a trail has a seal.
    pub is_sealed: bool,
    /// The present epoch, where there is a key.
    pub epoch: Option<u64>,
    /// Whether the key and the anchor are good, and every seal was checked for which a key could be given.
    pub verdict: Verdict,
}

/// Checks the three trails of a log, their seals, and what witnesses say of them. Changes nothing.
#[must_use]
pub fn verify_log(disk: &dyn Disk, proofs: &Proofs<'_>) -> LogReport {
    let names: Vec<&str> = Trail::ALL.iter().map(|trail| trail.as_str()).collect();
    let mut checker = Checker::new(&names, proofs.keys);
    let vault = proofs.seals.map(VaultState::read);
    let state = vault.as_ref().and_then(|vault| vault.as_ref().ok());
    for (at, head) in state.iter().flat_map(|state| state.anchor.heads.iter().enumerate()) {
        if at < names.len() {
            checker.expect(at, *head, ANCHOR);
        }
    }
    for pin in proofs.pins {
        let trail = Trail::ALL.iter().position(|trail| *trail == pin.trail).unwrap_or(0);
        checker.expect(trail, Chain { seq: pin.seq, hash: pin.hash }, "the pinned head");
    }
    let walk = |(at, name): (usize, &&'static str)| Walk::begin(disk, name, at, &mut checker);
    let mut walks: Vec<Walk<'_>> = names.iter().enumerate().map(walk).collect();
    loop {
        let open = walks.iter().enumerate().filter(|(_, walk)| walk.verdict.is_none());
        let Some((at, walk)) = open.min_by_key(|(at, _)| checker.epoch(*at)) else { break };
        let _ = walk;
        walks[at].go(at, &mut checker);
    }
    // A head may be named after its trail was read to the end.
    let present = state.map(|state| state.key.epoch());
    for (at, walk) in walks.iter_mut().enumerate() {
        walk.end(at, disk, &checker, present);
    }
    let is_sealed = vault.is_some() || (0..names.len()).any(|at| checker.epoch(at) > 0);
    let verdict = match &vault {
        Some(Err(error)) => Verdict::from(error.clone()),
        None if is_sealed && !proofs.is_copy => Verdict::Unchecked(Error::NotChecked {
            what: "the newest records of the trails".into(),
            why: "they are sealed, but their anchor is not there; say so if they are a copy".into(),
        }),
        _ => Verdict::Whole,
    };
    let report = |(at, walk): (usize, Walk<'_>)| walk.report(checker.sealed(at));
    let trails = walks.into_iter().enumerate().map(report).collect();
    LogReport { trails, seals: SealsReport { is_sealed, epoch: present, verdict } }
}

/// One trail on the way through [`verify_log`].
#[derive(Debug)]
struct Walk<'d> {
    name: String,
    scanner: Option<Scanner<'d>>,
    lines: u64,
    /// The last good line in its file.
    number: u64,
    /// Where the trail begins that has lost segments, until a record of it was found that says so.
    unsaid: Option<(u32, Chain)>,
    /// Such a record was found, and no seal behind it yet.
    is_said: bool,
    first: u64,
    verdict: Option<Verdict>,
}

impl<'d> Walk<'d> {
    fn begin(disk: &'d dyn Disk, name: &str, at: usize, checker: &mut Checker<'_>) -> Self {
        let segments = segment::list(disk, name).and_then(|segments| match segments.is_empty() {
            true => Err(Error::SegmentMissing { file: segment::Segment::new(name, 1).name }),
            false => segment::start(disk, &segments).map(|start| (segments, start)),
        });
        let mut walk = Self {
            name: name.to_owned(),
            scanner: None,
            lines: 0,
            number: 0,
            unsaid: None,
            is_said: false,
            first: 1,
            verdict: None,
        };
        match segments {
            Ok((segments, start)) => {
                if let Some(first) = segments.first().filter(|segment| segment.number > 1) {
                    checker.begins_behind(at, start);
                    (walk.unsaid, walk.first) = (Some((first.number, start)), start.seq + 1);
                }
                walk.scanner = Some(Scanner::behind(disk, segments, start));
            }
            Err(error) => {
                checker.give_up(at);
                walk.verdict = Some(Verdict::from(error));
            }
        }
        walk
    }

    /// Reads on to the next seal, the end or the first bad line.
    fn go(&mut self, at: usize, checker: &mut Checker<'_>) {
        let Some(scanner) = &mut self.scanner else { return };
        let verdict = loop {
            match scanner.next() {
                Ok(Some(line)) => match checker.line(at, &line) {
                    Ok(is_seal) => {
                        self.lines += 1;
                        self.number = line.number;
                        hear(&mut self.unsaid, &mut self.is_said, line.bytes, is_seal);
                        if is_seal {
                            return;
                        }
                    }
                    Err(error) => break Verdict::from(error),
                },
                Ok(None) => break Verdict::Whole,
                Err(error) => break Verdict::from(error),
            }
        };
        if !matches!(verdict, Verdict::Whole) {
            checker.give_up(at);
        }
        self.verdict = Some(verdict);
    }

    /// What is missing at the end.
    fn end(&mut self, at: usize, disk: &dyn Disk, checker: &Checker<'_>, present: Option<u64>) {
        if !matches!(self.verdict, Some(Verdict::Whole)) {
            return;
        }
        let last = self.scanner.as_ref().map_or(0, |scanner| scanner.chain().seq);
        let is_sealed = present.is_some() || checker.epoch(at) > 0;
        let unsaid = self.unsaid.filter(|_| is_sealed || !self.is_said);
        let error = if let Some((number, start)) = unsaid {
            let file = segment::Segment::new(&self.name, number).name;
            let (line, offset, seq) = (1, 0, start.seq + 1);
            Some(Ok(Error::Seal { file, line, offset, seq, fault: SealFault::Begin }))
        } else if let Some((named, witness)) = checker.missing(at).filter(|(named, _)| *named < self.first) {
            let what = format!("record {named} of trail {}, which {witness} names", self.name);
            let why = format!("records before {} were deleted when they were too old", self.first);
            Some(Ok(Error::NotChecked { what, why }))
        } else if let Some((named, witness)) = checker.missing(at) {
            Some(cut_short(disk, &self.name, last, named, witness))
        } else {
            checker.end(at, present).map(|fault| ends_wrongly(disk, &self.name, last, self.number, fault))
        };
        if let Some(error) = error {
            self.verdict = Some(Verdict::from(error.unwrap_or_else(|error| error)));
        }
    }

    fn report(self, sealed: Sealed) -> TrailReport {
        let head = self.scanner.map_or(Chain::default(), |scanner| scanner.chain());
        let verdict = self.verdict.unwrap_or(Verdict::Whole);
        TrailReport { name: self.name, lines: self.lines, head, sealed: Some(sealed), verdict }
    }
}

/// Listens for the record that says where the trail begins; where there are seals, one must stand behind it.
fn hear(unsaid: &mut Option<(u32, Chain)>, is_said: &mut bool, line: &[u8], is_seal: bool) {
    let Some((segment, start)) = *unsaid else { return };
    if is_seal && *is_said {
        *unsaid = None;
    }
    *is_said |= Begin::read(line).is_some_and(|begin| begin.allows(segment, start));
}

/// The error that a trail ends as its seals do not allow.
fn ends_wrongly(
    disk: &dyn Disk,
    trail: &str,
    last: u64,
    number: u64,
    fault: SealFault,
) -> Result<Error, Error> {
    let Error::CutShort { file, offset, .. } = cut_short(disk, trail, last, 0, "")? else {
        return Err(Error::SegmentMissing { file: trail.to_owned() });
    };
    Ok(Error::Seal { file, line: number + 1, offset, seq: last + 1, fault })
}
