//! One event as `events` prints it: an object for programs, a line for people.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pcp_core::{AdapterState, EventTopic};
use pcp_ipc::payloads::PushEvent;
use pcp_ipc::{CapabilityDiffData, EventData, Json};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::context::Show;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Ids that one line names; the others are counted.
const MAX_NAMED: usize = 8;

/// An event, or how many were missed.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u64>,
    /// The number of the event, or of the last of those that were missed.
    pub(super) sequence: u64,
    /// How many there were until here, missed ones included.
    count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Box<RawValue>>,
    /// The time of day when it came here; the event itself carries none.
    #[serde(skip)]
    arrived: String,
}

impl Told {
    pub(super) fn of(event: &PushEvent<'_>, arrived: Timestamp, zone: &TimeZone) -> Result<Self, Error> {
        let raw = |data: Json<'_>| RawValue::from_string(data.as_str().to_owned());
        let data = event.data_json.map(raw).transpose();
        Ok(Self {
            missed: event.missed,
            sequence: event.sequence,
            count: event.count,
            topic: event.topic.as_ref().map(ToString::to_string),
            app: event.app.as_ref().map(ToString::to_string),
            data: data.map_err(|source| Error::Reply { what: "event", source })?,
            arrived: arrived.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S%.3f").to_string(),
        })
    }

    /// How it is meant, and what happened in a few words.
    fn says(&self) -> (Tone, String) {
        let text = self.data.as_ref().map_or("", |data| data.get());
        let read = |topic| Json::parse(text).and_then(|data| EventData::read(topic, data));
        let known = self.topic.as_ref().and_then(|topic| topic.parse().ok());
        match known.map(read) {
            Some(Ok(data)) => said(&data),
            // Of a newer daemon: all of it is better than nothing.
            _ => (Tone::Plain, text.to_owned()),
        }
    }
}

fn said(data: &EventData<'_>) -> (Tone, String) {
    match data {
        EventData::CapabilityRegistered(new) => (Tone::Good, new.id.to_string()),
        EventData::CapabilityDiff(diff) => (Tone::Plain, changes(diff)),
        EventData::AdapterStateChanged(change) => {
            let from = change.from.map_or_else(|| "new".to_owned(), |state| state.to_string());
            let why = change.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            let tone = match change.to {
                AdapterState::Shutdown => Tone::Faint,
                state => Tone::of(state.as_str()),
            };
            (
                tone,
                format!("{} (generation {}) {from} -> {}{why}", change.method, change.generation, change.to),
            )
        }
        EventData::AppAdded(added) => (Tone::Good, format!("found by {}", added.method)),
        EventData::AppRemoved(_) => (Tone::Bad, "gone".to_owned()),
        EventData::ManifestInvalid(invalid) => (Tone::Bad, invalid.problem.to_string()),
        EventData::DetectionCompleted(done) => (
            Tone::Faint,
            format!(
                "{} applications, {} capabilities, in {} ms",
                done.apps, done.capabilities, done.duration_ms
            ),
        ),
    }
}

/// `+2 -1 ~1`, and which.
fn changes(diff: &CapabilityDiffData<'_>) -> String {
    let added = diff.added.iter().map(|row| format!("+{}", row.id));
    let removed = diff.removed.iter().map(|id| format!("-{id}"));
    let changed = diff.changed.iter().map(|change| {
        let fields: Vec<&str> = change.fields.iter().map(|field| field.field.as_str()).collect();
        format!("~{} ({})", change.id, fields.join(", "))
    });
    let own = diff.app.iter().map(|field| format!("{}: changed", field.field));
    let all: Vec<String> = added.chain(removed).chain(changed).chain(own).collect();
    let mut text = format!("+{} -{} ~{}", diff.added.len(), diff.removed.len(), diff.changed.len());
    for (place, one) in all.iter().take(MAX_NAMED).enumerate() {
        text.push_str(if place == 0 { ": " } else { ", " });
        text.push_str(one);
    }
    if all.len() > MAX_NAMED {
        text.push_str(&format!(" and {} more", all.len() - MAX_NAMED));
    }
    text
}

/// The width of the longest topic.
fn topic_width() -> usize {
    EventTopic::ALL.iter().map(|topic| topic.as_str().len()).max().unwrap_or(0)
}

