//! Observations of protocol v2: bounds, targets by tag, what an element admits (R-187, R-188).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use pcp_core::v2::Wire as _;
use pcp_core::v2::{
    ActionName, Actionability, Bounds, InvalidObservation, MAX_ELEMENTS, MAX_OBSERVATION_BYTES,
    MAX_OBSERVATION_MS, NotActionable, ObservationBackend, SemanticElement, SemanticObservation,
    SemanticProvenance, Sha256Hash, read,
};

fn element(number: usize) -> SemanticElement {
    SemanticElement {
        tag: format!("e{number}"),
        element_id: Sha256Hash::of(&number.to_be_bytes()),
        parent_id: None,
        fingerprint_hash: Sha256Hash::of(b"fingerprint"),
        role: "push button".into(),
        name: Some("Save".into()),
        bounds: Some(Bounds { x: -1, y: 0, width: 1, height: 1 }),
        actionability: Actionability {
            visible: true,
            enabled: true,
            unambiguous: true,
            stable: true,
            receives_events: true,
            invokable: true,
            editable: true,
        },
    }
}

fn observation() -> SemanticObservation {
    SemanticObservation {
        protocol_version: 2,
        observation_id: Sha256Hash::from_bytes([0x11; 32]),
        generation: 1,
        provenance: SemanticProvenance {
            backend: ObservationBackend::Accessibility,
            backend_name: "atspi2".into(),
            process_id: 7,
            process_generation: "g".into(),
            window_id: "w".into(),
            document_id: None,
            display_geometry_hash: Sha256Hash::from_bytes([0x22; 32]),
        },
        observed_at_ms: 1_000,
        expires_at_ms: 31_000,
        truncated: false,
        elements: vec![element(0), element(1)],
    }
}

#[test]
fn a_tag_gives_a_target_that_is_bound_to_everything_observed() {
    let original = observation();
    let target = original.target("e1").unwrap();
    assert_eq!(original.target("e2"), Err(NotActionable::Missing));
    assert_eq!((target.generation, target.observation_id.as_str()), (1, "11".repeat(32).as_str()));

    let changes: [fn(&mut SemanticObservation); 11] = [
        |o| o.observation_id = Sha256Hash::ZERO,
        |o| o.generation = 2,
        |o| o.observed_at_ms += 1,
        |o| o.expires_at_ms -= 1,
        |o| o.provenance.backend_name = "other".into(),
        |o| o.provenance.process_id = 8,
        |o| o.provenance.process_generation = "h".into(),
        |o| o.provenance.window_id = "v".into(),
        |o| o.provenance.display_geometry_hash = Sha256Hash::ZERO,
        |o| o.elements[1].element_id = Sha256Hash::ZERO,
        |o| o.elements[1].fingerprint_hash = Sha256Hash::ZERO,
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let mut changed = observation();
        change(&mut changed);
        assert_ne!(changed.target("e1").unwrap(), target, "change {at}");
    }
}

#[test]
fn the_provenance_hash_and_the_element_id_are_these() {
    // SHA-256, by another program, of
    // [2,"1111…",1,{"backend":"accessibility","backend_name":"atspi2","display_geometry_hash":"2222…",
    //  "document_id":null,"process_generation":"g","process_id":7,"window_id":"w"},1000,31000]
    // and of the 64 digits of the observation's id, a zero byte, and ":1.5/org/a11y/7".
    let observation = observation();
    assert_eq!(
        observation.provenance_hash().to_string(),
        "f679183acdc8ef306e56caec0c781bbe639910d1e52b8dbf92e9fae7b39a14d8"
    );
    assert_eq!(
        SemanticObservation::element_id(&observation.observation_id, ":1.5/org/a11y/7").to_string(),
        "f3d6e7857b50559ddaf789cc23de8d6d00a2da06df76b9485b94cfab09cf43df"
    );
}

