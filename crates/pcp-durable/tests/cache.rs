//! The cache of what detection found: what is written is read, and nothing that does not fit is believed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use pcp_durable::cache::{
    CACHE_FILE, CacheFault, CacheIdentity, CachedApp, CachedEntry, CachedFile, CachedFinding, Detected,
    FileStat, MAX_CACHE_BYTES, MAX_CACHE_ENTRIES, MAX_CACHE_TEXT_BYTES, encode, load, store,
};
use proptest::prelude::*;

fn identity() -> CacheIdentity {
    CacheIdentity::of([b"1.0".as_slice(), b"host"])
}

const fn stat(number: u64) -> FileStat {
    FileStat { dev: 1, ino: number, size: 3, mtime_ns: -4, ctime_ns: 5 }
}

fn app<'a>(name: &'a str, categories: &[&'a str]) -> CachedFinding<'a> {
    CachedFinding::App(CachedApp {
        name,
        categories: categories.to_vec(),
        toolkit: "gtk3",
        evidence: Some("needs libgtk-3.so.0"),
        program: None,
        window_class: Some("Mail"),
        no_display: true,
        diagnosed: false,
    })
}

fn entry<'a>(path: &'a [u8], finding: CachedFinding<'a>, basis: &[u32]) -> CachedEntry<'a> {
    let file = CachedFile { path, stat: stat(2) };
    CachedEntry { file, finding, searched: true, basis: basis.to_vec() }
}

fn small() -> Detected<'static> {
    Detected {
        folders: Some(vec![Some(stat(7)), None]),
        basis: vec![CachedFile { path: b"/bin/mail", stat: stat(8) }],
        entries: vec![
            entry(b"/a.desktop", app("Mail", &["Email"]), &[0]),
            entry(b"/\xff.desktop", CachedFinding::Hidden, &[]),
            entry(b"/c.desktop", CachedFinding::OtherType("Link"), &[]),
        ],
    }
}

