//! Figures of a run: processor time of the emulator, memory of the guest.

use std::fs;

use serde::Serialize;

use crate::device::Shell;
use crate::error::Error;

/// Ticks a second in `/proc/PID/stat`: fixed in the kernel's interface (USER_HZ) on every Linux architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor seconds, user and system, of a process; `None` if there is no such process. Under an emulator this
/// is the figure to compare: wall time on a busy host is three to ten times as long.
#[must_use]
pub fn process_cpu_seconds(pid: u32) -> Option<f64> {
    ticks(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

fn ticks(stat: &str) -> Option<f64> {
    // The name in the second field may hold spaces and parentheses; the rest begins after the last one.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A dead process that nobody has waited for still has figures, but they are no longer its own.
    if matches!(fields.first(), Some(&"Z" | &"X")) {
        return None;
    }
    let field = |index: usize| fields.get(index)?.parse::<u32>().ok();
    Some((f64::from(field(11)?) + f64::from(field(12)?)) / TICKS_PER_SECOND)
}

/// Memory of the guest in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GuestMemory {
    /// What the kernel manages.
    pub total_kib: u64,
    /// What is neither free nor cache that can be dropped: the `used` column of `free`.
    pub used_kib: u64,
    /// What new programs could have without swapping.
    pub available_kib: u64,
}

impl GuestMemory {
    /// Asks the device.
    ///
    /// # Errors
    /// Those of the shell, and [`Error::Finding`] if the answer is no memory table.
    pub fn of(shell: &mut dyn Shell) -> Result<Self, Error> {
        let table = shell.check("cat /proc/meminfo")?;
        Self::parse(&table).ok_or_else(|| Error::Finding(format!("no memory table in {table:?}")))
    }

    fn parse(table: &str) -> Option<Self> {
        let value = |name: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let total_kib = value("MemTotal")?;
        let unused = ["MemFree", "Buffers", "Cached", "SReclaimable"].map(|name| value(name).unwrap_or(0));
        let used_kib = total_kib.checked_sub(unused.iter().sum())?;
        Some(Self { total_kib, used_kib, available_kib: value("MemAvailable")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_past_any_process_name() {
        let stat = "7 (qemu) (x y) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 3 0";
        assert_eq!(ticks(stat), Some(2.0));
        assert_eq!(ticks("7 (qemu) Z 1 7 7 0 -1 0 0 0 0 0 150 50 0 0"), None);
        assert_eq!(ticks("nonsense"), None);
        assert!(process_cpu_seconds(std::process::id()).is_some());
    }

    #[test]
    fn guest_memory_is_what_free_says() {
        let table = "MemTotal:  240000 kB\nMemFree:  180000 kB\nMemAvailable: 210000 kB\nBuffers: 1000 kB\n\
                     Cached:  30000 kB\nSwapCached: 5 kB\nSReclaimable: 4000 kB\n";
        let memory = GuestMemory { total_kib: 240_000, used_kib: 25_000, available_kib: 210_000 };
        assert_eq!(GuestMemory::parse(table), Some(memory));
        assert_eq!(GuestMemory::parse("sh: cat: not found"), None);
    }
}
