//! What an executor can do now, and the rules that its report keeps before any of it is believed.

use std::collections::BTreeMap;
use std::string::String;
use std::vec::Vec;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::action::ActionName;
use super::identifier::Sha256Hash;
use super::receipt::{BackgroundSupport, DeliveryRoute, InteractionMode, SessionIsolation};

/// An executor's report of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Capabilities {
    /// The system.
    pub platform: String,
    /// Who acts.
    pub backend: String,
    /// Whose desktop it is.
    pub session_isolation: SessionIsolation,
    /// What it can do.
    pub supported_actions: Vec<ActionName>,
    /// How, one entry for each.
    pub action_capabilities: Vec<ActionCapability>,
    /// What the system lets it do.
    pub permissions: BTreeMap<String, bool>,
    /// The displays' arrangement.
    pub display_geometry_hash: Sha256Hash,
}

/// How one action is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionCapability {
    /// The action.
    pub action: ActionName,
    /// How it travels.
    pub delivery_route: DeliveryRoute,
    /// Whether it can run while the person works on.
    pub background_support: BackgroundSupport,
}

/// Why a report does not carry an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CapabilitiesFault {
    /// An action is listed twice.
    #[error("the executor lists {0} twice")]
    ListedTwice(ActionName),
    /// An action has two entries.
    #[error("the executor describes {0} twice")]
    DescribedTwice(ActionName),
    /// Listed, not described; or described, not listed.
    #[error("the executor lists and describes different actions: {0}")]
    Differ(ActionName),
    /// A route on which the action cannot travel.
    #[error("the executor sends {0} on the route {1}")]
    Route(ActionName, DeliveryRoute),
    /// The action is not among them.
    #[error("the executor does not support {0}")]
    Unsupported(ActionName),
    /// The report says another isolation than the executor itself.
    #[error("the executor reports another session isolation than it is configured with")]
    Isolation,
    /// Not in the background.
    #[error("the executor cannot do {0} in the background of this session")]
    Background(ActionName),
}

impl Capabilities {
    /// How the action is done, if the whole report is sound: one wrong fact about any action refuses all of them.
    ///
    /// # Errors
    /// [`CapabilitiesFault`].
    pub fn route(&self, action: ActionName) -> Result<ActionCapability, CapabilitiesFault> {
        for (at, name) in self.supported_actions.iter().enumerate() {
            if self.supported_actions.iter().take(at).any(|earlier| earlier == name) {
                return Err(CapabilitiesFault::ListedTwice(*name));
            }
            if !self.action_capabilities.iter().any(|fact| fact.action == *name) {
                return Err(CapabilitiesFault::Differ(*name));
            }
        }
        for (at, fact) in self.action_capabilities.iter().enumerate() {
            let name = fact.action;
            if self.action_capabilities.iter().take(at).any(|earlier| earlier.action == name) {
                return Err(CapabilitiesFault::DescribedTwice(name));
            }
            if !self.supported_actions.contains(&name) {
                return Err(CapabilitiesFault::Differ(name));
            }
            if !name.travels_on(fact.delivery_route) {
                return Err(CapabilitiesFault::Route(name, fact.delivery_route));
            }
        }
        let found = self.action_capabilities.iter().find(|fact| fact.action == action);
        found.copied().ok_or(CapabilitiesFault::Unsupported(action))
    }
}

