//! The socket of a Tier-1 application: reads the daemon's requests and drives a `PcpServer`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pcp_core::{CapabilityResult, ErrorCode, PcpError, PcpServer};
use pcp_stream::{Connection, FrameWriteHalf, ProtocolError, SocketAccess, StreamServer};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::embedded::Json;
use crate::error::{Error, cut};
use crate::payload::{Payload, Tag};
use crate::payloads::{
    AppShutdownAck, ErrorResponse, InvocationResult, InvokeCapability, ManifestResponse, QueryState,
    StateResponse, ValidateParams, ValidateParamsResponse,
};
use crate::request::AppRequest;

mod events;

use events::{AppEvents, ConnectionEvents};
pub use events::{
    DEFAULT_APP_QUEUE_EVENTS, MAX_APP_EVENT_BYTES, MAX_APP_QUEUE_EVENTS, MAX_APP_SUBSCRIPTIONS,
    MAX_APP_TOPICS,
};

/// Connections an application serves at once: the daemon keeps a few, and nobody else gets one.
pub const MAX_APP_CONNECTIONS: usize = 16;

/// How long requests that are being served may take to end after a shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// Pause after an accept that failed for want of memory or descriptors, so that it is not tried in a circle.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves one application's socket until it is told to end.
pub struct PcpServerRunner {
    server: StreamServer,
    app: Arc<dyn PcpServer>,
    events: Arc<AppEvents>,
    daemon_uid: u32,
    stop: watch::Sender<bool>,
}

impl core::fmt::Debug for PcpServerRunner {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PcpServerRunner").field("server", &self.server).finish_non_exhaustive()
    }
}

impl PcpServerRunner {
    /// Binds `{app_id}.sock` in `directory` with mode 0660 and the directory's group. Only
    /// processes of `daemon_uid` will be answered.
    ///
    /// # Errors
    /// [`Error::Protocol`] names what is in the way of the socket.
    pub fn bind(directory: &Path, app: Arc<dyn PcpServer>, daemon_uid: u32) -> Result<Self, Error> {
        let path = directory.join(format!("{}.sock", app.app_id()));
        let server = StreamServer::bind(&path, SocketAccess::DirectoryGroup)?;
        Ok(Self { server, app, events: Arc::default(), daemon_uid, stop: watch::Sender::new(false) })
    }

    /// The socket's name.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.server.path()
    }

    /// Ends [`Self::run`] from elsewhere, such as a signal handler: send `true`.
    #[must_use]
    pub fn stopper(&self) -> watch::Sender<bool> {
        self.stop.clone()
    }

    /// Serves until the daemon sends AppShutdown or the stopper is used. Requests that are being served are
    /// finished first, within a few seconds; the socket is gone before that.
    pub async fn run(self) {
        let mut connections = JoinSet::new();
        let mut stopped = self.stop.subscribe();
        loop {
            tokio::select! {
                biased;
                () = told_to_stop(&mut stopped) => break,
                Some(_) = connections.join_next() => {}
                accepted = self.server.accept() => match accepted {
                    Ok(connection) => self.admit(connection, &mut connections).await,
                    Err(ProtocolError::Socket { .. }) => tokio::time::sleep(ACCEPT_PAUSE).await,
                    // The peer was gone before it could be identified.
                    Err(_) => {}
                },
            }
        }
        drop(self.server);
        let finish = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(SHUTDOWN_GRACE, finish).await;
    }

    /// Gives the daemon a frame loop of its own and everybody else an answer and nothing more.
    async fn admit(&self, mut connection: Connection, connections: &mut JoinSet<()>) {
        let refusal = if connection.peer.uid != self.daemon_uid {
            let message =
                format!("only uid {} may ask; you are uid {}", self.daemon_uid, connection.peer.uid);
            PcpError::new(ErrorCode::PermissionDenied, message)
        } else if connections.len() >= MAX_APP_CONNECTIONS {
            let message = format!("{MAX_APP_CONNECTIONS} connections are open, the limit");
            PcpError::new(ErrorCode::LimitReached, message)
        } else {
            let events = ConnectionEvents::new(Arc::clone(&self.events));
            connections.spawn(serve(connection, Arc::clone(&self.app), events, self.stop.clone()));
            return;
        };
        // A fresh socket has room for this; a peer cannot make us wait.
        if ErrorResponse::of(&refusal, true).queue_on(&mut connection.writer).is_ok() {
            let _ = connection.writer.flush().await;
        }
    }
}

async fn told_to_stop(stopped: &mut watch::Receiver<bool>) {
    let _ = stopped.wait_for(|stop| *stop).await;
}

