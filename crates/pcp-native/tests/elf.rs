//! The ELF reader and the probe against recorded cases, against another reader, and against bytes nobody meant to be
//! ELF.

#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn as _, FileHeader, ProgramHeader as _};
use object::{Endianness, elf};
use pcp_native::elf::{
    Elf, ElfError, HEAD_BYTES, MAX_DYNAMIC_BYTES, MAX_NAME_BYTES, MAX_NEEDED, MAX_PROGRAM_HEADER_BYTES,
    ReadAt,
};
use pcp_native::{ProgramKind, Programs, Root, Toolkit};
use proptest::prelude::*;
use serde_json::{Value, json};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data/elf")
}

/// Bytes in memory that count what is read of them.
struct Counted<'a> {
    bytes: &'a [u8],
    read: Cell<usize>,
    largest: Cell<usize>,
}

impl ReadAt for Counted<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read.set(self.read.get() + buffer.len());
        self.largest.set(self.largest.get().max(buffer.len()));
        self.bytes.read_at(buffer, offset)
    }
}

fn read(bytes: &[u8]) -> Result<Elf, ElfError> {
    Elf::read(bytes, bytes.len() as u64, bytes.get(..HEAD_BYTES).unwrap_or(bytes))
}

/// A small ELF file of 64 bits: headers, dynamic table, strings, in one loaded segment.
#[derive(Clone)]
struct Made {
    names: Vec<Vec<u8>>,
    runpath: Option<Vec<u8>>,
}

