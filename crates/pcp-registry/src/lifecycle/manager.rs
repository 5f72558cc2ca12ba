//! All adapters: how each is, which instance it is, and when a failed one is tried again (R-035 to R-039, C29, C30).
//!
//! Nothing here waits. [`AdapterManager::tick`] looks at what has been answered and sends what is due; time is the
//! clock that was handed in. What changed is given back: telling the world is the caller's.

use std::sync::Arc;
use std::thread::JoinHandle;

use pcp_core::{AdapterHealth, AdapterState, Clock, DetectionMethod, Event};

use super::health::{Backoff, HEALTH_DEADLINE, HEALTH_INTERVAL, us};
use super::host::AdapterHost;
use super::reply::Reply;
use super::seat::SeatFactory;
use crate::error::Error;

/// Threads of one adapter that were let go and have not come back, beyond which no further one is started: they are
/// stuck in the kernel or in a library, and one more would be as well.
pub const MAX_ABANDONED: usize = 3;
/// Most adapters: four worlds today, and as many again.
pub const MAX_ADAPTERS: usize = 8;

/// A step in an adapter's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterStateChanged {
    /// The adapter's name.
    pub name: &'static str,
    /// Its method.
    pub method: DetectionMethod,
    /// Which of its instances, from 1 on.
    pub generation: u64,
    /// Its state before; `None` for a new instance.
    pub from: Option<AdapterState>,
    /// Its state now.
    pub to: AdapterState,
    /// Why, for people; empty when there is nothing to say.
    pub reason: Arc<str>,
}

impl From<AdapterStateChanged> for Event {
    fn from(changed: AdapterStateChanged) -> Self {
        let AdapterStateChanged { name: _, method, generation, from, to, reason } = changed;
        Self::AdapterStateChanged { method, from, to, generation, reason }
    }
}

/// One adapter as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterRow {
    /// Its name.
    pub name: &'static str,
    /// Its method.
    pub method: DetectionMethod,
    /// The state of its newest instance.
    pub state: AdapterState,
    /// Which instance that is.
    pub generation: u64,
    /// Why it is in this state; empty when there is nothing to say.
    pub reason: Arc<str>,
    /// Whether a health check is under way.
    pub is_checked: bool,
    /// Threads of former instances that have not come back.
    pub abandoned: usize,
    /// Microseconds of the monotonic clock at which a failed one is tried again.
    pub retry_at_us: Option<u64>,
    /// Whether it is not tried again before a thread comes back.
    pub is_held_back: bool,
}

#[derive(Debug)]
enum Check {
    /// The next one is sent then.
    Due(u64),
    /// One is under way, and waited for until then.
    Asked(Reply<AdapterHealth>, u64),
    /// There was no room for one; tried at each tick until then.
    Crowded(u64),
}

#[allow(missing_debug_implementations, reason = "a factory has nothing that a log could show")]
struct Slot {
    name: &'static str,
    method: DetectionMethod,
    factory: SeatFactory,
    host: Option<AdapterHost>,
    generation: u64,
    state: AdapterState,
    reason: Arc<str>,
    check: Check,
    backoff: Backoff,
    retry_at_us: Option<u64>,
    abandoned: Vec<JoinHandle<()>>,
}

/// The adapters, in the order in which they are asked: by method, then as they were added.
#[allow(missing_debug_implementations, reason = "a factory has nothing that a log could show")]
pub struct AdapterManager {
    clock: Arc<dyn Clock>,
    slots: Vec<Slot>,
}

