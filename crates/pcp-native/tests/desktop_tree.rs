//! Trees of desktop files: which file counts, and input made to do harm.
#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use pcp_native::desktop::{
    Candidate, MAX_DESKTOP_FILE_BYTES, MAX_DESKTOP_FILES, SkipReason, Standing, TreeLimits, app_id,
    inspect_tree, list, read,
};
use tempfile::TempDir;

const ENTRY: &[u8] = b"[Desktop Entry]\nType=Application\nName=X\nExec=x\n";

/// A data folder to plant files in.
struct Tree(TempDir);

impl Tree {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("applications")).unwrap();
        Self(folder)
    }

    fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        let path = self.0.path().join("applications").join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn with(self, name: &str) -> Self {
        fs::write(self.path(name), ENTRY).unwrap();
        self
    }

    fn list(&self, limits: TreeLimits) -> (Vec<String>, Vec<SkipReason>) {
        let listing = list(&[self.0.path().to_owned()], limits);
        let ids = listing.candidates.into_iter().map(|candidate| candidate.id).collect();
        (ids, listing.skipped.kept().iter().map(|skip| skip.reason.clone()).collect())
    }
}

#[test]
fn what_is_no_readable_file_is_skipped_with_its_path_and_reason_and_costs_no_other() {
    let tree = Tree::new().with("good.desktop");
    mkfifo(&tree.path("pipe.desktop"), Mode::S_IRUSR).unwrap();
    let sparse = fs::File::create(tree.path("sparse.desktop")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    fs::create_dir(tree.path("folder.desktop")).unwrap();
    symlink("/dev/zero", tree.path("zero.desktop")).unwrap();
    symlink("loop.desktop", tree.path("loop.desktop")).unwrap();
    symlink("gone.desktop", tree.path("dangling.desktop")).unwrap();
    symlink(".", tree.path("itself")).unwrap();
    fs::write(tree.path(OsStr::from_bytes(b"n\xff.desktop")), ENTRY).unwrap();
    fs::write(tree.path("empty.desktop"), b"").unwrap();
    fs::write(tree.path("mimeinfo.cache"), b"ignored").unwrap();
    let socket = std::os::unix::net::UnixListener::bind(tree.path("socket.desktop")).unwrap();

    let found = inspect_tree(None, &[tree.0.path().to_owned()], None);

    assert_eq!(found.apps.keys().collect::<Vec<_>>(), ["good.desktop"]);
    let mut reasons: Vec<_> = found
        .skipped
        .iter()
        .map(|skip| (skip.path.rsplit_once('/').unwrap().1.to_owned(), skip.reason))
        .collect();
    reasons.sort();
    let table = [
        ("dangling.desktop", "dangling-link"),
        ("empty.desktop", "no-main-group"),
        ("itself", "directory-loop"),
        ("loop.desktop", "link-loop"),
        ("n\u{fffd}.desktop", "name-not-utf8"),
        ("pipe.desktop", "not-regular"),
        ("socket.desktop", "not-regular"),
        ("sparse.desktop", "limit"),
        ("zero.desktop", "not-regular"),
    ];
    assert_eq!(reasons, table.map(|(name, reason)| (name.to_owned(), reason)));
    let sparse = found.skipped.iter().find(|skip| skip.reason == "limit").unwrap();
    let wanted = "sparse.desktop: has 1073741824 bytes, which exceeds the 262144-byte limit";
    assert!(sparse.why.ends_with(wanted) && sparse.why.starts_with('/'), "{}", sparse.why);
    drop(socket);
}

#[test]
fn reading_a_named_file_never_waits_and_never_takes_more_than_the_limit() {
    let tree = Tree::new();
    mkfifo(&tree.path("pipe.desktop"), Mode::S_IRUSR).unwrap();
    let limit = usize::try_from(MAX_DESKTOP_FILE_BYTES).unwrap();
    for (name, bytes) in [("at", limit), ("over", limit + 1)] {
        fs::write(tree.path(name), [ENTRY, &vec![b'#'; bytes - ENTRY.len()]].concat()).unwrap();
    }
    let (folder, mut buffer) = (tree.0.path().join("applications"), Vec::new());
    let mut reason = |name: &str| read(&folder.join(name), &mut buffer).err().map(|skip| skip.reason());
    let table = [
        ("pipe.desktop", Some("not-regular")),
        ("at", None),
        ("over", Some("limit")),
        ("", Some("not-regular")),
        ("none", Some("unreadable")),
        ("at/x.desktop", Some("unreadable")),
    ];
    for (name, wanted) in table {
        assert_eq!(reason(name), wanted, "{name}");
    }
    assert_eq!(read(Path::new("/dev/zero"), &mut buffer).unwrap_err().reason(), "not-regular");
    assert!(buffer.is_empty());
}

#[test]
fn a_folder_that_cannot_be_read_is_skipped_with_its_reason() {
    let tree = Tree::new().with("good.desktop").with("closed/x.desktop");
    let file_in_its_place = TempDir::new().unwrap();
    fs::write(file_in_its_place.path().join("applications"), b"").unwrap();
    fs::set_permissions(tree.path("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(tree.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(file_in_its_place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let dirs = [file_in_its_place.path().to_owned(), tree.0.path().to_owned()];

    let scan = move || {
        // Root reads everything; one thread gives that up where the tests run as root.
        if nix::unistd::geteuid().is_root() {
            nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
        }
        list(&dirs, TreeLimits::default())
    };
    let listing = std::thread::spawn(scan).join().unwrap();

    let whys: Vec<_> = listing.skipped.kept().iter().map(|skip| skip.reason.to_string()).collect();
    assert_eq!(whys, ["cannot be read: Not a directory", "cannot be read: Permission denied"]);
    assert_eq!(listing.candidates.iter().map(|file| &file.id).collect::<Vec<_>>(), ["good.desktop"]);
    fs::set_permissions(tree.path("closed"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_scan_at_each_limit_is_whole_and_one_more_is_left_out_and_said() {
    let wide = || Tree::new().with("a.desktop").with("b.desktop").with("c.desktop");
    let deep = || Tree::new().with("1/2/deep.desktop").with("top.desktop");
    let with = |change: fn(&mut TreeLimits)| {
        let mut limits = TreeLimits::default();
        change(&mut limits);
        limits
    };
    type Row = (Tree, fn(&mut TreeLimits), fn(&mut TreeLimits), &'static str, usize);
    let table: [Row; 4] = [
        (wide(), |l| l.files = 3, |l| l.files = 2, "the limit of 2 desktop files", 2),
        (deep(), |l| l.depth = 2, |l| l.depth = 1, "the limit of 1 folders", 1),
        (deep(), |l| l.directories = 3, |l| l.directories = 2, "the limit of 2 folders", 0),
        (wide(), |l| l.names = 3, |l| l.names = 2, "more than 2 names", 2),
    ];
    for (tree, at, below, text, left) in table {
        let (all, nothing) = tree.list(with(at));
        assert!(nothing.is_empty() && all.len() >= 2, "{text}: {nothing:?}");
        let (ids, skips) = tree.list(with(below));
        assert_eq!((ids.len(), skips.len()), (left, 1), "{text}");
        assert!(skips[0].to_string().contains(text), "{}", skips[0]);
        assert_eq!(skips[0].reason(), "limit");
    }
}

#[test]
fn links_that_multiply_folders_end_at_the_limit_of_folders() {
    let tree = Tree::new();
    for level in 0..6 {
        for branch in 0..8 {
            let target = format!("../{}", level + 1);
            symlink(target, tree.path(format!("{level}/{branch}"))).unwrap();
        }
    }
    fs::create_dir(tree.path("6")).unwrap();
    let (ids, skips) = tree.list(TreeLimits { directories: 500, ..TreeLimits::default() });
    assert!(ids.is_empty());
    assert_eq!(skips, [SkipReason::TooManyDirectories { limit: 500 }]);
}

#[test]
fn ten_thousand_files_are_listed_and_the_next_one_is_named() {
    let tree = Tree::new();
    for number in 0..=MAX_DESKTOP_FILES {
        fs::write(tree.path(format!("{number:05}.desktop")), b"").unwrap();
    }
    let (ids, skips) = tree.list(TreeLimits::default());
    assert_eq!(ids.len(), MAX_DESKTOP_FILES);
    assert_eq!(skips, [SkipReason::TooManyFiles { limit: 10_000 }]);
}

#[test]
fn a_file_that_is_no_entry_leaves_its_place_and_a_link_to_nothing_at_all_keeps_it() {
    let table: [(&str, &[u8], bool); 4] = [
        ("broken", b"no entry", true),
        ("hidden", b"[Desktop Entry]\nHidden=true\n", false),
        ("link", b"[Desktop Entry]\nType=Link\nName=X\nURL=x\n", false),
        ("null", b"", false),
    ];
    let (own, system) = (Tree::new(), Tree::new().with("x.desktop"));
    for (name, bytes, found) in table {
        let _ = fs::remove_file(own.path("x.desktop"));
        if name == "null" {
            symlink("/dev/null", own.path("x.desktop")).unwrap();
        } else {
            fs::write(own.path("x.desktop"), bytes).unwrap();
        }
        let tree = inspect_tree(Some(own.0.path()), &[system.0.path().to_owned()], None);
        assert_eq!(tree.apps.len() == 1, found, "{name}");
        assert_eq!(tree.masked.len(), usize::from(!found), "{name}");
        assert_eq!(tree.skipped.len(), usize::from(found), "{name}");
    }
}

#[test]
fn a_data_folder_that_is_named_twice_is_read_once() {
    let tree = Tree::new().with("x.desktop");
    let listing = list(&vec![tree.0.path().to_owned(); 3], TreeLimits::default());
    assert_eq!(listing.candidates.len(), 1);
}

#[test]
fn a_changed_file_has_another_key_and_an_unchanged_one_the_same() {
    let tree = Tree::new().with("x.desktop");
    let key = || list(&[tree.0.path().to_owned()], TreeLimits::default()).candidates[0].stat;
    let before = key();
    assert_eq!(before, key());
    assert_eq!(read(&tree.path("x.desktop"), &mut Vec::new()), Ok(before), "by stat and by reading");
    // The way editors save: a new file takes the name.
    fs::write(tree.path("new"), ENTRY).unwrap();
    fs::rename(tree.path("new"), tree.path("x.desktop")).unwrap();
    assert_ne!(before, key());
}

#[test]
fn of_two_files_that_become_one_application_the_one_whose_id_needs_no_change_counts() {
    let tree = Tree::new().with("a b.desktop");
    let mapped = app_id("a b.desktop").unwrap();
    let tree = tree.with(&format!("{mapped}.desktop"));
    let found = list(&[tree.0.path().to_owned()], TreeLimits::default()).resolve(|_| Standing::Wins(()));
    assert_eq!(found.winners.len(), 1);
    assert_eq!(found.winners[0].candidate.id, format!("{mapped}.desktop"));
    assert_eq!(found.skipped.kept()[0].reason.reason(), "id-taken");
}

#[test]
fn only_the_files_that_may_count_are_asked_for() {
    let (own, system) = (Tree::new().with("x.desktop"), Tree::new().with("x.desktop").with("y.desktop"));
    let mut asked = Vec::new();
    let dirs = [own.0.path().to_owned(), system.0.path().to_owned()];
    let _ = list(&dirs, TreeLimits::default()).resolve(|candidate: &Candidate| {
        asked.push(candidate.path.clone());
        Standing::Wins(())
    });
    assert_eq!(asked, [own.path("x.desktop"), system.path("y.desktop")]);
}
