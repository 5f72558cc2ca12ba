//! An adapter whose health check never comes back keeps nobody waiting: pings over the socket go on, it is given up in time,
//! and the other adapter stays ready.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid};
use pcp_core::server::BoxFuture;
use pcp_core::{
    Adapter, AdapterHealth, AppId, CapabilityResult, DetectionMethod, DetectionResult, ErrorCode, Invocation,
    PcpError,
};
use pcp_daemon::adapters::OtherAdapter;
use pcp_daemon::clock::SystemClock;
use pcp_daemon::{Config, Daemon};
use pcp_ipc::{Client, Json};
use pcp_registry::{HEALTH_DEADLINE, Seat};

/// What a ping may take beside the check, 99 of 100 times.
const LIMIT: Duration = Duration::from_millis(10);
/// Attempts: a machine that does something else spoils one.
const ATTEMPTS: usize = 5;
/// Pings of one attempt.
const PINGS: usize = 1_000;
/// Longest wait for the daemon, or for it to give the adapter up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Checks wait here until the test is over.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        let shut = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(shut, |is_open| !*is_open).unwrap());
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

struct Hung(Arc<Gate>);

fn nothing<T>() -> Result<T, PcpError> {
    Err(PcpError::new(ErrorCode::Unsupported, "this adapter only hangs"))
}

impl Adapter for Hung {
    fn detection_method(&self) -> DetectionMethod {
        DetectionMethod::Atspi2
    }

    fn detect<'a>(&'a self, _app_id: &'a AppId) -> BoxFuture<'a, Result<DetectionResult, PcpError>> {
        Box::pin(async { nothing() })
    }

    fn execute<'a>(&'a self, _: Invocation<'a>) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        Box::pin(async { nothing() })
    }

    fn execute_with_method<'a>(
        &'a self,
        invocation: Invocation<'a>,
        _method: DetectionMethod,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>> {
        self.execute(invocation)
    }

    fn health_check(&self) -> BoxFuture<'_, AdapterHealth> {
        Box::pin(async {
            self.0.wait();
            AdapterHealth::Healthy
        })
    }
}

fn config(folder: &Path) -> Config {
    use std::os::unix::fs::PermissionsExt as _;
    for name in ["sockets", "state", "principals", "apps", "keys", "share"] {
        std::fs::create_dir(folder.join(name)).unwrap();
    }
    std::fs::set_permissions(folder.join("state"), std::fs::Permissions::from_mode(0o700)).unwrap();
    let own = Uid::current().as_raw();
    std::fs::write(
        folder.join("principals/own.toml"),
        format!(
            "uid = {own}\ndomain = \"system\"\ntrust = 3\nmodality = \"console\"\nrate_per_second = 1000000\n"
        ),
    )
    .unwrap();
    let at = |name: &str| folder.join(name).display().to_string();
    let text = format!(
        "[paths]\nsockets = {:?}\nstate = {:?}\nprincipals = {:?}\napps = {:?}\ntrusted_keys = {:?}\n\
         [identity]\nfiles_owner = {own}\n[detection]\ndata_dirs = [{:?}]\n[limits]\nuid_requests_per_second = 1000000\n",
        at("sockets"),
        at("state"),
        at("principals"),
        at("apps"),
        at("keys"),
        at("share"),
    );
    let path = folder.join("pcpd.toml");
    std::fs::write(&path, text).unwrap();
    Config::load(&path).unwrap()
}

fn connect(socket: &Path) -> Client {
    let begun = Instant::now();
    loop {
        match Client::connect(socket, Uid::current().as_raw()) {
            Ok(client) => return client,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The 99th of a hundred of the pings.
fn p99(client: &mut Client) -> Duration {
    let mut times: Vec<Duration> = (0..PINGS)
        .map(|_| {
            let begun = Instant::now();
            client.ping().unwrap();
            begun.elapsed()
        })
        .collect();
    times.sort();
    times[PINGS * 99 / 100]
}

#[test]
fn a_health_check_that_never_comes_back_keeps_no_ping_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path());
    let gate = Arc::new(Gate::default());
    let inside = gate.clone();
    let hung = OtherAdapter {
        name: "hung",
        method: DetectionMethod::Atspi2,
        factory: Arc::new(move || Ok(Seat::parking(Hung(inside.clone())))),
    };
    let begun = Instant::now();
    let daemon = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let run = async { Daemon::assemble_with(config, Arc::new(SystemClock), vec![hung])?.run().await };
        runtime.block_on(run)
    });

    // The check hangs from the start on, and for as long as it may.
    let mut client = connect(&folder.path().join("sockets/pcpd.sock"));
    assert!(begun.elapsed() < HEALTH_DEADLINE, "the start waits for no adapter: {:?}", begun.elapsed());
    let found: Vec<Duration> = (0..ATTEMPTS).map(|_| p99(&mut client)).collect();
    println!("99 of 100 pings beside a check that hangs: {found:?}");
    assert!(found.iter().any(|time| *time < LIMIT), "{found:?}");

    // Its time over, it is given up; the daemon's own adapter never noticed.
    let begun = Instant::now();
    while begun.elapsed() < HEALTH_DEADLINE + Duration::from_secs(1) {
        client.ping().unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    let report = client.query_state("adapters", Json::parse("{}").unwrap()).unwrap();
    let report = format!("{report:?}");
    assert!(report.contains("native") && report.contains("ready") && !report.contains("hung"), "{report}");

    gate.open();
    kill(Pid::this(), Signal::SIGTERM).unwrap();
    daemon.join().unwrap().unwrap();
}
