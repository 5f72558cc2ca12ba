//! The engine over the audit log, on a disk that is cut, flipped, filled and switched off (R-181..R-183, R-201).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use pcp_core::v2::*;
use pcp_core::{AuthPrincipal, Clock, Domain, Modality, OperationId, TrustLevel};
use pcp_durable::disk::{Fault, FaultyDisk};
use pcp_durable::{AuditLog, Error, Limits, MAX_RECENT_ENDS, Operations, RETENTION};
use pcp_execution::engine::*;
use pcp_execution::{AuthorityKey, Ed25519AuthorityVerifier};

use crate::device::*;

/// The file of the log.
const SEGMENT: &str = "application.000001.jsonl";

struct Host {
    device: Device,
    engine: Engine<Arc<Scripted>, Ed25519AuthorityVerifier, DurableStore>,
}

fn caller() -> AuthPrincipal {
    AuthPrincipal {
        uid: 1_000,
        pid: None,
        domain: Domain::App,
        trust: TrustLevel::USER,
        admin: false,
        confirmer: false,
        modality: Modality::Current,
        rate_per_second: None,
    }
}

fn open(disk: &FaultyDisk) -> Result<Host, Error> {
    open_with(disk, Limits::default())
}

/// A host over what is on the disk; its executor is a new one.
fn open_with(disk: &FaultyDisk, limits: Limits) -> Result<Host, Error> {
    let device = Device::new();
    let clock: Arc<dyn Clock> = device.clock.clone();
    let (log, _) = AuditLog::open_on(Arc::new(disk.clone()), limits, clock.wall_ms())?;
    let operations = Arc::new(Operations::new(Arc::new(log), Arc::new(disk.clone()), RETENTION));
    let store = DurableStore::new(operations, Arc::clone(&clock), ActionFacts::of(caller()));
    let key = AuthorityKey {
        issuer: "issuer".into(),
        key_id: "k1".into(),
        policy_generation: "gen1".into(),
        public_key: signer().verifier().to_bytes(),
    };
    let verifier = Ed25519AuthorityVerifier::new([key]).unwrap();
    let engine = Engine::new(Arc::clone(&device.hands), verifier, store, clock, SteadyTime::default());
    Ok(Host { device, engine })
}

impl Host {
    async fn execute(&self, request: ActionRequest) -> Result<ExecuteReport, ProtocolError> {
        self.engine.execute(request, &CancellationToken::new()).await
    }

    async fn end(&self, request: ActionRequest) -> Terminal {
        self.execute(request).await.unwrap().terminal().unwrap().clone()
    }

    fn effects(&self) -> u32 {
        self.device.hands.effects.load(Ordering::Relaxed)
    }
}

fn is_unknown(terminal: &Terminal) -> bool {
    matches!(terminal, Terminal::OutcomeUnknown { .. })
}

/// A disk with one finished operation, and how long its claim is.
async fn finished() -> (Vec<u8>, usize) {
    let disk = FaultyDisk::new();
    let host = open(&disk).unwrap();
    assert!(matches!(host.end(set_value()).await, Terminal::Succeeded { .. }));
    drop(host);
    let content = disk.content(SEGMENT).unwrap();
    let claim = content.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    (content, claim)
}

fn with_segment(content: &[u8]) -> FaultyDisk {
    let disk = FaultyDisk::new();
    disk.put(SEGMENT, content);
    disk
}

#[tokio::test]
async fn a_log_cut_in_its_claim_is_free_and_one_cut_in_its_end_is_unknown() {
    let (content, claim) = finished().await;
    // Every place of both lines would take a minute; a stride that meets every member does not.
    for cut in (0..content.len()).filter(|cut| cut % 7 == 0 || cut.abs_diff(claim) < 3) {
        let host = open(&with_segment(&content[..cut])).unwrap();
        let first = host.end(set_value()).await;
        if cut < claim {
            assert!(matches!(first, Terminal::Succeeded { .. }), "{cut}");
            assert_eq!(host.effects(), 1, "{cut}");
        } else {
            assert!(is_unknown(&first), "{cut}");
            assert_eq!(host.effects(), 0, "{cut}");
            let ack = host.engine.status("op-1").await.unwrap().unwrap();
            assert_eq!(ack.state, AckState::Terminal { terminal: Box::new(first) }, "{cut}");
        }
    }
}

