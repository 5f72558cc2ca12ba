//! The sending half of one connection, shared by its replies and its events.
//!
//! Whoever sends holds it for one whole message: messages never mix, and each sender's stay in order. A peer that does
//! not read holds up its own connection only, and for no longer than the stall limit of `pcp-stream`.

use pcp_core::PcpError;
use pcp_ipc::payloads::ErrorResponse;
use pcp_ipc::{Error as IpcError, Payload};
use pcp_stream::{FrameWriteHalf, ProtocolError, StreamMessageType};
use tokio::sync::Mutex;

/// What is sent through by everybody who has something to say on a connection.
#[derive(Debug)]
pub(super) struct Outlet(Mutex<FrameWriteHalf>);

impl Outlet {
    pub(super) fn new(writer: FrameWriteHalf) -> Self {
        Self(Mutex::new(writer))
    }

    /// Sends a message without content.
    pub(super) async fn send_empty(&self, message_type: StreamMessageType) -> Result<(), IpcError> {
        self.write(message_type, |_| Ok::<(), ProtocolError>(())).await?;
        Ok(())
    }

    /// Sends a message; one that cannot be written becomes an error response.
    pub(super) async fn send<P: Payload>(&self, payload: &P) -> Result<(), IpcError> {
        self.send_as(P::TYPE, |out| payload.write(out)).await
    }

    /// The same for a payload that `write` makes in place.
    pub(super) async fn send_as(
        &self,
        message_type: StreamMessageType,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), IpcError>,
    ) -> Result<(), IpcError> {
        let mut writer = self.0.lock().await;
        if let Err(error) = writer.queue(message_type, write) {
            let error = error.to_pcp();
            writer.queue(ErrorResponse::TYPE, |out| ErrorResponse::of(&error, false).write(out))?;
        }
        Ok(writer.flush().await?)
    }

    /// Answers with an error: nothing was done.
    pub(super) async fn refuse(&self, error: &PcpError) -> Result<(), IpcError> {
        self.send(&ErrorResponse::of(error, true)).await
    }

    async fn write<E: From<ProtocolError>>(
        &self,
        message_type: StreamMessageType,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut writer = self.0.lock().await;
        writer.queue(message_type, write)?;
        Ok(writer.flush().await?)
    }
}