/// One connection: a frame, its answer, the next frame, and events between them. What is wrong with it stays
/// here.
async fn serve(
    mut connection: Connection,
    app: Arc<dyn PcpServer>,
    events: ConnectionEvents,
    stop: watch::Sender<bool>,
) {
    let mut stopped = stop.subscribe();
    loop {
        // Neither requests nor events wait for an end of the others: whichever is ready has its turn.
        let next = tokio::select! {
            () = told_to_stop(&mut stopped) => return,
            () = events.ready() => {
                let queued = events.queue_on(&mut connection.writer);
                if queued.is_err() || connection.writer.flush().await.is_err() {
                    return;
                }
                continue;
            }
            next = connection.reader.next() => next,
        };
        let read = match next {
            Ok(None) => return,
            Ok(Some(frame)) => AppRequest::read(frame),
            Err(error) => Err(Error::Protocol(error)),
        };
        let shuts_down = matches!(read, Ok(AppRequest::Shutdown(_)));
        let (queued, ends) = match read {
            Ok(request) => (answer(request, &*app, &events, &mut connection.writer).await, false),
            Err(error) => (
                ErrorResponse::of(&error.to_pcp(), true).queue_on(&mut connection.writer),
                error.ends_stream(),
            ),
        };
        if queued.is_err() || connection.writer.flush().await.is_err() || ends {
            return;
        }
        if shuts_down {
            stop.send_replace(true);
            return;
        }
    }
}

/// Asks the application and queues its answer.
async fn answer(
    request: AppRequest<'_>,
    app: &dyn PcpServer,
    events: &ConnectionEvents,
    writer: &mut FrameWriteHalf,
) -> Result<(), Error> {
    match request {
        AppRequest::Manifest => match Json::parse(app.manifest()) {
            Ok(manifest) => ManifestResponse { tag: Tag, manifest }.queue_on(writer),
            Err(error) => {
                let error = PcpError::new(ErrorCode::InvalidManifest, cut(error));
                ErrorResponse::of(&error, true).queue_on(writer)
            }
        },
        AppRequest::Invoke(request) => invoke(&request, app, writer).await,
        AppRequest::Validate(ValidateParams { capability_id, params_json, .. }) => {
            let judgement = app.validate_params(&capability_id, params_json.as_str()).await;
            ValidateParamsResponse::of(&judgement).queue_on(writer)
        }
        AppRequest::QueryState(query) => query_state(&query, app, writer).await,
        AppRequest::Subscribe(request) => match events.subscribe(&request, app) {
            Ok(ack) => ack.queue_on(writer),
            Err(error) => ErrorResponse::of(&error.to_pcp(), true).queue_on(writer),
        },
        AppRequest::Shutdown(_) => AppShutdownAck::default().queue_on(writer),
    }
}

async fn invoke(
    request: &InvokeCapability<'_>,
    app: &dyn PcpServer,
    writer: &mut FrameWriteHalf,
) -> Result<(), Error> {
    let context = match request.core_context() {
        Ok(context) => context,
        Err(error) => return ErrorResponse::of(&error.to_pcp(), true).queue_on(writer),
    };
    let result = app.invoke(&request.capability_id, &context, request.params_json.as_str()).await;
    let sent = InvocationResult::of(&result).and_then(|result| result.queue_on(writer));
    let Err(error) = sent else { return Ok(()) };
    // The capability ran, and what it returned is no JSON or too large: the effect stands, the data is lost.
    let mut failed = CapabilityResult::refused(ErrorCode::SerializationError, cut(error));
    if let Some(failure) = failed.error.as_mut() {
        failure.no_effect = false;
    }
    InvocationResult::of(&failed)?.queue_on(writer)
}

async fn query_state(
    query: &QueryState<'_>,
    app: &dyn PcpServer,
    writer: &mut FrameWriteHalf,
) -> Result<(), Error> {
    let result = app.query_dynamic_state(&query.topic, query.arguments().as_str()).await;
    let error = match &result.error {
        Some(failure) => PcpError::new(failure.code, failure.message.clone()),
        None => {
            let sent = Json::parse(result.data_json.as_deref().unwrap_or("null")).and_then(|data_json| {
                let topic = query.topic.clone();
                StateResponse { tag: Tag, topic, state_source: result.state_source, data_json }
                    .queue_on(writer)
            });
            let Err(error) = sent else { return Ok(()) };
            PcpError::new(ErrorCode::SerializationError, cut(error))
        }
    };
    ErrorResponse::of(&error, true).queue_on(writer)
}

/// Queues a payload on a connection.
trait QueueOn: Payload {
    fn queue_on(&self, writer: &mut FrameWriteHalf) -> Result<(), Error> {
        writer.queue(Self::TYPE, |out| self.write(out))
    }
}

impl<P: Payload> QueueOn for P {}
