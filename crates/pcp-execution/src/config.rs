//! The clocks of the pipeline: how long each part may take (R-051..R-054).

use std::time::Duration;

use pcp_core::Domain;

/// Budgets in milliseconds. Waiting for a person has its own clock, the record has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipelineConfig {
    /// From claim to verification, per domain: App, Compositor, System.
    pub total_ms: [u64; 3],
    /// The execute stage alone, where it shall be shorter than the total.
    pub execute_ms: Option<u64>,
    /// What an application may take to validate parameters before the claim.
    pub validate_ms: u64,
}

impl Default for PipelineConfig {
    fn default() -> Self {
        Self {
            total_ms: [Domain::App.budget_ms(), Domain::Compositor.budget_ms(), Domain::System.budget_ms()],
            execute_ms: None,
            validate_ms: 1_000,
        }
    }
}

impl PipelineConfig {
    /// The budget of a domain from claim to verification.
    #[must_use]
    pub fn total(&self, domain: Domain) -> Duration {
        let [app, compositor, system] = self.total_ms;
        Duration::from_millis(match domain {
            Domain::App => app,
            Domain::Compositor => compositor,
            Domain::System => system,
        })
    }

    /// The budget of the execute stage: its own, or all that the total leaves.
    #[must_use]
    pub fn execute(&self, domain: Domain) -> Duration {
        self.execute_ms.map_or_else(|| self.total(domain), Duration::from_millis)
    }
}
