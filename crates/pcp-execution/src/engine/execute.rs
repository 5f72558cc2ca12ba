//! One request, in order: rules, authority, what is known, everything without effect, claim, effect, proof, end.

use std::sync::Arc;
use std::time::Duration;

use pcp_core::Clock;
use pcp_core::v2::{
    AckState, ActionAck, ActionRequest, AuthorityVerifier, ClaimRecord, ContextPreservation, Effect,
    ExecuteReport, FailureCode, PROTOCOL_VERSION, Receipt, SteadyTime, Terminal, ValidRequest,
    VerificationPolicy,
};

use super::boundary::{Boundary, CancellationToken, Over};
use super::ending::{
    CONTEXT_CHANGED, NOT_PROVEN, NOT_REQUESTED, OVER_AFTER, ack_of, before_effect, ended, not_durable,
};
use super::error::{ProtocolError, StoreError};
use super::executor::{DispatchEffect, DispatchError, Executor};
use super::prepare::{Prepared, prepare, unread};
use super::store::{Known, OperationStore};
use super::verification::{Shown, look};

/// How long a dispatch may take to say whether anything happened, once the operation is over. Then it is unknown.
const LAST_WORD: Duration = Duration::from_millis(250);

const LATE: &str = "the backend did not answer before the operation was over";

/// Executes the requests of protocol v2 with one executor. Requests may run side by side; the store keeps each
/// operation id to one of them.
#[derive(Debug)]
pub struct Engine<E, V, S> {
    executor: E,
    verifier: V,
    store: S,
    clock: ClockHandle,
    time: Arc<SteadyTime>,
}

#[derive(Clone)]
struct ClockHandle(Arc<dyn Clock>);

impl std::fmt::Debug for ClockHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

/// Gives a claim up when its execution is dropped or panics, so that it is unknown and not under way for ever.
struct Claimed<'s, S: OperationStore> {
    store: &'s S,
    operation_id: &'s str,
    finished: bool,
}

impl<S: OperationStore> Drop for Claimed<'_, S> {
    fn drop(&mut self) {
        if !self.finished {
            self.store.abandon(self.operation_id);
        }
    }
}

impl<E: Executor, V: AuthorityVerifier, S: OperationStore> Engine<E, V, S> {
    /// An engine of these parts. `time` knows the latest time that an earlier run has seen, where there was one.
    pub fn new(
        executor: E,
        verifier: V,
        store: S,
        clock: Arc<dyn Clock>,
        time: impl Into<Arc<SteadyTime>>,
    ) -> Self {
        Self { executor, verifier, store, clock: ClockHandle(clock), time: time.into() }
    }

    /// The executor, for its observations and its report.
    pub const fn executor(&self) -> &E {
        &self.executor
    }

    /// Executes `request` at most once. The same request again is answered with its stored end.
    ///
    /// # Errors
    /// [`ProtocolError`]: nothing was accepted, and nothing was done.
    pub async fn execute(
        &self,
        request: ActionRequest,
        cancellation: &CancellationToken,
    ) -> Result<ExecuteReport, ProtocolError> {
        self.execute_valid(&ValidRequest::new(request)?, cancellation).await
    }

    /// The same for a request that is known to keep the rules.
    pub(super) async fn execute_valid(
        &self,
        request: &ValidRequest,
        cancellation: &CancellationToken,
    ) -> Result<ExecuteReport, ProtocolError> {
        let authorized = self.verifier.verify(request)?;
        let operation_id = request.request().operation_id.as_str();
        let known = self.store.look_up(operation_id, request.action_hash()).await?;
        if let Some(report) = self.answer(request, known).await? {
            return Ok(report);
        }
        let until_ms = request.request().deadline_at_ms.min(authorized.expires_at_ms);
        let deadline = self.time.deadline(until_ms, &*self.clock.0);
        let boundary = Boundary::new(cancellation.clone(), deadline, Arc::clone(&self.clock.0));
        let started_at_ms = self.now_ms();
        match prepare(&self.executor, request, &boundary).await {
            Ok(prepared) => self.claim(request, prepared, &boundary, started_at_ms).await,
            Err(terminal) => Ok(self.refuse(request, *terminal).await),
        }
    }

    /// How far an operation is; `None` if nothing is known of it. Needs no authority and waits for nobody.
    ///
    /// # Errors
    /// [`ProtocolError::Store`].
    pub async fn status(&self, operation_id: &str) -> Result<Option<ActionAck>, ProtocolError> {
        status(&self.store, self.now_ms(), operation_id).await
    }

    fn now_ms(&self) -> i64 {
        self.time.now_ms(&*self.clock.0)
    }