impl ActionCapability {
    /// Whether the action may run in this mode on this desktop.
    ///
    /// # Errors
    /// [`CapabilitiesFault::Background`].
    pub const fn permits(
        &self,
        mode: InteractionMode,
        isolation: SessionIsolation,
    ) -> Result<(), CapabilitiesFault> {
        let enough = match (mode, isolation) {
            (
                InteractionMode::Interactive,
                SessionIsolation::SharedDesktop | SessionIsolation::HostIsolated,
            ) => true,
            (InteractionMode::BackgroundOnly, SessionIsolation::SharedDesktop) => {
                matches!(self.delivery_route, DeliveryRoute::TargetAddressed)
                    && matches!(self.background_support, BackgroundSupport::Guarded)
            }
            (InteractionMode::BackgroundOnly, SessionIsolation::HostIsolated) => matches!(
                self.background_support,
                BackgroundSupport::Guarded | BackgroundSupport::HostIsolatedOnly
            ),
            (InteractionMode::Unknown, _) | (_, SessionIsolation::Unknown) => false,
        };
        if enough { Ok(()) } else { Err(CapabilitiesFault::Background(self.action)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(action: ActionName, delivery_route: DeliveryRoute) -> ActionCapability {
        ActionCapability { action, delivery_route, background_support: BackgroundSupport::Guarded }
    }

    fn report(listed: &[ActionName], facts: &[ActionCapability]) -> Capabilities {
        Capabilities {
            platform: "linux".into(),
            backend: "test".into(),
            session_isolation: SessionIsolation::SharedDesktop,
            supported_actions: listed.to_vec(),
            action_capabilities: facts.to_vec(),
            permissions: BTreeMap::new(),
            display_geometry_hash: Sha256Hash::ZERO,
        }
    }

    #[test]
    fn one_wrong_fact_about_any_action_refuses_all_of_them() {
        use ActionName::{Click, Invoke, SetValue};
        use DeliveryRoute::{Pointer, TargetAddressed};
        let invoke = fact(Invoke, TargetAddressed);
        let set = fact(SetValue, TargetAddressed);
        let table = [
            (report(&[Invoke], &[invoke]), Ok(invoke)),
            (report(&[Invoke, SetValue], &[set, invoke]), Ok(invoke)),
            (report(&[Invoke, Invoke], &[invoke]), Err(CapabilitiesFault::ListedTwice(Invoke))),
            (report(&[Invoke], &[invoke, invoke]), Err(CapabilitiesFault::DescribedTwice(Invoke))),
            (report(&[Invoke, SetValue], &[invoke]), Err(CapabilitiesFault::Differ(SetValue))),
            (report(&[Invoke], &[invoke, set]), Err(CapabilitiesFault::Differ(SetValue))),
            (
                report(&[Invoke, Click], &[invoke, fact(Click, TargetAddressed)]),
                Err(CapabilitiesFault::Route(Click, TargetAddressed)),
            ),
            (report(&[Invoke], &[fact(Invoke, Pointer)]), Err(CapabilitiesFault::Route(Invoke, Pointer))),
            (report(&[SetValue], &[set]), Err(CapabilitiesFault::Unsupported(Invoke))),
            (report(&[], &[]), Err(CapabilitiesFault::Unsupported(Invoke))),
        ];
        for (at, (report, expected)) in table.into_iter().enumerate() {
            assert_eq!(report.route(Invoke), expected, "row {at}");
        }
    }

    #[test]
    fn every_action_has_its_fixed_routes() {
        for action in ActionName::ALL {
            let on = |route| action.travels_on(route);
            let expected = match action {
                ActionName::Invoke | ActionName::SetValue => (true, false),
                ActionName::Scroll => (true, true),
                _ => (false, true),
            };
            assert_eq!(
                (on(DeliveryRoute::TargetAddressed), on(DeliveryRoute::Pointer)),
                expected,
                "{action}"
            );
            assert!(!on(DeliveryRoute::Unknown), "{action}");
        }
    }

    #[test]
    fn the_background_needs_isolation_or_a_guarded_addressed_action() {
        use BackgroundSupport::{Guarded, HostIsolatedOnly, Unavailable};
        use SessionIsolation::{HostIsolated, SharedDesktop, Unknown};
        // Rows: support; columns: addressed and shared, pointer and shared, isolated.
        let table = [
            (Guarded, [true, false, true]),
            (HostIsolatedOnly, [false, false, true]),
            (Unavailable, [false, false, false]),
        ];
        for (background_support, [addressed, pointer, isolated]) in table {
            let scroll = |delivery_route| ActionCapability {
                action: ActionName::Scroll,
                delivery_route,
                background_support,
            };
            let ok = |route, mode, isolation| scroll(route).permits(mode, isolation).is_ok();
            let (by_target, by_pointer) = (DeliveryRoute::TargetAddressed, DeliveryRoute::Pointer);
            let background = InteractionMode::BackgroundOnly;
            assert_eq!(ok(by_target, background, SharedDesktop), addressed);
            assert_eq!(ok(by_pointer, background, SharedDesktop), pointer);
            assert_eq!(ok(by_pointer, background, HostIsolated), isolated);
            for mode in InteractionMode::ALL {
                assert!(!ok(by_target, *mode, Unknown));
            }
            assert!(ok(by_pointer, InteractionMode::Interactive, SharedDesktop));
            assert!(!ok(by_target, InteractionMode::Unknown, HostIsolated));
        }
    }
}