impl AdapterManager {
    /// No adapters yet.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, slots: Vec::new() }
    }

    /// Takes an adapter in and starts its first instance; the next tick asks it how it is. Names are unique and short: they name the thread too.
    ///
    /// # Errors
    /// [`Error::Taken`], and [`Error::Full`] beyond [`MAX_ADAPTERS`].
    pub fn add(
        &mut self,
        name: &'static str,
        method: DetectionMethod,
        factory: SeatFactory,
    ) -> Result<Vec<AdapterStateChanged>, Error> {
        if self.slots.iter().any(|slot| slot.name == name) {
            return Err(Error::Taken { name });
        }
        if self.slots.len() >= MAX_ADAPTERS {
            return Err(Error::Full { name, limit: MAX_ADAPTERS });
        }
        let now = self.clock.monotonic_us();
        let mut slot = Slot {
            name,
            method,
            factory,
            host: None,
            generation: 0,
            state: AdapterState::Initializing,
            reason: "".into(),
            check: Check::Due(now),
            backoff: Backoff::default(),
            retry_at_us: None,
            abandoned: Vec::new(),
        };
        let mut changes = Vec::new();
        slot.start(now, &mut changes);
        let at = self.slots.partition_point(|other| other.method <= method);
        self.slots.insert(at, slot);
        Ok(changes)
    }

    /// Looks at every adapter once. Never waits, whatever they do.
    pub fn tick(&mut self) -> Vec<AdapterStateChanged> {
        let now = self.clock.monotonic_us();
        let mut changes = Vec::new();
        for slot in &mut self.slots {
            slot.tick(now, &mut changes);
        }
        changes
    }

    /// The running instance of an adapter.
    ///
    /// # Errors
    /// [`Error::Unknown`] and [`Error::NotReady`].
    pub fn host(&self, name: &str) -> Result<&AdapterHost, Error> {
        let Some(slot) = self.slots.iter().find(|slot| slot.name == name) else {
            return Err(Error::Unknown { name: name.to_owned() });
        };
        match (&slot.host, slot.state) {
            (Some(host), AdapterState::Ready | AdapterState::Degraded) => Ok(host),
            _ => Err(Error::NotReady { name: slot.name, state: slot.state }),
        }
    }

    /// Every adapter, in the order in which they are asked.
    #[must_use]
    pub fn rows(&self) -> Vec<AdapterRow> {
        self.slots.iter().map(Slot::row).collect()
    }

    /// How the adapters are together: degraded while one of them is held back by threads that hang.
    #[must_use]
    pub fn health(&self) -> AdapterHealth {
        let is_held_back = self.slots.iter().any(Slot::is_held_back);
        if is_held_back { AdapterHealth::Degraded } else { AdapterHealth::Healthy }
    }

    /// When the next check, deadline or try is due, on the monotonic clock.
    #[must_use]
    pub fn next_due_us(&self) -> Option<u64> {
        self.slots.iter().filter_map(Slot::next_due_us).min()
    }

    /// Lets all adapters go. Threads that hang end with the process.
    pub fn shutdown(&mut self) -> Vec<AdapterStateChanged> {
        let mut changes = Vec::new();
        for slot in &mut self.slots {
            slot.let_go();
            slot.retry_at_us = None;
            slot.become_state(AdapterState::Shutdown, "the daemon stops".into(), &mut changes);
        }
        changes
    }
}

impl Slot {
    fn tick(&mut self, now: u64, changes: &mut Vec<AdapterStateChanged>) {
        self.abandoned.retain(|thread| !thread.is_finished());
        if let Some(retry_at) = self.retry_at_us {
            if now < retry_at {
                return;
            }
            if self.is_held_back() {
                self.retry_at_us = Some(now + us(HEALTH_INTERVAL));
                return;
            }
            self.become_state(AdapterState::Shutdown, "replaced by a new instance".into(), changes);
            self.start(now, changes);
        }
        self.look(now, changes);
    }

    /// Takes an answer in, gives up on one that is late, or asks when it is time.
    fn look(&mut self, now: u64, changes: &mut Vec<AdapterStateChanged>) {
        let Some(host) = &self.host else { return };
        match &mut self.check {
            Check::Asked(reply, give_up_at) => match reply.try_take() {
                Some(Ok(health)) => {
                    self.check = Check::Due(now + us(HEALTH_INTERVAL));
                    self.found(health, now, changes);
                }
                Some(Err(_)) => {
                    let why = host.why();
                    self.fail(why, now, changes);
                }
                None if now >= *give_up_at => {
                    let why =
                        format!("its health check did not answer within {} s", HEALTH_DEADLINE.as_secs());
                    self.fail(why.into(), now, changes);
                }
                None => {}
            },
            Check::Due(due) if now < *due => {}
            Check::Due(_) | Check::Crowded(_) => self.ask(now, changes),
        }
    }

