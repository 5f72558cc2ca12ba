//! Applications known before they run: from files to the registry of the running daemon.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Device, Plan, Process, uids};

/// Longest wait for what has to be seen within half a second on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(10);

fn device() -> Device {
    let device = Device::new(&Plan::default());
    fs::create_dir_all(device.path("share/applications")).unwrap();
    fs::create_dir_all(device.path("bin")).unwrap();
    program(&device, "mail", "3.0");
    device
}

/// A program that draws its windows with a version of GTK, as its text says.
fn program(device: &Device, name: &str, version: &str) {
    let script = format!("#!/usr/bin/env python3\nimport gi\ngi.require_version(\"Gtk\", \"{version}\")\n");
    let path = device.write(&format!("bin/{name}"), script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Writes a desktop file as editors and package managers do: a new file takes the place of the old one.
fn entry(device: &Device, id: &str, categories: &str) {
    let text =
        format!("[Desktop Entry]\nType=Application\nName=One\nExec=mail %U\nCategories={categories}\n");
    let new = device.write("entry.new", text);
    fs::rename(new, device.path(&format!("share/applications/{id}.desktop"))).unwrap();
}

fn apps(device: &Device) -> Vec<String> {
    let apps = device.cli(&["apps"]).data();
    apps.as_array().unwrap().iter().map(|app| app["id"].as_str().unwrap().to_owned()).collect()
}

/// Asks until the answer is as expected.
fn until<T: PartialEq + std::fmt::Debug>(wanted: &T, ask: impl Fn() -> T) {
    let begun = Instant::now();
    loop {
        let found = ask();
        if found == *wanted {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "still {found:?}, not {wanted:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_application_is_known_before_the_first_request_and_nothing_of_it_runs() {
    let mut device = device();
    for n in 0..300 {
        entry(&device, &format!("org.example.app{n}"), "Network;Email;");
    }
    device.start();

    assert_eq!(apps(&device).len(), 300);
    let app = device.cli(&["apps"]).data()[0].clone();
    assert_eq!(
        (
            &app["signature"],
            &app["declared"]["name"],
            &app["declared"]["toolkit"],
            &app["declared"]["categories"]
        ),
        (&json!("unsigned"), &json!("One"), &json!("gtk3"), &json!(["Network", "Email"])),
        "{app}"
    );
    for action in ["search", "compose", "send", "read"] {
        let shown = device.cli(&["show", &format!("app.org.example.app7.{action}")]).data();
        assert_eq!(
            (&shown["stability"], &shown["executable"], &shown["signature"]),
            (&json!("predicted"), &json!(false), &json!("unsigned")),
            "{action}"
        );
    }
    let refused = device.cli(&["exec", "app.org.example.app7.search"]).refused(5, "not_validated");
    assert!(refused.contains("predicted"), "{refused}");
}

#[test]
fn what_is_installed_changed_and_removed_while_the_daemon_runs_is_seen() {
    let mut device = device();
    device.start();
    assert!(apps(&device).is_empty());

    entry(&device, "org.example.mail", "Network;Email;");
    until(&vec!["org.example.mail".to_owned()], || apps(&device));

    let categories = || device.cli(&["apps"]).data()[0]["declared"]["categories"].clone();
    entry(&device, "org.example.mail", "Office;Calendar;");
    until(&json!(["Office", "Calendar"]), categories);

    fs::remove_file(device.path("share/applications/org.example.mail.desktop")).unwrap();
    until(&Vec::<String>::new(), || apps(&device));
    device.cli(&["show", "app.org.example.mail.search"]).refused(4, "not_found");
}

#[test]
fn a_folder_that_goes_and_comes_back_is_seen_again() {
    let mut device = device();
    entry(&device, "org.example.mail", "Email;");
    device.start();
    assert_eq!(apps(&device).len(), 1);

    fs::remove_dir_all(device.path("share")).unwrap();
    until(&Vec::<String>::new(), || apps(&device));

    fs::create_dir_all(device.path("share/applications/kde")).unwrap();
    entry(&device, "kde/mail", "Email;");
    until(&vec!["kde-mail".to_owned()], || apps(&device));
    entry(&device, "kde/text", "TextEditor;");
    until(&vec!["kde-mail".to_owned(), "kde-text".to_owned()], || apps(&device));
}

/// a user who has no watcher left gets a daemon that looks for itself, and says so.
#[test]
fn where_nothing_can_be_watched_the_folders_are_looked_through_from_time_to_time() {
    /// A user of this story alone: what is taken from it is missed by nobody else.
    const UID: u32 = 61_090;
    if !uids::can_tell("where nothing can be watched the folders are looked through from time to time") {
        return;
    }
    let mut command = Command::new("python3");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/inotify_hog.py");
    command.arg(script).arg(UID.to_string()).stdin(Stdio::piped());
    let _hog = Process::start_until_it_says("the hog", &mut command, "ready");
    let detection = "scan_interval_ms = 1000\n".to_owned();
    let mut device = Device::new(&Plan { daemon_uid: Some(UID), detection, ..Plan::default() });
    fs::create_dir_all(device.path("share/applications")).unwrap();
    fs::create_dir_all(device.path("bin")).unwrap();
    device.start();

    entry(&device, "org.example.mail", "Email;");
    until(&vec!["org.example.mail".to_owned()], || apps(&device));

    let doctor = device.cli(&["doctor"]).envelope();
    let said = doctor["data"]["checks"].as_array().unwrap().iter().find(|check| check["name"] == "detection");
    let said = said.unwrap()["detail"].as_str().unwrap();
    assert!(said.contains("looked through every 1000 ms"), "{said}");
}

#[test]
fn hostile_files_cost_nothing_but_their_own_place_and_doctor_names_them() {
    let mut device = device();
    entry(&device, "org.example.mail", "Email;");
    let folder = device.path("share/applications");
    nix::unistd::mkfifo(&folder.join("pipe.desktop"), nix::sys::stat::Mode::from_bits_truncate(0o666))
        .unwrap();
    fs::File::create(folder.join("large.desktop")).unwrap().set_len(1 << 30).unwrap();
    std::os::unix::fs::symlink(".", folder.join("around")).unwrap();
    device.write("share/applications/broken.desktop", [0xff; 64]);

    device.start();

    assert_eq!(apps(&device), ["org.example.mail"]);
    let doctor = device.cli(&["doctor"]).envelope();
    let checks = doctor["data"]["checks"].as_array().unwrap();
    let skipped: Vec<&str> = checks
        .iter()
        .filter(|check| check["name"] == "detection")
        .map(|check| check["detail"].as_str().unwrap())
        .collect();
    for name in ["pipe.desktop", "large.desktop", "around", "broken.desktop"] {
        assert!(skipped.iter().any(|detail| detail.contains(name)), "{name}: {skipped:?}");
    }
    assert_eq!(device.cli(&["ping"]).code, 0);
}

#[test]
fn a_manifest_that_changes_is_judged_again_and_one_that_breaks_is_taken_back() {
    let (device, fake, _app) = Device::with_fake(&Plan::default());
    let ids = |device: &Device| {
        let list = device.cli(&["list"]).data();
        list.as_array().unwrap().len()
    };
    let before = ids(&device);
    assert!(before > 0);
    let whole = fs::read(&fake.manifest).unwrap();

    fs::write(&fake.manifest, b"{}").unwrap();
    until(&0, || ids(&device));
    let app: Value = device.cli(&["apps"]).data()[0].clone();
    assert!(app["problem"].as_str().is_some(), "{app}");

    fs::write(&fake.manifest, whole).unwrap();
    until(&before, || ids(&device));
}

/// What `doctor` says of detection.
fn said(device: &Device) -> String {
    let doctor = device.cli(&["doctor"]).envelope();
    let checks = doctor["data"]["checks"].as_array().unwrap();
    let said = checks.iter().find(|check| check["name"] == "detection").unwrap();
    said["detail"].as_str().unwrap().to_owned()
}

fn from_cache(device: &Device) -> usize {
    let said = said(device);
    let number = said.split("from_cache ").nth(1).and_then(|rest| rest.split(';').next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

/// Starts, and waits until everything that was found is kept.
fn start_until_kept(device: &mut Device) {
    let cache = device.path("state/detection.cache");
    device.start();
    until(&true, || cache.exists());
    device.stop();
}

#[test]
fn a_start_takes_over_what_files_bear_out_and_sees_what_changed_meanwhile() {
    let mut device = device();
    for name in ["a", "b", "c", "d"] {
        entry(&device, &format!("org.example.{name}"), "Network;Email;");
    }
    // Times tell a change only once the kernel's clock has ticked.
    let written = Instant::now();
    until(&true, || written.elapsed() > Duration::from_millis(50));
    start_until_kept(&mut device);

    entry(&device, "org.example.b", "Office;Calendar;");
    fs::remove_file(device.path("share/applications/org.example.c.desktop")).unwrap();
    device.start();

    assert_eq!(apps(&device), ["org.example.a", "org.example.b", "org.example.d"]);
    assert_eq!(device.cli(&["apps"]).data()[1]["declared"]["categories"], json!(["Office", "Calendar"]));
    assert_eq!(from_cache(&device), 2, "{}", said(&device));
    device.cli(&["show", "app.org.example.c.search"]).refused(4, "not_found");
    device.stop();

    // Every finding rests on its program: no desktop file changed, and none is taken over.
    program(&device, "mail", "4.0");
    device.start();
    assert_eq!(device.cli(&["apps"]).data()[0]["declared"]["toolkit"], json!("gtk4"));
    assert_eq!(from_cache(&device), 0);
}

#[test]
fn a_cache_that_was_damaged_or_is_not_the_daemons_own_costs_a_scan_and_nothing_else() {
    let mut device = device();
    entry(&device, "org.example.mail", "Network;Email;");
    let written = Instant::now();
    until(&true, || written.elapsed() > Duration::from_millis(50));
    start_until_kept(&mut device);
    let cache = device.path("state/detection.cache");
    let whole = fs::read(&cache).unwrap();
    device.start();
    let answer = device.cli(&["apps"]).data();
    assert_eq!(from_cache(&device), 1);
    device.stop();

    let mut damaged = whole.clone();
    *damaged.last_mut().unwrap() ^= 1;
    let table: [(&[u8], u32, &str); 4] = [
        (&damaged, 0o600, "checksum is wrong"),
        (&whole[..whole.len() / 2], 0o600, "checksum is wrong"),
        (b"something else", 0o600, "another version"),
        (&whole, 0o644, "open to others"),
    ];
    for (bytes, mode, why) in table {
        fs::write(&cache, bytes).unwrap();
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        device.start();
        assert_eq!((device.cli(&["apps"]).data(), from_cache(&device)), (answer.clone(), 0), "{why}");
        assert!(device.log().contains(why), "{why}");
        until(&0o600, || fs::metadata(&cache).map_or(0, |facts| facts.permissions().mode() & 0o777));
        device.stop();
    }
}
