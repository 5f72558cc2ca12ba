//! Confirmation gates: which actions need a person first.

use crate::action::ActionClass;
use crate::glob::spans;
use crate::id::CapabilityId;
use crate::words::words;

words! {
    /// Whether an action runs at once or after a person confirmed it. Ordered: the later is the stricter.
    Gate: "gate" {
        /// Runs at once.
        Allow = "allow",
        /// Waits for a confirmer.
        Confirm = "confirm",
    }
}

impl ActionClass {
    /// The gate of the class table. An unknown class is confirmed (C8).
    #[must_use]
    pub const fn gate(self) -> Gate {
        match self {
            Self::Read | Self::Navigate | Self::Activate | Self::InputText => Gate::Allow,
            Self::CloseApp
            | Self::Send
            | Self::Delete
            | Self::SystemSettings
            | Self::HardwareControl
            | Self::Unknown => Gate::Confirm,
        }
    }

    /// How long an effect of the class can be taken back, in milliseconds.
    #[must_use]
    pub const fn undo_window_ms(self) -> Option<u64> {
        match self {
            Self::InputText | Self::Delete => Some(5_000),
            Self::Send => Some(15_000),
            Self::CloseApp => Some(3_000),
            _ => None,
        }
    }
}

/// The globs that are gated whatever their class.
#[derive(Debug, Clone, Copy)]
pub struct ConfirmationConfig {
    gated: &'static [&'static str],
}

impl Default for ConfirmationConfig {
    fn default() -> Self {
        Self {
            gated: &["*.delete*", "*.destroy*", "system.network.*.connect*", "system.audio.*.set_volume*"],
        }
    }
}

impl ConfirmationConfig {
    /// The gated globs.
    #[must_use]
    pub const fn globs(&self) -> &'static [&'static str] {
        self.gated
    }

    /// The first gated glob that matches.
    #[must_use]
    pub fn gated_by(&self, id: &CapabilityId) -> Option<&'static str> {
        self.gated.iter().copied().find(|glob| spans(glob, id.as_str()))
    }

    /// The effective gate: the strictest of class, glob, manifest flag and rule flag (R-087, C11).
    #[must_use]
    pub fn gate(&self, id: &CapabilityId, class: ActionClass, manifest: bool, rule: bool) -> Gate {
        let confirm = manifest || rule || self.gated_by(id).is_some();
        class.gate().max(if confirm { Gate::Confirm } else { Gate::Allow })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_table_is_the_documents_table() {
        use ActionClass::*;
        let table = [
            (Read, Gate::Allow, None),
            (Navigate, Gate::Allow, None),
            (Activate, Gate::Allow, None),
            (InputText, Gate::Allow, Some(5_000)),
            (Delete, Gate::Confirm, Some(5_000)),
            (Send, Gate::Confirm, Some(15_000)),
            (CloseApp, Gate::Confirm, Some(3_000)),
            (SystemSettings, Gate::Confirm, None),
            (HardwareControl, Gate::Confirm, None),
            (Unknown, Gate::Confirm, None),
        ];
        assert_eq!(table.len(), ActionClass::ALL.len());
        for (class, gate, undo) in table {
            assert_eq!((class.gate(), class.undo_window_ms()), (gate, undo), "{class}");
        }
    }

    #[test]
    fn the_effective_gate_is_the_strictest_of_its_sources() {
        let gates = ConfirmationConfig::default();
        let plain = CapabilityId::parse("app.x.create").unwrap();
        let globbed = CapabilityId::parse("app.x.delete_view").unwrap();
        for id in [&plain, &globbed] {
            for class in ActionClass::ALL {
                for manifest in [false, true] {
                    for rule in [false, true] {
                        let any = class.gate() == Gate::Confirm || manifest || rule || id == &globbed;
                        let want = if any { Gate::Confirm } else { Gate::Allow };
                        assert_eq!(gates.gate(id, *class, manifest, rule), want);
                    }
                }
            }
        }
    }
}
