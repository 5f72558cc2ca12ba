//! The subscriptions of one connection: events go out between its replies, as they happen or when asked for.

use std::rc::Rc;

use pcp_core::{AuthPrincipal, ErrorCode, EventStream as _, PcpError, Subscriber};
use pcp_ipc::payloads::{
    DeliveryMode, EventAck, PushEvent, SubscribeEvents, SubscriptionAck, UnsubscribeEvents,
};
use pcp_ipc::{Error as IpcError, Payload, Tag};
use pcp_push::Subscription;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tracing::debug;

use super::outlet::Outlet;
use crate::daemon::Core;

/// The subscriptions of one connection; they end with it.
pub(super) struct Subscriptions {
    core: Rc<Core>,
    outlet: Rc<Outlet>,
    subscriber: Subscriber,
    held: Vec<Held>,
    /// Told when an event could not be sent: the connection is of no use then.
    broken: Rc<Notify>,
}

struct Held {
    id: u64,
    /// The number of the last event that was handed over.
    sequence: u64,
    delivery: Delivery,
}

enum Delivery {
    /// A task sends each event as it happens.
    Pushed(JoinHandle<()>),
    /// Events wait until the subscriber asks.
    Polled(Subscription),
}

impl Subscriptions {
    pub(super) fn new(core: Rc<Core>, outlet: Rc<Outlet>, uid: u32) -> Self {
        let subscriber = Subscriber { connection: core.next_connection(), uid };
        Self { core, outlet, subscriber, held: Vec::new(), broken: Rc::default() }
    }

    /// Whether the connection waits for events, so that it may be silent.
    pub(super) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Ready when an event could not be sent.
    pub(super) async fn broken(&self) {
        self.broken.notified().await;
    }

    pub(super) async fn subscribe(
        &mut self,
        caller: &AuthPrincipal,
        asked: &SubscribeEvents<'_>,
    ) -> Result<(), IpcError> {
        match self.open(caller, asked) {
            Ok(subscription) => {
                let (id, sequence) = (subscription.id().get(), subscription.begins_after());
                // Told before the first event, so that nobody has to guess whose it is.
                self.outlet.send(&SubscriptionAck { tag: Tag, subscription_id: id, sequence }).await?;
                let delivery = match asked.delivery() {
                    DeliveryMode::Polled => Delivery::Polled(subscription),
                    DeliveryMode::Pushed => Delivery::Pushed(self.push(subscription)),
                };
                self.held.push(Held { id, sequence, delivery });
                Ok(())
            }
            Err(error) => self.outlet.refuse(&error).await,
        }
    }

    fn open(&self, caller: &AuthPrincipal, asked: &SubscribeEvents<'_>) -> Result<Subscription, PcpError> {
        if let Some(from) = asked.from.filter(|from| *from != self.core.bus.sequence()) {
            let message = format!("events after number {from} are not kept; a subscription begins now");
            return Err(PcpError::new(ErrorCode::Unsupported, message)
                .hint("leave `from` out, and ask the registry for what there is"));
        }
        let wanted = asked.wanted(self.subscriber, caller.domain).map_err(|error| error.to_pcp())?;
        self.core
            .bus
            .subscribe(wanted)
            .map_err(|error| PcpError::new(ErrorCode::LimitReached, error.to_string()))
    }

    fn push(&self, mut subscription: Subscription) -> JoinHandle<()> {
        let (core, outlet, broken) = (self.core.clone(), self.outlet.clone(), self.broken.clone());
        tokio::task::spawn_local(async move {
            loop {
                let delivery = subscription.next().await;
                let sent = outlet.send_as(PushEvent::TYPE, |out| {
                    let mut texts = core.event_texts.borrow_mut();
                    texts.message(subscription.id().get(), &delivery).write(out)
                });
                if let Err(error) = sent.await {
                    debug!(%error, "an event could not be sent");
                    broken.notify_one();
                    return;
                }
            }
        })
    }

    pub(super) async fn unsubscribe(&mut self, asked: &UnsubscribeEvents) -> Result<(), IpcError> {
        let Some(place) = self.held.iter().position(|held| held.id == asked.subscription_id) else {
            return self.outlet.refuse(&unknown(asked.subscription_id)).await;
        };
        let held = self.held.swap_remove(place);
        held.end();
        let ack = SubscriptionAck {
            tag: Tag,
            subscription_id: asked.subscription_id,
            sequence: self.core.bus.sequence(),
        };
        self.outlet.send(&ack).await
    }

    /// Hands over what waits, where the subscription is polled; its answer comes after the events.
    pub(super) async fn acknowledge(&mut self, asked: &EventAck) -> Result<(), IpcError> {
        let Some(held) = self.held.iter_mut().find(|held| held.id == asked.subscription_id) else {
            return self.outlet.refuse(&unknown(asked.subscription_id)).await;
        };
        held.sequence = held.sequence.max(asked.sequence);
        if let Delivery::Polled(subscription) = &mut held.delivery {
            // What is published meanwhile waits for the next time.
            let until = self.core.bus.sequence();
            while let Some(delivery) = subscription.try_next() {
                let core = &self.core;
                let sent = self.outlet.send_as(PushEvent::TYPE, |out| {
                    let mut texts = core.event_texts.borrow_mut();
                    texts.message(asked.subscription_id, &delivery).write(out)
                });
                sent.await?;
                held.sequence = delivery.sequence;
                if delivery.sequence >= until {
                    break;
                }
            }
        }
        let ack = SubscriptionAck { tag: Tag, subscription_id: held.id, sequence: held.sequence };
        self.outlet.send(&ack).await
    }
}

impl Held {
    fn end(self) {
        if let Delivery::Pushed(task) = self.delivery {
            task.abort();
        }
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.held.drain(..).for_each(Held::end);
    }
}

fn unknown(id: u64) -> PcpError {
    PcpError::new(ErrorCode::NotFound, format!("this connection has no subscription {id}"))
}
