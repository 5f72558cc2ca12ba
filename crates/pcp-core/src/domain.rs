//! The three privilege domains and the walls between them (S0 "Three-Domain Privilege Architecture").

use crate::words::words;

words! {
    /// The domain that every capability, intent and adapter is bound to: exactly one of three.
    Domain: "domain" {
        /// Lowest: application capabilities, the registry, events.
        App = "app",
        /// Middle: all of App, and surfaces, zones, workspaces, clipboard.
        Compositor = "compositor",
        /// Highest: all of Compositor, and audio, network, filesystem, power.
        System = "system",
    }
}

impl Domain {
    /// Whether a caller of this domain may reach a capability of `other`: its own level and below.
    #[must_use]
    pub const fn reaches(self, other: Self) -> bool {
        self.level() >= other.level()
    }

    /// 0 for App, 1 for Compositor, 2 for System.
    #[must_use]
    pub const fn level(self) -> u8 {
        match self {
            Self::App => 0,
            Self::Compositor => 1,
            Self::System => 2,
        }
    }

    /// The time from claim to verification, in milliseconds (R-053, S2 "Timeout Budgets").
    #[must_use]
    pub const fn budget_ms(self) -> u64 {
        match self {
            Self::App => 5_000,
            Self::Compositor => 10_000,
            Self::System => 15_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_by_three_matrix_allows_six_cells_and_denies_three() {
        use Domain::{App, Compositor, System};
        let table = [
            (App, App, true),
            (App, Compositor, false),
            (App, System, false),
            (Compositor, App, true),
            (Compositor, Compositor, true),
            (Compositor, System, false),
            (System, App, true),
            (System, Compositor, true),
            (System, System, true),
        ];
        for (caller, capability, allowed) in table {
            assert_eq!(caller.reaches(capability), allowed, "{caller} -> {capability}");
        }
    }

    #[test]
    fn a_domain_has_one_spelling_and_nothing_else_parses() {
        for domain in Domain::ALL {
            assert_eq!(domain.as_str().parse::<Domain>().unwrap(), *domain);
        }
        let error = "App".parse::<Domain>().unwrap_err();
        assert_eq!(error.to_string(), "\"App\" is no domain (one of app, compositor, system)");
    }
}
