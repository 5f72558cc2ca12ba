//! One connection from accept to close. Requests of one connection are answered in order.

use std::rc::Rc;
use std::time::Duration;

use pcp_core::{AuthPrincipal, ErrorCode, PcpError};
use pcp_execution::Scratch;
use pcp_ipc::{Error as IpcError, Request};
use pcp_stream::{Connection, FrameReadHalf, PeerIdentity, Role, StreamMessageType};
use tracing::debug;

use super::events::Subscriptions;
use super::limits::{TokenBucket, Turnstile};
use super::outlet::Outlet;
use super::{actions, handlers};
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
    let Connection { peer, mut reader, writer } = connection;
    let outlet = Rc::new(Outlet::new(writer));
    let uid = peer.uid;
    let caller = match admit(&core, uid, peer.pid) {
        Ok(caller) => caller,
        Err(error) => {
            debug!(uid, %error, "connection refused");
            let _ = outlet.refuse(&error).await;
            return;
        }
    };
    let entered = Entered { core, uid };
    let now = entered.core.now_us();
    let bucket = entered.core.admission.borrow().connection_bucket(caller.rate_per_second, now);
    let subscriptions = Subscriptions::new(entered.core.clone(), outlet.clone(), uid);
    let scratch = Scratch::default();
    let turnstile = entered.core.admission.borrow().turnstile(uid);
    let mut session =
        Session { core: &entered.core, peer, caller, bucket, turnstile, scratch, subscriptions };
    if let Err(error) = session.run(&mut reader, &outlet).await {
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
    turnstile: Turnstile,
    scratch: Scratch,
    subscriptions: Subscriptions,
}

impl Session<'_> {
    async fn run(&mut self, reader: &mut FrameReadHalf, outlet: &Outlet) -> Result<(), IpcError> {
        let idle = Duration::from_millis(self.core.config.limits.idle_ms);
        loop {
            let next = tokio::select! {
                biased;
                next = reader.next() => next,
                // Who waits for events may be silent.
                () = tokio::time::sleep(idle), if self.subscriptions.is_empty() => return Ok(()),
                () = self.subscriptions.broken() => return Ok(()),
            };
            let frame = match next {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => frame,
                Err(error) => {
                    let error = IpcError::Protocol(error);
                    let answered = outlet.refuse(&error.to_pcp()).await;
                    if error.ends_stream() {
                        return Err(error);
                    }
                    answered?;
                    continue;
                }
            };
            if !self.has_token() {
                outlet.refuse(&rate_limited(self.core, &self.caller)).await?;
                continue;
            }
            match Request::read(frame, Role::Client) {
                Ok(Request::Ping) => {
                    outlet.send_empty(StreamMessageType::Pong).await?;
                }
                Ok(Request::Execute(_)) if !self.peer.is_alive() => {
                    // What it left its connection to has another identity, and that one was never established.
                    return outlet.refuse(&peer_is_gone(&self.peer)).await;
                }
                Ok(Request::Execute(request)) => {
                    handlers::execute(self.core, &self.caller, &request, &mut self.scratch, outlet).await?;
                }
                Ok(Request::Action(_)) if !self.peer.is_alive() => {
                    return outlet.refuse(&peer_is_gone(&self.peer)).await;
                }
                Ok(Request::Action(request)) => {
                    // Boxed: what an action needs shall not make every connection larger.
                    Box::pin(actions::execute(self.core, &self.caller, &request, outlet)).await?;
                }
                Ok(Request::Subscribe(asked)) => self.subscriptions.subscribe(&self.caller, &asked).await?,
                Ok(Request::Unsubscribe(asked)) => self.subscriptions.unsubscribe(&asked).await?,
                Ok(Request::Acknowledge(asked)) => self.subscriptions.acknowledge(&asked).await?,
                Ok(request) => {
                    self.turnstile.pass().await;
                    handlers::answer(self.core, &self.caller, &request, outlet).await?;
                }
                Err(error) => outlet.refuse(&error.to_pcp()).await?,
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
