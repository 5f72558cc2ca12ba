//! The real daemon on a thread of this process, for whoever measures over its socket.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pcp_daemon::Config;
use pcp_daemon::clock::SystemClock;

/// How long the daemon may take until it answers.
const START: Duration = Duration::from_secs(10);
/// Requests per second: the limiter stays in the path and never fires.
const RATE: u32 = 1_000_000;

/// A daemon in a temporary folder, with this process's user as its only principal.
#[derive(Debug)]
pub struct LiveDaemon {
    folder: tempfile::TempDir,
}

impl LiveDaemon {
    /// Starts it and waits until its socket answers. It serves until the process ends.
    ///
    /// # Errors
    /// What keeps it from starting.
    pub fn start() -> Result<Self, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let uid = nix::unistd::geteuid().as_raw();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in
            [("sockets", 0o755), ("state", 0o700), ("principals", 0o755), ("apps", 0o755), ("keys", 0o755)]
        {
            fs::create_dir(at(name))?;
            fs::set_permissions(at(name), fs::Permissions::from_mode(mode))?;
        }
        let principal = format!(
            "uid = {uid}\ndomain = \"system\"\ntrust = 3\nflags = []\nmodality = \"remote\"\nrate_per_second = {RATE}\n"
        );
        fs::write(at("principals").join("bench.toml"), principal)?;
        fs::set_permissions(at("principals").join("bench.toml"), fs::Permissions::from_mode(0o644))?;
        let mut config = Config::default();
        config.paths.sockets = at("sockets");
        config.paths.state = at("state");
        config.paths.principals = at("principals");
        config.paths.apps = at("apps");
        config.paths.trusted_keys = at("keys");
        config.detection.data_dirs = vec![at("share")];
        config.identity.files_owner = uid;
        let live = Self { folder };
        let served = std::thread::spawn(move || {
            pcp_daemon::serve_with(config, Arc::new(SystemClock)).map_err(|error| error.to_string())
        });
        let until = Instant::now() + START;
        while std::os::unix::net::UnixStream::connect(live.socket()).is_err() {
            if served.is_finished() {
                return Err(format!("the daemon ended: {:?}", served.join()).into());
            }
            if Instant::now() > until {
                return Err(format!("the daemon did not answer within {} s", START.as_secs()).into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(live)
    }

    /// Its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("sockets/pcpd.sock")
    }
}
