//! A device in a folder: root's files, the daemon under its own user, applications under theirs.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use pcp_core::{AppId, Trail};
use pcp_fakeapp::{FakeManifest, Places};
use pcp_ipc::Client;
use pcp_trust::Signer;

use super::process::{self, Process};
use super::records::{self, Line};
use super::uids::{self, Uids};
use super::{Answer, python};

/// Longest wait until the daemon serves, and until it is gone after a signal; a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at whether a starting daemon has ended instead.
const LOOK: Duration = Duration::from_millis(50);
/// Requests per second of the user who runs the test: stories are not about the limiter unless they say so.
pub(crate) const OWN_RATE: u32 = 100_000;

/// What is special about a device; the default is nothing.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Further tables of `pcpd.toml`.
    pub(crate) config: String,
    /// Further lines of its table `[detection]`.
    pub(crate) detection: String,
    /// Requests per second of the user who runs the test; `None`: what the daemon gives everybody.
    pub(crate) own_rate: Option<u32>,
    /// Whether the daemon runs under the user who runs the test.
    pub(crate) own_daemon: bool,
    /// Another user for the daemon, for a story that takes something of its user away.
    pub(crate) daemon_uid: Option<u32>,
    /// Whether others than the daemon's user may connect.
    pub(crate) clients: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            config: String::new(),
            detection: String::new(),
            own_rate: Some(OWN_RATE),
            own_daemon: false,
            daemon_uid: None,
            clients: true,
        }
    }
}

impl Plan {
    /// A device whose daemon has further settings.
    pub(crate) fn config(config: &str) -> Self {
        Self { config: config.to_owned(), ..Self::default() }
    }
}

/// An installed application.
#[derive(Debug, Clone)]
pub(crate) struct Seat {
    pub(crate) id: AppId,
    pub(crate) uid: u32,
    pub(crate) manifest: PathBuf,
    pub(crate) data: PathBuf,
}

impl Seat {
    /// The fake application's own count of effects.
    pub(crate) fn effects(&self) -> PathBuf {
        self.data.join("effects.log")
    }

    /// How often anything had an effect.
    pub(crate) fn effect_count(&self) -> usize {
        pcp_fakeapp::effects(&self.effects()).unwrap().len()
    }

    /// How often the application was asked for anything at all.
    pub(crate) fn invocation_count(&self) -> usize {
        pcp_fakeapp::effects(&pcp_fakeapp::invocations_file(&self.effects())).unwrap().len()
    }
}

/// The device.
#[derive(Debug)]
pub(crate) struct Device {
    space: tempfile::TempDir,
    pub(crate) uids: Uids,
    pub(crate) exe: PathBuf,
    daemon: Option<Process>,
    installed: u32,
}

impl Device {
    /// A device with principals and without applications, its daemon not running.
    pub(crate) fn new(plan: &Plan) -> Self {
        let space = tempfile::Builder::new().prefix("pcp").tempdir().unwrap();
        let mut uids = Uids::of_this_machine();
        if plan.own_daemon {
            uids.daemon = uids::own();
        }
        uids.daemon = plan.daemon_uid.unwrap_or(uids.daemon);
        let device = Self { exe: process::executable(space.path()), space, uids, daemon: None, installed: 0 };
        device.folder("", uids::own(), 0o755);
        let sockets = device.folder("run", uids::own(), 0o755);
        chown(&sockets, None, Some(uids.apps_group)).unwrap();
        fs::set_permissions(&sockets, Permissions::from_mode(0o3771)).unwrap();
        device.folder("state", uids.daemon, 0o700);
        for folder in ["etc/portal/pcp/principals.d", "etc/portal/pcp/apps.d", "etc/portal/keys/trusted"] {
            device.folder(folder, uids::own(), 0o755);
        }
        device.write("pcpd.toml", device.config(plan));
        device.write_principals(plan.own_rate);
        device
    }

    /// A running device whose only application is the standard fake one.
    pub(crate) fn with_fake(plan: &Plan) -> (Self, Seat, Process) {
        let mut device = Self::new(plan);
        let id = AppId::parse(pcp_fakeapp::APP_ID).unwrap();
        let seat = device.install(&FakeManifest::standard(id), None);
        let app = device.start_fake(&seat, &[]);
        device.start();
        (device, seat, app)
    }

