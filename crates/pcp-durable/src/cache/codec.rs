//! The content of a cache: fields of fixed length, texts with their length before them, in one order.

use super::{CacheFault, MAX_CACHE_ENTRIES, MAX_CACHE_TEXT_BYTES, content};

/// Most categories of one application that are kept; one with more is looked at again.
const MAX_CATEGORIES: usize = 255;
/// Most files on which one finding may rest; one that rests on more is looked at again.
const MAX_BASIS: usize = 255;

const NO_DISPLAY: u8 = 1;
const DIAGNOSED: u8 = 2;
const SEARCHED: u8 = 4;
const HAS_EVIDENCE: u8 = 8;
const HAS_PROGRAM: u8 = 16;
const HAS_CLASS: u8 = 32;
const APP: u8 = 0;
const HIDDEN: u8 = 1;
const OTHER_TYPE: u8 = 2;

/// By what a change of a file is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    /// The device it lies on.
    pub dev: u64,
    /// Its number there.
    pub ino: u64,
    /// Its length in bytes.
    pub size: u64,
    /// When its bytes were changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When anything of it was changed.
    pub ctime_ns: i64,
}

/// A program or a library, as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CachedFile<'a> {
    /// Its path.
    pub path: &'a [u8],
    /// As it was.
    pub stat: FileStat,
}

/// What an application's desktop file says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the application")]
pub struct CachedApp<'a> {
    pub name: &'a str,
    pub categories: Vec<&'a str>,
    /// The word for it; empty where none could be told.
    pub toolkit: &'a str,
    pub evidence: Option<&'a str>,
    pub program: Option<&'a str>,
    pub window_class: Option<&'a str>,
    pub no_display: bool,
    pub diagnosed: bool,
}

/// What was found in a desktop file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CachedFinding<'a> {
    /// An application.
    App(CachedApp<'a>),
    /// None: it is hidden.
    Hidden,
    /// None: it is of this type.
    OtherType(&'a str),
}

/// A desktop file, as it was, and what was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedEntry<'a> {
    /// The file.
    pub file: CachedFile<'a>,
    /// What was found.
    pub finding: CachedFinding<'a>,
    /// Whether its program was looked for in the search path.
    pub searched: bool,
    /// The files that this rests on, as places in the list of them.
    pub basis: Vec<u32>,
}

/// Everything that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detected<'a> {
    /// The folders of the search path as they were; none for one that was not there.
    pub folders: Option<Vec<Option<FileStat>>>,
    /// The files that findings rest on.
    pub basis: Vec<CachedFile<'a>>,
    /// The desktop files.
    pub entries: Vec<CachedEntry<'a>>,
}

impl<'a> Detected<'a> {
    /// Reads the bytes that [`load`](super::load) gave.
    ///
    /// # Errors
    /// [`CacheFault::Malformed`] names what cannot be.
    pub fn read(bytes: &'a [u8]) -> Result<Self, CacheFault> {
        let mut input = Input(content(bytes));
        let folders = match input.byte()? {
            0 => None,
            _ => Some(input.list("a number of folders", |input| {
                Ok(if input.byte()? == 0 { None } else { Some(input.stat()?) })
            })?),
        };
        let basis = input.list("a number of programs", Input::file)?;
        let entries = input.list("a number of entries", |input| input.entry(basis.len()))?;
        match input.0 {
            [] => Ok(Self { folders, basis, entries }),
            _ => Err(CacheFault::Malformed("an end that comes later")),
        }
    }

