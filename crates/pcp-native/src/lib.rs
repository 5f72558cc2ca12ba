//! Tier 1: what files declare.
//!
//! Reads what applications say about themselves in files that root registered, and turns it into capability
//! descriptors. It starts nothing and asks no application; whether a key is trusted is `pcp-trust`'s word, and
//! what is registered is the daemon's. Start with [`load_manifest`].

pub mod adapter;
pub mod cache;
pub mod descriptor;
pub mod desktop;
pub mod detector;
pub mod elf;
pub mod manifest_file;
pub mod predict;
pub mod program;
pub mod report;
pub mod script;
pub mod toolkit;

pub use adapter::NativeAdapter;
pub use cache::{DetectionCache, Finding};
pub use detector::{CONFIDENCE_OF_CAPABILITIES, DesktopApp, FoundApp, NativeDetector, Pass};
pub use manifest_file::{JudgedManifest, ManifestQuestion, inspect_manifest, judge_manifest, load_manifest};
pub use predict::predict;
pub use program::{Basis, ProgramKind, ProgramReport, Programs, Root};
pub use report::{ManifestReport, Outcome};
pub use toolkit::Toolkit;
