//! The life of an adapter as its events tell it, in virtual time (R-035 to R-039, C29, C30).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "each test uses a part of it")]
#[path = "support/adapters.rs"]
mod adapters;
#[allow(dead_code, reason = "each test uses a part of it")]
mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

use adapters::{StillClock, row, says, scripted, settle};
use pcp_core::{
    AdapterHealth, AdapterState, AppId, DetectionMethod, Domain, Event, InvocationContext, Modality,
    OperationId, Tier, TrustLevel,
};
use pcp_registry::{
    AdapterManager, AdapterStateChanged, Error, HEALTH_INTERVAL, MAX_ADAPTERS, MAX_WAITING, OwnedInvocation,
    RETRY_FIRST, SeatFactory,
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Awaits a reply as the daemon's decision thread does, here by parking.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::park(),
        }
    }
}

fn manager(factory: SeatFactory) -> (Arc<StillClock>, AdapterManager) {
    let clock = Arc::new(StillClock::default());
    let mut manager = AdapterManager::new(clock.clone());
    let changes = manager.add("atspi2", DetectionMethod::Atspi2, factory).unwrap();
    let [born] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((born.generation, born.from, born.to), (1, None, AdapterState::Initializing));
    (clock, manager)
}

/// The steps as `(generation, state, why)`.
fn steps(changes: &[AdapterStateChanged]) -> Vec<(u64, AdapterState, &str)> {
    changes.iter().map(|change| (change.generation, change.to, &*change.reason)).collect()
}

