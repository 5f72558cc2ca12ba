//! Root's files that say who a uid is; nothing else may decide it.
//!
//! `principals.d/*.toml` describes people and services, `apps.d/{app_id}.toml` applications. Everything fails
//! closed: a file that cannot be trusted or understood makes no principal, and takes the uid it names, or
//! might name, away from the defaults too. Start with [`PrincipalTable::load`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pcp_core::{AppId, AuthPrincipal, Domain, Modality, TrustLevel};

use crate::error::Error;
use crate::principal_file::{self, AppFile, PrincipalFile};
use crate::root_file::RootDirectory;

/// Where root describes people and services.
pub const PRINCIPALS_DIR: &str = "/etc/portal/pcp/principals.d";
/// Where root registers applications.
pub const APPS_DIR: &str = "/etc/portal/pcp/apps.d";
/// Files read from `principals.d`. A device has about five principals; a lab machine a few dozen.
pub const MAX_PRINCIPALS: usize = 256;
/// Files read from `apps.d`. The registry of a large desktop holds a few hundred applications.
pub const MAX_APPS: usize = 1024;
/// Bytes of one file: ten lines and room for comments.
pub const MAX_FILE_BYTES: usize = 16 * 1024;

/// A described principal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalEntry {
    /// What the daemon decides by; its pid is the peer's, set per connection.
    pub principal: AuthPrincipal,
    /// What people call it, if the file says.
    pub name: Option<String>,
    /// The file it comes from.
    pub file: PathBuf,
}

/// A registered application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppRegistration {
    /// Its id: the name of its file.
    pub app_id: AppId,
    /// The uid it runs under; the listener of its socket must have it.
    pub uid: u32,
    /// Where its manifest is.
    pub manifest: PathBuf,
    /// A prefix (`domain.app`) under which it may declare capabilities besides its own.
    pub prefix: Option<String>,
    /// The file it comes from.
    pub file: PathBuf,
}

/// Who is who, as root's files said when they were read.
#[derive(Debug, Default)]
pub struct PrincipalTable {
    principals: BTreeMap<u32, PrincipalEntry>,
    apps: BTreeMap<AppId, AppRegistration>,
    app_of_uid: BTreeMap<u32, AppId>,
    /// uids that a broken or contradicting file of `principals.d` names: not even a default is left to them.
    barred: BTreeSet<u32>,
    /// Set when a broken file does not even say which uid it is about: then no application may fall back to
    /// the default, for the file may have been the one that took rights away from it.
    defaults_closed: bool,
    problems: Vec<Error>,
}

impl PrincipalTable {
    /// Reads the files of this system.
    #[must_use]
    pub fn system() -> Self {
        Self::load(Path::new(PRINCIPALS_DIR), Path::new(APPS_DIR), 0)
    }

    /// Reads both directories, whose files must belong to `owner`. Never fails as a whole: what is wrong is in
    /// [`PrincipalTable::problems`], and whoever it is about has no access.
    #[must_use]
    pub fn load(principals_dir: &Path, apps_dir: &Path, owner: u32) -> Self {
        let mut table = Self::default();
        table.load_principals(principals_dir, owner);
        table.load_apps(apps_dir, owner);
        table
    }

    /// The principal behind `uid`, if root's files make it one. An application without a file of its own in
    /// `principals.d` is one of the app domain, trust 1, without flags, remote.
    #[must_use]
    pub fn principal(&self, uid: u32, pid: Option<i32>) -> Option<AuthPrincipal> {
        if let Some(entry) = self.principals.get(&uid) {
            return Some(AuthPrincipal { pid, ..entry.principal });
        }
        let closed = self.defaults_closed || self.barred.contains(&uid);
        (!closed && self.app_of_uid.contains_key(&uid)).then_some(AuthPrincipal {
            uid,
            pid,
            domain: Domain::App,
            trust: TrustLevel::USER,
            admin: false,
            confirmer: false,
            modality: Modality::Remote,
            rate_per_second: None,
        })
    }

    /// The principals that have a file of their own, by uid.
    pub fn principals(&self) -> impl Iterator<Item = &PrincipalEntry> {
        self.principals.values()
    }

    /// The registration of an application.
    #[must_use]
    pub fn app(&self, app_id: &AppId) -> Option<&AppRegistration> {
        self.apps.get(app_id)
    }

