//! May this caller do this: the domain wall, the rules, the trust level. Default is deny.

use core::fmt;
use std::boxed::Box;
use std::vec::Vec;

use crate::action::ActionClass;
use crate::domain::Domain;
use crate::gate::{ConfirmationConfig, Gate};
use crate::glob::{allows, spans};
use crate::id::CapabilityId;
use crate::principal::{AuthPrincipal, TrustLevel};

/// Most rules of a store: a policy that a person can still read.
pub const MAX_RULES: usize = 1024;

/// One rule of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    /// Which callers: those of this domain or above.
    pub caller: Domain,
    /// Which capabilities.
    pub pattern: Box<str>,
    /// What it says.
    pub says: RuleEffect,
}

/// What a rule says about what it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleEffect {
    /// Opens the capability; the pattern's star never crosses into the action.
    Allow,
    /// Asks for confirmation; the pattern's star spans everything.
    Confirm,
}

impl RuleEffect {
    /// The word for people and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Confirm => "confirm",
        }
    }
}

/// The rules that the engine decides by.
#[derive(Debug, Clone, Default)]
pub struct PermissionStore {
    rules: Vec<PermissionRule>,
}

impl PermissionStore {
    /// No rules: everything is denied.
    #[must_use]
    pub const fn empty() -> Self {
        Self { rules: Vec::new() }
    }

    /// The baseline of S0.
    #[must_use]
    pub fn with_defaults() -> Self {
        use RuleEffect::{Allow, Confirm};
        let rule = |caller, pattern: &str, says| PermissionRule { caller, pattern: pattern.into(), says };
        Self {
            rules: [
                rule(Domain::App, "app.*.*", Allow),
                rule(Domain::Compositor, "compositor.*.*", Allow),
                rule(Domain::System, "system.*.*", Allow),
                rule(Domain::App, "system.*.destroy*", Confirm),
                rule(Domain::App, "compositor.*.reconfigure*", Confirm),
            ]
            .into(),
        }
    }

    /// The rules, in order.
    #[must_use]
    pub fn rules(&self) -> &[PermissionRule] {
        &self.rules
    }
}

/// The engine's answer: allowed, with what has to be confirmed, or denied, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a verdict that nobody looks at protects nothing"]
pub enum Verdict<'a> {
    /// The caller may; `gate` says whether a person has to confirm first.
    Allowed {
        /// The rule that allowed it.
        rule: &'a str,
        /// Allow or confirm.
        gate: Gate,
    },
    /// The caller may not.
    Denied(Denial),
}

/// Why a caller may not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denial {
    /// The domain wall.
    Domain {
        /// What the capability needs.
        needs: Domain,
        /// What the caller holds.
        holds: Domain,
    },
    /// No rule matches.
    NoRule,
    /// The class or the manifest asks for more trust (C36, R-224).
    Trust {
        /// What is needed.
        needs: TrustLevel,
        /// What the caller has.
        has: TrustLevel,
        /// The class that asked.
        class: ActionClass,
    },
}

impl Denial {
    /// The rule's name in records.
    #[must_use]
    pub const fn rule(&self) -> &'static str {
        match self {
            Self::Domain { .. } => "domain-wall",
            Self::NoRule => "no-rule",
            Self::Trust { .. } => "trust-level",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domain { needs, holds } => {
                write!(f, "it needs the {needs} domain; the caller holds {holds}")
            }
            Self::NoRule => f.write_str("no rule of the policy allows it"),
            Self::Trust { needs, has, class } => {
                write!(f, "class {class} needs trust level {}; the caller has {}", needs.get(), has.get())
            }
        }
    }
}

/// What the engine is asked about one capability; what a manifest adds can only tighten.
#[derive(Debug, Clone, Copy)]
pub struct PermissionQuestion<'a> {
    /// The capability.
    pub id: &'a CapabilityId,
    /// The class that it is gated as.
    pub class: ActionClass,
    /// Whether it is a service capability, which is judged as an App capability and not gated.
    pub service: bool,
    /// The manifest's own wish for confirmation.
    pub confirmation_required: bool,
    /// The manifest's least trust.
    pub minimum_trust: TrustLevel,
}

/// Decides by rules, domains, trust and gates. Pure; allocates nothing per question.
#[derive(Debug, Clone, Default)]
pub struct PermissionEngine {
    store: PermissionStore,
    gates: ConfirmationConfig,
}

impl PermissionEngine {
    /// An engine over `store` with the default gates.
    #[must_use]
    pub fn new(store: PermissionStore) -> Self {
        Self { store, gates: ConfirmationConfig::default() }
    }

    /// The rules that it decides by.
    #[must_use]
    pub const fn store(&self) -> &PermissionStore {
        &self.store
    }

