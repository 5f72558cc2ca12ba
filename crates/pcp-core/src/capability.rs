//! What can be done: descriptors, the methods and tiers that reach them, and what a result is worth.

use std::boxed::Box;
use std::string::String;
use std::sync::Arc;

use crate::domain::Domain;
use crate::error::ErrorCode;
use crate::id::{AppId, CapabilityId};
use crate::principal::TrustLevel;
use crate::words::words;

words! {
    /// How a capability was found, in the order in which adapters are asked.
    DetectionMethod: "detection method" {
        /// `.desktop` file, toolkit and signed manifest.
        Desktop = "desktop",
        /// The accessibility tree.
        Atspi2 = "atspi2",
        /// MSAA and UIA through Wine.
        Wine = "wine",
        /// Synthetic input.
        Simulated = "simulated",
    }
}

words! {
    /// How faithfully a capability is reached.
    Tier: "tier" {
        /// A signed native handler.
        One = "1",
        /// The accessibility tree.
        Two = "2",
        /// Wine's accessibility.
        TwoB = "2b",
        /// Input simulation: never verified.
        Three = "3",
    }
}

impl DetectionMethod {
    /// The tier that this method gives.
    #[must_use]
    pub const fn tier(self) -> Tier {
        match self {
            Self::Desktop => Tier::One,
            Self::Atspi2 => Tier::Two,
            Self::Wine => Tier::TwoB,
            Self::Simulated => Tier::Three,
        }
    }
}

words! {
    /// How much a capability's shape may be relied on.
    StabilityLevel: "stability level" {
        /// Declared by a signed manifest.
        Stable = "stable",
        /// Seen live, may change with the application.
        Experimental = "experimental",
        /// Predicted from files; not executable until a live element is bound to it (C26).
        Predicted = "predicted",
    }
}

words! {
    /// Which state model a result came from: whether to trust it or to ask again.
    StateSource: "state source" {
        /// The application's own data model.
        Rust = "rust",
        /// What the application's renderer shows.
        Renderer = "renderer",
        /// A cache that may be out of date.
        Stale = "stale",
        /// The application did not say.
        Unknown = "unknown",
    }
}

words! {
    /// What is known of an application's manifest signature.
    SignatureStatus: "signature status" {
        /// The trusted key verifies it.
        Verified = "verified",
        /// There is no signature.
        Unsigned = "unsigned",
        /// It does not verify.
        Invalid = "invalid",
    }
}

/// One capability as the registry holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityDescriptor {
    /// Its id.
    pub id: CapabilityId,
    /// The application that serves it.
    pub app_id: AppId,
    /// Its domain: that of its id.
    pub domain: Domain,
    /// A short name for people.
    pub name: Arc<str>,
    /// One sentence for people.
    pub description: Arc<str>,
    /// The author's category word.
    pub category: Arc<str>,
    /// JSON Schema of the parameters, as compact JSON text.
    pub input_schema: Arc<str>,
    /// JSON Schema of the result, as compact JSON text.
    pub output_schema: Arc<str>,
    /// How it was found.
    pub method: DetectionMethod,
    /// How far its shape may be relied on.
    pub stability: StabilityLevel,
    /// The version of the application's manifest.
    pub version: Arc<str>,
    /// Whether invoking it changes anything; `false` counts only from a verified manifest.
    pub side_effects: bool,
    /// Whether the author asks for confirmation; can only tighten.
    pub confirmation_required: bool,
    /// The least trust that a caller needs; can only tighten.
    pub minimum_trust: TrustLevel,
    /// Whether `validate_params` of the application is to be asked before the claim.
    pub validates_params: bool,
    /// Whether it can be executed now.
    pub executable: bool,
    /// What is known of the signature.
    pub signature: SignatureStatus,
    /// Top-level parameters whose text may stand in a record in clear: those declared with an `enum`
    /// or with `"x-pcp-sensitive": false`. Everything else textual is hash-only (C5, R-162).
    pub clear_parameters: Box<[Box<str>]>,
}

impl CapabilityDescriptor {
    /// Whether a verified manifest says that invoking it changes nothing: then an action of an unknown kind counts as a
    /// read.
    #[must_use]
    pub fn changes_nothing(&self) -> bool {
        self.signature == SignatureStatus::Verified
            && self.stability == StabilityLevel::Stable
            && !self.side_effects
    }
}

/// What an application answers to an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityResult {
    /// Whether the application says that it did it.
    pub success: bool,
    /// The result as JSON text, where there is one.
    pub data_json: Option<String>,
    /// The failure, where there is one.
    pub error: Option<CapabilityFailure>,
    /// Which state the result came from.
    pub state_source: StateSource,
}

/// Why an application did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapabilityFailure {
    /// A code of the closed table.
    pub code: ErrorCode,
    /// The application's words.
    pub message: String,
    /// Whether the application certifies that nothing changed; only then is it *failed*, else *unknown*.
    pub no_effect: bool,
}

impl CapabilityResult {
    /// A success with `data_json` from the application's own model.
    #[must_use]
    pub fn ok(data_json: impl Into<String>) -> Self {
        Self {
            success: true,
            data_json: Some(data_json.into()),
            error: None,
            state_source: StateSource::Rust,
        }
    }

    /// A failure that certifies that nothing changed.
    #[must_use]
    pub fn refused(code: ErrorCode, message: impl Into<String>) -> Self {
        let error = CapabilityFailure { code, message: message.into(), no_effect: true };
        Self { success: false, data_json: None, error: Some(error), state_source: StateSource::Rust }
    }
}
