//! The daemon as a process of the device: ended, and awaited after init has started it again.

use std::time::{Duration, Instant};

use crate::device::Shell;
use crate::error::Error;

/// Time for init to start the daemon again and for it to answer: two seconds of holding back, recovery of the
/// trails, and room for an emulated processor that a build shares.
pub(super) const BACK_LIMIT: Duration = Duration::from_secs(60);

/// Ends the daemon with `signal` and waits until another one answers. How long that took.
pub(super) fn replace(root: &mut dyn Shell, signal: &str, limit: Duration) -> Result<Duration, Error> {
    let began = Instant::now();
    root.run(&replace_script(signal), limit)?.ok("replacing portal-pcpd")?;
    Ok(began.elapsed())
}

/// Another process and an answer, both: the old one may still answer while it ends.
pub(super) fn replace_script(signal: &str) -> String {
    format!(
        "old=$(pidof portal-pcpd) && kill -{signal} $old && \
         until new=$(pidof portal-pcpd) && [ $new != $old ] && pcp-cli ping >/dev/null 2>&1; \
         do usleep 100000; done"
    )
}