    /// Whether `caller` may, and what must be confirmed first. Every source can only tighten.
    pub fn check(&self, caller: &AuthPrincipal, asked: &PermissionQuestion<'_>) -> Verdict<'_> {
        let needs = if asked.service { Domain::App } else { asked.id.domain() };
        if !caller.domain.reaches(needs) {
            return Verdict::Denied(Denial::Domain { needs, holds: caller.domain });
        }
        let reached = |rule: &&PermissionRule| caller.domain.reaches(rule.caller);
        let rule = if asked.service {
            Some("service")
        } else {
            self.store
                .rules
                .iter()
                .filter(reached)
                .find(|rule| rule.says == RuleEffect::Allow && allows(&rule.pattern, asked.id))
                .map(|rule| &*rule.pattern)
        };
        let Some(rule) = rule else { return Verdict::Denied(Denial::NoRule) };
        let needs = asked.class.minimum_trust().max(asked.minimum_trust);
        if caller.trust < needs {
            return Verdict::Denied(Denial::Trust { needs, has: caller.trust, class: asked.class });
        }
        if asked.service {
            return Verdict::Allowed { rule, gate: Gate::Allow };
        }
        let confirm = self
            .store
            .rules
            .iter()
            .any(|rule| rule.says == RuleEffect::Confirm && spans(&rule.pattern, asked.id.as_str()));
        let gate = self.gates.gate(asked.id, asked.class, asked.confirmation_required, confirm);
        Verdict::Allowed { rule, gate }
    }
}

impl ActionClass {
    /// The least trust that opens the class (C36).
    #[must_use]
    pub const fn minimum_trust(self) -> TrustLevel {
        match self {
            Self::Read => TrustLevel::OBSERVE,
            Self::Navigate | Self::Activate | Self::InputText => TrustLevel::USER,
            Self::CloseApp | Self::Send | Self::SystemSettings | Self::HardwareControl => {
                TrustLevel::ELEVATED
            }
            Self::Delete | Self::Unknown => TrustLevel::SYSTEM,
        }
    }
}

impl fmt::Display for PermissionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} from {}", self.says.as_str(), self.pattern, self.caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::IntentClassifier;
    use crate::principal::Modality;

    fn caller(domain: Domain, trust: u8) -> AuthPrincipal {
        AuthPrincipal {
            uid: 1,
            pid: None,
            domain,
            trust: TrustLevel::new(trust).unwrap(),
            admin: false,
            confirmer: false,
            modality: Modality::Remote,
            rate_per_second: None,
        }
    }

    fn verdict(engine: &PermissionEngine, caller: &AuthPrincipal, text: &str) -> &'static str {
        let id = CapabilityId::parse(text).unwrap();
        let found = IntentClassifier.classify(&id);
        let asked = PermissionQuestion {
            id: &id,
            class: found.effective(false),
            service: found.service,
            confirmation_required: false,
            minimum_trust: TrustLevel::OBSERVE,
        };
        match engine.check(caller, &asked) {
            Verdict::Allowed { gate, .. } => gate.as_str(),
            Verdict::Denied(denial) => denial.rule(),
        }
    }

    #[test]
    fn the_default_rules_give_the_golden_table() {
        let engine = PermissionEngine::new(PermissionStore::with_defaults());
        let table = [
            (Domain::App, 3, "app.mail.search", "allow"),
            (Domain::App, 3, "app.org.xfce.mousepad.edit", "allow"),
            (Domain::App, 3, "app.mail.delete", "confirm"),
            (Domain::App, 3, "app.mail.send", "confirm"),
            (Domain::App, 3, "compositor.surface.move", "domain-wall"),
            (Domain::App, 3, "system.power.shutdown", "domain-wall"),
            (Domain::App, 3, "system.inspection.schema", "allow"),
            (Domain::Compositor, 3, "app.mail.search", "allow"),
            (Domain::Compositor, 3, "compositor.surface.move", "allow"),
            (Domain::Compositor, 3, "compositor.output.reconfigure", "confirm"),
            (Domain::Compositor, 3, "system.power.shutdown", "domain-wall"),
            (Domain::System, 3, "app.mail.search", "allow"),
            (Domain::System, 3, "compositor.surface.move", "allow"),
            (Domain::System, 3, "system.power.shutdown", "confirm"),
            (Domain::System, 3, "system.x.destroy_all", "confirm"),
            (Domain::System, 3, "system.files.list", "allow"),
            (Domain::App, 0, "app.mail.search", "allow"),
            (Domain::App, 0, "app.mail.create", "trust-level"),
            (Domain::App, 1, "app.mail.create", "allow"),
            (Domain::App, 1, "app.mail.send", "trust-level"),
            (Domain::App, 2, "app.mail.send", "confirm"),
            (Domain::App, 2, "app.mail.delete", "trust-level"),
            (Domain::App, 2, "app.mail.frobnicate", "trust-level"),
            (Domain::App, 3, "app.mail.frobnicate", "confirm"),
        ];
        for (domain, trust, id, want) in table {
            assert_eq!(verdict(&engine, &caller(domain, trust), id), want, "{domain} {trust} {id}");
        }
    }

    #[test]
    fn an_empty_policy_denies_everything() {
        let engine = PermissionEngine::new(PermissionStore::empty());
        for id in ["app.mail.search", "compositor.surface.list", "system.files.list"] {
            assert_eq!(verdict(&engine, &caller(Domain::System, 3), id), "no-rule");
        }
    }

    #[test]
    fn a_manifest_can_tighten_and_never_loosen() {
        let engine = PermissionEngine::new(PermissionStore::with_defaults());
        let id = CapabilityId::parse("app.mail.search").unwrap();
        let mut asked = PermissionQuestion {
            id: &id,
            class: ActionClass::Read,
            service: false,
            confirmation_required: true,
            minimum_trust: TrustLevel::ELEVATED,
        };
        assert!(matches!(
            engine.check(&caller(Domain::App, 1), &asked),
            Verdict::Denied(Denial::Trust { .. })
        ));
        let confirmed = engine.check(&caller(Domain::App, 2), &asked);
        assert!(matches!(confirmed, Verdict::Allowed { gate: Gate::Confirm, .. }));
        asked.class = ActionClass::Delete;
        asked.confirmation_required = false;
        let still = engine.check(&caller(Domain::App, 3), &asked);
        assert!(matches!(still, Verdict::Allowed { gate: Gate::Confirm, .. }));
    }
}
