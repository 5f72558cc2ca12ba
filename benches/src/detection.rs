//! A system of five hundred applications in a folder of its own, and beside its detection the least that any reader of
//! the same bytes has to do: open, fstat and read them.
//!
//! Entries are as large and as much translated as real ones; programs are programs of this host, or, where the same
//! count of instructions is wanted on every host, one small program made here.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pcp_native::desktop::TreeLimits;
use pcp_native::{DetectionCache, NativeDetector, Pass};

/// Bytes that are read at the beginning of a program: a page.
const HEAD_BYTES: usize = 4096;
/// Different programs of the host; each has several names.
const PROGRAMS: usize = 40;
/// Sizes of the programs that are taken, in bytes.
const SIZES: std::ops::Range<u64> = 10_000..8_000_000;
/// One application in so many starts by a shell script, and one by a Python script.
const SCRIPT_EVERY: usize = 16;
/// Longer than any clock of a file system takes for a tick.
const SETTLED: Duration = Duration::from_millis(50);
/// Languages of the translations: as many as large desktops have.
const LOCALES: [&str; 48] = [
    "ar", "ast", "be", "bg", "bn", "ca", "cs", "da", "de", "el", "en_GB", "eo", "es", "et", "eu", "fa", "fi",
    "fr", "gl", "he", "hi", "hr", "hu", "id", "it", "ja", "kk", "ko", "lt", "lv", "nb", "nl", "oc", "pl",
    "pt", "pt_BR", "ro", "ru", "sk", "sl", "sr", "sr@latin", "sv", "tr", "uk", "vi", "zh_CN", "zh_TW",
];

/// Which programs the applications start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Programs of this host, of mixed sizes, and some scripts.
    Host,
    /// A small program that is the same everywhere.
    Made,
}

/// Applications in a temporary folder.
#[derive(Debug)]
pub struct Detection {
    detector: NativeDetector,
    cache: DetectionCache,
    apps: usize,
    entries: Vec<PathBuf>,
    programs: Vec<PathBuf>,
    buffer: Vec<u8>,
    written: Instant,
    _folder: tempfile::TempDir,
}

impl Detection {
    /// Writes the entries and the programs of `apps` applications.
    ///
    /// # Errors
    /// What the file system says.
    pub fn new(apps: usize, kind: Kind) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        for name in ["share/applications", "local", "bin", "store"] {
            fs::create_dir_all(at(name))?;
        }
        let store = match kind {
            Kind::Host => host_programs(&at("store"))?,
            Kind::Made => vec![executable(at("store").join("made"), &made())?],
        };
        let (mut entries, mut programs) = (Vec::new(), Vec::new());
        for number in 0..apps {
            let name = format!("org.example.Application{number}");
            let program = at("bin").join(format!("application{number}"));
            let elf = store.get(number % store.len()).ok_or(io::ErrorKind::NotFound)?;
            fs::hard_link(elf, &program)?;
            programs.push(program.clone());
            let first = match number % SCRIPT_EVERY {
                1 => executable(
                    at("bin").join(format!("start{number}")),
                    format!("#!/bin/sh\n# starts it\nexport A=1\nexec {} \"$@\"\n", program.display())
                        .as_bytes(),
                )?,
                2 => executable(at("bin").join(format!("start{number}")), python(number).as_bytes())?,
                _ => program.clone(),
            };
            if first != program {
                programs.push(first.clone());
            }
            let entry = at("share/applications").join(format!("{name}.desktop"));
            fs::write(&entry, desktop(number, &first))?;
            entries.push(entry);
        }
        let detector =
            NativeDetector::new(vec![at("share")], vec![at("local"), at("bin")], TreeLimits::default());
        let (cache, buffer) = (DetectionCache::default(), Vec::new());
        let written = Instant::now();
        Ok(Self { detector, cache, apps, entries, programs, buffer, written, _folder: folder })
    }

    /// The limit: opens every file that has to be read, asks for its length, reads an entry whole and the beginning of
    /// a program. The answer is how many bytes that were.
    ///
    /// # Errors
    /// What the file system says.
    pub fn read(&mut self) -> io::Result<usize> {
        let mut total = 0;
        for path in &self.entries {
            let file = File::open(path)?;
            let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
            self.buffer.resize(length, 0);
            total += file.read_at(&mut self.buffer, 0)?;
        }
        self.buffer.resize(HEAD_BYTES, 0);
        for path in &self.programs {
            let file = File::open(path)?;
            total += usize::from(file.metadata()?.is_file());
            total += file.read_at(&mut self.buffer, 0)?;
        }
        Ok(total)
    }

    /// Whether files were written so short ago that the times of the file system cannot tell.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self.written.elapsed() < SETTLED
    }

    /// A pass that knows nothing yet.
    pub fn cold(&mut self) -> Pass {
        self.cache = DetectionCache::default();
        let pass = self.detector.pass(&mut self.cache);
        assert_eq!((pass.apps.len(), pass.examined), (self.apps, self.apps), "{:?}", pass.skipped);
        pass
    }

    /// A pass over what is as it was.
    pub fn warm(&mut self) -> Pass {
        let pass = self.detector.pass(&mut self.cache);
        assert_eq!((pass.apps.len(), pass.examined), (self.apps, 0));
        pass
    }
}

