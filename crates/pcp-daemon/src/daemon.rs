//! The daemon, from configuration to exit: the order of S0, step by step.

use std::cell::{Cell, RefCell};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use nix::unistd::Group;
use pcp_core::{AppId, Clock, PcpError, PermissionEngine, PermissionStore};
use pcp_durable::{AuditLog, Limits};
use pcp_execution::{ExecutionPipeline, Ports};
use pcp_ipc::EventTexts;
use pcp_push::PushEventBus;
use pcp_registry::InMemoryRegistry;
use pcp_stream::{Connection, PeerIdentity, SocketAccess, StreamServer};
use pcp_trust::PrincipalTable;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tracing::{info, warn};

use crate::adapters::{self, Adapters, OtherAdapter};
use crate::config::Config;
use crate::detection::{self, Detection, LastReport, Passed};
use crate::dispatch::SocketDispatcher;
use crate::engine::{self, Door};
use crate::error::Error;
use crate::ipc::{Admission, serve};

/// What open connections get to finish what they began, once the daemon is told to end.
const GRACE: Duration = Duration::from_millis(1_500);
/// Between two looks whether old segments of the trails may go: filling one takes longer.
const RETAIN_INTERVAL: Duration = Duration::from_mins(10);
/// Pause after a failed accept: out of file descriptors is no reason to spin (T-12).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every session shares. It lives on the decision thread, so that nothing here needs a lock.
pub struct Core {
    /// The configuration.
    pub config: Config,
    /// Who may ask, and which applications there are.
    pub table: Arc<PrincipalTable>,
    /// What can be done.
    pub registry: Arc<InMemoryRegistry>,
    /// Who hears of what happens.
    pub bus: PushEventBus,
    /// The texts of the last events, written once for all who hear of them.
    pub event_texts: RefCell<EventTexts>,
    /// Connections so far.
    pub connections: Cell<u64>,
    /// How the adapters are.
    pub adapters: RefCell<Adapters>,
    /// What detection found last.
    pub detected: Rc<LastReport>,
    /// Where a look at an application is asked for.
    pub detect: mpsc::Sender<detection::Request>,
    /// The trails.
    pub audit: Arc<AuditLog>,
    /// What is allowed; the pipeline decides by the same engine.
    pub permissions: Arc<PermissionEngine>,
    /// The one way to an effect.
    pub pipeline: ExecutionPipeline<SocketDispatcher>,
    /// The door of signed actions, or why there is none.
    pub(crate) actions: Result<Door, PcpError>,
    /// Who is connected how often.
    pub admission: RefCell<Admission>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Whether the kernel pins peers.
    pub peers_are_pinned: bool,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Core {
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.monotonic_us()
    }

    /// A number that no other connection has.
    pub(crate) fn next_connection(&self) -> u64 {
        self.connections.set(self.connections.get() + 1);
        self.connections.get()
    }

    /// Whether the application's socket is there. Who listens is asked when something is sent.
    pub(crate) fn is_running(&self, app: &AppId) -> bool {
        self.config.paths.sockets.join(format!("{app}.sock")).symlink_metadata().is_ok()
    }
}

/// An assembled daemon: bound, and not yet serving.
#[derive(Debug)]
pub struct Daemon {
    core: Rc<Core>,
    server: StreamServer,
    detection: Detection,
    first: Passed,
    requests: mpsc::Receiver<detection::Request>,
}

impl Daemon {
    /// Assembles everything and binds the socket last, so that whoever can connect is served. The clock is a
    /// seam: the shipped daemon hands in the machine's.
    ///
    /// # Errors
    /// [`Error`] names the part.
    pub fn assemble(config: Config, clock: Arc<dyn Clock>) -> Result<Self, Error> {
        Self::assemble_with(config, clock, Vec::new())
    }

    /// [`Self::assemble`], with adapters beside the daemon's own.
    ///
    /// # Errors
    /// As [`Self::assemble`]; an adapter that does not start is no error.
    pub fn assemble_with(
        config: Config,
        clock: Arc<dyn Clock>,
        others: Vec<OtherAdapter>,
    ) -> Result<Self, Error> {
        let (principals, apps) = (&config.paths.principals, &config.paths.apps);
        let table = Arc::new(PrincipalTable::load(principals, apps, config.identity.files_owner));
        for problem in table.problems() {
            warn!(%problem, "a principal file does not count");
        }
        let audit = open_audit(&config, &*clock)?;
        info!("1 registry");
        let registry = Arc::new(InMemoryRegistry::new());
        info!("2 adapter manager");
        let mut adapters = Adapters::new(clock.clone());
        info!("3 push bus");
        let bus = PushEventBus::new();
        info!("4 native");
        adapters.start(&config, others, &bus);
        info!("7 detection pipeline");
        let mut detection = Detection::new(&config, table.clone(), registry.clone(), bus.clone());
        let first = detection.pass();
        detection::log_first(&first);
        let detected = Rc::new(LastReport::default());
        detected.set(first.report.clone());
        let (detect, requests) = mpsc::channel(detection::MAX_WAITING_REQUESTS);
        info!("9 ipc handler and dispatcher");
        let dispatcher = SocketDispatcher::new(&table, &config.paths.sockets);
        let permissions = Arc::new(PermissionEngine::new(PermissionStore::with_defaults()));
        let ports = Ports {
            registry: registry.clone(),
            permissions: permissions.clone(),
            audit: audit.clone(),
            claims: audit.ledger().clone(),
            clock: clock.clone(),
        };
        let pipeline = ExecutionPipeline::new(ports, dispatcher, (&config.pipeline).into());
        let actions = engine::open(&config, &table, &audit, &*clock);
        let admission = RefCell::new(Admission::of_this_process(config.limits.clone()));
        let access = socket_access(&config)?;
        let server = StreamServer::bind(&config.paths.socket(), access)?;
        info!(socket = %server.path().display(), "10 bound");
        let peers_are_pinned = peers_are_pinned();
        let adapters = RefCell::new(adapters);
        let core = Core {
            config,
            table,
            registry,
            bus,
            event_texts: RefCell::default(),
            connections: Cell::new(0),
            adapters,
            detected,
            detect,
            audit,
            permissions,
            pipeline,
            actions,
            admission,
            clock,
            peers_are_pinned,
        };
        Ok(Self { core: Rc::new(core), server, detection, first, requests })
    }