    fn config(&self, plan: &Plan) -> String {
        let path = |name: &str| self.path(name).display().to_string();
        let mut text = format!(
            "[paths]\nsockets = {:?}\nstate = {:?}\nprincipals = {:?}\napps = {:?}\ntrusted_keys = {:?}\n\n\
             [identity]\nfiles_owner = {}\n",
            path("run"),
            path("state"),
            path("etc/portal/pcp/principals.d"),
            path("etc/portal/pcp/apps.d"),
            path("etc/portal/keys/trusted"),
            Uids::files_owner()
        );
        if plan.clients {
            text.push_str(&format!("clients_group = \"{}\"\n", self.uids.clients_group));
        }
        // The applications of the machine that runs the test are not those of the device.
        let (data, programs) = (path("share"), path("bin"));
        text.push_str(&format!("\n[detection]\ndata_dirs = [{data:?}]\nprogram_path = [{programs:?}]\n"));
        text.push_str(&plan.detection);
        text.push('\n');
        text + &plan.config
    }

    fn write_principals(&self, own_rate: Option<u32>) {
        let rate = own_rate.map(|rate| format!("rate_per_second = {rate}\n")).unwrap_or_default();
        let own =
            format!("uid = {}\ndomain = \"system\"\ntrust = 3\nmodality = \"console\"\n{rate}", uids::own());
        self.write_principal("own", &own);
        if uids::are_several() {
            for (domain, (uid, trust)) in
                ["app", "compositor", "system"].iter().zip(self.uids.callers.iter().zip(1..))
            {
                let text =
                    format!("uid = {uid}\ndomain = \"{domain}\"\ntrust = {trust}\nmodality = \"remote\"\n");
                self.write_principal(domain, &text);
            }
        }
    }

    /// Puts a file into `principals.d`.
    pub(crate) fn write_principal(&self, name: &str, text: &str) {
        self.write(&format!("etc/portal/pcp/principals.d/{name}.toml"), text);
    }

