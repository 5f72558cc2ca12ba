//! Events of the blocking client: those that come before a reply are set aside for whoever reads events.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use pcp_stream::{Arrived, ProtocolError, StreamMessageType};

use super::Client;
use crate::error::Error;
use crate::payload::{Payload as _, Tag};
use crate::payloads::{EventAck, PushEvent, SubscribeEvents, SubscriptionAck, UnsubscribeEvents};

/// Events that are set aside while a reply is waited for: what one subscription's queue in the daemon may hold.
pub const MAX_EVENTS_ASIDE: usize = 1024;

/// One event as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedEvent(Vec<u8>);

impl ReceivedEvent {
    /// What it says.
    ///
    /// # Errors
    /// As [`PushEvent::read`].
    pub fn read(&self) -> Result<PushEvent<'_>, Error> {
        PushEvent::read(&self.0)
    }
}

/// Events that arrived before they were asked for, in their order. What finds no room becomes part of a gap.
#[derive(Debug, Default)]
pub(super) struct EventsAside {
    waiting: VecDeque<Aside>,
}

#[derive(Debug)]
struct Aside {
    subscription_id: u64,
    /// Of a gap that was made here: how many events are in it.
    missed: Option<u64>,
    payload: Vec<u8>,
}

impl EventsAside {
    fn put(&mut self, payload: &[u8]) -> Result<(), Error> {
        let event = PushEvent::read(payload)?;
        let subscription_id = event.subscription_id;
        if self.waiting.len() < MAX_EVENTS_ASIDE {
            self.waiting.push_back(Aside { subscription_id, missed: None, payload: payload.to_vec() });
            return Ok(());
        }
        // A connection has few subscriptions, and each has at most one gap at the end.
        let events = event.missed.unwrap_or(1);
        let last = self.waiting.iter_mut().rev().find(|aside| aside.subscription_id == subscription_id);
        let open = last.filter(|aside| aside.missed.is_some());
        let missed = events + open.as_ref().and_then(|gap| gap.missed).unwrap_or(0);
        let mut payload = Vec::new();
        PushEvent::gap(subscription_id, event.sequence, event.count, missed).write(&mut payload)?;
        let gap = Aside { subscription_id, missed: Some(missed), payload };
        match open {
            Some(open) => *open = gap,
            None => self.waiting.push_back(gap),
        }
        Ok(())
    }
}

impl Client {
    /// Subscribes to events, which [`Self::next_event`] gives.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn subscribe(&mut self, request: &SubscribeEvents<'_>) -> Result<SubscriptionAck, Error> {
        self.ask(request)
    }

    /// Ends a subscription. Its events that are on their way already still come.
    ///
    /// # Errors
    /// As [`Self::ask`]; `not_found` when there is no such subscription.
    pub fn unsubscribe(&mut self, subscription_id: u64) -> Result<SubscriptionAck, Error> {
        self.ask(&UnsubscribeEvents { tag: Tag, subscription_id })
    }

    /// Says that events up to `sequence` have been dealt with, and asks for more where the subscription is polled.
    ///
    /// # Errors
    /// As [`Self::unsubscribe`].
    pub fn acknowledge(&mut self, subscription_id: u64, sequence: u64) -> Result<SubscriptionAck, Error> {
        self.ask(&EventAck { tag: Tag, subscription_id, sequence })
    }

    /// The next event or gap in the order of arrival; `None` when there was none for `timeout`.
    ///
    /// # Errors
    /// [`Error`].
    pub fn next_event(&mut self, timeout: Duration) -> Result<Option<ReceivedEvent>, Error> {
        if let Some(aside) = self.aside.waiting.pop_front() {
            return Ok(Some(ReceivedEvent(aside.payload)));
        }
        let until = Instant::now() + timeout;
        loop {
            let arrived = match self.stream.wait(until.saturating_duration_since(Instant::now())) {
                Err(ProtocolError::Timeout { .. }) => return Ok(None),
                other => other?,
            };
            let frame = self.stream.frame(&arrived);
            match frame.message_type {
                StreamMessageType::PushEvent => {
                    PushEvent::read(frame.payload)?;
                    return Ok(Some(ReceivedEvent(frame.payload.to_vec())));
                }
                // Of an operation that this client stopped waiting for.
                StreamMessageType::ExecuteResponse | StreamMessageType::CapabilityResultMsg => {}
                _ => super::expect(StreamMessageType::SubscribeEvents, StreamMessageType::PushEvent, &frame)?,
            }
        }
    }

    /// The events as they come, until there was none for `timeout`.
    pub fn events(&mut self, timeout: Duration) -> impl Iterator<Item = Result<ReceivedEvent, Error>> {
        std::iter::from_fn(move || self.next_event(timeout).transpose())
    }

    /// Waits for what is no event.
    pub(super) fn reply(&mut self, timeout: Duration) -> Result<Arrived, Error> {
        let until = Instant::now() + timeout;
        let mut remaining = timeout;
        loop {
            let arrived = self.stream.wait(remaining)?;
            if arrived.message_type() != StreamMessageType::PushEvent {
                return Ok(arrived);
            }
            self.aside.put(self.stream.frame(&arrived).payload)?;
            // An endless row of events is no reason to wait longer.
            remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                let limit_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                return Err(ProtocolError::Timeout { limit_ms }.into());
            }
        }
    }
}
