//! What happens to the person's own foreground, focus and pointer.

use pcp_core::v2::{ContextPreservation, InteractionMode, SessionIsolation, Sha256Hash};

use super::boundary::{Boundary, Over};
use super::executor::Executor;

/// How the context is watched over one effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nobody asked.
    NotApplicable,
    /// Nobody works there.
    HostIsolated,
    /// Compared before and after.
    Compared,
}

impl Watch {
    pub(super) const fn of(mode: InteractionMode, isolation: SessionIsolation) -> Self {
        match (mode, isolation) {
            (InteractionMode::BackgroundOnly, SessionIsolation::HostIsolated) => Self::HostIsolated,
            (InteractionMode::BackgroundOnly, _) => Self::Compared,
            _ => Self::NotApplicable,
        }
    }

    /// The context now; `Ok(None)` where it is not compared, `Err(None)` where it cannot be read.
    pub(super) async fn sample<E: Executor>(
        self,
        executor: &E,
        boundary: &Boundary,
    ) -> Result<Option<Sha256Hash>, Option<Over>> {
        if self != Self::Compared {
            return Ok(None);
        }
        match boundary.run(executor.shared_context(boundary)).await {
            Ok(Some(context)) => Ok(Some(context)),
            Ok(None) => Err(None),
            Err(over) => Err(Some(over)),
        }
    }

    /// What two samples say; the second one may have failed.
    pub(super) fn preserved(
        self,
        before: Option<Sha256Hash>,
        after: Option<Sha256Hash>,
    ) -> ContextPreservation {
        match self {
            Self::NotApplicable => ContextPreservation::NotApplicable,
            Self::HostIsolated => ContextPreservation::HostIsolated,
            Self::Compared if before.is_none() || after.is_none() => ContextPreservation::Unavailable,
            Self::Compared if before == after => ContextPreservation::UnchangedAtBoundaries,
            Self::Compared => ContextPreservation::Changed,
        }
    }
}
