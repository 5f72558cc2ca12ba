//! Who is who on a device: users of their own where the test may become them, and one user for all where not.

use std::io::Write as _;

use nix::unistd::geteuid;

/// Numeric ids that no account of a machine has; nothing needs an entry in `/etc/passwd`.
const FIRST: u32 = 61_000;

/// The users and groups of one device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uids {
    /// Runs the daemon.
    pub(crate) daemon: u32,
    /// Runs the fake application; the ids after it run further ones.
    pub(crate) app: u32,
    /// Runs the notes.
    pub(crate) notes: u32,
    /// Principals of the three domains.
    pub(crate) callers: [u32; 3],
    /// In no principal file.
    pub(crate) stranger: u32,
    /// Owns the socket directory; applications and the daemon are in it.
    pub(crate) apps_group: u32,
    /// May connect to the daemon.
    pub(crate) clients_group: u32,
}

impl Uids {
    /// Those of a device whose parts are different users.
    const SEVERAL: Self = Self {
        daemon: FIRST + 1,
        app: FIRST + 20,
        notes: FIRST + 3,
        callers: [FIRST + 11, FIRST + 12, FIRST + 13],
        stranger: FIRST + 14,
        apps_group: FIRST + 101,
        clients_group: FIRST + 102,
    };

    /// Several users as root, and otherwise everything under the user who runs the test.
    pub(crate) fn of_this_machine() -> Self {
        if are_several() {
            return Self::SEVERAL;
        }
        let own = own();
        Self {
            daemon: own,
            app: own,
            notes: own,
            callers: [own; 3],
            stranger: own,
            apps_group: nix::unistd::getegid().as_raw(),
            clients_group: nix::unistd::getegid().as_raw(),
        }
    }

    /// The uid that owns root's files: root, or whoever plays root.
    pub(crate) fn files_owner() -> u32 {
        own()
    }
}

/// The user who runs the test.
pub(crate) fn own() -> u32 {
    geteuid().as_raw()
}

/// Whether the test may become other users.
pub(crate) fn are_several() -> bool {
    geteuid().is_root()
}

/// Whether a story about several users can be told. Where it cannot, it says so.
pub(crate) fn can_tell(story: &str) -> bool {
    if !are_several() {
        skipped(story, "needs root for several uids; the device story \"walls\" covers it");
    }
    are_several()
}

/// Says that a story was not told. Written past the test runner's capture, so that whoever runs the tests sees it.
pub(crate) fn skipped(story: &str, why: &str) {
    let _ = std::io::stderr().write_all(format!("skipped: {story}: {why}\n").as_bytes());
}
