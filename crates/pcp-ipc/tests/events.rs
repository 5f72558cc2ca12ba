//! Events on their way from the bus to a frame and back.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use pcp_core::diff::{CapabilityChange, CapabilityDiff, ChangedField, FieldChange, FieldValue};
use pcp_core::{
    AdapterState, AppId, CapabilityDescriptor, CapabilityId, Content, Delivery, DetectionMethod, Domain,
    Event, EventTopic, SignatureStatus, StabilityLevel, TrustLevel,
};
use pcp_ipc::payloads::PushEvent;
use pcp_ipc::{EventData, EventTexts, Payload as _, ValueData};
use pcp_stream::{Frame, MAX_PAYLOAD_BYTES};

fn app() -> AppId {
    AppId::parse("org.x").unwrap()
}

fn descriptor(schema: &str) -> CapabilityDescriptor {
    CapabilityDescriptor {
        id: CapabilityId::parse("app.org.x.pin").unwrap(),
        app_id: app(),
        domain: Domain::App,
        name: "Pin \"it\"\n".into(),
        description: "".into(),
        category: "notes".into(),
        input_schema: schema.into(),
        output_schema: "true".into(),
        method: DetectionMethod::Desktop,
        stability: StabilityLevel::Stable,
        version: "1".into(),
        side_effects: true,
        confirmation_required: false,
        minimum_trust: TrustLevel::USER,
        validates_params: false,
        executable: true,
        signature: SignatureStatus::Verified,
        clear_parameters: Box::default(),
    }
}

fn diff(schema: &str) -> Event {
    let field = |field, old, new| FieldChange { field, old, new };
    Event::CapabilityDiff(CapabilityDiff {
        app_id: app(),
        previous_state: None,
        new_state: Some(AdapterState::Ready),
        app: vec![field(ChangedField::Problem, FieldValue::Text("gone".into()), FieldValue::Absent)],
        added: vec![Arc::new(descriptor(schema))],
        removed: vec![CapabilityId::parse("app.org.x.purge").unwrap()],
        changed: vec![CapabilityChange {
            id: CapabilityId::parse("app.org.x.create").unwrap(),
            fields: vec![
                field(ChangedField::SideEffects, FieldValue::Flag(false), FieldValue::Flag(true)),
                field(ChangedField::MinimumTrust, FieldValue::Number(1), FieldValue::Number(u64::MAX)),
                field(
                    ChangedField::ClearParameters,
                    FieldValue::Texts(Box::new(["a\tb".into()])),
                    FieldValue::Texts(Box::default()),
                ),
            ],
        }],
    })
}