    /// The answer that what is known gives; `None` if the operation may run.
    async fn answer(
        &self,
        request: &ValidRequest,
        known: Known,
    ) -> Result<Option<ExecuteReport>, ProtocolError> {
        let replayed = |ack: ActionAck| {
            Some(ExecuteReport { acknowledgements: vec![ActionAck { replayed: true, ..ack }] })
        };
        Ok(match known {
            Known::Fresh => None,
            Known::Ended(ack) => replayed(*ack),
            Known::Running => replayed(ack_of(request, AckState::Executing {})),
            Known::Unfinished(claim) => Some(ExecuteReport {
                acknowledgements: vec![recover(&self.store, self.now_ms(), &claim).await?],
            }),
            Known::Conflict => return Err(ProtocolError::Conflict),
            Known::Forgotten => Some(self.refuse(request, Terminal::ExpiredBeforeEffect).await),
        })
    }

    /// An end before the claim: recorded, and the id stays free.
    async fn refuse(&self, request: &ValidRequest, terminal: Terminal) -> ExecuteReport {
        let end = ended(request, terminal);
        self.store.refused(&end).await;
        ExecuteReport { acknowledgements: vec![ack_of(request, AckState::Accepted {}), end] }
    }

    /// From here on every end is stored.
    async fn claim(
        &self,
        request: &ValidRequest,
        prepared: Prepared<E::Resolved>,
        boundary: &Boundary,
        started_at_ms: i64,
    ) -> Result<ExecuteReport, ProtocolError> {
        let asked = request.request();
        let record = ClaimRecord {
            operation_id: asked.operation_id.clone(),
            action_hash: request.action_hash(),
            claimed_at_ms: self.now_ms(),
            action_name: asked.action.name(),
            delivery_route: prepared.capability.delivery_route,
            session_isolation: prepared.isolation,
            interaction_mode: asked.interaction_mode,
        };
        let known = self.store.claim(&record).await?;
        if let Some(report) = self.answer(request, known).await? {
            return Ok(report);
        }
        let operation_id = asked.operation_id.as_str();
        let mut claimed = Claimed { store: &self.store, operation_id, finished: false };
        let mut acknowledgements = vec![ack_of(request, AckState::Accepted {})];
        let context = match boundary.check() {
            Ok(()) => prepared.watch.sample(&self.executor, boundary).await.map_err(unread),
            Err(over) => Err(Box::new(before_effect(over))),
        };
        let terminal = match context {
            Err(terminal) => *terminal,
            Ok(context) => {
                acknowledgements.push(ack_of(request, AckState::Executing {}));
                let mut receipt = self.receipt(request, &prepared, started_at_ms);
                let end = self.act(request, prepared, context, boundary, &mut receipt).await;
                receipt.finished_at_ms = self.now_ms();
                end.with(receipt)
            }
        };
        let mut end = ended(request, terminal);
        match self.store.finish(&end).await {
            Ok(()) => claimed.finished = true,
            Err(error) => end = after_lost_end(request, end, error)?,
        }
        acknowledgements.push(end);
        Ok(ExecuteReport { acknowledgements })
    }

    fn receipt(
        &self,
        request: &ValidRequest,
        prepared: &Prepared<E::Resolved>,
        started_at_ms: i64,
    ) -> Receipt {
        Receipt {
            protocol_version: PROTOCOL_VERSION,
            action_name: request.request().action.name().as_str().to_owned(),
            action_hash: request.action_hash(),
            started_at_ms,
            finished_at_ms: started_at_ms,
            backend: prepared.backend.clone(),
            fallback_chain: Vec::new(),
            delivery_route: prepared.capability.delivery_route,
            session_isolation: prepared.isolation,
            interaction_mode: request.request().interaction_mode,
            context_preservation: prepared.watch.preserved(None, None),
            effect: Effect::Unknown,
            before: Some(prepared.before.evidence()),
            after: None,
            warnings: Vec::new(),
        }
    }

