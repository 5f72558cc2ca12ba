//! What signed actions need of the device: the keys of the hosts from root's files, and who serves an application.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pcp_core::v2::Sha256Hash;
use pcp_core::{AppId, Clock, ErrorCode, PcpError};
use pcp_durable::{AuditLog, Operations, RealDisk};
use pcp_execution::engine::{ActionDoor, Process, Processes};
use pcp_execution::{AuthorityKey, Ed25519AuthorityVerifier};
use pcp_stream::PeerIdentity;
use pcp_trust::PrincipalTable;
use pcp_trust::root_file::RootDirectory;
use serde::Deserialize;
use tracing::{info, warn};

use crate::config::Config;

/// Most files of `authorities.d`: as many as a keyring holds.
const MAX_AUTHORITY_FILES: usize = 64;
/// Largest such file in bytes: four lines of at most 256 characters, and comments.
const MAX_AUTHORITY_FILE_BYTES: usize = 4 * 1024;
/// How long an application may take to accept a connection that asks who it is.
const WHO_LIMIT: Duration = Duration::from_millis(250);
/// Where the start time of a process stands in its `stat`, counted from behind its name.
const START_TIME_FIELD: usize = 19;

/// The door of this daemon.
pub(crate) type Door = ActionDoor<AppProcesses>;

/// A file of `authorities.d`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AuthorityFile {
    issuer: String,
    key_id: String,
    policy_generation: String,
    public_key: String,
}

/// Opens the door, or says why signed actions are not taken.
pub(crate) fn open(
    config: &Config,
    table: &PrincipalTable,
    audit: &Arc<AuditLog>,
    clock: &dyn Clock,
) -> Result<Door, PcpError> {
    let folder = &config.actions.authorities;
    let keys = authority_keys(folder, config.identity.files_owner)?;
    if keys.is_empty() {
        return Err(closed("no host's key is installed".to_owned(), folder));
    }
    let count = keys.len();
    let verifier = Ed25519AuthorityVerifier::new(keys).map_err(|error| closed(error.to_string(), folder))?;
    let disk =
        RealDisk::open_read_only(&config.paths.audit()).map_err(|error| closed(error.to_string(), folder))?;
    let operations = Operations::new(audit.clone(), Arc::new(disk), config.audit.retention());
    info!(authorities = count, "signed actions");
    let processes = AppProcesses::new(table, &config.paths.sockets);
    Ok(ActionDoor::new(verifier, Arc::new(operations), processes, clock))
}

fn closed(why: String, folder: &Path) -> PcpError {
    PcpError::new(ErrorCode::Unsupported, format!("signed actions are not taken: {why}")).hint(format!(
        "root writes {}/NAME.toml with the lines issuer, key_id, policy_generation, public_key (64 hexadecimal digits) and restarts the daemon",
        folder.display()
    ))
}

/// The keys of all files that count. One file that breaks a rule closes the door: which key it meant nobody knows.
fn authority_keys(folder: &Path, owner: u32) -> Result<Vec<AuthorityKey>, PcpError> {
    let broken = |why: String| {
        warn!(%why, "a file of a host's key does not count, so no signed action is taken");
        closed(why, folder)
    };
    let directory = RootDirectory::open(folder, owner).map_err(|error| broken(error.to_string()))?;
    let Some(directory) = directory else { return Ok(Vec::new()) };
    let names = directory.names(MAX_AUTHORITY_FILES).map_err(|error| broken(error.to_string()))?;
    let mut keys = Vec::new();
    for name in names.iter().filter(|name| name.ends_with(".toml")) {
        let bytes =
            directory.read(name, MAX_AUTHORITY_FILE_BYTES).map_err(|error| broken(error.to_string()))?;
        let bytes = bytes.ok_or_else(|| broken(format!("{name} is gone")))?;
        keys.push(
            authority_key(&bytes).map_err(|why| broken(format!("{}/{name}: {why}", folder.display())))?,
        );
    }
    Ok(keys)
}

