//! SubscriptionAck: how a subscription stands. Daemon to client, application to daemon. EventAck: how far a subscriber has
//! come. Client to daemon.

use pcp_stream::StreamMessageType;
use serde::{Deserialize, Serialize};

use crate::payload::{Payload, Tag};

/// The content of a SubscriptionAck: the answer to SubscribeEvents, UnsubscribeEvents and EventAck.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubscriptionAck {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::SubscriptionAck.discriminant() }>,
    /// Which subscription.
    pub subscription_id: u64,
    /// The number after which events are delivered; of one that ended, the last number there was.
    pub sequence: u64,
}

impl Payload for SubscriptionAck {
    const TYPE: StreamMessageType = StreamMessageType::SubscriptionAck;
}

/// The content of an EventAck: events up to a number have been dealt with. It also asks for those that wait, where the
/// subscription is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventAck {
    /// Names the message.
    #[serde(rename = "type")]
    pub tag: Tag<{ StreamMessageType::EventAck.discriminant() }>,
    /// Which subscription.
    pub subscription_id: u64,
    /// The number of the last event that was dealt with; 0 for none.
    pub sequence: u64,
}

impl Payload for EventAck {
    const TYPE: StreamMessageType = StreamMessageType::EventAck;
}
