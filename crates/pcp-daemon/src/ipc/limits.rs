//! Token buckets and connection counts: one peer's appetite is not another's hunger.

use std::collections::HashMap;
use std::rc::Rc;

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use pcp_core::{ErrorCode, PcpError};
use tokio::sync::Mutex;
use tokio::task::yield_now;
use tracing::warn;

use crate::config::Limits;

/// One second of requests may come at once; a client that starts is not punished for starting.
const BURST_SECONDS: u64 = 1;
/// An aggregate bucket holds two seconds: several connections start together.
const UID_BURST_SECONDS: u64 = 2;
/// A token in the bucket's own unit: micro-tokens, so that slow rates lose nothing to rounding.
const TOKEN: u64 = 1_000_000;

/// Files of a connection: its socket and what pins its process.
const FILES_PER_CONNECTION: u64 = 2;
/// Files that connections leave to the trails, to detection and to the sockets of applications: at least this many ...
const LEAST_OWN_FILES: u64 = 40;
/// ... and this part of all, so that a request that was let in can be carried out (T-12).
const OWN_FILES_PART: u64 = 4;

/// Refills with time, is emptied by requests. Time is an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    per_second: u64,
    capacity: u64,
    level: u64,
    filled_us: u64,
}

impl TokenBucket {
    /// A full bucket of `per_second` tokens for each of `seconds`.
    #[must_use]
    pub fn new(per_second: u32, seconds: u64, now_us: u64) -> Self {
        let capacity = u64::from(per_second) * seconds * TOKEN;
        Self { per_second: u64::from(per_second), capacity, level: capacity, filled_us: now_us }
    }

    /// Whether nothing of its burst is used up: a new bucket would give no more.
    fn is_full(&self, now_us: u64) -> bool {
        let passed = now_us.saturating_sub(self.filled_us);
        self.level.saturating_add(passed.saturating_mul(self.per_second)) >= self.capacity
    }

    /// Takes one token; `false` when there is none.
    pub fn take(&mut self, now_us: u64) -> bool {
        let passed = now_us.saturating_sub(self.filled_us);
        // One microsecond brings `per_second` micro-tokens.
        self.level = self.level.saturating_add(passed.saturating_mul(self.per_second)).min(self.capacity);
        self.filled_us = now_us.max(self.filled_us);
        match self.level.checked_sub(TOKEN) {
            Some(level) => {
                self.level = level;
                true
            }
            None => false,
        }
    }
}

/// Lets the requests of one uid that take the decision thread's time through one a turn, whichever of its connections
/// they come over: a hundred connections that ask for pages at once hold up nobody else for longer than one page.
#[derive(Debug, Clone, Default)]
pub struct Turnstile(Rc<Mutex<()>>);

impl Turnstile {
    /// Waits for this request's turn. It is over at once: what is sent afterwards holds up nobody.
    pub async fn pass(&self) {
        let _turn = self.0.lock().await;
        yield_now().await;
    }
}

#[derive(Debug)]
struct Uid {
    connections: usize,
    bucket: TokenBucket,
    turnstile: Turnstile,
}

/// Who is connected how often, and how much each uid asks in all. Lives on the decision thread.
#[derive(Debug)]
pub struct Admission {
    limits: Limits,
    uids: HashMap<u32, Uid>,
    connections: usize,
}

impl Admission {
    /// Nobody is connected, and no more will be than this process may have files open for: a daemon that is out of
    /// files serves nobody, whoever took them (T-12). Raises the process's own limit as far as the system lets it.
    #[must_use]
    pub fn of_this_process(mut limits: Limits) -> Self {
        let files = raise_open_files();
        let room = connections_for(files);
        if room < limits.connections {
            warn!(
                files,
                connections = room,
                configured = limits.connections,
                "limits.connections is more than the limit of open files (RLIMIT_NOFILE) has room for"
            );
            limits.connections = room;
        }
        Self::new(limits)
    }

    /// Nobody is connected.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, uids: HashMap::new(), connections: 0 }
    }

    /// Counts a connection of `uid` in, or refuses it with the limit.
    ///
    /// # Errors
    /// `limit_reached`.
    pub fn enter(&mut self, uid: u32, now_us: u64) -> Result<(), PcpError> {
        let Limits { connections, connections_per_uid, uid_requests_per_second, .. } = self.limits;
        let refuse = |message: String| {
            Err(PcpError::new(ErrorCode::LimitReached, message).hint("close a connection first"))
        };
        if self.connections >= connections {
            return refuse(format!("{connections} connections are open, the limit"));
        }
        // Whoever left and is owed nothing is forgotten; its bucket would be full again.
        self.uids.retain(|_, entry| entry.connections > 0 || !entry.bucket.is_full(now_us));
        let bucket = TokenBucket::new(uid_requests_per_second, UID_BURST_SECONDS, now_us);
        let entry = self.uids.entry(uid).or_insert_with(|| Uid {
            connections: 0,
            bucket,
            turnstile: Turnstile::default(),
        });
        if entry.connections >= connections_per_uid {
            return refuse(format!("uid {uid} has {connections_per_uid} connections open, the limit"));
        }
        entry.connections += 1;
        self.connections += 1;
        Ok(())
    }

    /// Counts a connection out. What the uid has used up stays used up: whoever connects anew for each burst
    /// would be held by no limit.
    pub fn leave(&mut self, uid: u32) {
        self.connections = self.connections.saturating_sub(1);
        if let Some(entry) = self.uids.get_mut(&uid) {
            entry.connections = entry.connections.saturating_sub(1);
        }
    }

    /// Takes a token of the uid; a principal with its own rate is held by that alone.
    pub fn take(&mut self, uid: u32, now_us: u64) -> bool {
        self.uids.get_mut(&uid).is_some_and(|entry| entry.bucket.take(now_us))
    }

    /// What the connections of a uid share.
    #[must_use]
    pub fn turnstile(&self, uid: u32) -> Turnstile {
        self.uids.get(&uid).map(|entry| entry.turnstile.clone()).unwrap_or_default()
    }

    /// The bucket of a new connection.
    #[must_use]
    pub fn connection_bucket(&self, own_rate: Option<u32>, now_us: u64) -> TokenBucket {
        TokenBucket::new(own_rate.unwrap_or(self.limits.requests_per_second), BURST_SECONDS, now_us)
    }

    /// Open connections.
    #[must_use]
    pub const fn connections(&self) -> usize {
        self.connections
    }
}

