//! The two ends that an operation may not outlive: its cancellation and its deadline.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pcp_core::Clock;
use pcp_core::v2::Deadline;
use tokio::sync::Notify;

/// Cancels operations that share it, cooperatively and for good. Cloning gives another handle.
#[derive(Debug, Clone, Default)]
pub struct CancellationToken(Arc<Token>);

#[derive(Debug, Default)]
struct Token {
    cancelled: AtomicBool,
    wake: Notify,
}

impl CancellationToken {
    /// A token that nobody has cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels. What has begun may have had its effect.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
        self.0.wake.notify_waiters();
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) {
        loop {
            // Listens first and looks second: a cancellation in between is heard.
            let heard = self.0.wake.notified();
            tokio::pin!(heard);
            heard.as_mut().enable();
            if self.is_cancelled() {
                return;
            }
            heard.await;
        }
    }
}

/// Why an operation is over before it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// It was cancelled. That is told before an expiry.
    Cancelled,
    /// Its own deadline, or that of its grant, has passed. No other time limit is ever called this.
    Expired,
}

/// Cancellation and deadline of one operation, handed to every step. An executor asks [`Boundary::check`] before each
/// effect and between the chunks of one.
#[derive(Clone)]
pub struct Boundary {
    token: CancellationToken,
    deadline: Deadline,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Boundary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Boundary")
            .field("cancelled", &self.token.is_cancelled())
            .field("left", &self.left())
            .finish_non_exhaustive()
    }
}

impl Boundary {
    /// The boundary of one operation.
    #[must_use]
    pub fn new(token: CancellationToken, deadline: Deadline, clock: Arc<dyn Clock>) -> Self {
        Self { token, deadline, clock }
    }

    /// Whether the operation may go on.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), Over> {
        if self.token.is_cancelled() {
            Err(Over::Cancelled)
        } else if self.deadline.is_over(&*self.clock) {
            Err(Over::Expired)
        } else {
            Ok(())
        }
    }

    /// What is left until the deadline.
    #[must_use]
    pub fn left(&self) -> Duration {
        Duration::from_micros(self.deadline.left_us(&*self.clock))
    }

    /// Waits until the operation may not go on.
    pub async fn over(&self) -> Over {
        loop {
            if let Err(over) = self.check() {
                return over;
            }
            tokio::select! {
                () = self.token.cancelled() => {}
                () = tokio::time::sleep(self.left()) => {}
            }
        }
    }

    /// Runs a step that has no effect; it is dropped when the operation may not go on.
    ///
    /// # Errors
    /// Why not, also when the step was done too late.
    pub async fn run<T>(&self, step: impl Future<Output = T>) -> Result<T, Over> {
        let step = std::pin::pin!(step);
        self.race(step).await
    }

    /// One copy of this for all steps with the same result, and not one for each of them.
    async fn race<T>(&self, step: Pin<&mut dyn Future<Output = T>>) -> Result<T, Over> {
        self.check()?;
        tokio::select! {
            biased;
            over = self.over() => Err(over),
            done = step => self.check().map(|()| done),
        }
    }
}
