//! Root's files as they lie on a disk, right and wrong, and who exists because of them.
#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot read")]

use std::path::{Path, PathBuf};

use pcp_core::{Domain, Modality, TrustLevel};
use pcp_trust::principals::{MAX_FILE_BYTES, MAX_PRINCIPALS};
use pcp_trust::{Error, PrincipalTable};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};

struct Etc(tempfile::TempDir);

impl Etc {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["principals.d", "apps.d"] {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::set_permissions(folder.path().join(name), Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn with(self, name: &str, text: &str) -> Self {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o644)).unwrap();
        self
    }

    fn load(&self) -> PrincipalTable {
        let owner = nix::unistd::getuid().as_raw();
        PrincipalTable::load(&self.path("principals.d"), &self.path("apps.d"), owner)
    }
}

fn person(uid: u32) -> String {
    format!("uid = {uid}\ndomain = \"system\"\ntrust = 2\nmodality = \"remote\"\n")
}

fn app(uid: u32) -> String {
    format!("uid = {uid}\nmanifest = \"/usr/share/portal/m.json\"\n")
}

fn texts(table: &PrincipalTable) -> Vec<String> {
    table.problems().iter().map(ToString::to_string).collect()
}

#[test]
fn a_uid_that_no_file_names_is_nobody() {
    let table = Etc::new().with("principals.d/op.toml", &person(1000)).load();
    assert!(table.principal(1000, None).is_some());
    for uid in [0, 999, 1001, u32::MAX] {
        assert_eq!(table.principal(uid, None), None);
    }
    assert_eq!(texts(&table), [""; 0]);
}

#[test]
fn a_principal_carries_the_pid_of_its_connection() {
    let table = Etc::new().with("principals.d/op.toml", &person(1000)).load();
    assert_eq!(table.principal(1000, Some(77)).unwrap().pid, Some(77));
}

#[test]
fn an_application_without_a_file_of_its_own_gets_the_least() {
    let table = Etc::new().with("apps.d/org.example.notes.toml", &app(210)).load();
    let principal = table.principal(210, None).unwrap();
    assert_eq!((principal.domain, principal.trust), (Domain::App, TrustLevel::USER));
    assert_eq!((principal.admin, principal.confirmer, principal.modality), (false, false, Modality::Remote));
    assert_eq!(table.app_of_uid(210).unwrap().app_id.as_str(), "org.example.notes");
}

#[test]
fn a_file_in_principals_d_says_more_than_the_default_of_an_application() {
    let observer = "uid = 210\ndomain = \"app\"\ntrust = 0\nmodality = \"remote\"\n";
    let table = Etc::new()
        .with("apps.d/org.example.notes.toml", &app(210))
        .with("principals.d/notes.toml", observer)
        .load();
    assert_eq!(table.principal(210, None).unwrap().trust, TrustLevel::OBSERVE);
}

#[test]
fn two_files_for_one_uid_leave_it_with_nothing_and_both_are_named() {
    let table = Etc::new()
        .with("principals.d/a.toml", &person(1000))
        .with("principals.d/b.toml", &person(1000))
        .with("principals.d/c.toml", &person(1001))
        .with("apps.d/org.example.notes.toml", &app(1000))
        .load();

    assert_eq!(table.principal(1000, None), None);
    assert!(table.principal(1001, None).is_some());
    assert_eq!(table.principals().count(), 1);
    let [text] = &texts(&table)[..] else { panic!("{:?}", texts(&table)) };
    assert!(
        text.starts_with("uid 1000 is claimed by both ")
            && text.contains("a.toml and ")
            && text.contains("b.toml")
    );
}

#[test]
fn two_applications_of_one_uid_are_both_refused() {
    let table = Etc::new()
        .with("apps.d/org.example.a.toml", &app(210))
        .with("apps.d/org.example.b.toml", &app(210))
        .with("apps.d/org.example.c.toml", &app(211))
        .load();
    assert_eq!(table.apps().map(|app| app.uid).collect::<Vec<_>>(), [211]);
    assert_eq!(table.principal(210, None), None);
    assert!(table.app_of_uid(210).is_none());
    assert!(matches!(table.problems(), [Error::DuplicateUid { uid: 210, .. }]));
}

