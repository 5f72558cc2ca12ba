//! `/etc/portal/pcp/pcpd.toml`: where things lie and how much of each is allowed. Unknown keys are refused.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcp_execution::PipelineConfig;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Where the configuration lies unless `--config` says otherwise.
pub const CONFIG_PATH: &str = "/etc/portal/pcp/pcpd.toml";
/// Largest configuration file in bytes: a page of settings and a page of comments.
pub const MAX_CONFIG_BYTES: u64 = 64 * 1024;

/// Everything that root decides about the daemon. Each member has a default; an empty file is valid.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where files and sockets lie.
    pub paths: Paths,
    /// Whose files count and who may connect.
    pub identity: Identity,
    /// How much of each.
    pub limits: Limits,
    /// How long each part of an intent may take.
    pub pipeline: Pipeline,
    /// What becomes of records.
    pub audit: Audit,
    /// Whose signed actions count.
    pub actions: Actions,
    /// Where applications are looked for.
    pub detection: Detection,
    /// What is logged.
    pub log: Log,
}

/// Where files and sockets lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Paths {
    /// The directory of all sockets.
    pub sockets: PathBuf,
    /// The daemon's own state; the trails are in `audit` below it.
    pub state: PathBuf,
    /// Who may ask.
    pub principals: PathBuf,
    /// Which applications there are.
    pub apps: PathBuf,
    /// Whose signatures count.
    pub trusted_keys: PathBuf,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            sockets: "/run/portal/pcp".into(),
            state: "/var/lib/portal/pcp".into(),
            principals: "/etc/portal/pcp/principals.d".into(),
            apps: "/etc/portal/pcp/apps.d".into(),
            trusted_keys: "/etc/portal/keys/trusted".into(),
        }
    }
}

impl Paths {
    /// The daemon's own socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.sockets.join("pcpd.sock")
    }

    /// Where the trails lie.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }

    /// Where the key and the anchor of the trails are, if there are any.
    #[must_use]
    pub fn seal(&self) -> PathBuf {
        self.state.join("seal")
    }
}

/// Whose files count and who may connect.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {
    /// The uid that root's files must belong to. Anything but 0 is for trying PCP without root.
    pub files_owner: u32,
    /// The group whose members may connect, by name or number (socket mode 0660); without it only the daemon's
    /// own uid may (0600, R-134).
    pub clients_group: Option<String>,
}

/// How much of each. Every refusal names the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Requests per second and connection; a principal's file may say otherwise.
    pub requests_per_second: u32,
    /// Requests per second of one uid over all its connections.
    pub uid_requests_per_second: u32,
    /// Connections of one uid.
    pub connections_per_uid: usize,
    /// Connections in all.
    pub connections: usize,
    /// Milliseconds a connection without a request is kept.
    pub idle_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_per_second: 100,
            uid_requests_per_second: 1_000,
            connections_per_uid: 64,
            connections: 1_024,
            idle_ms: 3_600_000,
        }
    }
}

/// How long each part of an intent may take, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pipeline {
    /// Claim to verification in the App domain.
    pub app_ms: u64,
    /// Claim to verification in the Compositor domain.
    pub compositor_ms: u64,
    /// Claim to verification in the System domain.
    pub system_ms: u64,
    /// The execute stage alone, where it shall be shorter.
    pub execute_ms: Option<u64>,
    /// What an application may take to validate parameters.
    pub validate_ms: u64,
}

impl Default for Pipeline {
    fn default() -> Self {
        let PipelineConfig { total_ms: [app_ms, compositor_ms, system_ms], execute_ms, validate_ms } =
            PipelineConfig::default();
        Self { app_ms, compositor_ms, system_ms, execute_ms, validate_ms }
    }
}

impl From<&Pipeline> for PipelineConfig {
    fn from(config: &Pipeline) -> Self {
        Self {
            total_ms: [config.app_ms, config.compositor_ms, config.system_ms],
            execute_ms: config.execute_ms,
            validate_ms: config.validate_ms,
        }
    }
}

/// What becomes of records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Audit {
    /// How many hours old an operation id may be when it is first seen. No record is deleted before.
    pub retention_hours: u64,
    /// Segments of 8 MiB that are kept of each trail, whatever their age; 0: all.
    pub kept_segments: u32,
}

impl Default for Audit {
    fn default() -> Self {
        Self { retention_hours: pcp_durable::RETENTION.as_secs() / 3_600, kept_segments: 0 }
    }
}

