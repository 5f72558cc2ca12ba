//! T-22: whatever is done to the files of a sealed log is noticed, all of it, and the first bad record is named.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A test that cannot go on fails.

mod support;

use pcp_core::Trail;
use pcp_durable::disk::FaultyDisk;
use pcp_durable::{Error, LogReport, Pin, Proofs, Verdict, verify_log};
use support::attack::{Files, forge, present_key, reanchor, rechain, with_lines};
use support::sealed::{Place, is_intact, is_tampered, limits, lines};

/// Counts attacks, and demands that each one is noticed with the key and without it.
#[derive(Debug, Default)]
struct Tally {
    tried: usize,
    missed: Vec<String>,
}

impl Tally {
    fn demand(&mut self, what: impl Fn() -> String, place: &Place) {
        self.demand_of(&what, &place.verify());
        self.demand_of(&what, &place.verify_with(&[]));
    }

    fn demand_of(&mut self, what: &dyn Fn() -> String, report: &LogReport) {
        self.tried += 1;
        if !is_tampered(report) {
            self.missed.push(what());
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            println!("{} checks, {} missed", self.tried, self.missed.len());
            assert!(self.tried > 0 && self.missed.is_empty(), "missed: {:?}", self.missed);
        }
    }
}

/// Two hundred records over three trails, in several segments and epochs.
fn two_hundred() -> Place {
    let place = Place::new(limits(20_000, 20));
    place.live(0, 110);
    place.live(110, 90);
    assert!(is_intact(&place.verify()) && is_intact(&place.verify_with(&[])));
    for trail in Trail::ALL {
        assert!(place.segments(*trail).len() >= 3, "several segments");
    }
    place
}

fn first_bad(report: &LogReport, trail: usize) -> Option<(String, u64, u64)> {
    match &report.trails[trail].verdict {
        Verdict::Broken(
            Error::Damaged { file, line, offset, .. } | Error::Seal { file, line, offset, .. },
        ) => Some((file.clone(), *line, *offset)),
        _ => None,
    }
}

#[test]
fn every_flipped_byte_of_every_file_is_noticed_and_its_line_is_named() {
    let place = Place::new(limits(2_000, 6));
    place.live(0, 9);
    let mut tally = Tally::default();
    let files = place.files();
    assert!(files.len() >= 5, "{:?}", files.keys());
    for (name, content) in &files {
        let trail = Trail::ALL.iter().position(|trail| name.starts_with(trail.as_str())).unwrap();
        let (mut line, mut begin) = (1, 0);
        for at in 0..content.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut changed = content.clone();
                changed[at] ^= flip;
                place.trails.put(name, &changed);
                let report = place.verify();
                tally.demand_of(&|| format!("{name} byte {at} ^ {flip:#x}"), &report);
                assert_eq!(first_bad(&report, trail), Some((name.clone(), line, begin)), "{name} byte {at}");
            }
            if content[at] == b'\n' {
                (line, begin) = (line + 1, at as u64 + 1);
            }
        }
        place.trails.put(name, content);
    }
    assert!(is_intact(&place.verify()));
}

#[test]
fn a_flipped_or_missing_byte_keeps_a_log_from_being_opened_and_no_byte_of_it_is_touched() {
    let place = Place::new(limits(1 << 20, 100));
    place.live(0, 4);
    let name = "application.000001.jsonl";
    let content = place.files()[name].clone();
    let refused = |changed: &[u8], what: &str| {
        place.trails.put(name, changed);
        let error = place.open().expect_err(what).to_string();
        assert!(error.starts_with(name) && error.contains("byte "), "{what}: {error}");
        assert_eq!(place.trails.content(name).unwrap(), changed, "{what}");
    };
    for at in 0..content.len() {
        let mut changed = content.clone();
        changed[at] ^= 0x01;
        refused(&changed, &format!("byte {at}"));
        if at > 0 {
            refused(&content[..at], &format!("cut at byte {at}"));
        }
    }
    place.trails.put(name, &content);
    let (log, _) = place.open().unwrap();
    log.close().unwrap();
}

#[test]
fn every_flipped_byte_of_the_anchor_is_tampering_and_of_the_key_keeps_all_from_being_called_intact() {
    let place = Place::new(limits(20_000, 10));
    place.live(0, 20);
    let mut tally = Tally::default();
    for name in ["anchor", "key"] {
        let content = place.seals.content(name).unwrap();
        for at in 0..content.len() {
            let mut changed = content.clone();
            changed[at] ^= 1;
            place.seals.put(name, &changed);
            let report = place.verify();
            if name == "anchor" {
                tally.demand_of(&|| format!("{name} byte {at}"), &report);
            }
            assert!(
                matches!(report.seals.verdict, Verdict::Broken(_) | Verdict::Unchecked(_)),
                "{name} {at}"
            );
        }
        place.seals.put(name, &content);
    }
}

