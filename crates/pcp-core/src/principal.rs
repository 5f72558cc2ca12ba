//! Who is asking, as established from the kernel's credentials and root's files.

use crate::capability::Tier;
use crate::domain::Domain;
use crate::id::OperationId;
use crate::words::words;

words! {
    /// How a principal's connections reach the person or program behind them.
    Modality: "modality" {
        /// A microphone and a loudspeaker.
        Voice = "voice",
        /// The screen at the seat.
        Visual = "visual",
        /// A button or a vibration.
        Haptic = "haptic",
        /// SSH and programs: may request, never confirm.
        Remote = "remote",
        /// Physical presence on the serial line or a virtual terminal; counts as visual.
        Console = "console",
        /// A requester driven by the person at the seat: the active modality at request time.
        Current = "current",
    }
}

/// How much a principal is trusted: opens action classes, never removes a gate (C36, R-225).
///
/// 0 observes only; 1 may read, navigate, activate and type; 2 may ask for what a person confirms;
/// 3 may ask for what a person confirms through another modality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrustLevel(u8);

impl TrustLevel {
    /// Observe only.
    pub const OBSERVE: Self = Self(0);
    /// Ordinary use.
    pub const USER: Self = Self(1);
    /// May ask for what a person confirms.
    pub const ELEVATED: Self = Self(2);
    /// May ask for what a person confirms through another modality.
    pub const SYSTEM: Self = Self(3);

    /// A level from its number; `None` above 3.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        if level <= 3 { Some(Self(level)) } else { None }
    }

    /// The level of a manifest's `auth_level` word; `None` makes the manifest invalid.
    #[must_use]
    pub fn from_auth_level(word: Option<&str>) -> Option<Self> {
        match word {
            Some("observe") => Some(Self::OBSERVE),
            None | Some("user") => Some(Self::USER),
            Some("elevated") => Some(Self::ELEVATED),
            Some("system") => Some(Self::SYSTEM),
            Some(_) => None,
        }
    }

    /// The number, 0 to 3.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

/// The authenticated caller of an intent. The pid is for records only; decisions use the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthPrincipal {
    /// The kernel's user id of the peer.
    pub uid: u32,
    /// The peer's process id when it connected, where the kernel told it.
    pub pid: Option<i32>,
    /// The highest domain that the principal reaches.
    pub domain: Domain,
    /// Which classes it may ask for.
    pub trust: TrustLevel,
    /// May change policy, trust, revocation and keys.
    pub admin: bool,
    /// May answer confirmation prompts.
    pub confirmer: bool,
    /// How its connections reach a person.
    pub modality: Modality,
    /// Its own request rate per second and connection, where root's file sets one.
    pub rate_per_second: Option<u32>,
}

/// What an application is told about the invocation it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvocationContext {
    /// The operation's id.
    pub operation_id: OperationId,
    /// The caller's user id.
    pub uid: u32,
    /// The caller's domain.
    pub domain: Domain,
    /// The caller's trust level.
    pub trust: TrustLevel,
    /// The caller's modality.
    pub modality: Modality,
    /// The tier that serves the invocation.
    pub tier: Tier,
    /// Milliseconds left of the budget when the invocation was sent.
    pub budget_ms: u64,
}
