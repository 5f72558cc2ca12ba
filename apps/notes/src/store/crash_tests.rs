//! A change is cut at every step, by an error and by a kill; afterwards the old or the new is there, whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use super::replace::Step;
use super::{Change, Store};
use crate::error::Error;

const OLD: &str = "old body";
const NEW: &str = "new body, which is longer";

type Act = fn(&mut Store) -> Result<(), Error>;

/// Every change, with the content that note 1 (in notes, then in the trash) may have after it was cut.
const CHANGES: [(&str, Act); 4] = [
    ("create", |store| store.create("second", NEW, 9).map(drop)),
    ("edit", |store| store.edit(1, Change { body: Some(NEW.into()), ..Change::default() }, 9).map(drop)),
    ("delete", |store| store.delete(1, None).map(drop)),
    ("restore", |store| store.restore(2, None).map(drop)),
];

/// Note 1 is there, note 2 in the trash.
fn prepare(folder: &Path) {
    let mut store = Store::open(folder).unwrap();
    store.create("first", OLD, 1).unwrap();
    store.create("gone", OLD, 1).unwrap();
    store.delete(2, None).unwrap();
    fs::remove_file(folder.join("last-id")).unwrap();
}

/// What a store holds: id, place, revision, body.
fn content(folder: &Path) -> Vec<(u64, &'static str, u64, String)> {
    let mut store = Store::open(folder).unwrap();
    assert!(store.problems().is_empty(), "{:?}", store.problems());
    let mut rows = Vec::new();
    for id in 1..=3 {
        if let Ok(note) = store.read(id) {
            rows.push((id, "notes", note.header.revision, note.body));
        } else if store.restore(id, None).is_ok() {
            let note = store.read(id).unwrap();
            rows.push((id, "trash", note.header.revision, note.body));
            store.delete(id, None).unwrap();
        }
    }
    rows
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Runs a change, with a picture of the folder taken before every step: what a kill there would leave.
fn pictures(act: Act) -> (tempfile::TempDir, Vec<(Step, PathBuf)>) {
    let space = tempfile::tempdir().unwrap();
    let folder = space.path().join("data");
    prepare(&folder);
    let taken = Arc::new(Mutex::new(Vec::new()));
    let (album, source, frames) = (space.path().to_owned(), folder.clone(), Arc::clone(&taken));
    let watch = move |step| {
        let mut frames = frames.lock().unwrap();
        let picture = album.join(format!("picture-{}", frames.len()));
        copy(&source, &picture);
        frames.push((step, picture));
        Ok(())
    };
    act(&mut Store::open_watched(&folder, Box::new(watch)).unwrap()).unwrap();
    let taken = std::mem::take(&mut *taken.lock().unwrap());
    (space, taken)
}

#[test]
fn a_kill_before_any_step_leaves_the_old_or_the_new_and_never_half() {
    for (name, act) in CHANGES {
        let (space, pictures) = pictures(act);
        let new = content(&space.path().join("data"));
        let old = content(&pictures[0].1);
        assert_ne!(old, new, "{name}");

        for (step, picture) in &pictures {
            let found = content(picture);
            assert!(found == old || found == new, "{name} before {step:?}: {found:?}");
        }

        let (step, last) = pictures.last().unwrap();
        assert_eq!((*step, content(last)), (Step::SyncFolder, new), "{name}");
    }
}

#[test]
fn content_is_synced_before_it_gets_its_name_and_the_name_before_success() {
    let replaced = [Step::Write, Step::SyncFile, Step::Rename, Step::SyncFolder];
    let moved = [Step::Rename, Step::SyncFolder, Step::SyncFolder];
    // Deleting note 1 records an id first, because nothing recorded it yet.
    let recorded_and_moved = [&replaced[..], &moved[..]].concat();
    let expected = [&replaced[..], &replaced[..], &recorded_and_moved[..], &moved[..]];
    for ((name, act), expected) in CHANGES.into_iter().zip(expected) {
        let steps: Vec<Step> = pictures(act).1.into_iter().map(|(step, _)| step).collect();
        assert_eq!(steps, expected, "{name}");
    }
}

#[test]
fn a_failing_step_says_truly_whether_anything_changed() {
    for (name, act) in CHANGES {
        let steps = pictures(act).1.len();
        for failing in 0..steps {
            let space = tempfile::tempdir().unwrap();
            let folder = space.path().join("data");
            prepare(&folder);
            let before = content(&folder);
            let _ = fs::remove_file(folder.join("last-id"));
            let mut at = 0;
            let watch = move |_| {
                at += 1;
                if at == failing + 1 { Err(io::Error::from(io::ErrorKind::StorageFull)) } else { Ok(()) }
            };

            let mut store = Store::open_watched(&folder, Box::new(watch)).unwrap();
            let error = act(&mut store).unwrap_err();
            let fill = store.fill();
            drop(store);

            assert_eq!(error.no_effect(), content(&folder) == before, "{name}, step {failing}: {error}");
            let reopened = Store::open(&folder).unwrap();
            assert_eq!(reopened.fill(), fill, "{name}, step {failing}: the index is not what the files say");
        }
    }
}

#[test]
fn what_a_killed_process_left_half_written_is_swept_away() {
    let space = tempfile::tempdir().unwrap();
    let folder = space.path().join("data");
    prepare(&folder);
    let left = folder.join("notes/.new-abc");
    fs::write(&left, "half").unwrap();

    let store = Store::open(&folder).unwrap();

    assert!(!left.exists());
    assert!(store.problems().is_empty());
}
