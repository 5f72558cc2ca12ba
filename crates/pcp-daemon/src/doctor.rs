//! What the daemon knows of its own health, as checks with a next step each.

use pcp_core::{AdapterState, CapabilityRegistry, DetectionMethod, Trail};
use pcp_registry::AdapterRow;
use serde_json::{Value, json};

use crate::daemon::Core;
use crate::detection::{Mode, Report};

/// Files that were left out and are named one by one; the rest is counted.
const MAX_SKIPS_TOLD: usize = 20;

/// One check of the report.
fn check(name: &str, state: &str, detail: impl Into<String>, fix: Option<&str>) -> Value {
    json!({ "name": name, "state": state, "detail": detail.into(), "fix": fix })
}

/// The report: `{"checks":[{"name","state","detail","fix"}]}`; a state is `ok`, `warning`, `problem` or `absent`.
pub(crate) fn report(core: &Core) -> Value {
    let mut checks = vec![audit(core), pins(core)];
    checks.extend(core.table.problems().iter().map(|error| {
        check("principals", "problem", error.to_string(), Some("mend the file and restart the daemon"))
    }));
    if core.table.problems().is_empty() {
        let (principals, apps) = (core.table.principals().count(), core.table.apps().count());
        checks.push(check("principals", "ok", format!("{principals} principals, {apps} applications"), None));
    }
    checks.extend(applications(core));
    checks.extend(detection(&core.detected.get()));
    let rows = core.adapters.borrow().rows();
    checks.extend(DetectionMethod::ALL.iter().map(|method| adapter(*method, &rows)));
    json!({ "version": env!("CARGO_PKG_VERSION"), "checks": checks })
}

fn audit(core: &Core) -> Value {
    if let Some(fault) = core.audit.fence() {
        let fix = "mend the disk and restart the daemon; until then nothing but reads runs";
        return check("audit", "problem", fault.to_string(), Some(fix));
    }
    let trails: Vec<_> = Trail::ALL.iter().map(|trail| (*trail, core.audit.status(*trail))).collect();
    if let Some((trail, _)) = trails.iter().find(|(_, status)| status.full) {
        let detail = format!("the disk is full: the {trail} trail takes no more, and no effect runs");
        let fix = "free space in the state directory; effects come back by themselves";
        return check("audit", "problem", detail, Some(fix));
    }
    let counts: Vec<String> =
        trails.iter().map(|(trail, status)| format!("{trail} {} records", status.appended)).collect();
    let (segments, without_index) = core.audit.ledger().segments();
    let counts = format!("{}, {segments} closed segments", counts.join(", "));
    if without_index > 0 {
        let detail = format!(
            "{counts}; {without_index} of them have no index and are read when an old operation is asked for"
        );
        let fix =
            "see that the state directory does not fill up, and restart the daemon: it makes them again";
        return check("audit", "warning", detail, Some(fix));
    }
    match trails.iter().map(|(_, status)| status.dropped).sum::<u64>() {
        0 => check("audit", "ok", counts, None),
        lost => {
            let detail = format!("{counts}; {lost} unsynced records were dropped while the disk was full");
            check("audit", "warning", detail, Some("see that the state directory does not fill up"))
        }
    }
}

/// Whether peers are pinned by process descriptor.
fn pins(core: &Core) -> Value {
    if core.peers_are_pinned {
        check("peer identity", "ok", "uid by SO_PEERCRED, process pinned by SO_PEERPIDFD", None)
    } else {
        let detail =
            "this kernel has no SO_PEERPIDFD: a peer's uid is certain, its process is known by number only";
        check("peer identity", "warning", detail, Some("run a kernel of 6.5 or later"))
    }
}

fn applications(core: &Core) -> Vec<Value> {
    let apps = core.registry.apps();
    // What was only predicted from files is not expected to run.
    apps.iter()
        .filter(|app| core.table.app(&app.id).is_some())
        .map(|app| {
            let name = format!("application {}", app.id);
            match &app.problem {
                Some(problem) => check(&name, "problem", &**problem, Some("mend it and restart the daemon")),
                None if !core.is_running(&app.id) => {
                    let detail = format!("{} capabilities; it is not running", app.capabilities.len());
                    check(&name, "warning", detail, Some("start the application"))
                }
                None => check(&name, "ok", format!("{} capabilities, running", app.capabilities.len()), None),
            }
        })
        .collect()
}

/// How changes are noticed, and what was left out.
fn detection(report: &Report) -> Vec<Value> {
    const NAME: &str = "detection";
    let found = format!(
        "{} applications, {} capabilities from {} desktop files in {} \u{b5}s, from_cache {}; {}",
        report.apps, report.capabilities, report.files, report.duration_us, report.from_cache, report.cache
    );
    let mode = match &report.mode {
        Mode::Starting => check(NAME, "ok", found, None),
        Mode::Watching { folders } => {
            check(NAME, "ok", format!("{found}; {folders} folders are watched"), None)
        }
        Mode::Polling { interval_ms, why } => {
            let detail = format!("{found}; looked through every {interval_ms} ms, for {why}");
            check(NAME, "warning", detail, Some("raise fs.inotify.max_user_watches and restart the daemon"))
        }
    };
    let kept = report.skipped.kept();
    let skips = kept.iter().take(MAX_SKIPS_TOLD).map(|skip| {
        let detail = format!("{} was left out: it {}", skip.path.display(), skip.reason);
        check(NAME, "warning", detail, Some("`pcp-cli inspect desktop FILE` says what PCP reads in it"))
    });
    let more = kept.len().saturating_sub(MAX_SKIPS_TOLD) + report.skipped.left_off();
    let rest = (more > 0).then(|| check(NAME, "warning", format!("{more} more files were left out"), None));
    [mode].into_iter().chain(skips).chain(rest).collect()
}

/// The four methods with their tiers; those that this build has no adapter for say so.
fn adapter(method: DetectionMethod, rows: &[AdapterRow]) -> Value {
    let name = format!("{method} (tier {})", method.tier());
    let Some(row) = rows.iter().find(|row| row.method == method) else {
        let detail = match method {
            DetectionMethod::Desktop => "native: not working; the log says why",
            DetectionMethod::Atspi2 => "atspi2: not built",
            DetectionMethod::Wine => "wine: not built",
            DetectionMethod::Simulated => "simulated: not built",
        };
        return check(&name, "absent", detail, None);
    };
    let detail = match &*row.reason {
        "" => format!("{} {}, generation {}", row.name, row.state, row.generation),
        reason => format!("{} {}, generation {}: {reason}", row.name, row.state, row.generation),
    };
    match row.state {
        AdapterState::Ready | AdapterState::Initializing => check(&name, "ok", detail, None),
        AdapterState::Degraded => check(&name, "warning", detail, Some("`pcp-cli adapters` says more")),
        AdapterState::Failed | AdapterState::Shutdown => {
            check(&name, "problem", detail, Some("it is tried again; `pcp-cli adapters` says when"))
        }
    }
}