fn executable(path: PathBuf, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::write(&path, bytes)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Copies programs of this host, from the smallest to the largest in equal steps.
fn host_programs(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/usr/bin")? {
        let entry = entry?;
        let facts = entry.metadata()?;
        let mut head = [0; 4];
        if facts.is_file()
            && SIZES.contains(&facts.len())
            && File::open(entry.path()).is_ok_and(|file| file.read_exact_at(&mut head, 0).is_ok())
            && head == *b"\x7fELF"
        {
            found.push((facts.len(), entry.path()));
        }
    }
    found.sort();
    let step = found.len().div_ceil(PROGRAMS).max(1);
    let chosen = found.iter().step_by(step).enumerate();
    chosen.map(|(number, (_, path))| executable(store.join(number.to_string()), &fs::read(path)?)).collect()
}

fn python(number: usize) -> String {
    let line = "# A script as long as they usually are, with its licence before its first line of code.\n";
    let imports = "import gi\n\ngi.require_version('Gtk', '3.0')\nfrom gi.repository import Gtk\n";
    format!("#!/usr/bin/python3\n{}\n{imports}print({number})\n", line.repeat(12))
}

/// An entry of three to six thousand bytes.
fn desktop(number: usize, program: &Path) -> String {
    let mut text = String::from("[Desktop Entry]\nVersion=1.0\nType=Application\n");
    let mut translated = |key: &str, words: &str, locales: &[&str]| {
        text += &format!("{key}={words} {number}\n");
        locales.iter().for_each(|locale| text += &format!("{key}[{locale}]={words} ({locale})\n"));
    };
    // From half of the languages to all of them.
    let count = LOCALES.len() / 2 + number % (LOCALES.len() / 2);
    let some = |count: usize| LOCALES.get(..count).unwrap_or_default();
    translated("Name", "Application", some(count));
    translated("GenericName", "Editor", some(count / 2));
    translated("Comment", "Opens, changes and keeps texts of every kind", some(count));
    translated("Keywords", "text;editor;write;", some(count / 3));
    // Most entries name their program without a folder.
    let exec = match number % 3 {
        0 => program.display().to_string(),
        _ => program.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    text += &format!(
        "Exec={exec} %U\nIcon=application{number}\nTerminal=false\nStartupNotify=true\nCategories=Utility;TextEditor;\n\
         MimeType=text/plain;text/markdown;application/xml;\nActions=new;\n\n[Desktop Action new]\n"
    );
    some(count / 2).iter().for_each(|locale| text += &format!("Name[{locale}]=New window ({locale})\n"));
    text + &format!("Name=New window\nExec={exec} --new\n")
}

/// A program of 64 bits with a table of program headers, a dynamic table and its names, as far apart as in real ones.
fn made() -> Vec<u8> {
    const NAMES_AT: usize = 0x1000;
    const DYNAMIC_AT: usize = 0x8000;
    let names = b"\0libgtk-3.so.0\0libglib-2.0.so.0\0libc.so.6\0";
    let place =
        |name: &[u8]| names.windows(name.len()).position(|part| part == name).unwrap_or_default() as u64;
    let needed = [&b"libglib-2.0.so.0"[..], b"libgtk-3.so.0", b"libc.so.6"].map(|name| [1, place(name)]);
    let table = [[5, NAMES_AT as u64], [10, names.len() as u64], [0, 0]];
    let dynamic: Vec<u8> =
        needed.iter().chain(&table).flatten().flat_map(|word| word.to_le_bytes()).collect();
    let mut file = vec![0; DYNAMIC_AT];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(room) = file.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    };
    // 64 bits, little-endian, version 1; a position-independent program for x86-64, three headers of 56 bytes at 64
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[3, 0, 62, 0, 1, 0, 0, 0]);
    put(32, &64_u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 2, 0]);
    let header = |kind: u32, at: u64, bytes: u64| {
        let words = [at, at, at, bytes, bytes, 0x1000];
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        [kind, 4].iter().flat_map(|word| word.to_le_bytes()).chain(words).collect::<Vec<u8>>()
    };
    put(64, &header(1, 0, (DYNAMIC_AT + dynamic.len()) as u64));
    put(64 + 56, &header(2, DYNAMIC_AT as u64, dynamic.len() as u64));
    put(NAMES_AT, names);
    file.extend(dynamic);
    file
}
