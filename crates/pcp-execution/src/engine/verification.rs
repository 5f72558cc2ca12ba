//! Whether the effect was shown, and how long an application may take to show it.

use std::time::Duration;

use pcp_core::v2::{Effect, SemanticTargetRef, VerificationPolicy};

use super::boundary::{Boundary, Over};
use super::executor::{Executor, TargetObservation};

/// How long an application may take until its state shows an effect, where its backend tells of changes. Toolkits answer
/// within a frame or two; a second is what a loaded board needs.
pub const SETTLE: Duration = Duration::from_secs(1);
/// Most looks at an element after an effect: a text field that tells of every letter must not keep the engine busy.
pub const MAX_SETTLE_SAMPLES: usize = 16;

/// What the looks after an effect have shown.
#[derive(Debug)]
pub(super) struct Shown {
    /// The last look, where there was one.
    pub(super) after: Option<TargetObservation>,
    /// Whether what was asked for was shown.
    pub(super) proven: bool,
}

impl Shown {
    /// The effect that a receipt may claim: state and value are proofs, a change is not.
    pub(super) const fn effect(&self, policy: &VerificationPolicy) -> Effect {
        match policy {
            VerificationPolicy::TargetState { .. } | VerificationPolicy::TargetValueHash { .. }
                if self.proven =>
            {
                Effect::Verified
            }
            _ => Effect::ExecutedUnverified,
        }
    }
}

/// Looks until what was asked for is shown, the application has had its time, or its backend cannot tell of changes.
pub(super) async fn look<E: Executor>(
    executor: &E,
    target: &SemanticTargetRef,
    policy: &VerificationPolicy,
    before: &TargetObservation,
    boundary: &Boundary,
) -> Result<Shown, Over> {
    let mut shown = Shown { after: None, proven: false };
    let settled = tokio::time::sleep(SETTLE);
    tokio::pin!(settled);
    for _ in 0..MAX_SETTLE_SAMPLES {
        let after = boundary.run(executor.observe(target, boundary)).await?;
        let Ok(after) = after else { break };
        shown.proven = proves(policy, target, before, &after);
        shown.after = Some(after);
        if shown.proven || matches!(policy, VerificationPolicy::None {}) {
            break;
        }
        let again = tokio::select! {
            biased;
            () = &mut settled => false,
            again = boundary.run(executor.changed(target, boundary)) => again?,
        };
        if !again {
            break;
        }
    }
    shown.proven |= matches!(policy, VerificationPolicy::None {});
    Ok(shown)
}

fn proves(
    policy: &VerificationPolicy,
    target: &SemanticTargetRef,
    before: &TargetObservation,
    after: &TargetObservation,
) -> bool {
    let fenced = is_fenced(target, after)
        && before.fingerprint_hash == after.fingerprint_hash
        && before.display_geometry_hash == after.display_geometry_hash;
    match policy {
        VerificationPolicy::None {} => true,
        VerificationPolicy::SnapshotChanged {} => before.observation_hash != after.observation_hash,
        VerificationPolicy::TargetState { expected } => fenced && after.state == *expected,
        VerificationPolicy::TargetValueHash { sha256 } => {
            let value = after.state.get("value_hash").and_then(serde_json::Value::as_str);
            fenced && value == Some(sha256.as_str())
        }
    }
}

/// Whether the element looks as the request says.
pub(super) fn is_fenced(target: &SemanticTargetRef, seen: &TargetObservation) -> bool {
    seen.fingerprint_hash.to_string() == target.fingerprint_hash
}
