//! Opening a trail: closed segments are believed by their index or read, the last one is always read, a torn
//! tail is cut off, and what is left is made durable.

use super::*;
use crate::begin;
use crate::index::Row;
use crate::tail;

/// What opening shows of a trail, in the order in which it was written.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// A line that was read.
    Line(&'a Line<'a>),
    /// An operation of a closed segment that begins or ends in another one.
    Loose(&'a Segment, &'a Row),
}

/// Takes what opening shows.
type Visit<'a> = dyn FnMut(Seen<'_>) -> Result<(), Error> + 'a;

impl Journal {
    /// Opens a trail that is known to hold `anchored` records, checks and shows what is in it, cuts a torn tail off and makes the rest durable. With a
    /// shelf, closed segments are shown by their loose ends only, and not read where their index fits.
    pub(crate) fn open(
        disk: Arc<dyn Disk>,
        trail: &str,
        segment_bytes: u64,
        anchored: u64,
        mut shelf: Option<Shelf>,
        visit: &mut Visit<'_>,
    ) -> Result<(Self, Chain, Option<Cut>), Error> {
        let mut segments = segment::list(&*disk, trail)?;
        if segments.is_empty() {
            let first = Segment::new(trail, 1);
            disk.create(&first.name).map_err(|source| Error::file("create", &first.name, source))?;
            segments.push(first);
        }
        let (start, begin) = begin::check(&*disk, trail, &segments)?;
        if let (Some(shelf), Some(begin)) = (&shelf, begin) {
            shelf.forget_to(begin.0.forgotten);
        }
        let (mut chain, mut cut) = (start, None);
        for (at, segment) in segments.iter().enumerate() {
            let mut closed = shelf.as_mut().filter(|_| at + 1 < segments.len());
            let recalled = closed.as_ref().and_then(|shelf| shelf.recall(&*disk, segment, chain));
            if let Some((after, loose)) = recalled {
                loose.iter().try_for_each(|row| visit(Seen::Loose(segment, row)))?;
                chain = after;
                continue;
            }
            if let Some(shelf) = &mut closed {
                let mut note = |line: &Line<'_>| {
                    shelf.note_line(line.bytes);
                    Ok(())
                };
                cut = cut.or(read(&*disk, &segments, at, anchored, &mut chain, &mut note)?);
                sync(&*disk, segment)?;
                let loose = shelf.close(&*disk, segment);
                loose.iter().try_for_each(|row| visit(Seen::Loose(segment, row)))?;
            } else {
                let mut show = |line: &Line<'_>| {
                    if let Some(shelf) = &mut shelf {
                        shelf.note_line(line.bytes);
                    }
                    visit(Seen::Line(line))
                };
                cut = cut.or(read(&*disk, &segments, at, anchored, &mut chain, &mut show)?);
            }
        }
        let segment = segments.pop().unwrap_or_else(|| Segment::new(trail, 1));
        // Lines written but not synced before a crash were just shown as facts: make them ones.
        let file = sync(&*disk, &segment)?;
        disk.sync_dir().map_err(|source| Error::file("sync the directory of", trail, source))?;
        let size = file.size().map_err(|source| Error::file("measure", &segment.name, source))?;
        let trail = trail.to_owned();
        let begins_by = begin.map_or(0, |(_, seq)| seq);
        let journal = Self {
            disk,
            trail,
            segment,
            file,
            size,
            reserved: size,
            segment_bytes,
            begins_by,
            rotated: false,
            shelf,
        };
        Ok((journal, chain, cut))
    }
}

/// Reads one of a trail's segments with every line checked.
fn read(
    disk: &dyn Disk,
    segments: &[Segment],
    at: usize,
    anchored: u64,
    chain: &mut Chain,
    show: &mut dyn FnMut(&Line<'_>) -> Result<(), Error>,
) -> Result<Option<Cut>, Error> {
    let mut scanner = Scanner::behind(disk, vec![segments[at].clone()], *chain);
    let cut = loop {
        match scanner.next() {
            Ok(Some(line)) => show(&line)?,
            Ok(None) => break None,
            Err(error) => {
                let last = scanner.chain().seq;
                // What is anchored was durable: no power cut tore it.
                if last < anchored {
                    return Err(error);
                }
                break Some(cut_tail(disk, &segments[at..], last + 1, error)?);
            }
        }
    };
    *chain = scanner.chain();
    Ok(cut)
}

fn sync(disk: &dyn Disk, segment: &Segment) -> Result<Box<dyn DiskFile>, Error> {
    let mut file = disk.open(&segment.name).map_err(|source| Error::file("open", &segment.name, source))?;
    file.sync_data().map_err(|source| Error::file("sync", &segment.name, source))?;
    Ok(file)
}

/// Cuts a torn tail off the last segment that holds anything, the first of these; every other damage stays an
/// error.
fn cut_tail(disk: &dyn Disk, segments: &[Segment], seq: u64, error: Error) -> Result<Cut, Error> {
    let Error::Damaged { file: name, line, offset, .. } = &error else { return Err(error) };
    for later in &segments[1..] {
        let size = disk.open(&later.name).and_then(|file| file.size());
        if size.map_err(|source| Error::file("measure", &later.name, source))? > 0 {
            return Err(error);
        }
    }
    let failed = |action| move |source| Error::file(action, name, source);
    let mut file = disk.open(name).map_err(failed("open"))?;
    if !tail::is_torn(&*file, *offset, seq).map_err(failed("read"))? {
        return Err(error);
    }
    let bytes = file.size().map_err(failed("measure"))? - offset;
    file.truncate(*offset).map_err(failed("cut the torn tail of"))?;
    file.sync_data().map_err(failed("sync"))?;
    Ok(Cut { file: name.clone(), line: *line, offset: *offset, bytes })
}