#[test]
fn a_broken_file_takes_its_uid_away_from_every_default_and_from_no_other() {
    let table = Etc::new()
        .with("principals.d/a.toml", "uid = 210\ntrust = zero\n")
        .with("principals.d/b.toml", &person(1000))
        .with("apps.d/org.example.notes.toml", &app(210))
        .with("apps.d/org.example.other.toml", &app(211))
        .load();
    assert_eq!(table.principal(210, None), None);
    assert!(table.principal(1000, None).is_some());
    assert!(table.principal(211, None).is_some());
    assert!(texts(&table)[0].contains("a.toml:2: "), "{:?}", texts(&table));
}

#[test]
fn a_broken_file_that_names_no_uid_closes_the_default_of_applications() {
    let table = Etc::new()
        .with("principals.d/a.toml", "\0\0\0")
        .with("principals.d/b.toml", &person(1000))
        .with("apps.d/org.example.notes.toml", &app(210))
        .load();
    assert_eq!(table.principal(210, None), None);
    assert!(table.principal(1000, None).is_some());
}

#[test]
fn a_broken_application_file_does_not_bar_a_person_of_that_uid() {
    let table = Etc::new()
        .with("principals.d/root.toml", &person(0))
        .with("apps.d/org.example.notes.toml", &app(0))
        .load();
    assert!(table.principal(0, None).unwrap().admin);
    assert!(table.apps().next().is_none());
}

#[test]
fn files_that_others_could_have_written_do_not_count() {
    let etc = Etc::new().with("principals.d/a.toml", &person(1000)).with("real", &person(1001));
    symlink(etc.path("real"), etc.path("principals.d/b.toml")).unwrap();
    fs::set_permissions(etc.path("principals.d/a.toml"), Permissions::from_mode(0o666)).unwrap();

    let table = etc.load();

    assert_eq!((table.principal(1000, None), table.principal(1001, None)), (None, None));
    assert!(matches!(table.problems(), [Error::WritableByOthers { .. }, Error::SymbolicLink { .. }]));
}

#[test]
fn a_directory_of_another_owner_makes_nobody() {
    let etc =
        Etc::new().with("principals.d/a.toml", &person(1000)).with("apps.d/org.example.a.toml", &app(210));
    let other = nix::unistd::getuid().as_raw() + 1;
    let table = PrincipalTable::load(&etc.path("principals.d"), &etc.path("apps.d"), other);
    assert_eq!((table.principal(1000, None), table.principal(210, None)), (None, None));
    assert_eq!(table.problems().len(), 2);
}

#[test]
fn a_file_at_the_size_limit_counts_and_one_past_it_does_not() {
    let padded = |uid, bytes: usize| {
        let text = person(uid);
        format!("{text}#{}", "x".repeat(bytes - text.len() - 1))
    };
    let table = Etc::new()
        .with("principals.d/a.toml", &padded(1000, MAX_FILE_BYTES))
        .with("principals.d/b.toml", &padded(1001, MAX_FILE_BYTES + 1))
        .load();
    assert!(table.principal(1000, None).is_some());
    assert_eq!(table.principal(1001, None), None);
    assert!(matches!(table.problems(), [Error::FileTooLarge { limit: MAX_FILE_BYTES, .. }]));
}

#[test]
fn more_files_than_the_limit_make_nobody_rather_than_some() {
    let fill = |count: u32| {
        (0..count).fold(Etc::new(), |etc, uid| etc.with(&format!("principals.d/{uid}.toml"), &person(uid)))
    };
    let limit = u32::try_from(MAX_PRINCIPALS).unwrap();
    assert_eq!(fill(limit).load().principals().count(), MAX_PRINCIPALS);

    let table = fill(limit + 1).load();

    assert_eq!(table.principals().count(), 0);
    assert!(matches!(table.problems(), [Error::TooManyFiles { limit: MAX_PRINCIPALS, .. }]));
}

#[test]
fn other_files_and_hidden_ones_are_left_alone() {
    let table = Etc::new()
        .with("principals.d/README", "not toml")
        .with("principals.d/a.toml.bak", "not toml")
        .with("principals.d/.b.toml", "not toml")
        .load();
    assert_eq!(texts(&table), [""; 0]);
}

#[test]
fn a_system_without_the_directories_has_no_principals() {
    let table = PrincipalTable::load(Path::new("/nonexistent/p"), Path::new("/nonexistent/a"), 0);
    assert_eq!(table.principals().count(), 0);
    assert_eq!(texts(&table), [""; 0]);
}
