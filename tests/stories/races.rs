//! Files that are exchanged while they are looked at, and what somebody planted before (T-15, TH-14, TH-15).
//!
//! `PCP_FULL=1` tells the long form.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use nix::sys::stat::Mode;
use pcp_core::AppId;
use pcp_durable::AuditLog;
use pcp_fakeapp::{FakeCapability, FakeManifest};
use pcp_native::{JudgedManifest, Outcome, load_manifest};
use pcp_stream::{ProtocolError, SocketAccess, StreamServer};
use pcp_trust::{AppRegistration, Keyring, PrincipalTable, Signer};

use crate::support::{Device, Plan, uids};

/// Longest wait for what happens at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often a thing is done while somebody exchanges it.
fn rounds(quick: usize) -> usize {
    if std::env::var_os("PCP_FULL").is_some() { 10_000 } else { quick }
}

/// Runs `work` while a thread exchanges the two names again and again; gives how often it did.
fn while_exchanged(one: &Path, other: &Path, work: impl FnOnce()) -> u64 {
    let (over, count) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Ends the thread also when the work panics; otherwise the scope would wait for it for ever.
        struct End<'a>(&'a AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Relaxed);
            }
        }
        let _end = End(&over);
        work();
    });
    count.into_inner()
}

/// An application of root's with its key, and manifests to put in its place.
struct Place {
    device: Device,
    app: AppRegistration,
    keyring: Keyring,
    signer: Signer,
}

const APP: &str = "org.example.raced";

fn manifest(version: &str, action: &str) -> FakeManifest {
    let id = AppId::parse(APP).unwrap();
    let capability = FakeCapability::new(format!("app.{APP}.{action}"));
    let mut made = FakeManifest::new(id, vec![capability]);
    made.version = version.into();
    made
}

impl Place {
    fn new() -> Self {
        let mut device = Device::new(&Plan::default());
        let seat = device.install(&manifest("1", "first"), None);
        let (principals, apps) =
            (device.path("etc/portal/pcp/principals.d"), device.path("etc/portal/pcp/apps.d"));
        let table = PrincipalTable::load(&principals, &apps, uids::own());
        let app = table.app(&seat.id).unwrap().clone();
        let keyring = Keyring::new(&device.path("etc/portal/keys/trusted"), uids::own());
        // The first application that a device installs is signed with this key.
        Self { device, app, keyring, signer: Signer::from_secret_bytes(&[1; 32]) }
    }

    fn load(&self) -> JudgedManifest {
        load_manifest(&self.app, &self.keyring, uids::own())
    }

    fn beside(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.app.manifest.with_file_name(name);
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        path
    }
}

/// Version and the only capability of a manifest that was believed; the reason for one that was not.
fn believed(judged: &JudgedManifest) -> Result<(String, String), &'static str> {
    match judged.report.outcome {
        Outcome::Verified => {
            assert_eq!(judged.capabilities.len(), 1, "{:?}", judged.report);
            let version = judged.manifest.as_ref().unwrap().manifest.version.to_string();
            Ok((version, judged.capabilities[0].id.to_string()))
        }
        _ => {
            assert!(judged.capabilities.is_empty(), "nothing counts of what was not verified");
            Err(judged.report.reason.unwrap_or("unsigned"))
        }
    }
}

fn first() -> (String, String) {
    ("1".to_owned(), format!("app.{APP}.first"))
}

#[test]
fn what_is_believed_of_a_manifest_is_what_was_verified_while_another_takes_its_place() {
    let place = Place::new();
    let forged = manifest("9", "forged").signed(&Signer::from_secret_bytes(&[66; 32])).unwrap();
    let unsigned = manifest("8", "unsigned").to_json().to_string();
    let second = manifest("2", "second").signed(&place.signer).unwrap();
    let second_is = ("2".to_owned(), format!("app.{APP}.second"));
    let table = [
        ("forged", forged.as_slice(), Err("bad-signature")),
        ("unsigned", unsigned.as_bytes(), Err("unsigned")),
        ("second", second.as_slice(), Ok(second_is)),
    ];
    for (name, bytes, other) in table {
        let beside = place.beside(name, bytes);
        let (mut ones, mut others) = (0, 0);

        let exchanged = while_exchanged(&place.app.manifest, &beside, || {
            for _ in 0..rounds(2_000) {
                match believed(&place.load()) {
                    found if found == Ok(first()) => ones += 1,
                    found if found == other => others += 1,
                    found => panic!("neither the one nor the other ({name}): {found:?}"),
                }
            }
        });

        println!("{name}: {ones} times the first, {others} times the other, {exchanged} exchanges");
        // Whichever was there last; the next row begins with the first in its place.
        if believed(&place.load()) != Ok(first()) {
            renameat2(AT_FDCWD, &place.app.manifest, AT_FDCWD, &beside, RenameFlags::RENAME_EXCHANGE)
                .unwrap();
        }
    }
}