    pub(super) fn write(&self, bytes: &mut Vec<u8>) {
        let folders = self.folders.as_ref().filter(|folders| folders.len() <= MAX_CACHE_ENTRIES);
        bytes.push(u8::from(folders.is_some()));
        if let Some(folders) = folders {
            number(bytes, folders.len());
            for folder in folders {
                bytes.push(u8::from(folder.is_some()));
                folder.iter().for_each(|stat| put_stat(bytes, stat));
            }
        }
        let basis = self.basis.get(..MAX_CACHE_ENTRIES).unwrap_or(&self.basis);
        number(bytes, basis.len());
        for file in basis {
            put_file(bytes, file);
        }
        let fits = |entry: &&CachedEntry<'_>| entry.fits(basis);
        let entries = || self.entries.iter().filter(fits).take(MAX_CACHE_ENTRIES);
        number(bytes, entries().count());
        entries().for_each(|entry| entry.write(bytes));
    }
}

impl CachedEntry<'_> {
    /// Whether nothing of it exceeds a limit.
    fn fits(&self, basis: &[CachedFile<'_>]) -> bool {
        let short = |text: &[u8]| text.len() <= MAX_CACHE_TEXT_BYTES;
        let rests = |place: &u32| basis.get(*place as usize).is_some_and(|file| short(file.path));
        let finding = match &self.finding {
            CachedFinding::App(app) => {
                let texts = [Some(app.name), Some(app.toolkit), app.evidence, app.program, app.window_class];
                app.categories.len() <= MAX_CATEGORIES
                    && texts
                        .into_iter()
                        .flatten()
                        .chain(app.categories.iter().copied())
                        .all(|t| short(t.as_bytes()))
            }
            CachedFinding::Hidden => true,
            CachedFinding::OtherType(text) => short(text.as_bytes()),
        };
        finding && short(self.file.path) && self.basis.len() <= MAX_BASIS && self.basis.iter().all(rests)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        put_file(bytes, &self.file);
        let searched = if self.searched { SEARCHED } else { 0 };
        let flag = |is: bool, bit: u8| if is { bit } else { 0 };
        match &self.finding {
            CachedFinding::App(app) => {
                let further = [app.evidence, app.program, app.window_class];
                let [evidence, program, class] = further.map(|text| text.is_some());
                let flags = searched
                    | flag(app.no_display, NO_DISPLAY)
                    | flag(app.diagnosed, DIAGNOSED)
                    | flag(evidence, HAS_EVIDENCE)
                    | flag(program, HAS_PROGRAM)
                    | flag(class, HAS_CLASS);
                bytes.extend_from_slice(&[APP, flags]);
                text(bytes, app.name.as_bytes());
                text(bytes, app.toolkit.as_bytes());
                number(bytes, app.categories.len());
                app.categories.iter().for_each(|category| text(bytes, category.as_bytes()));
                further.into_iter().flatten().for_each(|more| text(bytes, more.as_bytes()));
            }
            CachedFinding::Hidden => bytes.extend_from_slice(&[HIDDEN, searched]),
            CachedFinding::OtherType(kind) => {
                bytes.extend_from_slice(&[OTHER_TYPE, searched]);
                text(bytes, kind.as_bytes());
            }
        }
        number(bytes, self.basis.len());
        self.basis.iter().for_each(|place| bytes.extend_from_slice(&place.to_le_bytes()));
    }
}

