//! An application's events as they arrive at the daemon: a connection of their own, so that no reply waits behind them.

use pcp_core::ports::DispatchFailure;
use pcp_stream::StreamMessageType;

use super::{AppClient, answer};
use crate::error::Error;
use crate::payloads::{PushEvent, SubscribeEvents, SubscriptionAck};

/// The events of one subscription. Dropping it closes the connection, which ends the subscription.
#[derive(Debug)]
pub struct AppEventStream {
    client: AppClient,
    ack: SubscriptionAck,
}

impl AppClient {
    /// Subscribes to the application's events; the connection is used for nothing else from then on.
    ///
    /// # Errors
    /// [`DispatchFailure`] with the application's code when it publishes none.
    pub async fn subscribe(
        mut self,
        request: &SubscribeEvents<'_>,
    ) -> Result<AppEventStream, DispatchFailure> {
        self.send(request).await?;
        let frame = self.receive().await?;
        let ack = answer::<SubscribeEvents<'_>, _>(&frame)?;
        Ok(AppEventStream { client: self, ack })
    }
}

impl AppEventStream {
    /// Which subscription it is, and after which event it begins.
    #[must_use]
    pub const fn ack(&self) -> SubscriptionAck {
        self.ack
    }

    /// The next event or gap; `None` when the application closed the connection.
    ///
    /// # Errors
    /// [`Error`]; the stream is of no use after one that [`Error::ends_stream`].
    pub async fn next(&mut self) -> Result<Option<PushEvent<'_>>, Error> {
        let Some(connection) = self.client.connection.as_mut() else { return Ok(None) };
        match connection.reader.next().await? {
            None => Ok(None),
            Some(frame) if frame.message_type == StreamMessageType::PushEvent => {
                PushEvent::read(frame.payload).map(Some)
            }
            Some(frame) => Err(Error::unexpected(StreamMessageType::SubscribeEvents, frame.message_type)),
        }
    }
}
