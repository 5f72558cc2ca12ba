//! The journal's format and recovery: what is noticed, what is repaired, what is refused.

#![allow(clippy::unwrap_used)] // A test that cannot go on fails.

use std::sync::Arc;

use pcp_durable::disk::FaultyDisk;
use pcp_durable::{Error, Limits, Opened, Sync, Verdict, Writer, verify_trail};

const FILE: &str = "t.000001.jsonl";

fn open(disk: &FaultyDisk, limits: Limits) -> Result<(Writer, Opened), Error> {
    let (writer, mut opened) = Writer::open(Arc::new(disk.clone()), &["t"], limits, &mut |_, _| Ok(()))?;
    Ok((writer, opened.remove(0)))
}

/// A closed trail of `count` records, appended without a pause: none was known to be durable before the last.
fn trail(count: u64, limits: Limits) -> FaultyDisk {
    let disk = FaultyDisk::new();
    let (writer, _) = open(&disk, limits).unwrap();
    let id = writer.trail("t").unwrap();
    for n in 0..count {
        let ticket = writer.append(id, Sync::Lazy, |line| {
            line.text("kind", "test").number("n", n);
        });
        let _ = ticket.unwrap();
    }
    writer.close().unwrap();
    disk
}

fn lines(disk: &FaultyDisk) -> Vec<Vec<u8>> {
    let content = disk.content(FILE).unwrap();
    content.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// The first bad line, if there is one.
fn first_bad(disk: &FaultyDisk) -> Option<(String, u64, u64)> {
    match verify_trail(disk, "t").verdict {
        Verdict::Whole => None,
        Verdict::Broken(Error::Damaged { file, line, offset, .. }) => Some((file, line, offset)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_change_to_every_line_of_a_200_line_file_is_noticed_and_names_the_first_bad_line() {
    let disk = trail(200, Limits::default());
    let good = lines(&disk);
    assert_eq!(good.len(), 200);
    assert_eq!(first_bad(&disk), None);
    let offset = |line: usize| good[..line].iter().map(Vec::len).sum::<usize>() as u64;

    for at in 0..200 {
        let mut changed: Vec<(&str, Vec<Vec<u8>>, usize)> = Vec::new();
        for byte in [7, good[at].len() / 2, good[at].len() - 3] {
            let mut lines = good.clone();
            lines[at][byte] ^= 1;
            changed.push(("modified", lines, at));
        }
        let mut lines = good.clone();
        lines.insert(at, good[(at + 100) % 200].clone());
        changed.push(("inserted", lines, at));
        let mut lines = good.clone();
        lines.insert(at, good[at].clone());
        changed.push(("duplicated", lines, at + 1));
        if at + 1 < 200 {
            let mut lines = good.clone();
            lines.remove(at);
            changed.push(("deleted", lines, at));
            let mut lines = good.clone();
            lines.swap(at, at + 1);
            changed.push(("swapped", lines, at));
        }
        for (what, lines, first) in changed {
            let tampered = FaultyDisk::new();
            tampered.put(FILE, &lines.concat());

            let named = first_bad(&tampered);

            assert_eq!(named, Some((FILE.into(), first as u64 + 1, offset(first))), "line {at} {what}");
            let opened = open(&tampered, Limits::default());
            assert!(matches!(opened, Err(Error::Damaged { .. })), "line {at} {what}: open went on");
            assert_eq!(tampered.content(FILE).unwrap(), lines.concat(), "line {at} {what}: open wrote");
        }
    }
}

#[test]
fn a_forged_checksum_does_not_help_without_the_rest_of_the_chain() {
    let disk = trail(5, Limits::default());
    let mut lines = lines(&disk);
    let text = String::from_utf8(lines[2].clone()).unwrap().replace("\"n\":2", "\"n\":9");
    let body = &text[..text.len() - 19];
    lines[2] = format!("{body},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(body.as_bytes())).into_bytes();
    disk.put(FILE, &lines.concat());

    assert_eq!(first_bad(&disk).unwrap().1, 4);
}

#[test]
fn a_file_cut_at_any_byte_opens_with_its_whole_lines_and_reports_the_cut() {
    let good = lines(&trail(8, Limits::default()));
    let content = good.concat();
    for cut in 0..=content.len() {
        let disk = FaultyDisk::new();
        disk.put(FILE, &content[..cut]);
        let whole = content[..cut].iter().filter(|byte| **byte == b'\n').count();
        let kept: usize = good[..whole].iter().map(Vec::len).sum();

        let (writer, opened) = open(&disk, Limits::default()).unwrap();

        assert_eq!(opened.chain.seq, whole as u64, "cut at {cut}");
        let reported = opened.cut.map(|cut| (cut.file, cut.line, cut.offset, cut.bytes));
        let torn = (FILE.to_owned(), whole as u64 + 1, kept as u64, (cut - kept) as u64);
        assert_eq!(reported, (cut > kept).then_some(torn), "cut at {cut}");
        let ticket = writer.append(writer.trail("t").unwrap(), Sync::Now, |_| {}).unwrap();
        writer.wait(&ticket).unwrap();
        assert_eq!(first_bad(&disk), None, "cut at {cut}");
    }
}

#[test]
fn a_torn_line_in_the_middle_is_an_error_and_nothing_is_changed() {
    let good = lines(&trail(8, Limits::default()));
    for length in 1..good[3].len() {
        let mut lines = good.clone();
        lines[3].truncate(length);
        let disk = FaultyDisk::new();
        disk.put(FILE, &lines.concat());

        let error = open(&disk, Limits::default()).unwrap_err();

        assert!(matches!(&error, Error::Damaged { line: 4, .. }), "{length}: {error}");
        assert_eq!(disk.content(FILE).unwrap(), lines.concat());
    }
}

#[test]
fn a_hole_is_cut_only_where_no_later_line_vouches_for_what_was_in_it() {
    // Line 6 was made when line 5 was durable.
    let disk = FaultyDisk::new();
    let (writer, _) = open(&disk, Limits::default()).unwrap();
    let id = writer.trail("t").unwrap();
    for sync in
        [Sync::Lazy, Sync::Lazy, Sync::Lazy, Sync::Lazy, Sync::Now, Sync::Lazy, Sync::Lazy, Sync::Lazy]
    {
        let ticket = writer.append(id, sync, |_| {}).unwrap();
        if sync == Sync::Now {
            writer.wait(&ticket).unwrap();
        }
    }
    writer.close().unwrap();
    let good = lines(&disk);

    for hole in 0..8 {
        let mut lines = good.clone();
        lines[hole].fill(0);
        let holed = FaultyDisk::new();
        holed.put(FILE, &lines.concat());

        let opened = open(&holed, Limits::default());

        match opened {
            Ok((_, opened)) => {
                assert!(hole >= 5, "line {} was durable and is gone", hole + 1);
                assert_eq!(opened.chain.seq, hole as u64);
            }
            Err(error) => {
                assert!(hole < 5, "{error}");
                assert!(matches!(error, Error::Damaged { line, .. } if line == hole as u64 + 1));
            }
        }
    }
}

#[test]
fn the_chain_goes_on_over_ten_rotations() {
    let limits = Limits { segment_bytes: 1000, ..Limits::default() };
    let disk = trail(100, limits);
    let mut names = pcp_durable::Disk::list(&disk).unwrap();
    names.sort();
    assert!(names.len() > 10, "{names:?}");
    for name in &names {
        let content = disk.content(name).unwrap();
        assert!(content.len() <= 1000 && content.ends_with(b"\n"), "{name}: {}", content.len());
    }

    let report = verify_trail(&disk, "t");

    assert!(report.is_whole());
    assert_eq!((report.lines, report.head.seq), (100, 100));
    let (_, opened) = open(&disk, limits).unwrap();
    assert_eq!(opened.chain, report.head);
}

#[test]
fn a_lost_or_exchanged_segment_is_noticed() {
    let limits = Limits { segment_bytes: 1000, ..Limits::default() };
    let second = "t.000002.jsonl";
    for act in ["remove", "empty", "copy"] {
        let disk = trail(30, limits);
        match act {
            "remove" => pcp_durable::Disk::remove(&disk, second).unwrap(),
            "empty" => disk.put(second, b""),
            _ => disk.put(second, &disk.content(FILE).unwrap()),
        }

        assert!(!verify_trail(&disk, "t").is_whole(), "{act}");
        assert!(open(&disk, limits).unwrap_err().is_damage(), "{act}");
    }
}

#[test]
fn arbitrary_bytes_never_open_as_a_trail_with_records_nor_take_memory() {
    let mut noise = 1_u64;
    for length in [1_usize, 100, 70_000, 300_000] {
        for zeros in [false, true] {
            let content: Vec<u8> = (0..length)
                .map(|_| {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if zeros { 0 } else { (noise >> 33).to_le_bytes()[0] | 1 }
                })
                .collect();
            let disk = FaultyDisk::new();
            disk.put(FILE, &content);

            match open(&disk, Limits::default()) {
                Ok((_, opened)) => assert_eq!(opened.chain.seq, 0),
                Err(error) => assert!(matches!(error, Error::Damaged { line: 1, .. }), "{error}"),
            }
        }
    }
}