fn put(directory: &Path, bytes: &[u8]) {
    fs::write(directory.join(CACHE_FILE), bytes).unwrap();
    fs::set_permissions(directory.join(CACHE_FILE), fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn what_is_stored_is_loaded_and_read() {
    let space = tempfile::tempdir().unwrap();
    assert_eq!(load(space.path(), identity()), Err(CacheFault::Absent));

    store(space.path(), &encode(identity(), &small())).unwrap();
    store(space.path(), &encode(identity(), &small())).unwrap();

    let bytes = load(space.path(), identity()).unwrap();
    assert_eq!(Detected::read(&bytes), Ok(small()));
    let names: Vec<_> = fs::read_dir(space.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [CACHE_FILE], "nothing else stays");
}

/// FORMAT.md: the bytes of a cache with one application, one program and one folder.
#[test]
fn the_bytes_are_those_of_the_format() {
    let detected = Detected {
        folders: Some(vec![None]),
        basis: vec![CachedFile { path: b"/m", stat: stat(8) }],
        entries: vec![entry(b"/a", app("M", &["E"]), &[0])],
    };
    let bytes = encode(identity(), &detected);
    let stat_of = |number: u8| {
        format!("0100000000000000{number:02x}000000000000000300000000000000fcffffffffffffff0500000000000000")
    };
    let content = [
        "01 0100 00".to_owned(),
        format!("0100 0200 2f6d {}", stat_of(8)),
        format!("0100 0200 2f61 {}", stat_of(2)),
        "00 2d 0100 4d 0400 67746b33 0100 0100 45".to_owned(),
        "1300 6e65656473206c696267746b2d332e736f2e30 0400 4d61696c".to_owned(),
        "0100 00000000".to_owned(),
    ];
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(&bytes[..8], b"PCPDTCT\x01");
    assert_eq!(hex(&bytes[44..]), content.concat().replace(' ', ""));
    // CRC-32 as in zlib, of everything behind it, least significant byte first
    assert_eq!(bytes[40..44], crc32fast::hash(&bytes[44..]).to_le_bytes());
}

/// A length that is believed before its bytes are there once ate all memory of others (RELIABILITY L19).
#[test]
fn damage_at_any_byte_and_a_cut_at_any_place_are_noticed() {
    let space = tempfile::tempdir().unwrap();
    let whole = encode(identity(), &small());
    for place in 0..whole.len() {
        for bit in [0x01, 0x80] {
            let mut damaged = whole.clone();
            damaged[place] ^= bit;
            put(space.path(), &damaged);
            let wanted = match place {
                0..8 => CacheFault::Version,
                8..40 => CacheFault::Identity,
                _ => CacheFault::Checksum,
            };
            assert_eq!(load(space.path(), identity()), Err(wanted), "byte {place}");
        }
        put(space.path(), &whole[..place]);
        assert!(load(space.path(), identity()).is_err(), "cut at {place}");
    }
    let other = CacheIdentity::of([b"1.0".as_slice(), b"hos", b"t"]);
    put(space.path(), &whole);
    assert_eq!(load(space.path(), other), Err(CacheFault::Identity));
}

/// The checksum is no protection against whoever can write it: the content is read as if it were hostile.
#[test]
fn content_that_was_damaged_before_it_was_summed_is_read_or_refused() {
    let whole = encode(identity(), &small());
    for place in 44..whole.len() {
        for value in [0, 0xff, whole[place] ^ 1] {
            let mut damaged = whole.clone();
            damaged[place] = value;
            let _ = Detected::read(&damaged);
        }
        assert!(matches!(Detected::read(&whole[..place]), Err(CacheFault::Malformed(_))), "cut at {place}");
    }
}

#[test]
fn a_file_that_somebody_else_may_have_written_does_not_count() {
    let space = tempfile::tempdir().unwrap();
    let whole = encode(identity(), &small());
    let (file, other) = (space.path().join(CACHE_FILE), space.path().join("other"));
    put(space.path(), &whole);
    for mode in [0o640, 0o604, 0o700] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert!(matches!(load(space.path(), identity()), Err(CacheFault::NotPrivate(_))), "{mode:o}");
    }
    put(space.path(), &whole);
    fs::hard_link(&file, &other).unwrap();
    assert!(matches!(load(space.path(), identity()), Err(CacheFault::NotPrivate(_))));
    fs::remove_file(&file).unwrap();
    symlink(&other, &file).unwrap();
    assert_eq!(load(space.path(), identity()), Err(CacheFault::NotPrivate("a link")));
    fs::remove_file(&file).unwrap();
    nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(load(space.path(), identity()), Err(CacheFault::NotPrivate("no regular file")));
}

#[test]
fn a_file_at_the_limit_is_read_and_one_byte_more_is_not() {
    let space = tempfile::tempdir().unwrap();
    put(space.path(), b"");
    let file = fs::OpenOptions::new().write(true).open(space.path().join(CACHE_FILE)).unwrap();
    file.set_len(MAX_CACHE_BYTES as u64).unwrap();
    assert_eq!(load(space.path(), identity()), Err(CacheFault::Version), "it was read");
    file.set_len(MAX_CACHE_BYTES as u64 + 1).unwrap();
    let (bytes, limit) = (MAX_CACHE_BYTES as u64 + 1, MAX_CACHE_BYTES);
    assert_eq!(load(space.path(), identity()), Err(CacheFault::TooLarge { bytes, limit }));
}

#[test]
fn what_exceeds_a_limit_is_left_out_and_the_rest_is_kept() {
    let (fits, long) = ("x".repeat(MAX_CACHE_TEXT_BYTES), "x".repeat(MAX_CACHE_TEXT_BYTES + 1));
    let (at_limit, beyond) = (vec!["c"; 255], vec!["c"; 256]);
    let detected = Detected {
        entries: vec![
            entry(b"/a", app(&fits, &at_limit), &[]),
            entry(b"/b", app(&long, &[]), &[]),
            entry(b"/c", app("c", &beyond), &[]),
            entry(b"/d", app("d", &[]), &[0]),
            entry(long.as_bytes(), CachedFinding::Hidden, &[]),
            entry(b"/e", CachedFinding::OtherType(&long), &[]),
        ],
        ..Detected::default()
    };
    let bytes = encode(identity(), &detected);
    let read = Detected::read(&bytes).unwrap();
    assert_eq!(read.entries, detected.entries[..1]);

    for (count, kept) in [(MAX_CACHE_ENTRIES, MAX_CACHE_ENTRIES), (MAX_CACHE_ENTRIES + 1, MAX_CACHE_ENTRIES)]
    {
        let entries = vec![entry(b"/a", CachedFinding::Hidden, &[]); count];
        let bytes = encode(identity(), &Detected { entries, ..Detected::default() });
        assert_eq!(Detected::read(&bytes).unwrap().entries.len(), kept);
    }
    // 10 001 of anything
    let mut bytes = encode(identity(), &Detected::default())[..44].to_vec();
    bytes.extend_from_slice(&[0, 0x11, 0x27]);
    assert_eq!(Detected::read(&bytes), Err(CacheFault::Malformed("a number of programs")));
}

proptest! {
    #[test]
    fn every_cache_is_read_as_it_was_written(
        paths in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
        names in prop::collection::vec(".{0,20}", 0..8),
        numbers in any::<(u64, u64, i64, i64)>(),
        searched in any::<bool>(),
    ) {
        let stat = FileStat { dev: numbers.0, ino: 1, size: numbers.1, mtime_ns: numbers.2, ctime_ns: numbers.3 };
        let basis: Vec<_> = paths.iter().map(|path| CachedFile { path, stat }).collect();
        let places: Vec<u32> = (0..u32::try_from(basis.len()).unwrap()).collect();
        let categories: Vec<&str> = names.iter().map(String::as_str).collect();
        let entries = names.iter().map(|name| CachedEntry {
            file: CachedFile { path: name.as_bytes(), stat },
            finding: app(name, &categories),
            searched,
            basis: places.clone(),
        });
        let detected = Detected { folders: Some(vec![Some(stat)]), entries: entries.collect(), basis };
        let bytes = encode(identity(), &detected);
        prop_assert_eq!(Detected::read(&bytes), Ok(detected));
    }

    #[test]
    fn no_bytes_make_the_reader_fail(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Detected::read(&bytes);
    }
}
