//! SubscribeEvents: deliver events from now on (R-140, R-151), and UnsubscribeEvents. Client to daemon; the first also
//! daemon to application.

use pcp_core::event::MAX_FILTER_GLOB_BYTES;
use pcp_core::{Domain, EventFilter, EventTopic, OverflowStrategy, Subscribe, Subscriber};
use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::bounded;
use crate::error::{Error, cut};
use crate::payload::{Payload, Tag, wire_words};
use crate::text::Text;

/// Topics of one subscription: more than there are kinds of events.
pub const MAX_TOPICS: usize = 32;
/// Longest topic in bytes: a word, not a text.
pub const MAX_TOPIC_BYTES: usize = 64;

wire_words! {
    /// When events are delivered (R-151).
    DeliveryMode {
        /// When the subscriber asks for them with an EventAck: version 1.
        Polled = "polled",
        /// As they happen: version 2.
        Pushed = "pushed",
    }
}

/// The content of a SubscribeEvents; an absent member asks for everything, or for the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscribeEvents<'a> {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::SubscribeEvents.discriminant() }>,
    /// Only these kinds of events; none means all.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "bounded::texts::<_, MAX_TOPICS, MAX_TOPIC_BYTES>"
    )]
    pub topics: Vec<Text<'a>>,
    /// Only events about applications that match this glob.
    #[serde(
        borrow,
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "bounded::optional::<_, MAX_FILTER_GLOB_BYTES>"
    )]
    pub app: Option<Text<'a>>,
    /// Only events of this domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Domain>,
    /// Go on after the event with this number instead of now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// How many events may wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// What happens to those that find no room; absent means the oldest go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overflow: Option<OverflowStrategy>,
    /// When events are delivered; absent means as they happen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<DeliveryMode>,
}

impl Payload for SubscribeEvents<'_> {
    const TYPE: StreamMessageType = StreamMessageType::SubscribeEvents;
}

impl SubscribeEvents<'_> {
    /// What full queues do unless a subscriber says otherwise: what it reads last is how things are.
    pub const DEFAULT_OVERFLOW: OverflowStrategy = OverflowStrategy::DropOldest;

    /// The strategy that is asked for, or the default.
    #[must_use]
    pub fn overflow(&self) -> OverflowStrategy {
        self.overflow.unwrap_or(Self::DEFAULT_OVERFLOW)
    }

    /// The delivery that is asked for, or the default.
    #[must_use]
    pub fn delivery(&self) -> DeliveryMode {
        self.delivery.unwrap_or(DeliveryMode::Pushed)
    }

    /// The size of the queue that is asked for.
    #[must_use]
    pub fn queue(&self) -> Option<usize> {
        self.queue.map(|queue| usize::try_from(queue).unwrap_or(usize::MAX))
    }

    /// The subscription as core knows it: for `subscriber`, who reaches `domain` and nothing above.
    ///
    /// # Errors
    /// [`Error::Value`] for a topic that there is none of.
    pub fn wanted(&self, subscriber: Subscriber, reaches: Domain) -> Result<Subscribe, Error> {
        let topic =
            |text: &Text<'_>| text.parse::<EventTopic>().map_err(|error| Error::value("topics", cut(error)));
        let topics = self.topics.iter().map(topic).collect::<Result<Vec<_>, _>>()?;
        let mut filter = EventFilter::reached_by(reaches).topics(topics);
        if let Some(domain) = self.domain {
            filter = filter.domain(domain);
        }
        if let Some(app) = &self.app {
            filter = filter.app(app.as_str()).map_err(|error| Error::value("app", cut(error)))?;
        }
        Ok(Subscribe { subscriber, filter, queue: self.queue(), overflow: self.overflow() })
    }
}

/// The content of an UnsubscribeEvents. A subscription with an application ends with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnsubscribeEvents {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::UnsubscribeEvents.discriminant() }>,
    /// Which subscription.
    pub subscription_id: u64,
}

impl Payload for UnsubscribeEvents {
    const TYPE: StreamMessageType = StreamMessageType::UnsubscribeEvents;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::read_payload;
    use pcp_core::{AppId, DetectionMethod, Event};

    fn wanted(members: &str) -> Result<Subscribe, Error> {
        let text = format!(r#"{{"type":"subscribe_events"{members}}}"#);
        let request: SubscribeEvents<'_> = read_payload(text.as_bytes())?;
        request.wanted(Subscriber { connection: 1, uid: 2 }, Domain::App)
    }

    #[test]
    fn a_subscription_without_members_asks_for_everything_it_may_hear_of() {
        let wanted = wanted("").unwrap();
        assert_eq!((wanted.queue, wanted.overflow), (None, OverflowStrategy::DropOldest));
        let event =
            Event::AppAdded { app_id: AppId::parse("org.x").unwrap(), method: DetectionMethod::Desktop };
        assert!(wanted.filter.matches(&event));
        assert_eq!(SubscribeEvents::default().delivery(), DeliveryMode::Pushed);
    }

    #[test]
    fn every_member_reaches_the_filter() {
        let added =
            wanted(r#","topics":["app_added"],"app":"org.*","domain":"app","queue":8,"overflow":"block""#);
        let added = added.unwrap();
        assert_eq!((added.queue, added.overflow), (Some(8), OverflowStrategy::Block));
        for (app, hears) in [("org.x", true), ("com.x", false)] {
            let event =
                Event::AppAdded { app_id: AppId::parse(app).unwrap(), method: DetectionMethod::Desktop };
            assert_eq!(added.filter.matches(&event), hears, "{app}");
        }
    }

    #[test]
    fn what_a_subscription_may_not_hold_is_refused_by_name() {
        let many = format!(r#","topics":[{}]"#, vec!["\"app_added\""; MAX_TOPICS + 1].join(","));
        let long = format!(r#","topics":["{}"]"#, "x".repeat(MAX_TOPIC_BYTES + 1));
        let glob = format!(r#","app":"{}""#, "x".repeat(MAX_FILTER_GLOB_BYTES + 1));
        let table = [
            (many.as_str(), "a list has more than 32 items, the limit"),
            (long.as_str(), "a string of 65 bytes exceeds the 64-byte limit"),
            (glob.as_str(), "a string of 129 bytes exceeds the 128-byte limit"),
            (
                r#","topics":["weather"]"#,
                "topics: \"weather\" is no event topic (one of capability_registered,",
            ),
            (r#","queue":-1"#, "invalid value: integer `-1`, expected u32"),
            (r#","overflow":"forget""#, "\"forget\" is no overflow strategy (one of block, drop_newest,"),
            (r#","delivery":"never""#, "unknown variant `never`, expected `polled` or `pushed`"),
        ];
        for (members, text) in table {
            let error = wanted(members).unwrap_err();
            assert!(error.to_string().contains(text), "{members}: {error}");
            assert_eq!(error.code(), pcp_core::ErrorCode::InvalidRequest);
        }
    }
}