fn authority_key(bytes: &[u8]) -> Result<AuthorityKey, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not UTF-8".to_owned())?;
    let file: AuthorityFile = toml::from_str(text).map_err(|error| error.message().replace('\n', "; "))?;
    let AuthorityFile { issuer, key_id, policy_generation, public_key } = file;
    let key = Sha256Hash::parse(&public_key)
        .ok_or_else(|| "public_key is not 64 lower-case hexadecimal digits".to_owned())?;
    Ok(AuthorityKey { issuer, key_id, policy_generation, public_key: *key.as_bytes() })
}

/// Who serves the sockets of the applications that root registered.
#[derive(Debug)]
pub(crate) struct AppProcesses {
    sockets: HashMap<AppId, (PathBuf, u32)>,
    /// Which life of the machine this is.
    boot_id: String,
}

impl AppProcesses {
    fn new(table: &PrincipalTable, directory: &Path) -> Self {
        let socket = |app: &AppId| directory.join(format!("{app}.sock"));
        Self {
            sockets: table.apps().map(|app| (app.app_id.clone(), (socket(&app.app_id), app.uid))).collect(),
            boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        }
    }
}

impl Processes for AppProcesses {
    async fn process(&self, app: &AppId) -> Option<Process> {
        let (path, uid) = self.sockets.get(app)?;
        let connected = tokio::time::timeout(WHO_LIMIT, tokio::net::UnixStream::connect(path)).await;
        let peer = PeerIdentity::of(&connected.ok()?.ok()?).ok().filter(|peer| peer.uid == *uid)?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", peer.pid)).ok()?;
        let started = start_time(&stat)?;
        // Asked behind the reading: the number was still that process's.
        let id = u32::try_from(peer.pid).ok().filter(|_| peer.is_alive())?;
        let generation = Sha256Hash::of(format!("{}\0{started}", self.boot_id.trim()).as_bytes()).to_string();
        Some(Process { id, generation })
    }
}

/// The start time of a process; its name, which may hold anything, ends with the last parenthesis.
fn start_time(stat: &str) -> Option<&str> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(START_TIME_FIELD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    const KEY: &str = "197f6b23e16c8532c6abc838facd5ea789be0c76b2920334039bfa8b3d368d61";

    fn file(key_id: &str, key: &str) -> String {
        format!(
            "issuer = \"host\"\nkey_id = \"{key_id}\"\npolicy_generation = \"g1\"\npublic_key = \"{key}\"\n"
        )
    }

    fn keys(files: &[(&str, String, u32)]) -> Result<Vec<AuthorityKey>, PcpError> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text, mode) in files {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(*mode)).unwrap();
        }
        authority_keys(folder.path(), nix::unistd::getuid().as_raw())
    }

    #[test]
    fn keys_come_from_files_that_root_alone_can_write() {
        let good = keys(&[("a.toml", file("k1", KEY), 0o644), ("README", "x".into(), 0o644)]).unwrap();
        assert_eq!((good.len(), good[0].key_id.as_str()), (1, "k1"));
        for (text, mode, why) in [
            (file("k1", KEY), 0o666, "can be written by others"),
            (file("k1", &KEY[1..]), 0o644, "64 lower-case hexadecimal digits"),
            (file("k1", KEY) + "secret = 1\n", 0o644, "unknown field"),
            ("x".repeat(MAX_AUTHORITY_FILE_BYTES + 1), 0o644, "limit"),
        ] {
            let error = keys(&[("a.toml", text, mode)]).unwrap_err();
            assert_eq!(error.code, ErrorCode::Unsupported);
            assert!(error.message.contains(why), "{why}: {}", error.message);
        }
        assert_eq!(authority_keys(Path::new("/nonexistent"), 0).unwrap(), []);
    }

    #[test]
    fn a_start_time_is_found_behind_any_name() {
        let stat = "7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4242 20";
        assert_eq!(start_time(stat), Some("4242"));
        assert_eq!(start_time("7 (x) S"), None);
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        assert!(start_time(&own).unwrap().parse::<u64>().is_ok());
    }
}
