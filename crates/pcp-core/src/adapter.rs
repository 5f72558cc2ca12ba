//! What a sense or hand implements (S0 "Core Trait Hierarchy", R-009).

use std::string::String;
use std::vec::Vec;

use crate::capability::{CapabilityDescriptor, CapabilityResult, DetectionMethod};
use crate::error::PcpError;
use crate::id::AppId;
use crate::ports::Invocation;
use crate::server::BoxFuture;
use crate::words::words;

words! {
    /// What a health check finds.
    AdapterHealth: "adapter health" {
        /// Works.
        Healthy = "healthy",
        /// Works, but not fully.
        Degraded = "degraded",
        /// Does not work.
        Failed = "failed",
    }
}

words! {
    /// The life of one adapter instance. A new try is a new instance of the next generation (C29).
    AdapterState: "adapter state" {
        /// Built, or being built; not yet found healthy.
        Initializing = "initializing",
        /// Works.
        Ready = "ready",
        /// Works, but not fully.
        Degraded = "degraded",
        /// Does not work, and never will again.
        Failed = "failed",
        /// Let go.
        Shutdown = "shutdown",
    }
}

impl AdapterState {
    /// Whether an instance may go from this state to `to`: ten pairs of twenty-five.
    #[must_use]
    pub const fn can_become(self, to: Self) -> bool {
        match self {
            Self::Initializing => matches!(to, Self::Ready | Self::Failed | Self::Shutdown),
            Self::Ready => matches!(to, Self::Degraded | Self::Failed | Self::Shutdown),
            Self::Degraded => matches!(to, Self::Ready | Self::Failed | Self::Shutdown),
            Self::Failed => matches!(to, Self::Shutdown),
            Self::Shutdown => false,
        }
    }

    /// Where a health check leads from this state; `None` where nothing changes.
    ///
    /// An instance that is degraded before it was ever ready stays initializing: the table has no such step.
    #[must_use]
    pub const fn after(self, health: AdapterHealth) -> Option<Self> {
        let to = match health {
            AdapterHealth::Healthy => Self::Ready,
            AdapterHealth::Degraded => Self::Degraded,
            AdapterHealth::Failed => Self::Failed,
        };
        if self.can_become(to) { Some(to) } else { None }
    }
}

/// What an adapter found out about one application.
#[derive(Debug, Clone, PartialEq)]
pub struct DetectionResult {
    /// The application.
    pub app_id: AppId,
    /// What it offers, as far as this adapter can tell.
    pub capabilities: Vec<CapabilityDescriptor>,
    /// 0.0 to 1.0; results below 0.5 are metadata only.
    pub confidence: f32,
    /// Further facts, in order.
    pub metadata: Vec<(String, String)>,
}

/// One way of finding and reaching applications.
pub trait Adapter {
    /// Which method it is; decides the order in which adapters are asked.
    fn detection_method(&self) -> DetectionMethod;
    /// What it can tell about `app_id`.
    fn detect<'a>(&'a self, app_id: &'a AppId) -> BoxFuture<'a, Result<DetectionResult, PcpError>>;
    /// Does it by the adapter's own best way.
    fn execute<'a>(&'a self, invocation: Invocation<'a>)
    -> BoxFuture<'a, Result<CapabilityResult, PcpError>>;
    /// Does it by the given method.
    fn execute_with_method<'a>(
        &'a self,
        invocation: Invocation<'a>,
        method: DetectionMethod,
    ) -> BoxFuture<'a, Result<CapabilityResult, PcpError>>;
    /// Whether it works now.
    fn health_check(&self) -> BoxFuture<'_, AdapterHealth>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_ten_of_the_twenty_five_pairs_of_states_are_legal() {
        use AdapterState::{Degraded, Failed, Initializing, Ready, Shutdown};
        const ORDER: [AdapterState; 5] = [Initializing, Ready, Degraded, Failed, Shutdown];
        let table = [
            (Initializing, [false, true, false, true, true]),
            (Ready, [false, false, true, true, true]),
            (Degraded, [false, true, false, true, true]),
            (Failed, [false, false, false, false, true]),
            (Shutdown, [false, false, false, false, false]),
        ];
        assert_eq!(AdapterState::ALL, ORDER);
        let mut legal = 0;
        for (from, row) in table {
            for (to, want) in ORDER.into_iter().zip(row) {
                assert_eq!(from.can_become(to), want, "{from} to {to}");
                legal += u32::from(want);
            }
        }
        assert_eq!(legal, 10);
    }

    #[test]
    fn health_promotes_demotes_and_fails_and_never_revives() {
        use AdapterHealth as Health;
        use AdapterState::{Degraded, Failed, Initializing, Ready, Shutdown};
        let table = [
            (Initializing, [Some(Ready), None, Some(Failed)]),
            (Ready, [None, Some(Degraded), Some(Failed)]),
            (Degraded, [Some(Ready), None, Some(Failed)]),
            (Failed, [None, None, None]),
            (Shutdown, [None, None, None]),
        ];
        for (from, row) in table {
            for (health, want) in [Health::Healthy, Health::Degraded, Health::Failed].into_iter().zip(row) {
                assert_eq!(from.after(health), want, "{from} found {health}");
            }
        }
    }
}