/// A number of things, two bytes: [`MAX_CACHE_ENTRIES`] fit.
fn number(bytes: &mut Vec<u8>, number: usize) {
    bytes.extend_from_slice(&u16::try_from(number).unwrap_or(u16::MAX).to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &[u8]) {
    // What is longer was left out; what cannot be named would lead nowhere.
    let text = if text.len() <= MAX_CACHE_TEXT_BYTES { text } else { &[] };
    number(bytes, text.len());
    bytes.extend_from_slice(text);
}

fn put_file(bytes: &mut Vec<u8>, file: &CachedFile<'_>) {
    text(bytes, file.path);
    put_stat(bytes, &file.stat);
}

fn put_stat(bytes: &mut Vec<u8>, stat: &FileStat) {
    for part in [stat.dev, stat.ino, stat.size] {
        bytes.extend_from_slice(&part.to_le_bytes());
    }
    for part in [stat.mtime_ns, stat.ctime_ns] {
        bytes.extend_from_slice(&part.to_le_bytes());
    }
}

/// What is left to read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn chunk<const BYTES: usize>(&mut self) -> Result<[u8; BYTES], CacheFault> {
        let (chunk, rest) =
            self.0.split_first_chunk().ok_or(CacheFault::Malformed("an end that comes early"))?;
        self.0 = rest;
        Ok(*chunk)
    }

    fn byte(&mut self) -> Result<u8, CacheFault> {
        self.chunk().map(|[byte]: [u8; 1]| byte)
    }

    fn number(&mut self) -> Result<usize, CacheFault> {
        Ok(usize::from(u16::from_le_bytes(self.chunk()?)))
    }

    /// Room is taken for what is there, never for what is promised: an item takes a byte at least.
    fn list<T>(
        &mut self,
        what: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, CacheFault>,
    ) -> Result<Vec<T>, CacheFault> {
        let count = self.number()?;
        if count > MAX_CACHE_ENTRIES {
            return Err(CacheFault::Malformed(what));
        }
        let mut items = Vec::with_capacity(count.min(self.0.len()));
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn bytes(&mut self) -> Result<&'a [u8], CacheFault> {
        let length = self.number()?;
        if length > MAX_CACHE_TEXT_BYTES {
            return Err(CacheFault::Malformed("a length"));
        }
        let (text, rest) =
            self.0.split_at_checked(length).ok_or(CacheFault::Malformed("an end that comes early"))?;
        self.0 = rest;
        Ok(text)
    }

    fn text(&mut self) -> Result<&'a str, CacheFault> {
        std::str::from_utf8(self.bytes()?).map_err(|_| CacheFault::Malformed("a text"))
    }

    fn stat(&mut self) -> Result<FileStat, CacheFault> {
        Ok(FileStat {
            dev: u64::from_le_bytes(self.chunk()?),
            ino: u64::from_le_bytes(self.chunk()?),
            size: u64::from_le_bytes(self.chunk()?),
            mtime_ns: i64::from_le_bytes(self.chunk()?),
            ctime_ns: i64::from_le_bytes(self.chunk()?),
        })
    }

    fn file(&mut self) -> Result<CachedFile<'a>, CacheFault> {
        Ok(CachedFile { path: self.bytes()?, stat: self.stat()? })
    }

    fn entry(&mut self, basis_files: usize) -> Result<CachedEntry<'a>, CacheFault> {
        let file = self.file()?;
        let [kind, flags] = self.chunk()?;
        let has = |bit| flags & bit != 0;
        let finding = match kind {
            APP => CachedFinding::App(self.app(has)?),
            HIDDEN => CachedFinding::Hidden,
            OTHER_TYPE => CachedFinding::OtherType(self.text()?),
            _ => return Err(CacheFault::Malformed("a kind of entry")),
        };
        let basis = self.list("a number of programs", |input| {
            let place = u32::from_le_bytes(input.chunk()?);
            let is_there = usize::try_from(place).is_ok_and(|place| place < basis_files);
            if is_there { Ok(place) } else { Err(CacheFault::Malformed("the place of a program")) }
        })?;
        Ok(CachedEntry { file, finding, searched: has(SEARCHED), basis })
    }

    fn app(&mut self, has: impl Fn(u8) -> bool) -> Result<CachedApp<'a>, CacheFault> {
        let (name, toolkit) = (self.text()?, self.text()?);
        let categories = self.list("a number of categories", Self::text)?;
        let mut further = |bit| if has(bit) { self.text().map(Some) } else { Ok(None) };
        let (evidence, program, window_class) =
            (further(HAS_EVIDENCE)?, further(HAS_PROGRAM)?, further(HAS_CLASS)?);
        let (no_display, diagnosed) = (has(NO_DISPLAY), has(DIAGNOSED));
        Ok(CachedApp { name, categories, toolkit, evidence, program, window_class, no_display, diagnosed })
    }
}
