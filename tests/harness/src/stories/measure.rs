//! What the device costs, held against the budgets.

use serde_json::{Value, json};

use crate::device::{Device, Shell};
use crate::error::Error;
use crate::measure::GuestMemory;
use crate::stories::ask::ask;
use crate::stories::notes::NOTES;
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "measure",
    about: "memory of device and daemon and the way up are within benches/budgets.toml; latency is reported",
    needs: &[Need::Console],
    only_by_name: false,
    tell,
};

/// The project's budgets, as they were when the harness was built.
const BUDGETS: &str = include_str!("../../../../benches/budgets.toml");
/// Calls of the capability that is timed; the middle one counts.
const CALLS: usize = 9;
/// Round trips of a ping on one connection.
const PINGS: usize = 50;
const KIB_PER_MIB: f64 = 1024.0;

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    let ready = device.last_boot().and_then(|report| report.marks.last().cloned());
    let root = device.root()?;
    let memory = GuestMemory::of(root)?;
    let daemon_rss_mib = daemon_rss_mib(root)?;
    let used_kib = u32::try_from(memory.used_kib).unwrap_or(u32::MAX);
    let ready_cpu_s = ready.as_ref().and_then(|mark| mark.cpu_s);
    let list_us = latency(root)?;
    let ping_us = ask(root, &format!("ping --count {PINGS}"))?.data()?["mean_us"].clone();
    let gated = [
        ("ready_cpu_s", ready_cpu_s),
        ("memory_used_mib", Some(f64::from(used_kib) / KIB_PER_MIB)),
        ("daemon_rss_mib", Some(daemon_rss_mib)),
        ("daemon_threads", Some(threads(root)?)),
    ];
    within_budgets(&gated)?;
    let mut figures: Figures =
        gated.iter().map(|(name, value)| ((*name).to_owned(), json!(value.map(rounded)))).collect();
    figures.insert("ready_wall_s".to_owned(), json!(ready.map(|mark| rounded(mark.wall_s))));
    figures.insert("list_us".to_owned(), list_us);
    figures.insert("ping_mean_us".to_owned(), ping_us);
    Ok(figures)
}

/// Threads of the daemon at rest: a thread that looked through files goes away a second after.
fn threads(root: &mut dyn Shell) -> Result<f64, Error> {
    let count = root.check("sleep 2; ls /proc/$(pidof portal-pcpd)/task | wc -l")?;
    let count: u32 = count.trim().parse().map_err(|_| Error::Finding(format!("no threads but {count:?}")))?;
    Ok(f64::from(count))
}

/// What the daemon holds of the device's memory.
pub(super) fn daemon_rss_mib(root: &mut dyn Shell) -> Result<f64, Error> {
    let kib = root.check("awk '$1 == \"VmRSS:\" { print $2 }' /proc/$(pidof portal-pcpd)/status")?;
    let kib: u32 = kib.trim().parse().map_err(|_| Error::Finding(format!("no VmRSS but {kib:?}")))?;
    Ok(f64::from(kib) / KIB_PER_MIB)
}

/// The daemon's own time for one intent, in the middle of several.
fn latency(shell: &mut dyn Shell) -> Result<Value, Error> {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let result = ask(shell, &format!("exec {NOTES}.list limit:=1"))?.data()?;
        times.push(result["duration_us"].as_u64().unwrap_or(u64::MAX));
    }
    times.sort_unstable();
    Ok(json!({ "least": times[0], "middle": times[CALLS / 2], "most": times[CALLS - 1] }))
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// Every figure that there is stays within the project's budget for it.
pub(super) fn within_budgets(figures: &[(&str, Option<f64>)]) -> Result<(), Error> {
    within(BUDGETS, figures)
}

/// Every figure that there is stays within its budget.
fn within(budgets: &str, figures: &[(&str, Option<f64>)]) -> Result<(), Error> {
    let mut over = Vec::new();
    for &(name, value) in figures {
        let budget = budget(budgets, name)
            .ok_or_else(|| Error::Finding(format!("benches/budgets.toml has no [guest] {name}")))?;
        if let Some(value) = value.filter(|&value| value > budget) {
            over.push(format!("{name} is {value:.2}, over the budget of {budget}"));
        }
    }
    if over.is_empty() { Ok(()) } else { Err(Error::Finding(over.join("; "))) }
}

/// A number of the table `[guest]`.
fn budget(budgets: &str, name: &str) -> Option<f64> {
    let table = budgets.split_once("[guest]")?.1;
    let table = table.split("\n[").next()?;
    let line = table.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='))?;
    line.split('#').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_at_its_budget_is_within_and_one_above_is_named() {
        let budgets = "[project]\na = 1\n[guest]\na = 20   # why\nb=4\n\n[other]\nc = 9\n";
        assert!(within(budgets, &[("a", Some(20.0)), ("b", None)]).is_ok());
        let error = within(budgets, &[("a", Some(20.1)), ("b", Some(5.0))]).unwrap_err();
        assert_eq!(error.to_string(), "a is 20.10, over the budget of 20; b is 5.00, over the budget of 4");
        assert!(within(budgets, &[("c", Some(1.0))]).is_err(), "a figure without a budget is no pass");
    }

    #[test]
    fn the_budgets_that_are_gated_exist() {
        for name in [
            "ready_cpu_s",
            "memory_used_mib",
            "daemon_rss_mib",
            "daemon_threads",
            "warm_start_s",
            "daemon_rss_300_apps_mib",
            "daemon_rss_10000_capabilities_mib",
        ] {
            assert!(budget(BUDGETS, name).is_some(), "{name}");
        }
    }
}