    /// The application that runs under `uid`.
    #[must_use]
    pub fn app_of_uid(&self, uid: u32) -> Option<&AppRegistration> {
        self.apps.get(self.app_of_uid.get(&uid)?)
    }

    /// All registered applications, by id.
    pub fn apps(&self) -> impl Iterator<Item = &AppRegistration> {
        self.apps.values()
    }

    /// Everything that was refused, for `doctor` and the log.
    #[must_use]
    pub fn problems(&self) -> &[Error] {
        &self.problems
    }

    fn load_principals(&mut self, directory: &Path, owner: u32) {
        let files = read_all(directory, owner, MAX_PRINCIPALS).unwrap_or_else(|problem| {
            self.problems.push(problem);
            self.defaults_closed = true;
            Vec::new()
        });
        let mut claims = Claims::default();
        for (file, content) in files {
            match content.and_then(|bytes| principal_file::parse_principal(&file, &bytes)) {
                Ok(PrincipalFile { principal, name }) => {
                    claims.claim(principal.uid, &file);
                    self.principals.insert(principal.uid, PrincipalEntry { principal, name, file });
                }
                Err(broken) => self.defaults_closed |= !claims.broken(broken, &file),
            }
        }
        self.barred = claims.barred;
        self.problems.append(&mut claims.problems);
        self.principals.retain(|uid, _| !self.barred.contains(uid));
    }

    fn load_apps(&mut self, directory: &Path, owner: u32) {
        let files = read_all(directory, owner, MAX_APPS).unwrap_or_else(|problem| {
            self.problems.push(problem);
            Vec::new()
        });
        let mut claims = Claims::default();
        for (file, content) in files {
            match content.and_then(|bytes| principal_file::parse_app(&file, &bytes)) {
                Ok(AppFile { app_id, uid, manifest, prefix }) => {
                    claims.claim(uid, &file);
                    self.apps.insert(app_id.clone(), AppRegistration { app_id, uid, manifest, prefix, file });
                }
                Err(broken) => {
                    claims.broken(broken, &file);
                }
            }
        }
        self.problems.append(&mut claims.problems);
        self.apps.retain(|_, app| !claims.barred.contains(&app.uid));
        self.app_of_uid = self.apps.values().map(|app| (app.uid, app.app_id.clone())).collect();
    }
}

/// A file and what reading it gave.
type ReadFile = (PathBuf, Result<Vec<u8>, Error>);

/// The `.toml` files of a directory with what reading each of them gave.
fn read_all(path: &Path, owner: u32, limit: usize) -> Result<Vec<ReadFile>, Error> {
    let Some(directory) = RootDirectory::open(path, owner)? else { return Ok(Vec::new()) };
    let names = directory.names(limit)?;
    Ok(names.iter().filter(|name| name.ends_with(".toml")).map(|name| read(&directory, name)).collect())
}

fn read(directory: &RootDirectory, name: &str) -> ReadFile {
    let path = directory.path().join(name);
    let gone = || Error::Read { path: path.clone(), source: std::io::ErrorKind::NotFound.into() };
    let content = directory.read(name, MAX_FILE_BYTES).and_then(|bytes| bytes.ok_or_else(gone));
    (path, content)
}

/// Which file of one directory claimed which uid, and which uids came out of it with nothing.
#[derive(Debug, Default)]
struct Claims {
    first: BTreeMap<u32, PathBuf>,
    barred: BTreeSet<u32>,
    problems: Vec<Error>,
}

impl Claims {
    /// Notes that `file` is about `uid`; a second file about it takes it away from both.
    fn claim(&mut self, uid: u32, file: &Path) {
        match self.first.get(&uid) {
            Some(first) if first != file => {
                let (first, second) = (first.clone(), file.to_owned());
                self.problems.push(Error::DuplicateUid { uid, first, second });
                self.barred.insert(uid);
            }
            _ => {
                self.first.insert(uid, file.to_owned());
            }
        }
    }

    /// Notes a broken file; `false` if it does not say which uid it is about.
    fn broken(&mut self, problem: Error, file: &Path) -> bool {
        let named = match &problem {
            Error::PrincipalFile { uids_named, .. } => uids_named.clone(),
            _ => Vec::new(),
        };
        self.problems.push(problem);
        for uid in &named {
            self.claim(*uid, file);
            self.barred.insert(*uid);
        }
        !named.is_empty()
    }
}
