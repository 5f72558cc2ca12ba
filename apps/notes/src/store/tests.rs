//! What the store promises, except for crashes.

use std::fs;
use std::path::Path;

use super::{Change, MAX_NOTES, MAX_PAGE, Saved, Store};
use crate::error::Error;
use crate::note::MAX_BODY_BYTES;

fn store() -> (tempfile::TempDir, Store) {
    let space = tempfile::tempdir().unwrap();
    let store = Store::open(&space.path().join("data")).unwrap();
    (space, store)
}

fn body(text: &str) -> Change {
    Change { body: Some(text.into()), ..Change::default() }
}

/// Puts notes into the folder without the store, for tests of large numbers.
fn plant(folder: &Path, ids: impl Iterator<Item = u64>) {
    for id in ids {
        let file = format!("pcp-note: 1\nrevision: 1\ncreated: 1\nchanged: 1\ntitle: note {id}\n\nbody {id}");
        fs::write(folder.join(format!("{id}.note")), file).unwrap();
    }
}

#[test]
fn a_note_is_read_as_it_was_written_also_after_a_restart() {
    let (space, mut store) = store();
    let saved = store.create("Milk", "two litres", 5).unwrap();
    assert_eq!(saved, Saved { id: 1, revision: 1 });
    let edited = store.edit(1, Change { title: Some("Bread".into()), ..Change::default() }, 9).unwrap();
    assert_eq!(edited, Saved { id: 1, revision: 2 });
    drop(store);

    let note = Store::open(&space.path().join("data")).unwrap().read(1).unwrap();

    assert_eq!((note.header.title.as_str(), note.body.as_str()), ("Bread", "two litres"));
    assert_eq!((note.header.revision, note.header.created_ms, note.header.changed_ms), (2, 5, 9));
}

#[test]
fn an_edit_of_a_stale_revision_is_refused_and_changes_nothing() {
    let (_space, mut store) = store();
    store.create("t", "one", 1).unwrap();
    store.edit(1, body("two"), 2).unwrap();

    let late = Change { expected_revision: Some(1), ..body("late") };
    let error = store.edit(1, late, 3).unwrap_err();

    assert!(matches!(error, Error::Stale { id: 1, expected: 1, found: 2 }));
    assert!(error.no_effect());
    assert_eq!(store.read(1).unwrap().body, "two");
    assert!(store.delete(1, Some(1)).is_err());
    store.edit(1, Change { expected_revision: Some(2), ..body("three") }, 3).unwrap();
    assert_eq!(store.read(1).unwrap().header.revision, 3);
}

#[test]
fn a_deleted_note_is_gone_until_it_is_restored_as_it_was() {
    let (_space, mut store) = store();
    store.create("t", "text", 1).unwrap();
    let before = store.read(1).unwrap();

    assert_eq!(store.delete(1, None).unwrap(), Saved { id: 1, revision: 1 });
    assert!(matches!(store.read(1), Err(Error::NoNote { id: 1 })));
    assert!(matches!(store.edit(1, body("x"), 2), Err(Error::NoNote { .. })));
    assert!(matches!(store.delete(1, None), Err(Error::NoNote { .. })));
    assert!(store.list(0, 10).notes.is_empty());

    assert_eq!(store.restore(1, None).unwrap(), Saved { id: 1, revision: 1 });
    assert_eq!(store.read(1).unwrap(), before);
    assert!(matches!(store.restore(1, None), Err(Error::NotInTrash { id: 1 })));
    store.delete(1, Some(1)).unwrap();
    assert!(matches!(store.restore(1, Some(2)), Err(Error::Stale { .. })));
    store.restore(1, Some(1)).unwrap();
}

#[test]
fn ids_ascend_and_are_never_given_twice_even_when_the_trash_was_emptied() {
    let (space, mut store) = store();
    let folder = space.path().join("data");
    for expected in 1..=3 {
        assert_eq!(store.create("t", "", 1).unwrap().id, expected);
    }
    store.delete(3, None).unwrap();
    drop(store);
    fs::remove_file(folder.join("trash/3.note")).unwrap();

    let mut store = Store::open(&folder).unwrap();

    assert_eq!(store.create("t", "", 1).unwrap().id, 4);
}

