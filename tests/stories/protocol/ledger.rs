//! Whose files the operations are, told with the library's own log (PRAEFECTUS 7, "Ledger"; R-200).

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pcp_core::Clock;
use pcp_execution::engine::{ActionFacts, DurableStore};

use super::hosts::{Host, Library, end};
use super::signed::{set_value, text};
use crate::support::uids;

struct Still;

impl Clock for Still {
    fn monotonic_us(&self) -> u64 {
        1
    }
    fn wall_ms(&self) -> u64 {
        1_800_000_000_000
    }
}

fn open(path: &Path) -> Result<(), String> {
    let facts = ActionFacts::of(Library::caller());
    DurableStore::open(path, Arc::new(Still), facts).map(|_| ()).map_err(|error| error.0)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

fn everything_below(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn new_files_are_their_owners_alone() {
    let mut host = Library::new();
    let target = host.target();
    assert_eq!(end(&host.execute(&text(&set_value("op-1", &target, "a")))), "succeeded");
    assert_eq!(mode(&host.log()), 0o700);
    for file in everything_below(&host.log()) {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_place_that_others_can_change_is_refused_before_anything_is_written() {
    let space = tempfile::tempdir().unwrap();
    let place = |name: &str, mode: u32| {
        let path = space.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    let group = place("group", 0o770);
    let all = place("all", 0o777);
    let real = place("real", 0o700);
    let link = space.path().join("link");
    symlink(&real, &link).unwrap();
    let file = space.path().join("file");
    fs::write(&file, "").unwrap();
    let mut refused = vec![group, all, link, file];
    if uids::are_several() {
        let foreign = place("foreign", 0o700);
        chown(&foreign, Some(61_555), None).unwrap();
        refused.push(foreign);
    }
    for path in refused {
        assert!(open(&path).is_err(), "{}", path.display());
        assert!(!path.is_dir() || everything_below(&path).is_empty(), "{}", path.display());
    }
    assert_eq!(open(&real), Ok(()));
    assert!(!everything_below(&real).is_empty());
}

#[test]
fn a_segment_that_is_a_link_a_folder_or_others_to_read_is_refused() {
    for kind in ["link", "folder", "0644"] {
        let space = tempfile::tempdir().unwrap();
        let log = space.path().join("log");
        fs::create_dir(&log).unwrap();
        fs::set_permissions(&log, Permissions::from_mode(0o700)).unwrap();
        let segment = log.join("application.000001.jsonl");
        match kind {
            "link" => {
                fs::write(space.path().join("elsewhere"), "").unwrap();
                symlink(space.path().join("elsewhere"), &segment).unwrap();
            }
            "folder" => fs::create_dir(&segment).unwrap(),
            _ => {
                fs::write(&segment, "").unwrap();
                fs::set_permissions(&segment, Permissions::from_mode(0o644)).unwrap();
            }
        }
        assert!(open(&log).is_err(), "{kind}");
    }
}

#[test]
fn two_processes_cannot_have_one_log() {
    let host = Library::new();
    let error = open(&host.log()).unwrap_err();
    assert!(error.contains("is in use by another writer"), "{error}");
}

/// Operations of history, in the quick form and in the full one (`PCP_FULL=1`).
const HISTORY: usize = 2_000;
const FULL_HISTORY: usize = 100_000;
/// Longest opening, and longest answer about the oldest operation, behind any history.
const AT_ONCE: Duration = Duration::from_secs(2);

#[test]
fn an_operation_behind_a_history_takes_as_long_as_the_first_ones() {
    let mut host = Library::new();
    let target = host.target();
    // The quickest of fifty: what else the machine does slows most of them down.
    let mut quickest = |from: usize| {
        let took = (from..from + 50).map(|n| {
            let sent = text(&set_value(&format!("op-{n}"), &target, "a"));
            let begun = Instant::now();
            assert_eq!(end(&host.execute(&sent)), "succeeded");
            begun.elapsed()
        });
        took.min().unwrap()
    };
    let first = quickest(0);
    let history = if std::env::var_os("PCP_FULL").is_some() { FULL_HISTORY } else { HISTORY };
    for n in 1..history / 50 {
        quickest(n * 50);
    }
    let last = quickest(history);
    assert!(last < first * 3 + Duration::from_millis(2), "{first:?} at first, {last:?} behind {history}");
    let begun = Instant::now();
    host.restart();
    let opened = begun.elapsed();
    assert!(host.status("op-0").is_some());
    let told = begun.elapsed() - opened;
    println!(
        "{first:?} at first, {last:?} behind {history}; opened in {opened:?}, the oldest told in {told:?}"
    );
    assert!(opened < AT_ONCE && told < AT_ONCE, "{opened:?}, {told:?}");
}
