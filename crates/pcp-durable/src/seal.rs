//! Seals: what makes a cut tail, an older copy and a rewritten chain evident.
//!
//! Time is divided into epochs. Each ends with a record in every trail that carries a MAC under the key of the
//! epoch and names where the other trails stand; then the key takes a step that cannot be taken back and the
//! old one is overwritten, so whoever takes the device over cannot make the past anew. A file outside the
//! trails, the anchor, names their heads more often than that. `FORMAT.md` has the bytes.

mod anchor;
mod check;
mod key;
mod line;
mod lookout;
mod sealer;
mod setup;
mod vault;

pub(crate) use check::{ANCHOR, Checker};
pub use check::{SealFault, Sealed};
pub(crate) use key::mac;
pub use key::{KEY_TEXT_BYTES, VerificationKey};
pub(crate) use line::{epoch_of, write};
pub(crate) use lookout::{Lookout, cut_short};
pub(crate) use sealer::Sealer;
pub use setup::{MAX_REASON_BYTES, set_up_keys};

pub(crate) use vault::VaultState;

/// The directory of the key and the anchor, beside that of the trails.
pub const SEAL_DIRECTORY: &str = "/var/lib/portal/pcp/seal";