/// Everything that can be done to one record, as other lines of its trail.
fn manipulations(lines: &[Vec<u8>], at: usize) -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let (mut removed, mut doubled, mut swapped) = (lines.to_vec(), lines.to_vec(), lines.to_vec());
    let (mut changed, mut moved, mut inserted) = (lines.to_vec(), lines.to_vec(), lines.to_vec());
    removed.remove(at);
    doubled.insert(at, lines[at].clone());
    swapped.swap(at, (at + 1) % lines.len());
    let text = String::from_utf8(lines[at].clone()).unwrap();
    let other = match text.contains("\"uid\":1000") {
        true => text.replace("\"uid\":1000", "\"uid\":1001"),
        false => text.replace("\"epoch\":", "\"epoch\":1"),
    };
    changed[at] = other.into_bytes();
    let taken = moved.remove(at);
    moved.insert(if at * 2 > lines.len() { 0 } else { lines.len() - 1 }, taken);
    inserted.insert(at, lines[(at + lines.len() / 2) % lines.len()].clone());
    vec![
        ("removed", removed),
        ("doubled", doubled),
        ("swapped", swapped),
        ("changed", changed),
        ("moved", moved),
        ("inserted", inserted),
    ]
}

#[test]
fn every_record_that_is_changed_removed_doubled_swapped_moved_or_added_is_noticed() {
    let place = two_hundred();
    let mut tally = Tally::default();
    for trail in Trail::ALL {
        let lines = place.lines(*trail);
        for at in 0..lines.len() {
            for (what, changed) in manipulations(&lines, at) {
                if changed == lines {
                    continue;
                }
                let tampered = place.with(&with_lines(&place, *trail, &changed));
                let report = tampered.verify();
                tally.demand_of(&|| format!("{trail} record {at} {what}"), &report);
                let first =
                    changed.iter().zip(&lines).position(|(new, old)| new != old).unwrap_or(lines.len());
                let trail = Trail::ALL.iter().position(|known| known == trail).unwrap();
                match &report.trails[trail].verdict {
                    Verdict::Broken(Error::CutShort { named, .. }) => assert_eq!(*named, lines.len() as u64),
                    _ => assert_eq!(first_bad(&report, trail).unwrap().1, first as u64 + 1, "{what} {at}"),
                }
            }
        }
    }
}

#[test]
fn the_same_with_the_whole_chain_made_anew_but_without_the_key_is_noticed() {
    let place = two_hundred();
    let mut tally = Tally::default();
    for trail in Trail::ALL {
        let lines = place.lines(*trail);
        for at in 0..lines.len() {
            for (what, changed) in manipulations(&lines, at) {
                if changed == lines {
                    continue;
                }
                let rewritten = rechain(*trail, &changed, None);
                let tampered = place.with(&with_lines(&place, *trail, &rewritten));
                let said = || format!("{trail} record {at} {what} and rechained");
                tally.demand_of(&said, &tampered.verify_with(&[]));
                if at % 4 == 0 {
                    tally.demand_of(&said, &tampered.verify());
                }
            }
        }
    }
}

#[test]
fn tails_of_one_to_fifty_records_and_of_every_byte_are_missed() {
    let place = two_hundred();
    let mut tally = Tally::default();
    for count in 1..=50 {
        let mut everywhere = place.files();
        for trail in Trail::ALL {
            let lines = place.lines(*trail);
            let cut = with_lines(&place, *trail, &lines[..lines.len() - count]);
            tally.demand(|| format!("{trail} without its last {count}"), &place.with(&cut));
            everywhere.retain(|name, _| !name.starts_with(trail.as_str()));
            let (name, content) = cut.into_iter().find(|(name, _)| name.starts_with(trail.as_str())).unwrap();
            everywhere.insert(name, content);
        }
        tally.demand(|| format!("all without their last {count}"), &place.with(&everywhere));
    }
    let place = Place::new(limits(20_000, 8));
    place.live(0, 16);
    for trail in Trail::ALL {
        let name = place.segments(*trail).pop().unwrap();
        let files = place.files();
        let content = &files[&name];
        let last = lines(content).iter().rev().take(3).map(Vec::len).sum::<usize>();
        for end in content.len().saturating_sub(last)..content.len() {
            place.trails.put(&name, &content[..end]);
            let report = place.verify();
            tally.demand_of(&|| format!("{name} cut at byte {end}"), &report);
        }
        place.trails.put(&name, content);
    }
}

