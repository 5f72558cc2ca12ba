//! What the disk in memory promises to the tests that use it.

use super::*;

#[test]
fn a_power_cut_keeps_what_was_synced_and_nothing_that_was_never_written() {
    for seed in 0..500 {
        let disk = FaultyDisk::new();
        let mut file = disk.create("a").unwrap();
        disk.sync_dir().unwrap();
        file.append(b"synced").unwrap();
        file.sync_data().unwrap();
        file.append(b"loose").unwrap();

        let left = disk.after_power_loss(seed).content("a").unwrap();

        assert!(left.starts_with(b"synced"), "{left:?}");
        assert!(left.len() <= 11);
        for (at, byte) in left.iter().enumerate().skip(6) {
            assert!(*byte == b"syncedloose"[at] || *byte == 0, "{left:?}");
        }
    }
}

#[test]
fn a_file_whose_directory_was_not_synced_may_be_gone() {
    let disk = FaultyDisk::new();
    disk.create("a").unwrap();

    let survived = (0..100).filter(|seed| disk.after_power_loss(*seed).content("a").is_some()).count();

    assert!((1..100).contains(&survived));
}

#[test]
fn a_full_disk_writes_what_fits_and_then_refuses() {
    let disk = FaultyDisk::new();
    disk.set_capacity(Some(3));
    let mut file = disk.create("a").unwrap();

    assert_eq!(file.append(b"abcd").unwrap(), 3);
    assert!(crate::disk::is_full(&file.append(b"d").unwrap_err()));
}

#[test]
fn the_chosen_call_fails_once() {
    let disk = FaultyDisk::new();
    let mut file = disk.create("a").unwrap();
    disk.fail(2, Fault::Io);

    assert_eq!(file.append(b"a").unwrap(), 1);
    assert!(file.append(b"b").is_err());
    assert_eq!(file.append(b"c").unwrap(), 1);
}
