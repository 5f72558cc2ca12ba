//! One connection from accept to close. Requests of one connection are answered in order.

use std::rc::Rc;
use std::time::Duration;

use pcp_core::{AuthPrincipal, ErrorCode, PcpError};
use pcp_execution::Scratch;
use pcp_ipc::payloads::ErrorResponse;
use pcp_ipc::{Error as IpcError, Payload, Request};
use pcp_stream::{
    Connection, FrameReadHalf, FrameWriteHalf, PeerIdentity, ProtocolError, Role, StreamMessageType,
};
use tracing::debug;

use super::handlers;
use super::limits::TokenBucket;
use crate::daemon::Core;

/// Counts a connection out however its session ends.
struct Entered {
    core: Rc<Core>,
    uid: u32,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.core.admission.borrow_mut().leave(self.uid);
    }
}

/// Serves one connection until it ends. The peer is asked for once and then stays who it is.
pub async fn serve(core: Rc<Core>, connection: Connection) {
    let Connection { peer, mut reader, mut writer } = connection;
    let uid = peer.uid;
    let caller = match admit(&core, uid, peer.pid) {
        Ok(caller) => caller,
        Err(error) => {
            debug!(uid, %error, "connection refused");
            let _ = answer_error(&mut writer, &error).await;
            return;
        }
    };
    let entered = Entered { core, uid };
    let now = entered.core.now_us();
    let bucket = entered.core.admission.borrow().connection_bucket(caller.rate_per_second, now);
    let mut session = Session { core: &entered.core, peer, caller, bucket, scratch: Scratch::default() };
    if let Err(error) = session.run(&mut reader, &mut writer).await {
        debug!(uid, %error, "connection ended");
    }
}

fn admit(core: &Core, uid: u32, pid: i32) -> Result<AuthPrincipal, PcpError> {
    let caller = core.table.principal(uid, Some(pid)).ok_or_else(|| {
        PcpError::new(ErrorCode::UnknownPrincipal, format!("uid {uid} is in none of the daemon's principal files"))
            .hint(format!(
                "root adds {}/NAME.toml with the lines uid, domain, trust, modality (docs/configuration.md) and restarts the daemon; if there is one, the daemon's log says why it does not count",
                core.config.paths.principals.display()
            ))
    })?;
    core.admission.borrow_mut().enter(uid, core.now_us())?;
    Ok(caller)
}

struct Session<'c> {
    core: &'c Core,
    peer: PeerIdentity,
    caller: AuthPrincipal,
    bucket: TokenBucket,
    scratch: Scratch,
}

impl Session<'_> {
    async fn run(&mut self, reader: &mut FrameReadHalf, writer: &mut FrameWriteHalf) -> Result<(), IpcError> {
        let idle = Duration::from_millis(self.core.config.limits.idle_ms);
        loop {
            let frame = match tokio::time::timeout(idle, reader.next()).await {
                Err(_) | Ok(Ok(None)) => return Ok(()),
                Ok(Ok(Some(frame))) => frame,
                Ok(Err(error)) => {
                    let error = IpcError::Protocol(error);
                    let answered = answer_error(writer, &error.to_pcp()).await;
                    if error.ends_stream() {
                        return Err(error);
                    }
                    answered?;
                    continue;
                }
            };
            if !self.has_token() {
                answer_error(writer, &rate_limited(self.core, &self.caller)).await?;
                continue;
            }
            match Request::read(frame, Role::Client) {
                Ok(Request::Ping) => {
                    writer.queue(StreamMessageType::Pong, |_| Ok::<(), ProtocolError>(()))?;
                    writer.flush().await?;
                }
                Ok(Request::Execute(_)) if !self.peer.is_alive() => {
                    // What it left its connection to has another identity, and that one was never established.
                    return answer_error(writer, &peer_is_gone(&self.peer)).await;
                }
                Ok(Request::Execute(request)) => {
                    handlers::execute(self.core, &self.caller, &request, &mut self.scratch, writer).await?;
                }
                Ok(request) => handlers::answer(self.core, &self.caller, &request, writer).await?,
                Err(error) => answer_error(writer, &error.to_pcp()).await?,
            }
        }
    }

    fn has_token(&mut self) -> bool {
        let now = self.core.now_us();
        let own = self.caller.rate_per_second.is_some();
        self.bucket.take(now) && (own || self.core.admission.borrow_mut().take(self.caller.uid, now))
    }
}

fn peer_is_gone(peer: &PeerIdentity) -> PcpError {
    let message =
        format!("process {} of uid {}, which connected, has ended; nothing was done", peer.pid, peer.uid);
    PcpError::new(ErrorCode::PermissionDenied, message).hint("whoever wants something connects itself")
}

fn rate_limited(core: &Core, caller: &AuthPrincipal) -> PcpError {
    let limits = &core.config.limits;
    let rate = caller.rate_per_second.unwrap_or(limits.requests_per_second);
    let message = format!(
        "429: more than {rate} requests per second on this connection, or {} of uid {}",
        limits.uid_requests_per_second, caller.uid
    );
    PcpError::new(ErrorCode::RateLimited, message).hint("the connection stays open; ask again in a moment")
}

/// Answers with an error: nothing was done.
pub(super) async fn answer_error(writer: &mut FrameWriteHalf, error: &PcpError) -> Result<(), IpcError> {
    send(writer, &ErrorResponse::of(error, true)).await
}

/// Answers with a payload; one that cannot be written becomes an error response.
pub(super) async fn send<P: Payload>(writer: &mut FrameWriteHalf, payload: &P) -> Result<(), IpcError> {
    if let Err(error) = writer.queue(P::TYPE, |out| payload.write(out)) {
        let error = error.to_pcp();
        writer.queue(ErrorResponse::TYPE, |out| ErrorResponse::of(&error, false).write(out))?;
    }
    Ok(writer.flush().await?)
}