#[test]
fn segments_that_are_removed_doubled_swapped_or_emptied_are_noticed() {
    let place = two_hundred();
    let mut tally = Tally::default();
    let files = place.files();
    for trail in Trail::ALL {
        let names = place.segments(*trail);
        for at in 0..names.len() {
            let mut removed = files.clone();
            removed.remove(&names[at]);
            tally.demand(|| format!("{} removed", names[at]), &place.with(&removed));
            let mut closed_up = removed.clone();
            for later in at + 1..names.len() {
                let content = closed_up.remove(&names[later]).unwrap();
                closed_up.insert(names[later - 1].clone(), content);
            }
            tally.demand(|| format!("{} removed and the gap closed", names[at]), &place.with(&closed_up));
            let mut emptied = files.clone();
            emptied.insert(names[at].clone(), Vec::new());
            tally.demand(|| format!("{} emptied", names[at]), &place.with(&emptied));
            for other in Trail::ALL.iter().flat_map(|trail| place.segments(*trail)) {
                if other != names[at] {
                    let mut doubled = files.clone();
                    doubled.insert(names[at].clone(), files[&other].clone());
                    tally.demand(|| format!("{other} in place of {}", names[at]), &place.with(&doubled));
                    let mut swapped = doubled;
                    swapped.insert(other.clone(), files[&names[at]].clone());
                    tally.demand(|| format!("{other} and {} swapped", names[at]), &place.with(&swapped));
                }
            }
        }
        let mut gone = files.clone();
        gone.retain(|name, _| !name.starts_with(trail.as_str()));
        tally.demand(|| format!("all of {trail} removed"), &place.with(&gone));
    }
}

#[test]
fn older_versions_of_files_trails_anchor_and_key_are_noticed() {
    let place = Place::new(limits(20_000, 10));
    let mut versions: Vec<(Files, FaultyDisk)> = Vec::new();
    for n in 0..6 {
        place.live(n * 13, 13);
        versions.push((place.files(), place.seals.after_kill()));
    }
    let mut tally = Tally::default();
    let (now, _) = versions.pop().unwrap();
    for (files, seals) in &versions {
        for (name, content) in files.iter().filter(|(name, content)| now[*name] != **content) {
            let mut mixed = now.clone();
            mixed.insert(name.clone(), content.clone());
            tally.demand(|| format!("older {name}"), &place.with(&mixed));
        }
        for trails in 1..8 {
            let is_old = |name: &str| {
                Trail::ALL
                    .iter()
                    .enumerate()
                    .any(|(at, trail)| trails >> at & 1 == 1 && name.starts_with(trail.as_str()))
            };
            let mut mixed = now.clone();
            mixed.retain(|name, _| !is_old(name));
            mixed.extend(
                files.iter().filter(|(name, _)| is_old(name)).map(|(name, old)| (name.clone(), old.clone())),
            );
            tally.demand(|| format!("older trails {trails:b}"), &place.with(&mixed));
            if trails < 7 {
                let all_old = Place { seals: seals.clone(), ..place.with(&mixed) };
                tally.demand(|| format!("older trails {trails:b}, key and anchor"), &all_old);
            }
        }
        for names in [&["anchor"][..], &["key"], &["anchor", "key"]] {
            let mixed = place.seals.after_kill();
            for name in names {
                mixed.put(name, &seals.content(name).unwrap());
            }
            for files in [files, &now] {
                if files == &now || names.len() < 2 {
                    let older = Place { seals: mixed.clone(), ..place.with(files) };
                    let intact = is_intact(&older.verify()) || is_intact(&older.verify_with(&[]));
                    assert!(!intact, "older {names:?}");
                    tally.tried += 2;
                }
            }
        }
    }
}

#[test]
fn everything_replaced_by_an_older_version_is_noticed_by_a_head_that_was_pinned_elsewhere() {
    let place = Place::new(limits(20_000, 10));
    place.live(0, 20);
    let old = Place { trails: place.trails.after_kill(), seals: place.seals.after_kill(), ..place.clone() };
    place.live(20, 5);
    let pins: Vec<Pin> = place
        .verify()
        .trails
        .iter()
        .zip(Trail::ALL)
        .map(|(report, trail)| Pin { trail: *trail, seq: report.head.seq, hash: report.head.hash })
        .collect();
    place.live(25, 9);
    let check = |place: &Place| {
        let proofs = Proofs { seals: Some(&place.seals), pins: &pins, ..Proofs::default() };
        verify_log(&place.trails, &proofs)
    };

    assert!(is_intact(&check(&place)), "the log goes on from the pinned head");
    assert!(is_intact(&old.verify()), "nothing on the device can tell");
    assert!(is_tampered(&check(&old)));
    old.live(20, 30);
    assert!(is_intact(&old.verify()));
    let report = check(&old);
    assert!(is_tampered(&report), "nor does it help to go on from there");
    assert!(format!("{report:?}").contains("the pinned head"), "{report:?}");
}