impl Audit {
    /// The same as a time.
    #[must_use]
    pub const fn retention(&self) -> Duration {
        Duration::from_secs(self.retention_hours.saturating_mul(3_600))
    }
}

/// Whose signed actions count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Actions {
    /// The folder of the hosts' keys. Without a file in it no signed action is taken.
    pub authorities: PathBuf,
}

impl Default for Actions {
    fn default() -> Self {
        Self { authorities: "/etc/portal/pcp/authorities.d".into() }
    }
}

/// Where applications are looked for, and how changes are noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Detection {
    /// The data folders whose `applications` hold desktop entries, the most important one first.
    pub data_dirs: Vec<PathBuf>,
    /// The folders in which programs are looked up that an entry names without a path.
    pub program_path: Vec<PathBuf>,
    /// Milliseconds between two looks where folders cannot be watched.
    pub scan_interval_ms: u64,
}

impl Default for Detection {
    fn default() -> Self {
        let paths = |list: &[&str]| list.iter().map(PathBuf::from).collect();
        Self {
            data_dirs: paths(&[
                "/usr/local/share",
                "/usr/share",
                "/var/lib/flatpak/exports/share",
                "/var/lib/snapd/desktop",
            ]),
            program_path: paths(&[
                "/usr/local/bin",
                "/usr/bin",
                "/bin",
                "/usr/local/sbin",
                "/usr/sbin",
                "/sbin",
                "/usr/local/games",
                "/usr/games",
            ]),
            scan_interval_ms: 30_000,
        }
    }
}

/// Most folders of `detection.data_dirs` and `detection.program_path`: each costs every scan.
pub const MAX_DETECTION_FOLDERS: usize = 64;

/// What is logged, to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// `error`, `warn`, `info` or `debug`.
    pub level: Level,
}

impl Default for Log {
    fn default() -> Self {
        Self { level: Level::Info }
    }
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What failed.
    Error,
    /// What is not as it should be.
    Warn,
    /// What happens.
    Info,
    /// How it happens. Never the parameters.
    Debug,
}

/// The widest range of a limit or time; what is outside is a typing error.
const RANGES: [(&str, u64, u64); 13] = [
    ("limits.requests_per_second", 1, 1_000_000),
    ("limits.uid_requests_per_second", 1, 10_000_000),
    ("limits.connections_per_uid", 1, 65_536),
    ("limits.connections", 1, 65_536),
    ("limits.idle_ms", 1_000, 86_400_000),
    ("pipeline.app_ms", 1, 600_000),
    ("pipeline.compositor_ms", 1, 600_000),
    ("pipeline.system_ms", 1, 600_000),
    ("pipeline.execute_ms", 1, 600_000),
    ("pipeline.validate_ms", 1, 60_000),
    ("detection.scan_interval_ms", 1_000, 86_400_000),
    ("audit.retention_hours", 1, 8_784),
    ("audit.kept_segments", 0, 100_000),
];

impl Config {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// [`Error::Config`] names the file, the line where there is one, and what is wrong.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let fault = |line, why: String| Error::Config { path: path.to_owned(), line, why };
        let text = read_bounded(path).map_err(|why| fault(None, why))?;
        Self::parse(&text).map_err(|(line, why)| fault(line, why))
    }

    /// Reads and checks a text; the error is the line, where there is one, and the reason.
    ///
    /// # Errors
    /// As said.
    pub fn parse(text: &str) -> Result<Self, (Option<usize>, String)> {
        let config: Self = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map(|span| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1);
            (line, error.message().replace('\n', "; "))
        })?;
        config.check().map_err(|why| (None, why))?;
        Ok(config)
    }

    /// The whole configuration as a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let value = serde_json::to_value(self).unwrap_or_default();
        for (table, members) in value.as_object().into_iter().flatten() {
            let _ = writeln!(text, "[{table}]");
            for (key, value) in
                members.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null())
            {
                let _ = writeln!(text, "{key} = {value}");
            }
            text.push('\n');
        }
        text
    }

    fn check(&self) -> Result<(), String> {
        let paths = [
            ("paths.sockets", &self.paths.sockets),
            ("paths.state", &self.paths.state),
            ("paths.principals", &self.paths.principals),
            ("paths.apps", &self.paths.apps),
            ("paths.trusted_keys", &self.paths.trusted_keys),
            ("actions.authorities", &self.actions.authorities),
        ];
        for (key, path) in paths {
            if !path.is_absolute() {
                return Err(format!("{key} is {path:?}; an absolute path is needed"));
            }
        }
        let folders = [
            ("detection.data_dirs", &self.detection.data_dirs),
            ("detection.program_path", &self.detection.program_path),
        ];
        for (key, list) in folders {
            if let Some(path) = list.iter().find(|path| !path.is_absolute()) {
                return Err(format!("{key} names {path:?}; absolute paths are needed"));
            }
            if list.len() > MAX_DETECTION_FOLDERS {
                return Err(format!(
                    "{key} names {} folders, the limit is {MAX_DETECTION_FOLDERS}",
                    list.len()
                ));
            }
        }
        let (limits, pipeline) = (&self.limits, &self.pipeline);
        let values = [
            u64::from(limits.requests_per_second),
            u64::from(limits.uid_requests_per_second),
            limits.connections_per_uid as u64,
            limits.connections as u64,
            limits.idle_ms,
            pipeline.app_ms,
            pipeline.compositor_ms,
            pipeline.system_ms,
            pipeline.execute_ms.unwrap_or(1),
            pipeline.validate_ms,
            self.detection.scan_interval_ms,
            self.audit.retention_hours,
            self.audit.kept_segments.into(),
        ];
        for ((key, least, most), value) in RANGES.into_iter().zip(values) {
            if !(least..=most).contains(&value) {
                return Err(format!("{key} is {value}, outside {least} to {most}"));
            }
        }
        Ok(())
    }
}