#[tokio::test]
async fn a_flipped_byte_is_an_error_that_names_its_place_and_never_a_success_or_a_dispatch() {
    let (content, _) = finished().await;
    let last = content.len() - 1;
    for at in (0..content.len()).filter(|at| at % 5 == 0 || *at == last) {
        let mut flipped = content.clone();
        flipped[at] ^= 0x10;
        match open(&with_segment(&flipped)) {
            Err(error) => {
                assert!(error.is_damage(), "{at}: {error}");
                assert!(
                    error.to_string().contains(SEGMENT) && error.to_string().contains("byte"),
                    "{at}: {error}"
                );
            }
            // The line end of the last line: what is left is a torn line.
            Ok(host) => {
                assert_eq!(at, last);
                assert!(is_unknown(&host.end(set_value()).await));
                assert_eq!(host.effects(), 0);
            }
        }
    }
}

#[tokio::test]
async fn whatever_call_fails_an_effect_never_comes_twice_and_an_end_that_was_told_stays() {
    let whole = FaultyDisk::new();
    let host = open(&whole).unwrap();
    let begun = whole.calls();
    host.end(set_value()).await;
    drop(host);
    let calls = whole.calls() - begun;
    for fault in [Fault::Io, Fault::NoSpace, Fault::PowerCut, Fault::Short] {
        for call in 1..=calls {
            let disk = FaultyDisk::new();
            let host = open(&disk).unwrap();
            disk.fail(call, fault);
            let first = host.execute(set_value()).await;
            let effects = host.effects();
            drop(host);
            for seed in 0..4 {
                let after = if seed == 0 { disk.after_kill() } else { disk.after_power_loss(seed) };
                let again = open(&after).unwrap();
                let second = again.end(set_value()).await;
                let what = format!("{fault:?} at {call}, {seed}: {first:?} then {second:?}");
                assert!(effects + again.effects() <= 1, "{what}");
                match &first {
                    Ok(report) if matches!(report.terminal(), Some(Terminal::Succeeded { .. })) => {
                        assert_eq!(report.terminal(), Some(&second), "{what}");
                    }
                    Ok(report) => assert!(is_unknown(report.terminal().unwrap()), "{what}"),
                    Err(_) => assert_eq!(effects, 0, "{what}"),
                }
            }
        }
    }
}

#[tokio::test]
async fn a_disk_that_is_full_refuses_the_claim_and_frees_its_id_when_space_is_back() {
    let disk = FaultyDisk::new();
    let host = open(&disk).unwrap();
    disk.set_capacity(Some(disk.used()));
    let mut ended = 0;
    let refused = loop {
        let id = format!("op-{ended}");
        match host.execute(request(0, |request| request.operation_id = id.clone())).await {
            Ok(report) => assert!(matches!(report.terminal(), Some(Terminal::Succeeded { .. }))),
            Err(error) => break (id, error),
        }
        ended += 1;
        // One look after the effect is not the next one's look before it.
        host.device.hands.script.lock().unwrap().observations = Script::working().observations;
        assert!(ended < 1_000);
    };
    assert!(matches!(refused.1, ProtocolError::Store(_)), "{}", refused.1);
    assert!(refused.1.to_string().contains("nothing was done"), "{}", refused.1);
    assert_eq!(host.effects(), ended, "no effect without a claim");

    disk.set_capacity(None);
    let mut tries = 0;
    while host.execute(request(0, |request| request.operation_id = refused.0.clone())).await.is_err() {
        tries += 1;
        assert!(tries < 100, "the id is usable once there is space");
    }
    assert_eq!(host.effects(), ended + 1);
}

/// Operations that do not fit in memory, and segments that are closed often.
const MANY: usize = MAX_RECENT_ENDS + 40;