    /// Serves until SIGTERM, SIGINT or SIGHUP, then lets open connections finish and flushes the trails.
    ///
    /// # Errors
    /// [`Error`] when signals cannot be taken or the trails cannot be flushed.
    pub async fn run(self) -> Result<(), Error> {
        let Self { core, server, detection, first, requests } = self;
        let system = |what| move |error| Error::System { what, error };
        let mut terminate = signal(SignalKind::terminate()).map_err(system("take SIGTERM"))?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(system("take SIGINT"))?;
        // A terminal that goes away, or a habit of other daemons: this one reads its files at start only.
        let mut hangup = signal(SignalKind::hangup()).map_err(system("take SIGHUP"))?;
        let sessions = LocalSet::new();
        let interval = Duration::from_millis(core.config.detection.scan_interval_ms);
        sessions.spawn_local(detection::keep_up(detection, first, core.detected.clone(), requests, interval));
        sessions.spawn_local(adapters::keep_watch(core.clone()));
        sessions.spawn_local(retain(core.clone()));
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        crate::memory::give_back();
        info!("11 serving");
        let reason = sessions
            .run_until(async {
                loop {
                    tokio::select! {
                        _ = terminate.recv() => break "SIGTERM",
                        _ = interrupt.recv() => break "SIGINT",
                        _ = hangup.recv() => break "SIGHUP",
                        accepted = server.accept() => accept(&core, accepted).await,
                    }
                }
            })
            .await;
        info!(reason, "ending");
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        drop(server);
        let _ = tokio::time::timeout(GRACE, idle(&sessions, &core)).await;
        drop(sessions);
        core.adapters.borrow_mut().shutdown();
        core.audit
            .flush()
            .map_err(|error| Error::Audit { path: core.config.paths.audit(), why: error.to_string() })?;
        info!("ended");
        Ok(())
    }
}

async fn accept(core: &Rc<Core>, accepted: Result<Connection, pcp_stream::ProtocolError>) {
    match accepted {
        Ok(connection) => {
            tokio::task::spawn_local(serve(core.clone(), connection));
        }
        Err(error) => {
            warn!(%error, "a connection was not accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Lets old segments of the trails go, if the configuration says how many are kept.
async fn retain(core: Rc<Core>) {
    if core.config.audit.kept_segments == 0 {
        return;
    }
    loop {
        match core.audit.retain(core.clock.wall_ms()) {
            Ok(0) => {}
            Ok(count) => info!(count, "old segments of the trails were deleted"),
            Err(error) => warn!(%error, "old segments of the trails are kept"),
        }
        tokio::time::sleep(RETAIN_INTERVAL).await;
    }
}

/// Waits until no operation is under way; connections that only wait for requests hold nothing up.
async fn idle(sessions: &LocalSet, core: &Rc<Core>) {
    let pause = Duration::from_millis(10);
    sessions
        .run_until(async {
            while core.pipeline.under_way() > 0 {
                tokio::time::sleep(pause).await;
            }
        })
        .await;
}

fn open_audit(config: &Config, clock: &dyn Clock) -> Result<Arc<AuditLog>, Error> {
    let path = config.paths.audit();
    let fault = |why: String| Error::Audit { path: path.clone(), why };
    let kept_segments = config.audit.kept_segments;
    let limits = Limits { retention: config.audit.retention(), kept_segments, ..Limits::default() };
    let opened = AuditLog::open_sealed(&path, &config.paths.seal(), limits, clock.wall_ms());
    let (log, recovery) = opened.map_err(|error| fault(error.to_string()))?;
    for cut in &recovery.cuts {
        warn!(?cut, "a torn record at the end of a trail was cut off");
    }
    if !recovery.unknown.is_empty() {
        warn!(
            operations = recovery.unknown.len(),
            "operations were under way at the last end: their outcome is unknown"
        );
    }
    info!(records = recovery.records, "0 audit trails");
    Ok(Arc::new(log))
}

fn socket_access(config: &Config) -> Result<SocketAccess, Error> {
    let Some(name) = &config.identity.clients_group else { return Ok(SocketAccess::Owner) };
    if let Ok(gid) = name.parse() {
        return Ok(SocketAccess::Group(gid));
    }
    match Group::from_name(name) {
        Ok(Some(group)) => Ok(SocketAccess::Group(group.gid.as_raw())),
        Ok(None) => Err(Error::NoGroup(name.clone())),
        Err(errno) => Err(Error::System { what: "look up identity.clients_group", error: errno.into() }),
    }
}

fn peers_are_pinned() -> bool {
    UnixStream::pair().is_ok_and(|(one, _other)| PeerIdentity::of(&one).is_ok_and(|peer| peer.is_pinned()))
}