/// Neither waits for somebody to write into a pipe nor believes a device that says that it is empty.
fn read_bounded(path: &Path) -> Result<String, String> {
    let say = |error: std::io::Error| error.to_string();
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path).map_err(say)?;
    if !file.metadata().map_err(say)?.is_file() {
        return Err("it is not a regular file".into());
    }
    let mut text = String::new();
    let read = file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text).map_err(say)?;
    if read as u64 > MAX_CONFIG_BYTES {
        return Err(format!("more than the {MAX_CONFIG_BYTES}-byte limit"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_and_the_default_is_a_file() {
        let config = Config::parse("").unwrap();
        assert_eq!(config, Config::default());
        assert_eq!(Config::parse(&config.to_toml()).unwrap(), config);
        assert_eq!(
            (config.pipeline.app_ms, config.pipeline.compositor_ms, config.pipeline.system_ms),
            (5_000, 10_000, 15_000)
        );
    }

    #[test]
    fn what_is_no_file_or_too_long_is_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pcpd.toml");
        let why = |path: &Path| Config::load(path).unwrap_err().to_string();
        let limit = usize::try_from(MAX_CONFIG_BYTES).unwrap();

        std::fs::write(&path, "#".repeat(limit)).unwrap();
        assert!(Config::load(&path).is_ok());
        std::fs::write(&path, "#".repeat(limit + 1)).unwrap();
        assert!(why(&path).contains("more than the 65536-byte limit"));
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        for other in [&folder.path().join("pipe"), Path::new("/dev/zero"), folder.path()] {
            assert!(why(other).contains("not a regular file"), "{}", other.display());
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let table = [
            ("[limits]\nrequests_per_secnd = 5\n", Some(2), "requests_per_secnd"),
            ("[limits]\nrequests_per_second = \"5\"\n", Some(2), "invalid type"),
            (
                "[limits]\nrequests_per_second = 0\n",
                None,
                "limits.requests_per_second is 0, outside 1 to 1000000",
            ),
            ("[paths]\nstate = \"here\"\n", None, "paths.state is \"here\"; an absolute path is needed"),
            ("[pipeline]\napp_ms = 999999999\n", None, "pipeline.app_ms is 999999999"),
            (
                "[detection]\ndata_dirs = [\"share\"]\n",
                None,
                "detection.data_dirs names \"share\"; absolute paths",
            ),
            ("[detection]\nscan_interval_ms = 1\n", None, "detection.scan_interval_ms is 1"),
            ("[audit]\nretention_hours = 0\n", None, "audit.retention_hours is 0, outside 1 to 8784"),
            ("[log]\nlevel = \"loud\"\n", Some(2), "loud"),
            ("[nothing]\n", Some(1), "nothing"),
            ("limits = \n", Some(1), ""),
        ];
        for (text, line, why) in table {
            let (found_line, found) = Config::parse(text).unwrap_err();
            assert_eq!(found_line, line, "{text}: {found}");
            assert!(found.contains(why), "{text}: {found}");
        }
    }
}