    fn ask(&mut self, now: u64, changes: &mut Vec<AdapterStateChanged>) {
        let Some(host) = &self.host else { return };
        match (host.health_check(), &self.check) {
            (Ok(reply), _) => self.check = Check::Asked(reply, now + us(HEALTH_DEADLINE)),
            (Err(Error::Busy { .. }), Check::Crowded(give_up_at)) if now < *give_up_at => {}
            (Err(Error::Busy { .. }), Check::Due(_)) => {
                self.check = Check::Crowded(now + us(HEALTH_DEADLINE))
            }
            (Err(error), _) => {
                let why = match error {
                    Error::Gone { why, .. } => why,
                    other => other.to_string().into(),
                };
                self.fail(why, now, changes);
            }
        }
    }

    fn found(&mut self, health: AdapterHealth, now: u64, changes: &mut Vec<AdapterStateChanged>) {
        match self.state.after(health) {
            Some(AdapterState::Failed) => self.fail("its health check says so".into(), now, changes),
            Some(to) => {
                if to == AdapterState::Ready {
                    self.backoff = Backoff::default();
                }
                let reason = if to == AdapterState::Ready { "" } else { "its health check says so" };
                self.become_state(to, reason.into(), changes);
            }
            None => {}
        }
    }

    fn fail(&mut self, why: Arc<str>, now: u64, changes: &mut Vec<AdapterStateChanged>) {
        self.let_go();
        self.retry_at_us = Some(now + us(self.backoff.advance()));
        self.become_state(AdapterState::Failed, why, changes);
    }

    /// Starts the next generation.
    fn start(&mut self, now: u64, changes: &mut Vec<AdapterStateChanged>) {
        self.generation += 1;
        self.state = AdapterState::Initializing;
        self.reason = "".into();
        self.retry_at_us = None;
        self.check = Check::Due(now);
        changes.push(self.change(None));
        match AdapterHost::start(self.name, self.factory.clone()) {
            Ok(host) => self.host = Some(host),
            Err(error) => self.fail(error.to_string().into(), now, changes),
        }
    }

    fn become_state(&mut self, to: AdapterState, reason: Arc<str>, changes: &mut Vec<AdapterStateChanged>) {
        if !self.state.can_become(to) {
            return;
        }
        let from = std::mem::replace(&mut self.state, to);
        self.reason = reason;
        changes.push(self.change(Some(from)));
    }

    fn let_go(&mut self) {
        self.check = Check::Due(0);
        self.abandoned.extend(self.host.take().map(AdapterHost::abandon));
    }

    fn is_held_back(&self) -> bool {
        self.retry_at_us.is_some() && self.abandoned.len() > MAX_ABANDONED
    }

    fn next_due_us(&self) -> Option<u64> {
        match (self.retry_at_us, &self.host, &self.check) {
            (Some(retry_at), ..) => Some(retry_at),
            (None, None, _) => None,
            (None, Some(_), Check::Due(at) | Check::Asked(_, at) | Check::Crowded(at)) => Some(*at),
        }
    }

    fn change(&self, from: Option<AdapterState>) -> AdapterStateChanged {
        AdapterStateChanged {
            name: self.name,
            method: self.method,
            generation: self.generation,
            from,
            to: self.state,
            reason: self.reason.clone(),
        }
    }

    fn row(&self) -> AdapterRow {
        AdapterRow {
            name: self.name,
            method: self.method,
            state: self.state,
            generation: self.generation,
            reason: self.reason.clone(),
            is_checked: matches!(self.check, Check::Asked(..)),
            abandoned: self.abandoned.len(),
            retry_at_us: self.retry_at_us,
            is_held_back: self.is_held_back(),
        }
    }
}
