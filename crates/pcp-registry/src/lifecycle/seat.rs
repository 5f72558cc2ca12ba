//! An adapter and what drives its futures, both made on the thread that they live on.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::Thread;

use pcp_core::Adapter;

/// Work of an adapter; stays on its thread.
pub type LocalFuture<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Drives an adapter's futures to their end on the adapter's own thread.
///
/// An adapter that needs a runtime (sockets, timers) brings one that was built once; the others take [`Parking`].
pub trait Executor {
    /// Returns when the work is done.
    fn run(&self, work: LocalFuture<'_>);
}

/// Polls, and parks the thread until it is woken. Enough for an adapter that blocks or computes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Parking;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Executor for Parking {
    fn run(&self, work: LocalFuture<'_>) {
        let waker = Arc::new(Unpark(std::thread::current())).into();
        let mut work = pin!(work);
        while work.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending {
            std::thread::park();
        }
    }
}

/// What a host's thread owns. Nothing of it needs to be `Send`: it never leaves the thread.
#[allow(missing_debug_implementations, reason = "an adapter has nothing that a log could show")]
pub struct Seat {
    /// The adapter.
    pub adapter: Box<dyn Adapter>,
    /// What drives it.
    pub executor: Box<dyn Executor>,
}

impl Seat {
    /// An adapter without a runtime of its own.
    #[must_use]
    pub fn parking(adapter: impl Adapter + 'static) -> Self {
        Self { adapter: Box::new(adapter), executor: Box::new(Parking) }
    }
}

/// Makes a seat, once per generation, on the thread where it stays. `Err` says why there is none: the world that the
/// adapter speaks to is absent.
pub type SeatFactory = Arc<dyn Fn() -> Result<Seat, String> + Send + Sync>;