#[test]
fn a_list_comes_in_pages_by_id() {
    let (space, store) = store();
    drop(store);
    let folder = space.path().join("data");
    plant(&folder.join("notes"), 1..=5);
    let store = Store::open(&folder).unwrap();
    let ids = |after, limit| {
        let page = store.list(after, limit);
        (page.notes.iter().map(|(id, _)| *id).collect::<Vec<_>>(), page.next)
    };

    assert_eq!(ids(0, 2), (vec![1, 2], Some(2)));
    assert_eq!(ids(2, 2), (vec![3, 4], Some(4)));
    assert_eq!(ids(4, 2), (vec![5], None));
    assert_eq!(ids(0, 5), (vec![1, 2, 3, 4, 5], None));
    assert_eq!(ids(5, 2), (vec![], None));
    assert_eq!(ids(u64::MAX, 2), (vec![], None));
}

#[test]
fn a_page_and_the_store_have_their_limits() {
    let (space, store) = store();
    drop(store);
    let folder = space.path().join("data");
    plant(&folder.join("notes"), 1..=MAX_NOTES as u64 - 2);
    plant(&folder.join("trash"), [20_000].into_iter());
    let mut store = Store::open(&folder).unwrap();

    assert_eq!(store.list(0, usize::MAX).notes.len(), MAX_PAGE);
    assert_eq!(store.create("the last one", "", 1).unwrap().id, 20_001);
    assert!(matches!(store.create("one too many", "", 1), Err(Error::Full)));
    store.delete(1, None).unwrap();
    assert!(matches!(store.create("the trash counts", "", 1), Err(Error::Full)));
    store.edit(2, body("edits still work"), 1).unwrap();
}

#[test]
fn the_longest_body_is_kept_and_one_byte_more_is_refused() {
    let (_space, mut store) = store();
    let longest = "x".repeat(MAX_BODY_BYTES);
    store.create("long", &longest, 1).unwrap();
    assert_eq!(store.read(1).unwrap().body, longest);

    let error = store.edit(1, body(&format!("{longest}x")), 2).unwrap_err();

    assert!(matches!(error, Error::Parameter { pointer: "/body", .. }));
    assert_eq!(store.read(1).unwrap().header.revision, 1);
    assert!(matches!(store.edit(1, Change::default(), 2), Err(Error::Parameter { pointer: "", .. })));
}

#[test]
fn a_search_looks_at_titles_and_bodies_and_says_where_to_go_on() {
    let (_space, mut store) = store();
    for (title, body) in [("Milk", "two litres"), ("List", "bread and MILK"), ("Other", "x"), ("milk", "y")] {
        store.create(title, body, 1).unwrap();
    }
    let ids = |after, limit, bytes| {
        let page = store.search_within("milk", after, limit, bytes).unwrap();
        (page.matches.iter().map(|found| found.id).collect::<Vec<_>>(), page.next)
    };

    assert_eq!(ids(0, 9, usize::MAX), (vec![1, 2, 4], None));
    assert_eq!(ids(0, 2, usize::MAX), (vec![1, 2], Some(2)));
    assert_eq!(ids(2, 2, usize::MAX), (vec![4], None));
    // The share of bytes ends a call after one note here, whether or not it matched.
    assert_eq!(ids(0, 9, 1), (vec![1], Some(1)));
    assert_eq!(ids(2, 9, 1), (vec![], Some(3)));
    let page = store.search("milk", 0, 9).unwrap();
    assert_eq!(page.matches[0].snippet, "two litres");
    assert_eq!(page.matches[1].snippet, "bread and MILK");
    assert!(store.search(" ", 0, 9).is_err());
}

#[test]
fn a_file_that_is_no_note_is_reported_left_alone_and_its_id_not_given_again() {
    let (space, store) = store();
    drop(store);
    let notes = space.path().join("data/notes");
    plant(&notes, [1].into_iter());
    fs::write(notes.join("7.note"), "junk").unwrap();
    fs::write(notes.join("07.note"), "junk").unwrap();
    fs::write(notes.join("readme"), "junk").unwrap();

    let mut store = Store::open(&space.path().join("data")).unwrap();

    assert_eq!(store.problems().len(), 3);
    assert_eq!(store.fill().notes, 1);
    assert_eq!(store.create("t", "", 1).unwrap().id, 8);
    assert_eq!(fs::read(notes.join("7.note")).unwrap(), b"junk");
}

#[test]
fn one_folder_serves_one_process() {
    let (space, store) = store();
    let again = Store::open(&space.path().join("data"));
    assert!(matches!(again, Err(Error::InUse { .. })));
    drop(store);
    Store::open(&space.path().join("data")).unwrap();
}

#[test]
fn nobody_else_can_read_the_notes() {
    use std::os::unix::fs::PermissionsExt as _;
    let (space, mut store) = store();
    store.create("t", "", 1).unwrap();
    let mode = |name: &str| fs::metadata(space.path().join(name)).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode("data"), 0o700);
    assert_eq!(mode("data/notes/1.note"), 0o600);
}