impl Made {
    fn needing(names: &[&str]) -> Self {
        Self { names: names.iter().map(|name| name.as_bytes().to_vec()).collect(), runpath: None }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut strings = vec![0_u8];
        let mut put = |text: &[u8]| {
            let at = strings.len() as u64;
            strings.extend_from_slice(text);
            strings.push(0);
            at
        };
        let mut entries: Vec<(u64, u64)> = self.names.iter().map(|name| (1, put(name))).collect();
        entries.extend(self.runpath.as_ref().map(|path| (29, put(path))));
        let table_at = 64 + 2 * 56;
        let table_bytes = (entries.len() as u64 + 3) * 16;
        let base = 0x40_0000_u64;
        entries.extend([(5, base + table_at + table_bytes), (10, strings.len() as u64), (0, 0)]);
        let whole = table_at + table_bytes + strings.len() as u64;

        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        for half in [2_u16, 62] {
            file.extend(half.to_le_bytes());
        }
        file.extend(1_u32.to_le_bytes());
        for word in [base, 64, 0] {
            file.extend(word.to_le_bytes());
        }
        file.extend(0_u32.to_le_bytes());
        for half in [64_u16, 56, 2, 64, 0, 0] {
            file.extend(half.to_le_bytes());
        }
        for (kind, at, bytes) in [(1_u32, 0, whole), (2, table_at, table_bytes)] {
            file.extend(kind.to_le_bytes());
            file.extend(4_u32.to_le_bytes());
            for word in [at, base + at, base + at, bytes, bytes, 8] {
                file.extend(word.to_le_bytes());
            }
        }
        for (tag, value) in entries {
            file.extend(tag.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        file.extend(strings);
        file
    }
}

#[test]
fn every_recorded_case_is_probed_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let expected: Value = serde_json::from_slice(&fs::read(cases().join("expected.json")).unwrap()).unwrap();
    let list = expected["cases"].as_array().unwrap();
    assert_eq!(list.len(), 18);
    copy(&cases(), folder.path());
    for link in list.iter().filter_map(|case| case["links"].as_array()).flatten() {
        let path = folder.path().join(link[0].as_str().unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(link[1].as_str().unwrap(), path).unwrap();
    }
    let system = Root::system();
    let below = Root::beneath(folder.path()).unwrap();
    for (root, at) in [(&system, folder.path().canonicalize().unwrap()), (&below, PathBuf::from("/"))] {
        let programs = Programs::new(root, []);
        for case in list {
            let report = programs.probe_file(&at.join(case["file"].as_str().unwrap()));
            let found = serde_json::to_value(&report).unwrap();
            let alternative =
                case["alternatives"].as_array().is_some_and(|list| list.contains(&found["kind"]));
            assert!(found["kind"] == case["kind"] || alternative, "{}: {found}", case["case"]);
            if matches!(report.kind, ProgramKind::Error | ProgramKind::Missing) {
                assert!(report.why.unwrap().starts_with(&report.file), "{}: {found}", case["case"]);
            }
            if found["kind"] != case["kind"] {
                continue;
            }
            for field in ["bits", "endian", "machine", "dynamic", "needed", "toolkit", "interpreter"] {
                assert!(
                    case[field].is_null() || found[field] == case[field],
                    "{} {field}: {found}",
                    case["case"]
                );
            }
            if case["toolkit"].is_null() && case.get("toolkit").is_some() {
                assert_eq!(found["toolkit"], json!(null), "{}", case["case"]);
            }
            if let Some(resolved) = case["resolved"].as_str() {
                assert_eq!(found["resolved"], json!(at.join(resolved)), "{}", case["case"]);
            }
            for forbidden in case["forbidden"].as_array().into_iter().flatten() {
                assert!(
                    !found.to_string().contains(forbidden.as_str().unwrap()),
                    "{}: {found}",
                    case["case"]
                );
            }
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to.join(entry.file_name()));
        } else {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

#[test]
fn a_wrapper_beside_an_electron_program_is_followed_to_it() {
    let root = Root::beneath(&cases()).unwrap();
    let report = Programs::new(&root, []).probe("/trees/electron-app/chatter.sh");
    assert_eq!((report.kind, report.toolkit), (ProgramKind::Script, Some(Toolkit::Electron)), "{report:?}");
    assert_eq!(report.starts.unwrap().file, "/trees/electron-app/chatter");
}

#[test]
fn each_limit_holds_at_its_value_and_refuses_one_more() {
    let many = |count: usize| Made { names: vec![b"libx.so".to_vec(); count], runpath: None }.bytes();
    assert_eq!(read(&many(MAX_NEEDED)).unwrap().needed.len(), MAX_NEEDED);
    let why = read(&many(MAX_NEEDED + 1)).unwrap_err().to_string();
    assert_eq!(why, "list of needed libraries of 513 entries exceeds the limit of 512");

    let long =
        |bytes: usize| Made { names: vec![vec![b'x'; bytes], b"libc.so.6".to_vec()], runpath: None }.bytes();
    assert_eq!(read(&long(MAX_NAME_BYTES)).unwrap().needed.len(), 2);
    let beyond = read(&long(MAX_NAME_BYTES + 1)).unwrap();
    assert_eq!(beyond.needed, ["libc.so.6"]);
    assert!(beyond.skipped[0].ends_with("is longer than 255 bytes"), "{beyond:?}");

    let mut headers = Made::needing(&["libc.so.6"]).bytes();
    let most = MAX_PROGRAM_HEADER_BYTES / 56;
    headers.resize(128 * 1024, 0);
    headers[56..58].copy_from_slice(&u16::try_from(most).unwrap().to_le_bytes());
    assert!(read(&headers).is_ok());
    headers[56..58].copy_from_slice(&u16::try_from(most + 1).unwrap().to_le_bytes());
    let why = read(&headers).unwrap_err().to_string();
    assert_eq!(why, "table of program headers of 65576 bytes exceeds the limit of 65536");

    let mut table = Made::needing(&["libc.so.6"]).bytes();
    table.resize(128 * 1024, 0);
    let size_at = 64 + 56 + 32;
    table[size_at..size_at + 8].copy_from_slice(&MAX_DYNAMIC_BYTES.to_le_bytes());
    assert!(read(&table).is_ok());
    table[size_at..size_at + 8].copy_from_slice(&(MAX_DYNAMIC_BYTES + 1).to_le_bytes());
    assert!(matches!(read(&table), Err(ElfError::TooLarge { limit: MAX_DYNAMIC_BYTES, .. })));

    let path =
        |bytes: usize| Made { runpath: Some(vec![b'/'; bytes]), ..Made::needing(&["libc.so.6"]) }.bytes();
    assert_eq!(read(&path(4096)).unwrap().runpath, ["/".repeat(4096)]);
    let beyond = read(&path(4097)).unwrap();
    assert!(beyond.runpath.is_empty() && beyond.skipped[0].contains("4096"), "{beyond:?}");
}

#[test]
fn a_file_is_read_with_three_reads_and_names_far_apart_with_few_more() {
    let mut made = Made::needing(&["liba.so", "libb.so", "libc.so"]);
    made.names.insert(1, vec![b'x'; 200]);
    let mut bytes = made.bytes();
    let counted = Counted { bytes: &bytes, read: Cell::new(0), largest: Cell::new(0) };
    Elf::read(&counted, bytes.len() as u64, &bytes[..64]).unwrap();
    assert!(counted.read.get() < 2048, "{}", counted.read.get());

    bytes.resize(1 << 20, 0);
    let counted = Counted { bytes: &bytes, read: Cell::new(0), largest: Cell::new(0) };
    let elf = Elf::read(&counted, bytes.len() as u64, &bytes[..HEAD_BYTES]).unwrap();
    assert_eq!((elf.needed.len(), counted.read.get()), (4, 0), "all of it stands in the head");
}

/// The same facts by another reader, which maps the whole file.
fn by_object(bytes: &[u8]) -> Option<Vec<String>> {
    fn needed<Header: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Option<Vec<String>> {
        let header = Header::parse(bytes).ok()?;
        let endian = header.endian().ok()?;
        let segments = header.program_headers(endian, bytes).ok()?;
        let Some(table) = segments.iter().find_map(|segment| segment.dynamic(endian, bytes).ok().flatten())
        else {
            return Some(Vec::new());
        };
        let value = |tag: elf::DynamicTag| {
            let entry = table.iter().find(|entry| entry.tag(endian) == tag)?;
            Some(entry.val(endian))
        };
        let (address, size): (u64, u64) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
        let strings = segments
            .iter()
            .find_map(|segment| segment.data_range(endian, bytes, address, size).ok().flatten())?;
        let names = table.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED).map(|entry| {
            let at = entry.val(endian);
            let text = strings.get(usize::try_from(at).ok()?..)?;
            let end = text.iter().position(|byte| *byte == 0)?;
            Some(String::from_utf8_lossy(&text[..end]).into_owned())
        });
        names.collect()
    }
    match object::FileKind::parse(bytes).ok()? {
        object::FileKind::Elf32 => needed::<elf::FileHeader32<Endianness>>(bytes),
        object::FileKind::Elf64 => needed::<elf::FileHeader64<Endianness>>(bytes),
        _ => None,
    }
}

#[test]
fn the_systems_own_programs_and_libraries_are_read_as_another_reader_reads_them() {
    let root = Root::system();
    let programs = Programs::new(&root, []);
    let (mut compared, mut named) = (0, 0);
    for folder in
        ["/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"]
    {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            let Ok(file) = fs::File::open(&path) else { continue };
            let mut magic = [0; 4];
            // The other reader takes whole files into memory.
            if !path.is_file()
                || file.metadata().unwrap().len() > 4 << 20
                || file.read_exact_at(&mut magic, 0).is_err()
                || !Elf::is_elf(&magic)
            {
                continue;
            }
            let Some(theirs) = by_object(&fs::read(&path).unwrap()) else { continue };
            let ours = programs.probe_file(&path);
            let elf = ours.elf.unwrap_or_else(|| panic!("{:?}", ours.why));
            assert_eq!(elf.needed, theirs, "{}", path.display());
            assert!(elf.skipped.is_empty(), "{}: {:?}", path.display(), elf.skipped);
            (compared, named) = (compared + 1, named + elf.needed.len());
        }
    }
    println!("{compared} ELF files with {named} needed libraries compared");
    assert!(compared >= 20, "only {compared} ELF files on this system");
}

/// No input may make the reader take more than its limits: the two tables, and for each name a span at most.
fn reads_within_limits(bytes: &[u8]) {
    let counted = Counted { bytes, read: Cell::new(0), largest: Cell::new(0) };
    let head = bytes.get(..HEAD_BYTES).unwrap_or(bytes);
    let outcome = Elf::read(&counted, bytes.len() as u64, head);
    assert!(counted.largest.get() <= 64 * 1024, "one read of {} bytes", counted.largest.get());
    if let Ok(elf) = outcome {
        assert!(elf.needed.len() <= MAX_NEEDED);
        assert!(elf.needed.iter().all(|name| !name.is_empty() && name.len() <= 3 * MAX_NAME_BYTES));
        assert!(elf.skipped.len() <= MAX_NEEDED + 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_within_the_limits(tail in prop::collection::vec(any::<u8>(), 0..2048), class in 0_u8..4, order in 0_u8..4) {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend([class, order, 1, 0]);
        bytes.extend(tail);
        reads_within_limits(&bytes);
    }

    #[test]
    fn a_real_file_with_changed_bytes_is_read_within_the_limits(
        which in 0_usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let names = ["aarch64-gtk3-nosections", "arm32-qt5", "s390x-be-qt6", "sections-lie"];
        let mut bytes = fs::read(cases().join("files").join(names[which])).unwrap();
        for (index, byte) in changes {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        reads_within_limits(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(names in prop::collection::vec("[a-zA-Z0-9._+-]{1,60}", 0..40), path in prop::option::of("/[a-z/]{0,60}")) {
        let made = Made {
            names: names.iter().map(|name| name.clone().into_bytes()).collect(),
            runpath: path.clone().map(String::into_bytes),
        };
        let elf = read(&made.bytes()).unwrap();
        prop_assert_eq!(elf.needed, names);
        prop_assert_eq!(elf.runpath, path.into_iter().collect::<Vec<_>>());
    }
}
