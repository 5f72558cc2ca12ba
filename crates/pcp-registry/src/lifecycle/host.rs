//! One adapter on a thread of its own, asked by messages.
//!
//! Whatever the adapter does there (block, hang, panic) stays there: the decision thread sends a message and goes on.
//! A panic ends the host and not the daemon where panics unwind, as in tests and benches. The release build aborts on
//! panic, so there it ends the process and init starts it again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use pcp_core::{
    Adapter, AdapterHealth, AppId, CapabilityDescriptor, CapabilityResult, DetectionMethod, DetectionResult,
    Invocation, InvocationContext, PcpError,
};

use super::reply::{Answer, Reply, pair};
use super::seat::SeatFactory;
use crate::error::Error;

/// Messages that may wait for one adapter: it works on one at a time, and who is further behind than this gets no
/// answer within a budget of seconds.
pub const MAX_WAITING: usize = 32;

/// An invocation that goes to another thread.
#[derive(Debug, Clone)]
pub struct OwnedInvocation {
    /// The capability.
    pub capability: Arc<CapabilityDescriptor>,
    /// What the application is told about it.
    pub context: InvocationContext,
    /// The parameters as sent.
    pub parameters: String,
    /// By which method; the adapter's own best way when absent.
    pub method: Option<DetectionMethod>,
}

#[derive(Debug)]
enum Ask {
    Health(Answer<AdapterHealth>),
    Detect(AppId, Answer<Result<DetectionResult, PcpError>>),
    Execute(Box<OwnedInvocation>, Answer<Result<CapabilityResult, PcpError>>),
}

/// What the host and its thread both know.
#[derive(Debug, Default)]
struct Shared {
    /// Nothing that waits is begun any more.
    is_abandoned: AtomicBool,
    /// Why there is no adapter.
    why: OnceLock<Arc<str>>,
}

/// One instance of an adapter.
#[derive(Debug)]
pub struct AdapterHost {
    name: &'static str,
    asks: SyncSender<Ask>,
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

impl AdapterHost {
    /// Starts the thread, which makes the adapter and then waits for messages.
    ///
    /// # Errors
    /// [`Error::NoThread`].
    pub fn start(name: &'static str, factory: SeatFactory) -> Result<Self, Error> {
        let (asks, inbox) = sync_channel(MAX_WAITING);
        let shared = Arc::new(Shared::default());
        let of_thread = shared.clone();
        let thread = std::thread::Builder::new()
            .name(format!("pcpd-{name}"))
            .spawn(move || serve(&factory, &inbox, &of_thread))
            .map_err(|error| Error::NoThread { name, why: error.to_string() })?;
        Ok(Self { name, asks, shared, thread })
    }

    /// Asks how it is.
    ///
    /// # Errors
    /// [`Error::Busy`] and [`Error::Gone`].
    pub fn health_check(&self) -> Result<Reply<AdapterHealth>, Error> {
        self.ask(Ask::Health)
    }

    /// Asks what it can tell about an application.
    ///
    /// # Errors
    /// [`Error::Busy`] and [`Error::Gone`].
    pub fn detect(&self, app: AppId) -> Result<Reply<Result<DetectionResult, PcpError>>, Error> {
        self.ask(|answer| Ask::Detect(app, answer))
    }

    /// Asks it to do something. Whoever waits no longer calls [`Reply::cancel`] and learns whether it was begun.
    ///
    /// # Errors
    /// [`Error::Busy`] and [`Error::Gone`]; nothing was begun then.
    pub fn execute(
        &self,
        invocation: OwnedInvocation,
    ) -> Result<Reply<Result<CapabilityResult, PcpError>>, Error> {
        self.ask(|answer| Ask::Execute(Box::new(invocation), answer))
    }

    /// Why it ended, as far as it is known.
    #[must_use]
    pub fn why(&self) -> Arc<str> {
        self.shared.why.get().cloned().unwrap_or_else(|| "its thread panicked".into())
    }

    /// Lets it go: what waits is not begun, and the thread ends when it comes back.
    #[must_use]
    pub fn abandon(self) -> JoinHandle<()> {
        self.shared.is_abandoned.store(true, Ordering::SeqCst);
        self.thread
    }

    fn ask<T>(&self, ask: impl FnOnce(Answer<T>) -> Ask) -> Result<Reply<T>, Error> {
        let (answer, reply) = pair();
        match self.asks.try_send(ask(answer)) {
            Ok(()) => Ok(reply),
            Err(TrySendError::Full(_)) => Err(Error::Busy { name: self.name, limit: MAX_WAITING }),
            Err(TrySendError::Disconnected(_)) => Err(Error::Gone { name: self.name, why: self.why() }),
        }
    }
}

/// The host's thread: makes the adapter, then answers one message after the other until nobody can send any more.
fn serve(factory: &SeatFactory, inbox: &Receiver<Ask>, shared: &Shared) {
    let seat = match factory() {
        Ok(seat) => seat,
        Err(why) => {
            let _ = shared.why.set(why.into());
            return;
        }
    };
    while let Ok(ask) = inbox.recv() {
        if shared.is_abandoned.load(Ordering::SeqCst) {
            return;
        }
        seat.executor.run(Box::pin(answer(&*seat.adapter, ask)));
    }
}

async fn answer(adapter: &dyn Adapter, ask: Ask) {
    match ask {
        Ask::Health(answer) => {
            if answer.begin() {
                answer.send(adapter.health_check().await);
            }
        }
        Ask::Detect(app, answer) => {
            if answer.begin() {
                answer.send(adapter.detect(&app).await);
            }
        }
        Ask::Execute(owned, answer) => {
            if answer.begin() {
                let invocation = Invocation {
                    capability: &owned.capability,
                    context: &owned.context,
                    parameters: &owned.parameters,
                };
                let work = match owned.method {
                    Some(method) => adapter.execute_with_method(invocation, method),
                    None => adapter.execute(invocation),
                };
                answer.send(work.await);
            }
        }
    }
}
