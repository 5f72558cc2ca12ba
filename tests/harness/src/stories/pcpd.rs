//! The daemon as a process of the device: ended, and awaited after init has started it again.

use std::time::Duration;

use crate::device::Shell;
use crate::error::Error;

/// Time for init to start the daemon again and for it to answer: two seconds of holding back, recovery of the
/// trails, and room for an emulated processor that a build shares.
pub(super) const BACK_LIMIT: Duration = Duration::from_secs(60);

/// Ends the daemon with `signal` and waits until another one answers. How many seconds of the device's time that
/// took.
pub(super) fn replace(root: &mut dyn Shell, signal: &str, limit: Duration) -> Result<f64, Error> {
    seconds(&root.run(&replace_script("", signal), limit)?.ok("replacing portal-pcpd")?)
}

/// Another process and an answer, both: the old one may still answer while it ends. Prints the uptime at the
/// signal and at the answer, for [`seconds`]. `moment` is a script that waits for the moment of the signal.
pub(super) fn replace_script(moment: &str, signal: &str) -> String {
    format!(
        "old=$(pidof portal-pcpd) || exit 1; {moment}kill -{signal} $old && read -r began idle </proc/uptime && \
         until new=$(pidof portal-pcpd) && [ $new != $old ] && pcp-cli ping >/dev/null 2>&1; \
         do usleep 100000; done; read -r ended idle </proc/uptime; echo $began $ended"
    )
}

/// The seconds between the two uptimes of a [`replace_script`].
pub(super) fn seconds(output: &str) -> Result<f64, Error> {
    let times: Vec<f64> = output.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    match times[..] {
        [began, ended] => Ok(ended - began),
        _ => Err(Error::Finding(format!("portal-pcpd was not replaced: {output}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_replacement_is_between_two_uptimes_and_anything_else_is_a_finding() {
        assert_eq!(seconds("12.50 15.00\n").unwrap(), 2.5);
        for bad in ["", "15.00", "sh: kill: no such process 1 2 3"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
