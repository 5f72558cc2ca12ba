//! What the kernel says of a running process: its memory, its time, its files. None of it depends on who else runs.

use std::time::Duration;

use nix::unistd::{Pid, SysconfVar, sysconf};

/// One look at a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gauge {
    /// Memory in use, in KiB.
    pub(crate) resident_kib: u64,
    /// The most that ever was, in KiB.
    pub(crate) peak_kib: u64,
    /// Processor time used so far, in user and kernel.
    pub(crate) processor: Duration,
    /// Open files.
    pub(crate) files: usize,
}

impl Gauge {
    /// Looks at `pid`, which has to run.
    pub(crate) fn of(pid: Pid) -> Self {
        let folder = std::path::Path::new("/proc").join(pid.to_string());
        let status = std::fs::read_to_string(folder.join("status")).unwrap();
        let stat = std::fs::read_to_string(folder.join("stat")).unwrap();
        let kib = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        // The name in parentheses may hold anything; utime and stime are the 12th and 13th words after it.
        let words: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let ticks: u64 = words[11].parse::<u64>().unwrap() + words[12].parse::<u64>().unwrap();
        let per_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).unwrap().unwrap()).unwrap();
        Self {
            resident_kib: kib("VmRSS:"),
            peak_kib: kib("VmHWM:"),
            processor: Duration::from_millis(ticks * 1_000 / per_second),
            files: std::fs::read_dir(folder.join("fd")).map_or(0, Iterator::count),
        }
    }
}
