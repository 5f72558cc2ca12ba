//! The texts of the last events, so that an event with many subscribers is written once.

use std::collections::VecDeque;
use std::sync::Arc;

use pcp_core::{Content, Delivery, Event};
use pcp_stream::MAX_PAYLOAD_BYTES;

use super::EventData;
use crate::embedded::Json;
use crate::error::Error;
use crate::payloads::PushEvent;

/// Events whose texts are kept: subscribers that keep up are at most this far apart.
const KEPT_TEXTS: usize = 16;
/// Longest text that is kept, in bytes: a larger one is rare, and 16 of these are 256 KiB.
const MAX_KEPT_BYTES: usize = 16 * 1024;
/// Longest text of an event in bytes: with the members around it, it fits a frame.
const MAX_TEXT_BYTES: usize = MAX_PAYLOAD_BYTES - 1024;

/// Writes events as PushEvents, each event once however many subscribers it has.
#[derive(Debug, Default)]
pub struct EventTexts {
    /// By sequence, the oldest first; `None` for an event that fits no frame.
    kept: VecDeque<(u64, Option<String>)>,
    /// The text of the last event that is too large to be kept.
    large: Option<(u64, Option<String>)>,
}

impl EventTexts {
    /// Nothing is written yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The message that brings `delivery` to a subscription. An event that fits no frame, or is nested too deep for one,
    /// becomes a gap of one: the subscriber knows that something happened and asks the registry.
    pub fn message<'s>(
        &'s mut self,
        subscription_id: u64,
        delivery: &'s Delivery<Arc<Event>>,
    ) -> PushEvent<'s> {
        let Delivery { sequence, count, .. } = *delivery;
        let event = match &delivery.content {
            Content::Gap { missed } => return PushEvent::gap(subscription_id, sequence, count, *missed),
            Content::Event(event) => event,
        };
        match self.text(sequence, event) {
            Some(text) => {
                let data = Json::from_checked(text);
                let mut message =
                    PushEvent::event(subscription_id, sequence, count, event.topic().as_str(), data);
                message.app = event.app_id().map(|app| app.as_str().into());
                message
            }
            None => PushEvent::gap(subscription_id, sequence, count, 1),
        }
    }

    fn text(&mut self, sequence: u64, event: &Event) -> Option<&str> {
        let at = match self.kept.iter().position(|(known, _)| *known == sequence) {
            Some(at) => at,
            None if self.large.as_ref().is_some_and(|(known, _)| *known == sequence) => {
                return self.large.as_ref()?.1.as_deref();
            }
            None => {
                let text = write(event).ok();
                if text.as_ref().is_some_and(|text| text.len() > MAX_KEPT_BYTES) {
                    return self.large.insert((sequence, text)).1.as_deref();
                }
                if self.kept.len() == KEPT_TEXTS {
                    self.kept.pop_front();
                }
                self.kept.push_back((sequence, text));
                self.kept.len() - 1
            }
        };
        self.kept.get(at)?.1.as_deref()
    }
}

fn write(event: &Event) -> Result<String, Error> {
    let unwritable = |problem: &str| Error::Write { what: "an event", problem: problem.to_owned() };
    let mut text = Vec::new();
    EventData::from(event).write(&mut text)?;
    if text.len() > MAX_TEXT_BYTES {
        return Err(unwritable("it is larger than a frame"));
    }
    let text = String::from_utf8(text).map_err(|_| unwritable("it is not UTF-8"))?;
    Json::parse(&text)?;
    Ok(text)
}