#[tokio::test]
async fn an_end_is_told_again_from_memory_from_a_closed_segment_and_after_a_restart() {
    let disk = FaultyDisk::new();
    let limits = Limits { segment_bytes: 32 * 1024, ..Limits::default() };
    let host = open_with(&disk, limits).unwrap();
    let asked = |n: usize| request(0, |request| request.operation_id = format!("op-{n}"));
    let mut ends = Vec::new();
    for n in 0..MANY {
        host.device.hands.script.lock().unwrap().observations = Script::working().observations;
        ends.push(host.end(asked(n)).await);
    }
    assert!(disk.content("application.000003.jsonl").is_some(), "segments were closed");
    for round in 0..2 {
        let host = if round == 0 { &host } else { &open_with(&disk.after_kill(), limits).unwrap() };
        let before = host.effects();
        for (n, end) in ends.iter().enumerate() {
            let again = host.execute(asked(n)).await.unwrap();
            assert!(again.acknowledgements[0].replayed, "{n}");
            assert_eq!(again.terminal(), Some(end), "{n}");
            let other = request(0, |request| {
                request.operation_id = format!("op-{n}");
                request.deadline_at_ms += 1;
            });
            assert!(matches!(host.execute(other).await, Err(ProtocolError::Conflict)), "{n}");
        }
        assert_eq!(host.effects(), before);
    }
}

#[tokio::test]
async fn an_id_that_carries_a_time_is_expired_past_the_horizon_and_refused_ahead_of_it() {
    let disk = FaultyDisk::new();
    let host = open(&disk).unwrap();
    let now = u64::try_from(NOW_MS).unwrap();
    let day = u64::try_from(RETENTION.as_millis()).unwrap();
    let dated = |ms: u64| OperationId::from_parts(ms, [7; 10]).to_string();
    let asked = |ms: u64| request(0, |request| request.operation_id = dated(ms));
    assert_eq!(host.end(asked(now - day - 60_000)).await, Terminal::ExpiredBeforeEffect);
    assert!(matches!(host.execute(asked(now + 360_000)).await, Err(ProtocolError::Store(_))));
    assert_eq!(host.effects(), 0);
    assert_eq!(host.engine.status(&dated(now - day - 60_000)).await.unwrap(), None);
    assert!(matches!(host.end(asked(now - day + 60_000)).await, Terminal::Succeeded { .. }));
}

#[tokio::test]
async fn an_execution_that_is_dropped_is_unknown_at_once_and_after_a_restart() {
    let disk = FaultyDisk::new();
    let host = open(&disk).unwrap();
    host.device.hands.script.lock().unwrap().act = Act::Hang;
    let asked = tokio::time::timeout(Duration::from_millis(100), host.execute(set_value())).await;
    assert!(asked.is_err(), "it hangs");

    let status = host.engine.status("op-1").await.unwrap().unwrap();
    let AckState::Terminal { terminal } = &status.state else { panic!("{status:?}") };
    assert!(is_unknown(terminal));
    assert_eq!(host.end(set_value()).await, **terminal);
    drop(host);

    let again = open(&disk.after_kill()).unwrap();
    assert_eq!(again.end(set_value()).await, **terminal);
    assert_eq!(again.effects(), 0);
}

#[tokio::test]
async fn another_caller_hears_nothing_of_an_operation() {
    let disk = FaultyDisk::new();
    let host = open(&disk).unwrap();
    host.end(set_value()).await;
    drop(host);
    let device = Device::new();
    let clock: Arc<dyn Clock> = device.clock.clone();
    let (log, _) = AuditLog::open_on(Arc::new(disk.clone()), Limits::default(), clock.wall_ms()).unwrap();
    let operations = Arc::new(Operations::new(Arc::new(log), Arc::new(disk), RETENTION));
    let other = ActionFacts::of(AuthPrincipal { uid: 1_001, ..caller() });
    let store = DurableStore::new(operations, clock, other);
    let hash = set_value().action_hash();
    assert_eq!(store.look_up("op-1", hash).await.unwrap(), Known::Conflict);
}
