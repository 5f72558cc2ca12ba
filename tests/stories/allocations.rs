//! In steady state a ping, a permission check and a read through the whole pipeline allocate nothing, on any thread.
//!
//! The daemon runs in this process under a counting allocator; its client and its application are other processes.
//! A control with a clock that allocates shows that the count would be seen.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::cast_possible_truncation, reason = "test values are small")]
#![allow(unsafe_code, reason = "a global allocator that counts is the only way to see every allocation")]

#[allow(dead_code, unused_imports, reason = "the stories use all of it")]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pcp_core::{
    ActionClass, AuthPrincipal, CapabilityId, Clock, Domain, Modality, PermissionEngine, PermissionQuestion,
    PermissionStore, TrustLevel, Verdict,
};
use pcp_daemon::clock::SystemClock;
use support::device::OWN_RATE;
use support::{Device, Plan, uids};

/// Requests that are counted of each kind.
const COUNT: u64 = 10_000;
/// Requests of one round.
const ROUND: u64 = 1_000;
/// Rounds that may meet the change to a new journal file: one in 8 MiB of records, and opening a file takes memory.
const MAX_ROTATIONS: u64 = 3;
/// What the daemon does by itself, beside requests: looking after adapters and through files. An allocation that one of
/// these made is no request's; each one is looked at, so that a request's own is never excused.
const HOUSEKEEPING: [&str; 3] =
    ["pcp_daemon::adapters::keep_watch", "pcp_registry::lifecycle::host", "pcp_daemon::detection::"];
/// Longest wait until the daemon serves.
const PATIENCE: Duration = Duration::from_secs(20);

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Whether each allocation is looked at: which part of the daemon made it.
static LOOKED_AT: AtomicBool = AtomicBool::new(false);
/// Where the first one that counted was.
static CAUGHT: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

struct Counting;

impl Counting {
    fn count() {
        if CATCHING.get() {
            return;
        }
        if !LOOKED_AT.load(Ordering::SeqCst) {
            ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
            return;
        }
        CATCHING.set(true);
        let trace = Backtrace::force_capture().to_string();
        if !HOUSEKEEPING.iter().any(|part| trace.contains(part)) {
            ALLOCATIONS.fetch_add(1, Ordering::SeqCst);
            if let Ok(mut caught) = CAUGHT.lock() {
                caught.get_or_insert(trace);
            }
        }
        CATCHING.set(false);
    }
}

// SAFETY: every call is handed on to the system allocator unchanged; what counting itself allocates comes from it too.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller upholds `alloc`'s contract, which is the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count();
        // SAFETY: the pointer came from the system allocator, by way of this one.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of all threads but the daemon's housekeeping while `work` ran, and where the first one was.
fn allocations_of(work: impl FnOnce()) -> (u64, String) {
    let before = ALLOCATIONS.load(Ordering::SeqCst);
    LOOKED_AT.store(true, Ordering::SeqCst);
    work();
    LOOKED_AT.store(false, Ordering::SeqCst);
    let count = ALLOCATIONS.load(Ordering::SeqCst) - before;
    (count, CAUGHT.lock().unwrap().take().unwrap_or_default())
}

fn none_of(what: &str, (count, first): (u64, String)) {
    assert_eq!(count, 0, "{what} allocated; the first time here:\n{first}");
}

fn journal_files(device: &Device) -> usize {
    std::fs::read_dir(device.audit()).unwrap().count()
}

/// The machine's clock, which allocates once per wall-clock reading: what the count has to see.
struct WastefulClock;

impl Clock for WastefulClock {
    fn monotonic_us(&self) -> u64 {
        SystemClock.monotonic_us()
    }

    fn wall_ms(&self) -> u64 {
        std::hint::black_box(Box::new(SystemClock.wall_ms())).wrapping_add(0)
    }
}

/// A daemon on a thread of this process.
struct Here(JoinHandle<Result<(), pcp_daemon::Error>>);