fn invocation(method: Option<DetectionMethod>) -> OwnedInvocation {
    let context = InvocationContext {
        operation_id: OperationId::from_parts(0, [0; 10]),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Remote,
        tier: Tier::Two,
        budget_ms: 1000,
    };
    let capability = Arc::new(support::capability("app.a.read", "a", DetectionMethod::Atspi2));
    OwnedInvocation { capability, context, parameters: r#"{"n":1}"#.to_owned(), method }
}

#[test]
fn health_checks_promote_demote_and_fail_and_a_failed_one_comes_back_as_the_next_generation() {
    use AdapterHealth::{Degraded, Failed, Healthy};
    let script = [Degraded, Healthy, Degraded, Healthy, Failed, Healthy].map(says);
    let (clock, mut manager) = manager(scripted(script));
    let why = "its health check says so";
    let table: [&[(u64, AdapterState, &str)]; 5] = [
        // Degraded before it was ever ready: the table has no such step.
        &[],
        &[(1, AdapterState::Ready, "")],
        &[(1, AdapterState::Degraded, why)],
        &[(1, AdapterState::Ready, "")],
        &[(1, AdapterState::Failed, why)],
    ];
    for (n, want) in table.into_iter().enumerate() {
        assert_eq!(steps(&settle(&mut manager, "atspi2")), want, "check {n}");
        assert_eq!(manager.tick(), [], "nothing is due");
        clock.advance(HEALTH_INTERVAL);
    }
    assert_eq!(
        manager.host("atspi2").unwrap_err().to_string(),
        "the adapter atspi2 is failed; it is tried again by itself"
    );
    assert_eq!(manager.tick(), []);
    clock.advance(RETRY_FIRST);
    let back = settle(&mut manager, "atspi2");
    assert_eq!(
        steps(&back),
        [
            (1, AdapterState::Shutdown, "replaced by a new instance"),
            (2, AdapterState::Initializing, ""),
            (2, AdapterState::Ready, ""),
        ]
    );
    assert!(matches!(
        Event::from(back[1].clone()),
        Event::AdapterStateChanged { from: None, generation: 2, .. }
    ));
}

#[test]
fn a_world_that_is_absent_is_looked_for_less_and_less_often() {
    let present = Arc::new(Mutex::new(false));
    let seen = present.clone();
    let healthy = scripted([]);
    let factory: SeatFactory =
        Arc::new(
            move || {
                if *seen.lock().unwrap() { healthy() } else { Err("there is no session bus".to_owned()) }
            },
        );
    let (clock, mut manager) = manager(factory);
    for (generation, wait) in [30, 60, 120, 240, 480, 600, 600].into_iter().enumerate() {
        let generation = generation as u64 + 1;
        let failed = settle(&mut manager, "atspi2");
        let last = steps(&failed).pop().unwrap();
        assert_eq!(last, (generation, AdapterState::Failed, "there is no session bus"));
        let almost = std::time::Duration::from_secs(wait) - std::time::Duration::from_micros(1);
        clock.advance(almost);
        assert_eq!(manager.tick(), [], "{wait} s are not over");
        clock.advance(std::time::Duration::from_micros(1));
        if generation == 7 {
            *present.lock().unwrap() = true;
        }
    }
    settle(&mut manager, "atspi2");
    let back = row(&manager, "atspi2");
    assert_eq!((back.state, back.generation, back.retry_at_us), (AdapterState::Ready, 8, None));
}

/// Where panics unwind, as here; the release build aborts, and init starts the daemon again.
#[test]
fn a_panic_ends_the_host_and_not_the_daemon() {
    let (clock, mut manager) =
        manager(scripted([Box::new(|| -> AdapterHealth { panic!("a bug") }) as Box<_>]));
    let failed = settle(&mut manager, "atspi2");
    assert_eq!(steps(&failed), [(1, AdapterState::Failed, "its thread panicked")]);
    clock.advance(RETRY_FIRST);
    let back = settle(&mut manager, "atspi2");
    assert_eq!(steps(&back).pop().unwrap(), (2, AdapterState::Ready, ""));
}

#[test]
fn an_adapter_is_asked_on_its_own_thread_and_its_answer_awaited() {
    let (_, mut manager) = manager(scripted([]));
    settle(&mut manager, "atspi2");
    let host = manager.host("atspi2").unwrap();
    let done = wait(host.execute(invocation(None)).unwrap()).unwrap().unwrap();
    assert_eq!(done.data_json.as_deref(), Some(r#"{"n":1}"#));
    let refused = wait(host.execute(invocation(Some(DetectionMethod::Wine))).unwrap()).unwrap().unwrap_err();
    assert_eq!(refused.message, "not by wine");
    let found = wait(host.detect(AppId::parse("org.x").unwrap()).unwrap()).unwrap().unwrap();
    assert_eq!(found.app_id.as_str(), "org.x");
    assert!(matches!(manager.host("wine").unwrap_err(), Error::Unknown { .. }));
}

/// A check that waits for the test, and tells it when it has begun.
fn held() -> (Box<dyn FnOnce() -> AdapterHealth + Send>, Receiver<()>, impl FnOnce()) {
    let (begun, has_begun) = channel();
    let (release, released) = channel::<()>();
    let step = move || {
        begun.send(()).unwrap();
        let _ = released.recv();
        AdapterHealth::Healthy
    };
    (Box::new(step), has_begun, move || drop(release))
}

#[test]
fn what_waits_for_a_busy_adapter_is_limited_and_can_be_taken_back() {
    let (step, has_begun, release) = held();
    let (clock, mut manager) = manager(scripted([says(AdapterHealth::Healthy), step]));
    settle(&mut manager, "atspi2");
    clock.advance(HEALTH_INTERVAL);
    manager.tick();
    has_begun.recv().unwrap();

    let host = manager.host("atspi2").unwrap();
    let mut waiting: Vec<_> = (0..MAX_WAITING).map(|_| host.execute(invocation(None)).unwrap()).collect();
    assert_eq!(
        host.execute(invocation(None)).unwrap_err().to_string(),
        "the adapter atspi2 has 32 messages waiting, its limit; ask again later"
    );
    assert!(waiting.pop().unwrap().cancel(), "it was not begun, so it had no effect");
    release();
    for reply in waiting {
        assert!(wait(reply).unwrap().is_ok());
    }
}

#[test]
fn what_waits_for_an_adapter_that_is_let_go_is_never_begun() {
    let (step, has_begun, release) = held();
    let (_, mut manager) = manager(scripted([says(AdapterHealth::Healthy), step]));
    settle(&mut manager, "atspi2");
    let host = manager.host("atspi2").unwrap();
    let check = host.health_check().unwrap();
    has_begun.recv().unwrap();
    let waiting = host.execute(invocation(None)).unwrap();

    let stopped = manager.shutdown();
    release();

    assert_eq!(steps(&stopped), [(1, AdapterState::Shutdown, "the daemon stops")]);
    assert_eq!(wait(check), Ok(AdapterHealth::Healthy));
    assert!(!wait(waiting).unwrap_err().was_begun);
    assert_eq!((manager.tick(), manager.shutdown()), (vec![], vec![]));
}

#[test]
fn adapters_stand_in_the_order_of_their_methods_and_their_number_is_limited() {
    let (_, mut manager) = manager(scripted([]));
    for (name, method) in [
        ("simulator", DetectionMethod::Simulated),
        ("wine", DetectionMethod::Wine),
        ("native", DetectionMethod::Desktop),
    ] {
        manager.add(name, method, scripted([])).unwrap();
    }
    let names: Vec<_> = manager.rows().iter().map(|row| row.name).collect();
    assert_eq!(names, ["native", "atspi2", "wine", "simulator"]);
    let again = manager.add("wine", DetectionMethod::Wine, scripted([])).unwrap_err();
    assert_eq!(again.to_string(), "the adapter wine is there already");
    for name in ["a", "b", "c", "d"] {
        manager.add(name, DetectionMethod::Wine, scripted([])).unwrap();
    }
    assert_eq!(manager.rows().len(), MAX_ADAPTERS);
    let more = manager.add("e", DetectionMethod::Wine, scripted([])).unwrap_err();
    assert_eq!(more.to_string(), "there are 8 adapters, the limit; e was not added");
    assert_eq!(manager.shutdown().len(), MAX_ADAPTERS);
}