    /// The effect and its proof.
    async fn act(
        &self,
        request: &ValidRequest,
        prepared: Prepared<E::Resolved>,
        context: Option<pcp_core::v2::Sha256Hash>,
        boundary: &Boundary,
        receipt: &mut Receipt,
    ) -> End {
        let asked = request.request();
        let Prepared { resolved, before, watch, .. } = prepared;
        let step = self.executor.dispatch(&asked.action, resolved, &asked.verification, boundary);
        if let Err(error) = self.last_word(step, boundary).await {
            return End::of_dispatch(error, boundary.check());
        }
        if boundary.check().is_err() {
            return End::Unknown(OVER_AFTER);
        }
        let shown = look(&self.executor, request.element(), &asked.verification, &before, boundary).await;
        let Ok(shown) = shown else { return End::Unknown(OVER_AFTER) };
        // After the looks and not before them: a window that takes the focus late took it all the same.
        let after = match watch.sample(&self.executor, boundary).await {
            Err(Some(_)) => return End::Unknown(OVER_AFTER),
            Err(None) => None,
            Ok(after) => after,
        };
        receipt.context_preservation = watch.preserved(context, after);
        receipt.after = shown.after.as_ref().map(super::executor::TargetObservation::evidence);
        if matches!(asked.verification, VerificationPolicy::None {}) {
            receipt.warnings.push(NOT_REQUESTED.to_owned());
        }
        conclude(&shown, &asked.verification, receipt)
    }

    /// A dispatch that is dropped leaves nothing but doubt, so it may finish its sentence.
    async fn last_word(
        &self,
        step: impl Future<Output = Result<(), DispatchError>>,
        boundary: &Boundary,
    ) -> Result<(), DispatchError> {
        tokio::select! {
            biased;
            done = step => done,
            () = async { boundary.over().await; tokio::time::sleep(LAST_WORD).await } => Err(DispatchError {
                message: LATE,
                effect: DispatchEffect::Unknown,
                code: FailureCode::DispatchFailed,
            }),
        }
    }
}

/// How far an operation is, by its store.
pub(super) async fn status<S: OperationStore>(
    store: &S,
    now_ms: i64,
    operation_id: &str,
) -> Result<Option<ActionAck>, ProtocolError> {
    let Some((claim, known)) = store.status(operation_id).await? else { return Ok(None) };
    Ok(match known {
        Known::Ended(ack) => Some(*ack),
        Known::Unfinished(claim) => Some(recover(store, now_ms, &claim).await?),
        Known::Running => Some(claim.ack(AckState::Executing {})),
        Known::Fresh | Known::Conflict | Known::Forgotten => None,
    })
}

/// Stores that an operation without an end may have happened.
async fn recover<S: OperationStore>(
    store: &S,
    now_ms: i64,
    claim: &ClaimRecord,
) -> Result<ActionAck, StoreError> {
    let end = claim.recovered(now_ms);
    store.finish(&end).await?;
    Ok(end)
}

/// What the receipt and the terminal say once the looks are done.
fn conclude(shown: &Shown, policy: &VerificationPolicy, receipt: &mut Receipt) -> End {
    if matches!(receipt.context_preservation, ContextPreservation::Changed | ContextPreservation::Unavailable)
    {
        return End::Unknown(CONTEXT_CHANGED);
    }
    receipt.effect = shown.effect(policy);
    if shown.proven { End::Succeeded } else { End::Unknown(NOT_PROVEN) }
}

/// The end of an effect, before it has its receipt.
enum End {
    Succeeded,
    Unknown(&'static str),
    Without(Box<Terminal>),
}

impl End {
    /// An executor that says "cancelled" or "expired" is believed that nothing happened, and not why: a time limit of
    /// its own is not the request's.
    fn of_dispatch(error: DispatchError, boundary: Result<(), Over>) -> Self {
        match (error.effect, boundary) {
            (DispatchEffect::Unknown, _) => Self::Unknown(error.message),
            (_, Err(over)) => Self::Without(Box::new(before_effect(over))),
            (DispatchEffect::NoEffect, Ok(())) => {
                let message = error.message.to_owned();
                Self::Without(Box::new(Terminal::Rejected { code: error.code, message }))
            }
            (DispatchEffect::CancelledBeforeEffect | DispatchEffect::ExpiredBeforeEffect, Ok(())) => {
                let (code, message) = (FailureCode::DispatchFailed, error.message.to_owned());
                Self::Without(Box::new(Terminal::Failed { code, message }))
            }
        }
    }

    fn with(self, receipt: Receipt) -> Terminal {
        match self {
            Self::Succeeded => Terminal::Succeeded { receipt },
            Self::Unknown(message) => Terminal::OutcomeUnknown { receipt, message: message.to_owned() },
            Self::Without(terminal) => *terminal,
        }
    }
}

/// An end without effect that is not stored is an error; after an effect it is an end that nobody can be sure of.
fn after_lost_end(
    request: &ValidRequest,
    end: ActionAck,
    error: StoreError,
) -> Result<ActionAck, ProtocolError> {
    match end.state {
        AckState::Terminal { terminal } if terminal.receipt().is_some() => {
            Ok(ended(request, not_durable(*terminal)))
        }
        _ => Err(ProtocolError::Store(error)),
    }
}