impl Show for Told {
    fn show(&self, page: &mut Page) {
        let width = topic_width();
        let time = Cell::toned(Tone::Faint, &self.arrived);
        let row = if let Some(missed) = self.missed {
            let text = format!("{missed} events were missed: more happened than was read");
            vec![time, Cell::toned(Tone::Careful, format_args!("{:<width$}", "missed")), Cell::new(text)]
        } else {
            let (tone, text) = self.says();
            let topic = self.topic.as_deref().unwrap_or_default();
            let mut row = vec![time, Cell::toned(tone, format_args!("{topic:<width$}"))];
            row.extend(self.app.as_ref().map(Cell::new));
            row.push(Cell::new(text));
            row
        };
        page.rows(&[row]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::offset;

    fn told(members: &str) -> Told {
        let payload =
            format!(r#"{{"type":"push_event","subscription_id":1,"sequence":9,"count":7,{members}}}"#);
        let event = PushEvent::read(payload.as_bytes()).unwrap();
        let zone = TimeZone::fixed(offset(1));
        Told::of(&event, Timestamp::from_millisecond(1_700_000_000_123).unwrap(), &zone).unwrap()
    }

    #[test]
    fn each_kind_of_event_is_one_line_that_says_what_happened() {
        let row = r#"{"id":"app.org.x.ID","app_id":"org.x","domain":"app","name":"n","description":"d","category":"c","input_schema":{},"output_schema":{},"method":"desktop","tier":"1","stability":"stable","version":"1","side_effects":false,"confirmation_required":false,"minimum_trust":1,"validates_params":false,"executable":true,"signature":"verified"}"#;
        let rows: Vec<String> = (0..8).map(|n| row.replace("ID", &format!("a{n}"))).collect();
        let diff = format!(
            r#""topic":"capability_diff","app":"org.x","data_json":{{"previous_state":"ready","new_state":"ready","app":[],"added":[{}],"removed":["app.org.x.old"],"changed":[{{"id":"app.org.x.b","fields":[{{"field":"name","old":"o","new":"n"}}]}}]}}"#,
            rows[0]
        );
        let many = format!(
            r#""topic":"capability_diff","app":"org.x","data_json":{{"app":[],"added":[{}],"removed":["r1","r2"],"changed":[]}}"#,
            rows.join(",")
        );
        let table = [
            (
                r#""topic":"capability_registered","app":"org.x","data_json":{"id":"app.org.x.read"}"#,
                "capability_registered  org.x  app.org.x.read",
            ),
            (
                &diff,
                "capability_diff        org.x  +1 -1 ~1: +app.org.x.a0, -app.org.x.old, ~app.org.x.b (name)",
            ),
            (
                &many,
                "capability_diff        org.x  +8 -2 ~0: +app.org.x.a0, +app.org.x.a1, +app.org.x.a2, \
                 +app.org.x.a3, +app.org.x.a4, +app.org.x.a5, +app.org.x.a6, +app.org.x.a7 and 2 more",
            ),
            (
                r#""topic":"adapter_state_changed","data_json":{"method":"desktop","from":"ready","to":"degraded","generation":1,"reason":"no\n"}"#,
                "adapter_state_changed  desktop (generation 1) ready -> degraded: no\\n",
            ),
            (
                r#""topic":"adapter_state_changed","data_json":{"method":"desktop","to":"initializing","generation":2}"#,
                "adapter_state_changed  desktop (generation 2) new -> initializing",
            ),
            (
                r#""topic":"app_added","app":"org.x","data_json":{"method":"desktop"}"#,
                "app_added              org.x  found by desktop",
            ),
            (r#""topic":"app_removed","app":"org.x","data_json":{}"#, "app_removed            org.x  gone"),
            (
                r#""topic":"manifest_invalid","app":"org.x","data_json":{"problem":"unsigned"}"#,
                "manifest_invalid       org.x  unsigned",
            ),
            (
                r#""topic":"detection_completed","data_json":{"apps":3,"capabilities":9,"duration_ms":12}"#,
                "detection_completed    3 applications, 9 capabilities, in 12 ms",
            ),
            (r#""missed":5"#, "missed                 5 events were missed: more happened than was read"),
            (
                r#""topic":"of_tomorrow","data_json":{"a":"\u001b"}"#,
                "of_tomorrow            {\"a\":\"\\u001b\"}",
            ),
        ];
        for (members, line) in table {
            let mut page = Page::default();
            told(members).show(&mut page);
            assert_eq!(page.finish(false), format!("23:13:20.123  {line}\n"));
        }
    }

    #[test]
    fn for_programs_it_has_the_members_of_the_event_or_of_the_gap() {
        let table = [
            (
                r#""topic":"app_removed","app":"org.x","data_json":{}"#,
                r#"{"sequence":9,"count":7,"topic":"app_removed","app":"org.x","data":{}}"#,
            ),
            (r#""missed":5"#, r#"{"missed":5,"sequence":9,"count":7}"#),
        ];
        for (members, object) in table {
            assert_eq!(serde_json::to_string(&told(members)).unwrap(), object);
        }
    }
}