/// Connections that so many open files have room for.
fn connections_for(files: u64) -> usize {
    let own = LEAST_OWN_FILES.max(files / OWN_FILES_PART);
    usize::try_from(files.saturating_sub(own) / FILES_PER_CONNECTION).unwrap_or(usize::MAX).max(1)
}

/// Makes the soft limit of open files the hard one; gives what is in force.
fn raise_open_files() -> u64 {
    match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((soft, hard)) => setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_or(soft, |()| hard),
        // What cannot be asked for cannot be reckoned with; accepting still waits where there are none.
        Err(_) => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_then_its_rate_and_never_more() {
        let mut bucket = TokenBucket::new(100, 1, 0);
        assert_eq!((0..300).filter(|_| bucket.take(0)).count(), 100);
        assert_eq!((0..300).filter(|_| bucket.take(500_000)).count(), 50);
        assert_eq!((0..300).filter(|_| bucket.take(3_600_000_000)).count(), 100);
    }

    #[test]
    fn a_clock_that_stands_or_jumps_back_gives_nothing() {
        let mut bucket = TokenBucket::new(1, 1, 1_000_000);
        assert!(bucket.take(1_000_000));
        assert!(!bucket.take(0) && !bucket.take(1_000_000) && bucket.take(2_000_000));
    }

    #[test]
    fn slow_rates_lose_nothing_to_rounding() {
        let mut bucket = TokenBucket::new(3, 1, 0);
        while bucket.take(0) {}
        let taken = (1..=1_000_000_u64).step_by(7).filter(|now| bucket.take(*now)).count();
        assert_eq!(taken, 3, "one second at three a second, asked every seven microseconds");
    }

    #[test]
    fn connections_are_counted_per_uid_and_in_all() {
        let limits = Limits { connections_per_uid: 2, connections: 3, ..Limits::default() };
        let mut admission = Admission::new(limits);
        admission.enter(1, 0).unwrap();
        admission.enter(1, 0).unwrap();
        assert_eq!(admission.enter(1, 0).unwrap_err().message, "uid 1 has 2 connections open, the limit");
        admission.enter(2, 0).unwrap();
        assert_eq!(admission.enter(3, 0).unwrap_err().message, "3 connections are open, the limit");
        admission.leave(1);
        admission.enter(3, 0).unwrap();
        assert_eq!(admission.connections(), 3);
        for uid in [1, 2, 3] {
            admission.leave(uid);
        }
        admission.enter(4, 0).unwrap();
        assert_eq!((admission.connections(), admission.uids.len()), (1, 1), "who is gone is forgotten");
    }

    #[tokio::test]
    async fn the_connections_of_one_uid_pass_one_a_turn_and_another_uid_does_not_wait() {
        let mut admission = Admission::new(Limits::default());
        for uid in [7, 7, 8] {
            admission.enter(uid, 0).unwrap();
        }
        let (one, other, stranger) = (admission.turnstile(7), admission.turnstile(7), admission.turnstile(8));
        let order = std::cell::RefCell::new(Vec::new());
        let pass = async |turnstile: &Turnstile, name| {
            for _ in 0..2 {
                turnstile.pass().await;
                order.borrow_mut().push(name);
            }
        };
        tokio::join!(pass(&one, "one"), pass(&other, "other"), pass(&stranger, "stranger"));
        let order = order.into_inner();
        let sharing: Vec<&str> = order.iter().copied().filter(|name| *name != "stranger").collect();
        assert_eq!(sharing, ["one", "other", "one", "other"], "they take turns");
        let done = order.iter().rposition(|name| *name == "stranger");
        assert!(done < Some(3), "the stranger waited for nobody: {order:?}");
    }

    #[test]
    fn connections_leave_files_to_everything_else() {
        let table = [(0, 1), (40, 1), (64, 12), (256, 96), (1_024, 384), (4_096, 1_536)];
        for (files, connections) in table {
            assert_eq!(connections_for(files), connections, "{files} files");
        }
        assert!(connections_for(u64::MAX) > 1_000_000);
    }

    #[test]
    fn a_uid_that_connects_anew_gets_no_new_bucket() {
        let mut admission = Admission::new(Limits { uid_requests_per_second: 10, ..Limits::default() });
        let mut served = |now_us: u64| {
            admission.enter(7, now_us).unwrap();
            let served = (0..100).filter(|_| admission.take(7, now_us)).count();
            admission.leave(7);
            served
        };
        assert_eq!([served(0), served(0), served(1_000_000), served(60_000_000)], [20, 0, 10, 20]);
    }

    #[test]
    fn the_connections_of_one_uid_share_its_bucket() {
        let mut admission = Admission::new(Limits { uid_requests_per_second: 10, ..Limits::default() });
        for _ in 0..5 {
            admission.enter(7, 0).unwrap();
        }
        assert_eq!((0..100).filter(|_| admission.take(7, 0)).count(), 20);
    }
}
