use super::*;
use crate::disk::FaultyDisk;
use crate::line::{LineWriter, MAX_LINE_BYTES};

fn id(n: u64) -> Id {
    *pcp_core::OperationId::from_parts(1_780_000_000_000 + n, [7; 10]).as_bytes()
}

/// A segment with the records `(kind, operation)`.
fn segment_of(records: &[(&str, u64)], before: Chain) -> Vec<u8> {
    let (mut lines, mut chain) = (Vec::new(), before);
    for (kind, n) in records {
        let mut line = Vec::with_capacity(MAX_LINE_BYTES);
        let mut writer = LineWriter::begin(&mut line, MAX_LINE_BYTES, &chain, 0);
        let id = pcp_core::OperationId::from_parts(1_780_000_000_000 + n, [7; 10]);
        writer.text("kind", kind).number("time_ms", 1_780_000_000_000 + n);
        writer.text("operation_id", &id.to_text());
        chain = writer.seal().unwrap();
        lines.append(&mut line);
    }
    lines
}

fn noted(lines: &[u8]) -> (Summary, Vec<Row>) {
    let mut notes = Notes::new();
    notes.take(lines);
    notes.close().unwrap()
}

fn stored(records: &[(&str, u64)]) -> (FaultyDisk, Segment, Summary) {
    let (disk, segment) = (FaultyDisk::new(), Segment::new("a", 1));
    let lines = segment_of(records, Chain::default());
    let (summary, rows) = noted(&lines);
    disk.put(&segment.name, &lines);
    store(&disk, &segment, &encode(&summary, &rows)).unwrap();
    (disk, segment, summary)
}

/// Intents and terminals of many operations, of every other number.
fn many(count: u64) -> Vec<(&'static str, u64)> {
    (0..count).flat_map(|n| [("intent", 2 * n), ("terminal", 2 * n)]).collect()
}

#[test]
fn every_operation_is_found_where_it_stands_and_no_other() {
    for count in [1, 2, 169, 170, 171, 340, 341, 1000] {
        let (disk, segment, summary) = stored(&many(count));
        assert_eq!(load(&disk, &segment, Chain::default()), Some((summary, Vec::new())));
        let content = disk.content(&segment.name).unwrap();
        for n in 0..count {
            let row = find(&disk, &segment, &summary, &id(2 * n)).unwrap().unwrap();
            let from = usize::try_from(row.offset).unwrap();
            let line = std::str::from_utf8(&content[from..from + row.length()]).unwrap();
            assert!(row.ends() && row.begins() && line.contains("\"kind\":\"terminal\""));
            assert_eq!(find(&disk, &segment, &summary, &id(2 * n + 1)), Ok(None));
        }
    }
}

#[test]
fn what_begins_or_ends_elsewhere_is_a_loose_end() {
    let records =
        [("terminal", 1), ("intent", 2), ("read", 3), ("intent", 4), ("terminal", 4), ("refusal", 5)];
    let (disk, segment, summary) = stored(&records);

    let (loaded, loose) = load(&disk, &segment, Chain::default()).unwrap();

    assert_eq!((loaded, loaded.rows, loaded.latest_ms), (summary, 3, 1_780_000_000_005));
    let ends: Vec<_> = loose.iter().map(|row| (row.id, row.begins(), row.ends())).collect();
    assert_eq!(ends, [(id(1), false, true), (id(2), true, false)]);
}

#[test]
fn notes_come_to_the_same_in_whatever_portions_the_lines_come() {
    let lines = segment_of(&many(50), Chain::default());
    let ends: Vec<usize> = (0..lines.len()).filter(|at| lines[*at] == b'\n').collect();
    for step in [1, 3, 7, 100] {
        let mut notes = Notes::new();
        let mut from = 0;
        for end in ends.iter().step_by(step).chain(ends.last()) {
            notes.take(&lines[from..=*end]);
            from = *end + 1;
        }
        assert_eq!(notes.close().unwrap(), noted(&lines), "{step}");
        assert!(notes.close().is_none(), "the next segment begins empty");
    }
}