#[test]
fn an_unsealed_rewrite_and_records_moved_between_trails_are_noticed() {
    let place = two_hundred();
    let mut tally = Tally::default();
    let is_seal = |line: &Vec<u8>| line.windows(13).any(|window| window == b"\"kind\":\"seal\"");
    let mut all = Files::new();
    for trail in Trail::ALL {
        let records: Vec<_> = place.lines(*trail).into_iter().filter(|line| !is_seal(line)).collect();
        let unsealed = rechain(*trail, &records, None);
        tally
            .demand(|| format!("{trail} without seals"), &place.with(&with_lines(&place, *trail, &unsealed)));
        all.insert(format!("{trail}.000001.jsonl"), unsealed.concat());
        for other in Trail::ALL.iter().filter(|other| *other != trail) {
            let (from, to) = (place.lines(*trail), place.lines(*other));
            for at in 0..from.len().min(to.len()) {
                let (mut left, mut joined) = (from.clone(), to.clone());
                joined.insert(at, left.remove(at));
                let mut files = with_lines(&place, *trail, &rechain(*trail, &left, None));
                files.retain(|name, _| !name.starts_with(other.as_str()));
                files.insert(format!("{other}.000001.jsonl"), rechain(*other, &joined, None).concat());
                tally.demand(|| format!("record {at} of {trail} moved to {other}"), &place.with(&files));
            }
        }
    }
    tally.demand(|| "everything without seals".into(), &place.with(&all));
    let robbed = Place { seals: FaultyDisk::new(), ..place.with(&all) };
    let proofs = Proofs { is_copy: true, keys: std::slice::from_ref(&place.key), ..Proofs::default() };
    tally.demand_of(&|| "no seals, no keys".into(), &verify_log(&robbed.trails, &proofs));
}

#[test]
fn two_histories_that_part_are_not_spliced() {
    let one = Place::new(limits(1 << 20, 10));
    one.live(0, 40);
    let two = Place { trails: one.trails.after_kill(), seals: one.seals.after_kill(), ..one.clone() };
    one.live(40, 40);
    two.live(60, 40);
    assert!(is_intact(&one.verify()) && is_intact(&two.verify()));
    let mut tally = Tally::default();
    for trail in Trail::ALL {
        let theirs = two.lines(*trail);
        let ours = one.lines(*trail);
        let whole = one.with(&with_lines(&one, *trail, &theirs));
        tally.demand(|| format!("{trail} of the other history"), &whole);
        let copy = Proofs { is_copy: true, keys: std::slice::from_ref(&one.key), ..Proofs::default() };
        tally.demand_of(
            &|| format!("{trail} of the other history, no anchor"),
            &verify_log(&whole.trails, &copy),
        );
        for at in 1..ours.len().min(theirs.len()) {
            let spliced = [&ours[..at], &theirs[at..]].concat();
            if spliced != ours {
                tally.demand(
                    || format!("{trail} spliced at {at}"),
                    &one.with(&with_lines(&one, *trail, &spliced)),
                );
            }
        }
    }
}

/// Who has the present key can make every chain, seal and anchor anew, but not with the keys of epochs that ended.
#[test]
fn whoever_has_the_present_key_cannot_change_what_was_sealed_before() {
    let place = two_hundred();
    let (_, key) = present_key(&place);
    let mut tally = Tally::default();
    for trail in Trail::ALL {
        let lines = place.lines(*trail);
        for at in (0..lines.len()).step_by(3) {
            for (what, changed) in manipulations(&lines, at) {
                let forged = rechain(*trail, &changed, Some(&key));
                if changed != lines {
                    let seals = place.seals.after_kill();
                    let forged = Place { seals, ..place.with(&with_lines(&place, *trail, &forged)) };
                    reanchor(&forged);
                    tally.demand_of(
                        &|| format!("{trail} record {at} {what} and sealed anew"),
                        &forged.verify(),
                    );
                }
            }
        }
        let is_record = |at: &usize| lines[*at].windows(10).any(|window| window == b"\"uid\":1000");
        for at in (0..lines.len()).filter(is_record).step_by(20) {
            let (_, changed) =
                manipulations(&lines, at).into_iter().find(|(what, _)| *what == "changed").unwrap();
            let files = forge(&place, *trail, &changed, &key);
            let forged = Place { seals: place.seals.after_kill(), ..place.with(&files) };
            reanchor(&forged);
            tally.demand_of(
                &|| format!("{trail} record {at} changed and everything sealed anew"),
                &forged.verify(),
            );
            let alone = forged.verify_with(&[]);
            assert!(is_intact(&alone), "only the key that is kept elsewhere can tell: {alone:?}");
        }
    }
}
