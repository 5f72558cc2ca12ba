//! The tools that start a program in a world of its own, where nothing outside says what it is.

use std::fmt;

use serde::Serialize;

/// A container tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
#[expect(missing_docs, reason = "each is the tool's own name")]
pub enum Sandbox {
    Flatpak,
    Snap,
    Bwrap,
    Firejail,
    Toolbox,
    Distrobox,
    Podman,
    Docker,
}

impl Sandbox {
    /// The tool's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flatpak => "flatpak",
            Self::Snap => "snap",
            Self::Bwrap => "bwrap",
            Self::Firejail => "firejail",
            Self::Toolbox => "toolbox",
            Self::Distrobox => "distrobox",
            Self::Podman => "podman",
            Self::Docker => "docker",
        }
    }

    /// The container that a command line enters, by its words from the program on.
    pub(super) fn entered(program: &str, arguments: &[String]) -> Option<Self> {
        if let Some(exported) = exported(program) {
            return Some(exported);
        }
        let verb = || arguments.iter().map(String::as_str).find(|word| !word.starts_with('-'));
        match program.rsplit('/').next().unwrap_or(program) {
            "flatpak" if verb() == Some("run") => Some(Self::Flatpak),
            "snap" if verb() == Some("run") => Some(Self::Snap),
            "bwrap" => Some(Self::Bwrap),
            "firejail" => Some(Self::Firejail),
            "toolbox" if verb() == Some("run") => Some(Self::Toolbox),
            "distrobox-enter" => Some(Self::Distrobox),
            "distrobox" if verb() == Some("enter") => Some(Self::Distrobox),
            "podman" if matches!(verb(), Some("run" | "exec")) => Some(Self::Podman),
            "docker" if matches!(verb(), Some("run" | "exec")) => Some(Self::Docker),
            _ => None,
        }
    }
}

/// The folders where containers put a starter for each of their applications.
fn exported(program: &str) -> Option<Sandbox> {
    let (folder, _) = program.rsplit_once('/')?;
    match folder {
        "/snap/bin" | "/var/lib/snapd/snap/bin" => Some(Sandbox::Snap),
        _ if folder.ends_with("/flatpak/exports/bin") => Some(Sandbox::Flatpak),
        _ => None,
    }
}

impl fmt::Display for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
