//! The answer to one message, awaited or looked at; whoever stops waiting in time keeps the work from being begun.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
enum State<T> {
    /// Nobody has begun.
    Waiting(Option<Waker>),
    /// The host is at it.
    Begun(Option<Waker>),
    /// The answer.
    Here(T),
    /// There will be none.
    Gone(HostGone),
    /// It was taken.
    Taken,
    /// Nobody waits any more.
    Cancelled,
}

#[derive(Debug)]
struct Cell<T>(Mutex<State<T>>);

impl<T> Cell<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the waiting with an answer, or without one.
    fn end(&self, answer: Option<T>) {
        let mut state = self.state();
        let was_begun = match &*state {
            State::Waiting(_) => false,
            State::Begun(_) => true,
            State::Here(_) | State::Gone(_) | State::Taken | State::Cancelled => return,
        };
        let end = answer.map_or(State::Gone(HostGone { was_begun }), State::Here);
        let old = std::mem::replace(&mut *state, end);
        drop(state);
        if let State::Waiting(Some(waker)) | State::Begun(Some(waker)) = old {
            waker.wake();
        }
    }
}

/// The host will not answer: it has ended, or was let go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostGone {
    /// Whether it had begun: if not, the work certainly had no effect.
    pub was_begun: bool,
}

/// The side that waits.
#[derive(Debug)]
#[must_use = "a reply that is dropped cancels what was not begun"]
pub struct Reply<T>(Arc<Cell<T>>);

impl<T> Reply<T> {
    /// The answer, if it is there; once taken, it is as if there were none.
    pub fn try_take(&mut self) -> Option<Result<T, HostGone>> {
        let mut state = self.0.state();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Here(answer) => Some(Ok(answer)),
            State::Gone(gone) => Some(Err(gone)),
            State::Taken | State::Cancelled => Some(Err(HostGone { was_begun: true })),
            waiting => {
                *state = waiting;
                None
            }
        }
    }

    /// Stops waiting. `true` when the work was not begun and never will be, so that it certainly had no effect.
    #[must_use]
    pub fn cancel(self) -> bool {
        let mut state = self.0.state();
        let is_untouched = matches!(*state, State::Waiting(_) | State::Gone(HostGone { was_begun: false }));
        *state = State::Cancelled;
        is_untouched
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        *self.0.state() = State::Cancelled;
    }
}

impl<T> Future for Reply<T> {
    type Output = Result<T, HostGone>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(answer) = self.try_take() {
            return Poll::Ready(answer);
        }
        let mut state = self.0.state();
        match &mut *state {
            State::Waiting(waker) | State::Begun(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            // It came between the two looks.
            State::Here(_) | State::Gone(_) | State::Taken | State::Cancelled => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

/// The host's side. Dropped without an answer, it says that there will be none.
#[derive(Debug)]
pub(crate) struct Answer<T>(Arc<Cell<T>>);

impl<T> Answer<T> {
    /// Whether somebody still waits; from then on the work counts as begun.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.0.state();
        match &mut *state {
            State::Waiting(waker) => {
                *state = State::Begun(waker.take());
                true
            }
            _ => false,
        }
    }

    /// Hands the answer over.
    pub(crate) fn send(self, answer: T) {
        self.0.end(Some(answer));
    }
}

impl<T> Drop for Answer<T> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

/// An answer that is to be given, and the reply that waits for it.
pub(crate) fn pair<T>() -> (Answer<T>, Reply<T>) {
    let cell = Arc::new(Cell(Mutex::new(State::Waiting(None))));
    (Answer(cell.clone()), Reply(cell))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn poll<T>(reply: &mut Reply<T>, woken: &Arc<Count>) -> Poll<Result<T, HostGone>> {
        Pin::new(reply).poll(&mut Context::from_waker(&woken.clone().into()))
    }

    #[test]
    fn an_answer_wakes_who_waits_and_is_given_once() {
        let woken = Arc::new(Count::default());
        let (answer, mut reply) = pair();
        assert!(poll(&mut reply, &woken).is_pending() && answer.begin());
        answer.send(7);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(poll(&mut reply, &woken), Poll::Ready(Ok(7)));
        assert_eq!(reply.try_take(), Some(Err(HostGone { was_begun: true })));
    }

    #[test]
    fn a_host_that_ends_tells_who_waits_and_whether_it_had_begun() {
        for begun in [false, true] {
            let woken = Arc::new(Count::default());
            let (answer, mut reply) = pair::<u8>();
            assert!(poll(&mut reply, &woken).is_pending());
            assert!(!begun || answer.begin());
            drop(answer);
            assert_eq!(woken.0.load(Ordering::SeqCst), 1);
            assert_eq!(poll(&mut reply, &woken), Poll::Ready(Err(HostGone { was_begun: begun })));
        }
    }

    #[test]
    fn work_that_is_cancelled_in_time_is_never_begun_and_later_that_is_not_claimed() {
        let (answer, reply) = pair::<u8>();
        assert!(reply.cancel());
        assert!(!answer.begin());

        let (answer, reply) = pair::<u8>();
        assert!(answer.begin());
        assert!(!reply.cancel());
        answer.send(1);

        let (answer, reply) = pair::<u8>();
        drop(reply);
        assert!(!answer.begin());
    }
}
