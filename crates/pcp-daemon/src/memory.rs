//! How the daemon treats the allocator: what the start and a look through the files needed for a moment is not kept for the
//! months of rest that follow.

/// From this size on an allocation is a mapping of its own, in bytes: the pages of a buffer that is never filled are never
/// touched, and freeing it returns them at once. The allocator's default grows with what was freed; a fixed one does not.
#[cfg(target_env = "gnu")]
const MAPPED_FROM: nix::libc::c_int = 64 * 1024;

/// Sets the allocator up, once, before the daemon allocates.
///
/// Source: R-150 (whole-daemon memory).
pub(crate) fn settle() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "only the allocator itself can be told")]
    // SAFETY: `mallopt` takes its own locks and changes how later allocations are made, none that exists.
    unsafe {
        // Where it is refused, the default stands and the daemon is merely bigger.
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, MAPPED_FROM);
    }
}

/// Returns the allocator's free pages to the system: after the start and after a pass that read files. Takes well under a
/// millisecond; nothing in use moves.
///
/// Source: R-150.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    #[allow(unsafe_code, reason = "only the allocator itself can give its free pages back")]
    // SAFETY: `malloc_trim` takes its own locks and touches only memory that nobody holds.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}
