//! Passes over a system's files: what changed is read, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use pcp_native::desktop::TreeLimits;
use pcp_native::{DetectionCache, NativeDetector, Pass, Toolkit};

/// Longest time until a file's times count: two ticks of the coarsest clock, and a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

struct System {
    space: tempfile::TempDir,
    cache: DetectionCache,
}

impl System {
    fn new() -> Self {
        let space = tempfile::tempdir().unwrap();
        for folder in ["home/applications", "data/applications", "bin"] {
            fs::create_dir_all(space.path().join(folder)).unwrap();
        }
        Self { space, cache: DetectionCache::default() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.space.path().join(name)
    }

    fn detector(&self) -> NativeDetector {
        let dirs = vec![self.path("home"), self.path("data")];
        NativeDetector::new(dirs, vec![self.path("bin")], TreeLimits::default())
    }

    fn entry(&self, place: &str, program: &str, categories: &str) {
        let text =
            format!("[Desktop Entry]\nType=Application\nName=One\nExec={program}\nCategories={categories}\n");
        self.save(place, &text);
    }

    /// As editors save: a new file takes the place of the old one.
    fn save(&self, place: &str, text: &str) {
        let (path, new) = (self.path(place), self.path(&format!("{place}.new")));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    fn program(&self, name: &str, version: &str) {
        let script =
            format!("#!/usr/bin/env python3\nimport gi\ngi.require_version(\"Gtk\", \"{version}\")\n");
        let path = self.path("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn pass(&mut self) -> Pass {
        self.detector().pass(&mut self.cache)
    }

    /// Passes until nothing has to be read again.
    fn settled(&mut self) -> Pass {
        let begun = Instant::now();
        loop {
            let pass = self.pass();
            if pass.examined == 0 {
                return pass;
            }
            assert!(begun.elapsed() < PATIENCE, "{pass:?}");
        }
    }
}

fn names(pass: &Pass) -> Vec<&str> {
    pass.apps.iter().map(|found| found.app_id.as_str()).collect()
}

#[test]
fn an_unchanged_system_is_not_read_again_and_its_applications_are_the_very_same() {
    let mut system = System::new();
    system.program("mail", "3.0");
    for n in 0..50 {
        system.entry(&format!("data/applications/org.example.app{n}.desktop"), "mail", "Network;Email;");
    }
    let first = system.pass();
    assert_eq!((first.files, first.examined, first.apps.len()), (50, 50, 50));

    let settled = system.settled();
    let again = system.pass();

    assert_eq!((again.files, again.examined), (50, 0));
    for (one, other) in settled.apps.iter().zip(&again.apps) {
        assert!(Arc::ptr_eq(&one.app, &other.app));
    }
    let app = &again.apps[0].app;
    assert_eq!((app.toolkit, app.categories.len()), (Some(Toolkit::Gtk3), 2));
    let actions: Vec<String> =
        app.result(&again.apps[0].app_id).capabilities.iter().map(|one| one.id.action().to_owned()).collect();
    for action in ["search", "compose", "send", "read"] {
        assert!(actions.iter().any(|one| one == action), "{actions:?}");
    }
}

#[test]
fn what_changed_is_seen_whatever_way_it_changed() {
    let mut system = System::new();
    system.program("mail", "3.0");
    system.entry("data/applications/org.a.mail.desktop", "mail", "Network;Email;");
    system.entry("data/applications/org.b.text.desktop", "mail", "Utility;TextEditor;");
    let before = system.settled();
    assert_eq!(names(&before), ["org.a.mail", "org.b.text"]);

    system.entry("data/applications/org.a.mail.desktop", "mail", "Office;Calendar;");
    let saved = system.settled();
    assert!(!Arc::ptr_eq(&before.apps[0].app, &saved.apps[0].app));
    assert_eq!(&*saved.apps[0].app.categories[0], "Office");
    assert!(Arc::ptr_eq(&before.apps[1].app, &saved.apps[1].app), "the other one was not touched");

    system.program("mail", "4.0");
    let upgraded = system.settled();
    assert_eq!(upgraded.apps[0].app.toolkit, Some(Toolkit::Gtk4), "the program alone was replaced");

    system.entry("home/applications/org.a.mail.desktop", "mail", "Game;");
    assert_eq!(&*system.settled().apps[0].app.categories[0], "Game", "the user's own file counts more");
    system.save(
        "home/applications/org.a.mail.desktop",
        "[Desktop Entry]\nType=Application\nName=x\nHidden=true\n",
    );
    assert_eq!(names(&system.settled()), ["org.b.text"], "and can say that there is none");

    fs::remove_file(system.path("home/applications/org.a.mail.desktop")).unwrap();
    fs::remove_file(system.path("data/applications/org.b.text.desktop")).unwrap();
    assert_eq!(names(&system.settled()), ["org.a.mail"]);
    assert_eq!(system.cache.len(), 1, "nothing is remembered of what is gone");

    fs::remove_dir_all(system.path("data")).unwrap();
    assert!(system.settled().apps.is_empty());
    fs::create_dir_all(system.path("data/applications/kde")).unwrap();
    system.entry("data/applications/kde/mail.desktop", "mail", "Email;");
    let back = system.settled();
    assert_eq!(names(&back), ["kde-mail"]);
    assert!(back.directories.contains(&system.path("data/applications/kde")));
}

#[test]
fn a_program_that_is_not_there_yet_is_looked_for_again_until_it_comes() {
    let mut system = System::new();
    system.entry("data/applications/org.a.desktop", "mail", "Email;");
    for _ in 0..3 {
        let pass = system.pass();
        assert_eq!((pass.examined, pass.apps[0].app.toolkit), (1, None));
    }
    system.program("mail", "3.0");
    assert_eq!(system.settled().apps[0].app.toolkit, Some(Toolkit::Gtk3));
}

#[test]
fn a_program_that_comes_before_one_of_the_same_name_is_seen_and_so_is_a_link_that_leads_elsewhere() {
    let mut system = System::new();
    fs::create_dir(system.path("local")).unwrap();
    system.program("mail3", "3.0");
    system.program("mail4", "4.0");
    std::os::unix::fs::symlink("mail3", system.path("bin/mail")).unwrap();
    system.entry("data/applications/org.a.desktop", "mail", "Email;");
    let path = vec![system.path("local"), system.path("bin")];
    let detector = NativeDetector::new(vec![system.path("data")], path, TreeLimits::default());
    let toolkit = |system: &mut System| {
        let begun = Instant::now();
        loop {
            let pass = detector.pass(&mut system.cache);
            if pass.examined == 0 {
                return pass.apps[0].app.toolkit;
            }
            assert!(begun.elapsed() < PATIENCE, "{pass:?}");
        }
    };
    assert_eq!(toolkit(&mut system), Some(Toolkit::Gtk3));

    std::os::unix::fs::symlink("mail4", system.path("bin/mail.new")).unwrap();
    fs::rename(system.path("bin/mail.new"), system.path("bin/mail")).unwrap();
    assert_eq!(toolkit(&mut system), Some(Toolkit::Gtk4), "the link leads elsewhere");

    fs::rename(system.path("bin/mail3"), system.path("local/mail")).unwrap();
    assert_eq!(toolkit(&mut system), Some(Toolkit::Gtk3), "another one comes first");
}

#[test]
fn what_one_process_found_another_takes_over_as_long_as_files_bear_it_out() {
    let mut system = System::new();
    system.program("mail", "3.0");
    for name in ["a", "b"] {
        system.entry(&format!("data/applications/org.{name}.desktop"), "mail", "Email;");
    }
    system.save("data/applications/org.c.desktop", "no entry at all");
    let begun = Instant::now();
    // What cannot be read is looked at every time.
    while system.pass().examined > 1 {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert!(system.cache.has_changes());
    system.cache.stored();
    assert!(
        (system.pass().examined, system.cache.has_changes()) == (1, false),
        "nothing to be stored is new"
    );
    let folders = system.cache.folders().map(<[_]>::to_vec);
    let findings: Vec<_> = system.cache.findings().collect();
    assert_eq!(findings.len(), 2, "what is not certain is not told");
    let mut other = DetectionCache::restored(folders, findings.into_iter());

    let pass = system.detector().pass(&mut other);
    assert_eq!((pass.from_store, pass.examined), (2, 1));
    assert_eq!(pass.apps[0].app.toolkit, Some(Toolkit::Gtk3));

    fs::remove_file(system.path("data/applications/org.b.desktop")).unwrap();
    let pass = system.detector().pass(&mut other);
    assert_eq!((names(&pass), pass.from_store), (vec!["org.a"], 1));
    assert!(other.has_changes());
}

#[test]
fn neither_a_toolkit_nor_a_known_category_is_not_enough_for_capabilities() {
    let mut system = System::new();
    system.program("mail", "3.0");
    let table =
        [("mail", "Email;", 0.9), ("mail", "X-Own;", 0.6), ("gone", "Email;", 0.7), ("gone", "X-Own;", 0.4)];
    for (n, (program, categories, _)) in table.iter().enumerate() {
        system.entry(&format!("data/applications/app{n}.desktop"), program, categories);
    }
    let pass = system.pass();
    for (found, (program, categories, confidence)) in pass.apps.iter().zip(table) {
        let told = found.app.confidence();
        assert!((told - confidence).abs() < f32::EPSILON, "{program} {categories}: {told}");
    }
}

#[test]
fn broken_files_cost_nothing_but_their_own_place() {
    let mut system = System::new();
    system.program("mail", "3.0");
    system.entry("data/applications/good.desktop", "mail", "Email;");
    system.save("data/applications/broken.desktop", "no entry at all");
    nix::unistd::mkfifo(&system.path("data/applications/pipe.desktop"), nix::sys::stat::Mode::S_IRWXU)
        .unwrap();
    let sparse = fs::File::create(system.path("data/applications/large.desktop")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    std::os::unix::fs::symlink("loop.desktop", system.path("data/applications/loop.desktop")).unwrap();

    let pass = system.pass();

    assert_eq!(names(&pass), ["good"]);
    let mut reasons: Vec<(String, &str)> = pass
        .skipped
        .kept()
        .iter()
        .map(|skip| {
            (Path::new(&skip.path).file_name().unwrap().to_string_lossy().into_owned(), skip.reason.reason())
        })
        .collect();
    reasons.sort();
    let reasons: Vec<(&str, &str)> = reasons.iter().map(|(name, reason)| (name.as_str(), *reason)).collect();
    assert_eq!(reasons[0].0, "broken.desktop");
    assert_eq!(
        reasons[1..],
        [("large.desktop", "limit"), ("loop.desktop", "link-loop"), ("pipe.desktop", "not-regular")]
    );
}