#[test]
fn no_manifest_is_read_through_a_link_that_takes_the_place_of_a_folder_or_of_the_file() {
    let place = Place::new();
    // Signed with the right key, so that only the way to it is wrong.
    let elsewhere = place.device.folder("elsewhere", uids::own(), 0o755);
    let linked = manifest("7", "linked").signed(&place.signer).unwrap();
    fs::write(elsewhere.join("manifest.json"), &linked).unwrap();
    let folder = place.app.manifest.parent().unwrap();
    let (link, file_link) = (folder.with_file_name("link"), folder.join("link"));
    symlink(&elsewhere, &link).unwrap();
    symlink(elsewhere.join("manifest.json"), &file_link).unwrap();

    for (one, other) in [(folder, &link), (&place.app.manifest, &file_link)] {
        let (mut read, mut refused) = (0, 0);
        let exchanged = while_exchanged(one, other, || {
            for _ in 0..rounds(2_000) {
                match believed(&place.load()) {
                    found if found == Ok(first()) => read += 1,
                    Err("bad-file") => refused += 1,
                    found => panic!("read through a link: {found:?}"),
                }
            }
        });
        println!("{read} times read, {refused} times refused, {exchanged} exchanges");
        if fs::symlink_metadata(one).unwrap().is_symlink() {
            renameat2(AT_FDCWD, one, AT_FDCWD, other, RenameFlags::RENAME_EXCHANGE).unwrap();
        }
    }
}

#[test]
fn no_trail_is_opened_through_a_link_that_takes_the_place_of_its_folder() {
    let space = tempfile::tempdir().unwrap();
    let path = |name: &str| space.path().join(name);
    let private = |name: &str| {
        fs::create_dir(path(name)).unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(0o700)).unwrap();
    };
    private("audit");
    private("elsewhere");
    symlink(path("elsewhere"), path("link")).unwrap();
    drop(AuditLog::open(&path("audit"), 1).unwrap());
    let (mut opened, mut refused) = (0, 0);

    let exchanged = while_exchanged(&path("audit"), &path("link"), || {
        for _ in 0..rounds(300) {
            match AuditLog::open(&path("audit"), 1) {
                Ok(_) => opened += 1,
                Err(_) => refused += 1,
            }
        }
    });

    println!("{opened} times opened, {refused} times refused, {exchanged} exchanges");
    assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 0, "nothing was written behind the link");
}