impl Here {
    fn start(device: &Device, clock: Arc<dyn Clock>) -> Self {
        let config = pcp_daemon::Config::load(&device.path("pcpd.toml")).unwrap();
        let thread = std::thread::spawn(move || pcp_daemon::serve_with(config, clock));
        let begun = Instant::now();
        while pcp_ipc::Client::connect(&device.socket(), uids::own()).is_err() {
            assert!(!thread.is_finished() && begun.elapsed() < PATIENCE, "the daemon does not serve");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(thread)
    }

    fn stop(self) {
        kill(Pid::this(), Signal::SIGTERM).unwrap();
        self.0.join().unwrap().unwrap();
    }
}

/// The load client; talking to it allocates nothing here.
struct Load {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
}

impl Load {
    fn start(device: &Device, what: &str) -> Self {
        let mut command = device.program("load", uids::own(), &[]);
        command.arg(device.socket()).args([&uids::own().to_string(), what, &ROUND.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output }
    }

    fn round(&mut self) {
        self.input.write_all(b"go\n").unwrap();
        let mut answer = [0; 5];
        self.output.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"done\n");
    }

    fn end(self) {
        drop(self.input);
        let mut child = self.child;
        assert!(child.wait().unwrap().success());
    }
}

fn permission_checks() {
    let engine = PermissionEngine::new(PermissionStore::with_defaults());
    let id = CapabilityId::parse("app.org.example.fake.get_value").unwrap();
    let caller = AuthPrincipal {
        uid: 1000,
        pid: Some(1),
        domain: Domain::App,
        trust: TrustLevel::USER,
        admin: false,
        confirmer: false,
        modality: Modality::Remote,
        rate_per_second: None,
    };
    let asked = PermissionQuestion {
        id: &id,
        class: ActionClass::Read,
        service: false,
        confirmation_required: false,
        minimum_trust: TrustLevel::USER,
    };
    let count = allocations_of(|| {
        for _ in 0..COUNT {
            assert!(matches!(std::hint::black_box(engine.check(&caller, &asked)), Verdict::Allowed { .. }));
        }
    });
    none_of("a permission check", count);
}

/// One test, because the count is the whole process's.
#[test]
fn pings_permission_checks_and_reads_allocate_nothing_and_a_clock_that_allocates_is_seen() {
    let plan = Plan {
        own_daemon: true,
        config: "[limits]\nuid_requests_per_second = 10000000\n".to_owned(),
        own_rate: Some(OWN_RATE),
        ..Plan::default()
    };
    let mut device = Device::new(&plan);
    let id = pcp_core::AppId::parse(pcp_fakeapp::APP_ID).unwrap();
    let seat = device.install(&pcp_fakeapp::FakeManifest::standard(id), None);
    let _app = device.start_fake(&seat, &[]);

    let daemon = Here::start(&device, Arc::new(SystemClock));
    for what in ["ping", "app.org.example.fake.get_value"] {
        let mut load = Load::start(&device, what);
        load.round();
        let (mut counted, mut rotations) = (0, 0);
        while counted < COUNT {
            let before = journal_files(&device);
            let count = allocations_of(|| load.round());
            if journal_files(&device) == before {
                none_of(what, count);
                counted += ROUND;
            } else {
                rotations += 1;
                assert!(rotations <= MAX_ROTATIONS, "{rotations} journal files in {counted} requests");
            }
        }
        load.end();
    }
    daemon.stop();

    let control = Here::start(&device, Arc::new(WastefulClock));
    let mut load = Load::start(&device, "app.org.example.fake.get_value");
    load.round();
    let (seen, _) = allocations_of(|| load.round());
    assert!(seen >= ROUND, "the control allocates for each of {ROUND} reads, and {seen} were seen");
    load.end();
    control.stop();
    // Last, when the test runner's own thread has long come to rest.
    permission_checks();
}