#[test]
fn an_observation_keeps_its_bounds() {
    let bound = |field| Err(InvalidObservation::Bound { field });
    let of_element = |field| Err(InvalidObservation::Element { at: 1, field });
    type Change = fn(&mut SemanticObservation);
    let table: Vec<(Change, Result<(), InvalidObservation>)> = vec![
        (|_| {}, Ok(())),
        (|o| o.protocol_version = 1, bound("protocol_version")),
        (|o| o.generation = 0, bound("generation")),
        (|o| o.expires_at_ms = 1_000 + MAX_OBSERVATION_MS + 1, bound("expires_at_ms")),
        (|o| o.expires_at_ms = 999, bound("expires_at_ms")),
        (|o| (o.observed_at_ms, o.expires_at_ms) = (i64::MIN, i64::MAX), bound("expires_at_ms")),
        (|o| o.provenance.process_id = 0, bound("provenance.process_id")),
        (|o| o.provenance.backend_name.clear(), bound("provenance.backend_name")),
        (|o| o.provenance.backend_name = "b".repeat(129), bound("provenance.backend_name")),
        (|o| o.provenance.process_generation = "g".repeat(257), bound("provenance.process_generation")),
        (|o| o.provenance.window_id = "w".repeat(513), bound("provenance.window_id")),
        (|o| o.provenance.document_id = Some("d".into()), bound("provenance.document_id")),
        (
            |o| {
                o.provenance.backend = ObservationBackend::Dom;
                o.provenance.document_id = Some("d".repeat(512));
            },
            Ok(()),
        ),
        (|o| o.elements[1].tag = "e9999".into(), Ok(())),
        (|o| o.elements[1].tag = "e10000".into(), of_element("tag")),
        (|o| o.elements[1].tag = "e".into(), of_element("tag")),
        (|o| o.elements[1].tag = "x1".into(), of_element("tag")),
        (|o| o.elements[1].tag = "e0".into(), of_element("tag")),
        (|o| o.elements[1].element_id = o.elements[0].element_id, of_element("element_id")),
        (|o| o.elements[1].role.clear(), of_element("role")),
        (|o| o.elements[1].role = "r".repeat(129), of_element("role")),
        (|o| o.elements[1].name = None, Ok(())),
        (|o| o.elements[1].name = Some("n".repeat(1_024)), Ok(())),
        (|o| o.elements[1].name = Some("n".repeat(1_025)), of_element("name")),
        (|o| o.elements[1].name = Some(String::new()), of_element("name")),
        (|o| o.elements[1].name = Some(" \u{2003}".into()), of_element("name")),
        (|o| o.elements[1].name = Some("a\nb".into()), of_element("name")),
        (|o| o.elements[1].bounds = Some(Bounds { x: 0, y: 0, width: 0, height: 1 }), of_element("bounds")),
        (|o| o.elements = (0..MAX_ELEMENTS).map(element).collect(), Ok(())),
        (
            |o| o.elements = (0..=MAX_ELEMENTS).map(element).collect(),
            Err(InvalidObservation::TooManyElements { elements: MAX_ELEMENTS + 1 }),
        ),
    ];
    for (at, (change, expected)) in table.into_iter().enumerate() {
        let mut observation = observation();
        change(&mut observation);
        assert_eq!(observation.validate(), expected, "row {at}");
        if expected.is_ok() {
            let text = serde_json::to_vec(&observation).unwrap();
            assert_eq!(read::<SemanticObservation>(&text, MAX_OBSERVATION_BYTES).as_ref(), Ok(&observation));
            assert_eq!(observation.to_value(), serde_json::to_value(&observation).unwrap());
        }
    }
    let mut large = observation();
    large.elements = (0..MAX_ELEMENTS).map(element).collect();
    for element in &mut large.elements {
        element.name = Some("n".repeat(1_024));
    }
    assert!(
        matches!(large.validate(), Err(InvalidObservation::TooLarge { bytes }) if bytes > MAX_OBSERVATION_BYTES)
    );
}

#[test]
fn an_element_that_is_not_ready_admits_nothing() {
    type Change = fn(&mut Actionability);
    use ActionName::{Click, Invoke, SetValue};
    let table: [(Change, ActionName, Result<(), NotActionable>); 11] = [
        (|_| {}, Invoke, Ok(())),
        (|_| {}, SetValue, Ok(())),
        (|_| {}, Click, Ok(())),
        (|a| a.visible = false, Invoke, Err(NotActionable::Hidden)),
        (|a| a.enabled = false, Invoke, Err(NotActionable::Disabled)),
        (|a| a.stable = false, SetValue, Err(NotActionable::Unstable)),
        (|a| a.unambiguous = false, Click, Err(NotActionable::Ambiguous)),
        (|a| a.invokable = false, Invoke, Err(NotActionable::NotInvokable)),
        (|a| a.editable = false, SetValue, Err(NotActionable::NotEditable)),
        (|a| a.receives_events = false, Click, Err(NotActionable::Unreachable)),
        (|a| a.receives_events = false, Invoke, Ok(())),
    ];
    for (at, (change, action, expected)) in table.into_iter().enumerate() {
        let mut element = element(1);
        change(&mut element.actionability);
        assert_eq!(element.admits(action), expected, "row {at}");
    }
}

#[test]
fn the_label_of_a_persons_window_stands_in_no_debug_text() {
    let mut observation = observation();
    observation.elements[0].name = Some("canary-7f3a".into());
    assert!(!format!("{observation:?}").contains("canary-7f3a"));
}