/// One event of each topic.
fn events() -> Vec<Event> {
    vec![
        Event::CapabilityRegistered { id: CapabilityId::parse("app.org.x.pin").unwrap(), app_id: app() },
        diff(r#"{"type":"object"}"#),
        Event::AdapterStateChanged {
            method: DetectionMethod::Atspi2,
            from: None,
            to: AdapterState::Initializing,
            generation: 3,
            reason: "".into(),
        },
        Event::AdapterStateChanged {
            method: DetectionMethod::Desktop,
            from: Some(AdapterState::Ready),
            to: AdapterState::Failed,
            generation: 0,
            reason: "no\u{1}bus".into(),
        },
        Event::AppAdded { app_id: app(), method: DetectionMethod::Wine },
        Event::AppRemoved { app_id: app() },
        Event::ManifestInvalid { app_id: app(), problem: "the \"signature\" does not verify".into() },
        Event::DetectionCompleted { apps: 1, capabilities: 2, duration_ms: u64::MAX },
    ]
}

fn delivery(sequence: u64, event: Event) -> Delivery<Arc<Event>> {
    Delivery { sequence, count: sequence, content: Content::Event(Arc::new(event)) }
}

#[test]
fn an_event_of_every_topic_comes_back_from_its_frame() {
    let mut texts = EventTexts::new();
    let mut topics = Vec::new();
    for (sequence, event) in (1..).zip(events()) {
        let delivery = delivery(sequence, event.clone());
        let mut frame = Vec::new();
        texts.message(9, &delivery).write_frame(&mut frame).unwrap();
        let (frame, _) = Frame::decode(&frame).unwrap().unwrap();

        let read = PushEvent::read(frame.payload).unwrap();

        assert_eq!((read.subscription_id, read.sequence, read.count), (9, sequence, sequence));
        let topic: EventTopic = read.topic.unwrap().parse().unwrap();
        assert_eq!(topic, event.topic());
        assert_eq!(read.app.as_deref(), event.app_id().map(AppId::as_str));
        assert_eq!(EventData::read(topic, read.data_json.unwrap()).unwrap(), EventData::from(&event));
        topics.push(topic);
    }
    topics.dedup();
    assert_eq!(topics, EventTopic::ALL);
}

#[test]
fn a_gap_of_the_bus_is_a_gap_on_the_wire() {
    let mut texts = EventTexts::new();
    let gap = Delivery { sequence: 20, count: 20, content: Content::Gap { missed: 12 } };
    assert_eq!(texts.message(1, &gap), PushEvent::gap(1, 20, 20, 12));
}

#[test]
fn an_event_that_fits_no_frame_is_a_gap_of_one() {
    let too_large = format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_PAYLOAD_BYTES));
    let too_deep = format!("{}{}", r#"{"a":"#.repeat(30), "1") + &"}".repeat(30);
    for schema in [too_large, too_deep] {
        let mut texts = EventTexts::new();
        let delivery = delivery(5, diff(&schema));
        // Asked twice: what could not be written is remembered, too.
        for _ in 0..2 {
            assert_eq!(texts.message(1, &delivery), PushEvent::gap(1, 5, 5, 1));
        }
    }
}

#[test]
fn many_subscribers_of_one_event_read_the_same_text() {
    let mut texts = EventTexts::new();
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(100_000));
    let deliveries: Vec<_> =
        (1..=40).map(|number| delivery(number, diff(if number % 9 == 0 { &large } else { "{}" }))).collect();
    let mut seen: Vec<String> = Vec::new();
    for subscription_id in 0..3 {
        for (at, delivery) in deliveries.iter().enumerate() {
            let text = texts.message(subscription_id, delivery).data_json.unwrap().as_str().to_owned();
            match seen.get(at) {
                Some(known) => assert_eq!(*known, text),
                None => seen.push(text),
            }
        }
    }
}

#[test]
fn data_of_another_shape_is_refused_with_its_topic() {
    let json = |text| pcp_ipc::Json::parse(text).unwrap();
    let table = [
        (EventTopic::AppRemoved, r#"{"x":1}"#, "payload of app_removed: unknown field `x`"),
        (
            EventTopic::AppAdded,
            r#"{"method":"smoke"}"#,
            "payload of app_added: \"smoke\" is no detection method",
        ),
        (EventTopic::CapabilityRegistered, "[]", "payload of capability_registered: an object is missing"),
        (
            EventTopic::CapabilityDiff,
            r#"{"app":[{"field":"name","old":{},"new":1}]}"#,
            "payload of capability_diff: invalid type: map, expected null, a string, a boolean, a number or a list",
        ),
    ];
    for (topic, text, wanted) in table {
        let error = EventData::read(topic, json(text)).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error}");
    }
}

#[test]
fn a_value_of_each_kind_is_read_as_what_it_is() {
    let text = r#"{"app":[{"field":"name","old":null,"new":"x"},{"field":"name","old":true,"new":7},{"field":"name","old":["a"],"new":[]}]}"#;
    let EventData::CapabilityDiff(diff) =
        EventData::read(EventTopic::CapabilityDiff, pcp_ipc::Json::parse(text).unwrap()).unwrap()
    else {
        panic!("no diff")
    };
    let values: Vec<ValueData<'_>> = diff.app.into_iter().flat_map(|field| [field.old, field.new]).collect();
    let wanted = [
        ValueData::Absent,
        ValueData::Text("x".into()),
        ValueData::Flag(true),
        ValueData::Number(7),
        ValueData::Texts(vec!["a".into()]),
        ValueData::Texts(Vec::new()),
    ];
    assert_eq!(values, wanted);
}
