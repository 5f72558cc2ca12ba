//! The store of observations: bounded in number, in bytes and in time, fair to its owners.

use std::sync::Arc;
use std::time::Duration;

use pcp_core::Clock;
use pcp_core::v2::*;
use pcp_execution::engine::*;

use crate::device::*;

struct Shelf {
    store: ObservationStore<u32>,
    clock: Arc<Hands>,
    time: SteadyTime,
}

impl Shelf {
    fn new() -> Self {
        Self { store: ObservationStore::default(), clock: Device::new().clock, time: SteadyTime::default() }
    }

    /// Keeps an observation of one element; gives its target.
    fn keep(&self, owner: u32, bytes: usize) -> SemanticTargetRef {
        let generation = self.store.next_generation();
        let id = Sha256Hash::of(&generation.to_le_bytes());
        let observed_at_ms = self.time.now_ms(&*self.clock);
        let ready = Actionability {
            visible: true,
            enabled: true,
            unambiguous: true,
            stable: true,
            receives_events: false,
            invokable: true,
            editable: true,
        };
        let observation = SemanticObservation {
            protocol_version: PROTOCOL_VERSION,
            observation_id: id,
            generation,
            provenance: SemanticProvenance {
                backend: ObservationBackend::Application,
                backend_name: "test".into(),
                process_id: 1,
                process_generation: "g".into(),
                window_id: "w".into(),
                document_id: None,
                display_geometry_hash: Sha256Hash::ZERO,
            },
            observed_at_ms,
            expires_at_ms: observed_at_ms + MAX_OBSERVATION_MS,
            truncated: false,
            elements: vec![SemanticElement {
                tag: "e1".into(),
                element_id: SemanticObservation::element_id(&id, "x"),
                parent_id: None,
                fingerprint_hash: Sha256Hash::ZERO,
                role: "button".into(),
                name: None,
                bounds: None,
                actionability: ready,
            }],
        };
        observation.validate().unwrap();
        let target = observation.target("e1").unwrap();
        let until = self.time.deadline(observation.expires_at_ms, &*self.clock);
        let seen = Arc::new(Seen { observation, backend: owner });
        self.store.keep(owner, seen, bytes, until, &*self.clock);
        target
    }

    fn has(&self, target: &SemanticTargetRef) -> bool {
        self.store.find(target, &*self.clock as &dyn Clock).is_some()
    }
}

#[tokio::test(start_paused = true)]
async fn an_observation_is_found_by_each_of_its_hashes_for_thirty_seconds() {
    let shelf = Shelf::new();
    let target = shelf.keep(1, 100);
    let zeros = || "0".repeat(64);
    let others = [
        SemanticTargetRef { observation_id: zeros(), ..target.clone() },
        SemanticTargetRef { provenance_hash: zeros(), ..target.clone() },
        SemanticTargetRef { element_id: zeros(), ..target.clone() },
        SemanticTargetRef { fingerprint_hash: "1".repeat(64), ..target.clone() },
        SemanticTargetRef { generation: target.generation + 1, ..target.clone() },
    ];
    assert!(shelf.has(&target) && !others.iter().any(|other| shelf.has(other)));
    tokio::time::advance(Duration::from_millis(29_999)).await;
    // A clock that is set back revives nothing.
    shelf.clock.set_wall(NOW_MS - 60_000);
    assert!(shelf.has(&target));
    tokio::time::advance(Duration::from_millis(2)).await;
    assert!(!shelf.has(&target));
    shelf.keep(1, 100);
    assert_eq!(shelf.store.len(), 1, "what has expired makes room");
}

#[tokio::test(start_paused = true)]
async fn who_observes_much_loses_its_own_observations_and_nobody_elses() {
    let shelf = Shelf::new();
    let quiet = shelf.keep(1, 100);
    let busy: Vec<SemanticTargetRef> = (0..=MAX_OBSERVATIONS_PER_OWNER).map(|_| shelf.keep(2, 100)).collect();
    assert!(shelf.has(&quiet));
    assert!(!shelf.has(&busy[0]) && shelf.has(&busy[1]), "one too many, and it was its own oldest");
}

#[tokio::test(start_paused = true)]
async fn the_store_is_bounded_in_number_and_in_bytes() {
    let shelf = Shelf::new();
    let owners = u32::try_from(MAX_OBSERVATIONS).unwrap();
    let targets: Vec<SemanticTargetRef> = (0..=owners).map(|owner| shelf.keep(owner, 100)).collect();
    assert_eq!(shelf.store.len(), MAX_OBSERVATIONS);
    assert!(!shelf.has(&targets[0]) && shelf.has(&targets[1]));

    let shelf = Shelf::new();
    let first = shelf.keep(1, MAX_OBSERVATIONS_BYTES - 1);
    let second = shelf.keep(2, 1);
    assert!(shelf.has(&first) && shelf.has(&second), "exactly the limit");
    let third = shelf.keep(3, 1);
    assert!(!shelf.has(&first) && shelf.has(&second) && shelf.has(&third));
    let giant = shelf.keep(4, MAX_OBSERVATIONS_BYTES + 1);
    assert!(!shelf.has(&giant) && shelf.has(&third), "what is larger than the store is not kept");
}