#[test]
fn an_index_with_any_changed_byte_or_length_is_not_believed() {
    let (disk, segment, summary) = stored(&[("terminal", 1), ("intent", 2), ("intent", 4), ("terminal", 4)]);
    let name = segment.index_name();
    let whole = disk.content(&name).unwrap();
    let rows_from = summary.head_bytes();
    for at in 0..whole.len() {
        for flip in [0x01, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            disk.put(&name, &changed);
            if at < rows_from {
                assert_eq!(load(&disk, &segment, Chain::default()), None, "byte {at}");
            } else {
                assert_eq!(find(&disk, &segment, &summary, &id(4)), Err(Unusable), "byte {at}");
            }
        }
    }
    for length in (0..whole.len()).chain([whole.len() + 1]) {
        let mut torn = whole.clone();
        torn.resize(length, 0);
        disk.put(&name, &torn);
        assert_eq!(load(&disk, &segment, Chain::default()), None, "{length} bytes");
    }
}

#[test]
fn an_index_of_another_segment_or_another_past_is_not_believed() {
    let (disk, segment, summary) = stored(&many(3));
    let elsewhere = Chain { seq: 0, hash: [1; 32] };
    assert_eq!(load(&disk, &segment, elsewhere), None);

    for other in [many(2), many(4), vec![("intent", 9); 6]] {
        disk.put(&segment.name, &segment_of(&other, Chain::default()));
        assert_eq!(load(&disk, &segment, Chain::default()), None);
    }
    assert_eq!(summary.rows, 3);
}

#[test]
fn an_index_that_cannot_be_written_leaves_nothing_behind() {
    let (_, segment, summary) = stored(&many(3));
    let (_, rows) = noted(&segment_of(&many(3), Chain::default()));
    for call in 1..=2 {
        let disk = FaultyDisk::new();
        disk.fail(call, crate::disk::Fault::NoSpace);
        assert!(store(&disk, &segment, &encode(&summary, &rows)).is_err());
        assert!(disk.content(&segment.index_name()).is_none());
    }
}

#[test]
fn the_index_has_the_bytes_of_the_format() {
    let lines = segment_of(&[("intent", 1), ("terminal", 1), ("intent", 2)], Chain::default());
    let (summary, rows) = noted(&lines);
    let ends: Vec<u64> = (0..lines.len()).filter(|at| lines[*at] == b'\n').map(|at| at as u64).collect();
    let mut wanted = b"PCPINDX1".to_vec();
    for number in [ends[2] + 1, 0, 3, ends[1] + 1, 1_780_000_000_002] {
        wanted.extend(number.to_le_bytes());
    }
    let third = &lines[usize::try_from(ends[1]).unwrap() + 1..usize::try_from(ends[2]).unwrap()];
    wanted.extend([0; 32]);
    wanted.extend(crate::line::hash(third));
    wanted.extend(id(1));
    wanted.extend(id(2));
    wanted.extend(2_u32.to_le_bytes());
    wanted.extend(1_u32.to_le_bytes());
    let row = |n: u64, from: u64, to: u64, marks: u32| {
        let mut row = id(n).to_vec();
        row.extend(u32::try_from(from).unwrap().to_le_bytes());
        row.extend((u32::try_from(to - from).unwrap() | marks).to_le_bytes());
        row
    };
    let second = row(2, ends[1] + 1, ends[2], 1 << 31);
    wanted.extend(&second);
    wanted.extend(crc32fast::hash(&wanted).to_le_bytes());
    let page = [row(1, ends[0] + 1, ends[1], 3 << 30), second].concat();
    wanted.extend(&page);
    wanted.extend(crc32fast::hash(&page).to_le_bytes());

    assert_eq!(encode(&summary, &rows), wanted);
}