    /// A place on the device.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.space.path().to_owned() } else { self.space.path().join(name) }
    }

    /// Makes a folder of the device, its parents included.
    pub(crate) fn folder(&self, name: &str, uid: u32, mode: u32) -> PathBuf {
        let path = self.path(name);
        for step in Path::new(name).ancestors().collect::<Vec<_>>().into_iter().rev() {
            let step = self.path(step.to_str().unwrap());
            if !step.is_dir() {
                fs::create_dir(&step).unwrap();
                fs::set_permissions(&step, Permissions::from_mode(0o755)).unwrap();
            }
        }
        chown(&path, Some(uid), None).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    }

    /// Writes a file that everybody reads and only its owner changes.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        path
    }

    /// The daemon's socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.path("run/pcpd.sock")
    }

    /// Where the trails lie.
    pub(crate) fn audit(&self) -> PathBuf {
        self.path("state/audit")
    }

    /// What the daemon has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("daemon.log")).unwrap_or_default()
    }

    /// Installs a fake application under a user of its own.
    pub(crate) fn install(&mut self, manifest: &FakeManifest, prefix: Option<&str>) -> Seat {
        let uid = self.uids.app + self.installed;
        assert!(self.installed == 0 || uids::are_several(), "one user cannot be two applications");
        self.installed += 1;
        let signer = Signer::from_secret_bytes(&[u8::try_from(self.installed).unwrap(); 32]);
        let installed = Places::under(&self.path("")).install(manifest, &signer, uid, prefix).unwrap();
        let data = self.folder(&format!("app/{}", manifest.app_id), uid, 0o755);
        Seat { id: manifest.app_id.clone(), uid, manifest: installed.manifest, data }
    }

    /// Starts a fake application and waits until it serves.
    pub(crate) fn start_fake(&self, seat: &Seat, flags: &[&str]) -> Process {
        self.start_fake_as(seat, seat.uid, flags)
    }

    /// The same under another user than root's files say.
    pub(crate) fn start_fake_as(&self, seat: &Seat, uid: u32, flags: &[&str]) -> Process {
        let mut command = self.program("pcp-fakeapp", uid, &[self.uids.apps_group]);
        command.args(["--app-id", seat.id.as_str(), "--daemon-uid", &self.uids.daemon.to_string()]);
        command.arg("--socket-dir").arg(self.path("run")).arg("--manifest").arg(&seat.manifest);
        command.arg("--effects").arg(seat.effects()).args(flags);
        Process::start_until_it_says(seat.id.as_str(), &mut command, "ready on")
    }

    /// A command that runs a program of this workspace on this device.
    pub(crate) fn program(&self, name: &str, uid: u32, groups: &[u32]) -> Command {
        process::command(&self.exe, name, uid, groups)
    }

    /// A command that runs the daemon, its log appended to a file.
    pub(crate) fn daemon_command(&self) -> Command {
        let groups = [self.uids.apps_group, self.uids.clients_group];
        let mut command = self.program("portal-pcpd", self.uids.daemon, &groups);
        command.arg("--config").arg(self.path("pcpd.toml")).stderr(self.log_file());
        command
    }

    /// Where the daemon's log goes.
    pub(crate) fn log_file(&self) -> Stdio {
        let log: File = OpenOptions::new().append(true).create(true).open(self.path("daemon.log")).unwrap();
        log.into()
    }

    /// Starts the daemon and waits until it says that it serves.
    pub(crate) fn start(&mut self) {
        self.start_by(self.daemon_command());
    }

    /// The same by another command.
    pub(crate) fn start_by(&mut self, mut command: Command) {
        let name = self.path("notify");
        let _ = fs::remove_file(&name);
        let notices = UnixDatagram::bind(&name).unwrap();
        fs::set_permissions(&name, Permissions::from_mode(0o666)).unwrap();
        notices.set_read_timeout(Some(LOOK)).unwrap();
        let mut daemon = Process::start("portal-pcpd", command.env("NOTIFY_SOCKET", &name));
        let begun = Instant::now();
        let mut notice = [0; 256];
        while !notices.recv(&mut notice).is_ok_and(|count| notice[..count].starts_with(b"READY=1")) {
            if let Some(status) = daemon.ended() {
                panic!("the daemon ended with {status}: {}", self.log());
            }
            assert!(begun.elapsed() < PATIENCE, "the daemon did not become ready: {}", self.log());
        }
        self.daemon = Some(daemon);
    }

    /// Starts a daemon that has to give up; gives its exit code and what it said.
    pub(crate) fn start_in_vain(&self) -> (i32, String) {
        let output = self.daemon_command().stderr(Stdio::piped()).output().unwrap();
        (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
    }

    /// The running daemon.
    pub(crate) fn daemon(&self) -> &Process {
        self.daemon.as_ref().unwrap()
    }

    /// Ends the daemon cleanly, so that every record is on the disk; gives how long it took.
    pub(crate) fn stop(&mut self) -> Duration {
        let daemon = self.daemon.take().unwrap();
        let begun = Instant::now();
        daemon.signal(Signal::SIGTERM);
        let status = daemon.end_within(PATIENCE);
        assert_eq!(status.code(), Some(0), "a clean end: {}", self.log());
        begun.elapsed()
    }

    /// Ends the daemon as the kernel's memory killer does.
    pub(crate) fn kill(&mut self) {
        self.daemon.take().unwrap().kill();
    }

    /// A connection of the user who runs the test.
    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket(), self.uids.daemon).unwrap()
    }

    /// A command that runs `pcp-cli` as `uid` against this device.
    pub(crate) fn cli_command(&self, uid: u32, arguments: &[&str]) -> Command {
        let mut command = self.program("pcp-cli", uid, &[self.uids.clients_group]);
        command.arg("--socket").arg(self.socket()).arg("--expect-uid").arg(self.uids.daemon.to_string());
        command.args(arguments);
        command
    }

    /// Runs `pcp-cli` as `uid`.
    pub(crate) fn cli_as(&self, uid: u32, arguments: &[&str]) -> Answer {
        Answer::of(&self.cli_command(uid, arguments).output().unwrap())
    }

    /// Runs `pcp-cli` as the user who runs the test.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Answer {
        self.cli_as(uids::own(), arguments)
    }

    /// Stops the daemon and reads what it recorded.
    pub(crate) fn stop_and_read(&mut self) -> Vec<Line> {
        self.stop();
        records::lines(&self.audit())
    }

    /// Both readers find the three trails whole.
    pub(crate) fn trails_are_whole(&self) {
        let answer = self.cli(&["audit", "verify", "--dir", self.audit().to_str().unwrap()]);
        let trails = answer.data()["trails"].as_array().unwrap().len();
        assert_eq!(trails, Trail::ALL.len());
        python::trails_are_whole(&self.audit());
    }
}