/// A process that is ended with the value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_user_who_plants_links_at_the_sockets_name_all_the_time_redirects_nothing() {
    if !uids::can_tell("a user who plants links at the socket's name all the time redirects nothing") {
        return;
    }
    const BOTH: usize = 20;
    let device = Device::new(&Plan::default());
    let (place, victim) = (device.socket(), device.write("victim", "precious"));
    fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
    let script = "while :; do ln -s \"$1\" \"$2\"; rm -f \"$2\"; done 2>/dev/null";
    let mut command = Command::new("setpriv");
    let (uid, groups) = (device.uids.stranger, device.uids.apps_group);
    command.args([format!("--reuid={uid}"), format!("--regid={uid}"), format!("--groups={groups}")]);
    command.args(["--", "sh", "-c", script, "sh"]).arg(&victim).arg(&place).stdin(Stdio::null());
    let _planting = Ended(command.spawn().unwrap());
    let begun = Instant::now();
    // Without a first link there is no race at all.
    while fs::symlink_metadata(&place).is_err() {
        assert!(begun.elapsed() < PATIENCE, "nobody plants anything");
        std::thread::yield_now();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut bound, mut refused) = (0, 0);

    runtime.block_on(async {
        // Until both have happened often enough that some of it happened in between.
        while bound + refused < rounds(2_000) || bound.min(refused) < BOTH {
            assert!(begun.elapsed() < PATIENCE, "{bound} times bound, {refused} times refused");
            match StreamServer::bind(&place, SocketAccess::Group(device.uids.clients_group)) {
                Ok(_server) => {
                    let facts = fs::symlink_metadata(&place).unwrap();
                    assert!(facts.file_type().is_socket());
                    assert_eq!((facts.uid(), facts.mode() & 0o777), (uids::own(), 0o660));
                    bound += 1;
                }
                Err(ProtocolError::Planted { .. } | ProtocolError::Socket { .. }) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
    });

    println!("{bound} times bound, {refused} times refused");
    let facts = fs::symlink_metadata(&victim).unwrap();
    assert_eq!((facts.mode() & 0o777, facts.gid()), (0o600, nix::unistd::getegid().as_raw()));
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn a_second_name_of_another_file_at_the_sockets_place_is_reported_and_left_alone() {
    let device = Device::new(&Plan::default());
    let (place, precious) = (device.socket(), device.write("precious", "precious"));
    fs::hard_link(&precious, &place).unwrap();
    let (code, said) = device.start_in_vain();
    assert_eq!((code, said.contains("pcpd.sock")), (1, true), "{said}");
    assert_eq!(fs::symlink_metadata(&precious).unwrap().nlink(), 2);

    // A socket that somebody serves under another name, too: stopping it would stop them.
    fs::remove_file(&place).unwrap();
    let served = UnixListener::bind(device.path("run/other.sock")).unwrap();
    fs::hard_link(device.path("run/other.sock"), &place).unwrap();
    let (code, said) = device.start_in_vain();
    assert_eq!(code, 1, "{said}");
    assert!(fs::symlink_metadata(&place).unwrap().file_type().is_socket(), "{said}");
    drop(served);
}

/// Puts something at a place.
type Plant<'a> = &'a dyn Fn(&Path);

#[test]
fn what_somebody_planted_at_the_places_of_the_trails_is_reported_and_left_alone() {
    let mut device = Device::new(&Plan::default());
    device.start();
    device.stop();
    let (state, audit) = (device.path("state"), device.audit());
    let segment = audit.join("application.000001.jsonl");
    let outside = device.folder("outside", device.uids.daemon, 0o700);
    let precious = outside.join("precious");
    let own = |path: &Path| {
        std::os::unix::fs::lchown(path, Some(device.uids.daemon), None).unwrap();
    };
    let kept = device.path("kept");
    let plant: [(&str, &Path, Plant<'_>); 7] = [
        ("state: file", &state, &|at| fs::write(at, "").unwrap()),
        ("audit: link", &audit, &|at| symlink(&outside, at).unwrap()),
        ("audit: file", &audit, &|at| fs::write(at, "").unwrap()),
        ("segment: link", &segment, &|at| symlink(&precious, at).unwrap()),
        ("segment: second name", &segment, &|at| fs::hard_link(&precious, at).unwrap()),
        ("segment: folder", &segment, &|at| fs::create_dir(at).unwrap()),
        ("segment: pipe", &segment, &|at| nix::unistd::mkfifo(at, Mode::S_IRUSR | Mode::S_IWUSR).unwrap()),
    ];
    for (what, at, plant) in plant {
        fs::write(&precious, "precious").unwrap();
        fs::set_permissions(&precious, fs::Permissions::from_mode(0o600)).unwrap();
        own(&precious);
        fs::rename(at, &kept).unwrap();
        plant(at);
        own(at);

        let (code, said) = device.start_in_vain();

        assert_eq!(code, 1, "{what}: {said}");
        assert!(said.contains("state"), "{what}: {said}");
        println!("{what}: {}", said.lines().last().unwrap_or_default());
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious", "{what}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{what}: nothing was made outside");
        let _ = fs::remove_file(at).or_else(|_| fs::remove_dir(at));
        fs::rename(&kept, at).unwrap();
    }
    device.start();
    device.stop();
    device.trails_are_whole();
}
