//! The daemon is killed while it works: what it acknowledged has happened once, what it cannot know it calls unknown.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::device::{COMMAND_LIMIT, Device, Shell};
use crate::error::Error;
use crate::stories::ask::{ask, same};
use crate::stories::audit::three_are_whole;
use crate::stories::notes::{NOTES, fresh_word};
use crate::stories::pcpd;
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "crash",
    about: "kill -9 under load: init brings the daemon back, nothing acknowledged is lost or done twice",
    needs: &[Need::Console],
    only_by_name: false,
    tell,
};

/// Callers at the same time.
const WORKERS: usize = 4;
/// Notes that a caller makes at most, so that a story that is cut off leaves few.
const NOTES_EACH: usize = 150;
/// Kills at least; then more, until one has hit an operation between its claim and its end.
const KILLS: usize = 4;
/// Kills at most.
const MOST_KILLS: usize = 12;
/// Time for a moment to kill in: an operation that is under way.
const MOMENT_LIMIT: Duration = Duration::from_secs(60);
/// Rows of a page of the list, which is the application's limit.
const PAGE: usize = 200;

/// One caller: makes notes under operation ids of its own, and writes down id, title and exit status of each.
/// After a failure it waits until the daemon answers.
const WORKER: &str = r#"#!/bin/sh
cd /tmp/pcp-story-crash
i=0
while [ $i -lt $MOST ] && [ ! -e stop ]; do
    i=$((i + 1))
    ms=$(printf '%012x' $(($(date +%s) * 1000)))
    read -r random </proc/sys/kernel/random/uuid
    op=${ms%????}-${ms#????????}-7${random#*-*-?}
    pcp-cli exec app.org.portal.notes.create title=$WORD.$1.$i --op $op --json >/dev/null 2>&1
    status=$?
    echo "$op $WORD.$1.$i $status" >>log.$1
    [ $status = 0 ] || until [ -e stop ] || pcp-cli ping >/dev/null 2>&1; do usleep 100000; done
done
touch done.$1
"#;
/// Waits until the newest record is a claim without an end: an operation is under way. No process is started
/// between the look and the kill but the one that looks.
const MOMENT: &str = r#"cd /var/lib/portal/pcp/audit
newest=$(ls application.*.jsonl | tail -n 1)
until tail -n 1 $newest | grep -q '"kind":"intent"'; do [ ! -e /tmp/pcp-story-crash/done.1 ] || exit 3; done
"#;
/// Ends of operations that nobody knows, in all trails of the applications.
const UNKNOWN: &str =
    "cat /var/lib/portal/pcp/audit/application.*.jsonl | grep -c '\"terminal\":\"outcome_unknown\"'";

/// An operation as its caller saw it end.
struct Told {
    operation: String,
    title: String,
    status: i32,
}

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    let (back, moment) = (device.patient(pcpd::BACK_LIMIT), device.patient(MOMENT_LIMIT));
    let root = device.root()?;
    let word = fresh_word("crash");
    let unknown_before = count(root, UNKNOWN)?;
    start_workers(root, &word)?;
    let killed = kill_often(root, unknown_before, back, moment);
    root.check("touch /tmp/pcp-story-crash/stop")?;
    root.run("until [ $(ls /tmp/pcp-story-crash/done.* | wc -l) = 4 ]; do usleep 100000; done", back)?
        .ok("waiting for the callers")?;
    let log = root.check("cat /tmp/pcp-story-crash/log.*")?;
    root.check("rm -rf /tmp/pcp-story-crash")?;
    let (kills, slowest) = killed?;

    let told = read_log(&log)?;
    let noted = noted(root, &word)?;
    let ended = ends(root, &told, &noted)?;
    three_are_whole(root, "")?;
    let acknowledged = told.iter().filter(|told| told.status == 0).count();
    let count = |end| ended.get(end).copied().unwrap_or(0);
    if acknowledged == 0 || count("outcome_unknown") == 0 {
        return Err(Error::Finding(format!(
            "{kills} kills met no operation under way: {acknowledged} done, {ended:?} without an answer"
        )));
    }
    Ok(Figures::from_iter([
        ("kills".to_owned(), json!(kills)),
        ("acknowledged".to_owned(), json!(acknowledged)),
        ("unknown".to_owned(), json!(count("outcome_unknown"))),
        ("done_unanswered".to_owned(), json!(count("succeeded"))),
        ("never_begun".to_owned(), json!(count("no claim"))),
        ("slowest_recovery_s".to_owned(), json!((slowest * 100.0).round() / 100.0)),
    ]))
}

fn start_workers(root: &mut dyn Shell, word: &str) -> Result<(), Error> {
    let worker = tempfile::NamedTempFile::new().map_err(Error::io("cannot make a temporary file"))?;
    std::fs::write(worker.path(), WORKER).map_err(Error::io("cannot write a temporary file"))?;
    root.check("rm -rf /tmp/pcp-story-crash && mkdir /tmp/pcp-story-crash")?;
    root.copy_in(worker.path(), "/tmp/pcp-story-crash/worker", 0o700)?;
    for number in 1..=WORKERS {
        root.check(&format!(
            "MOST={NOTES_EACH} WORD={word} setsid /tmp/pcp-story-crash/worker {number} >/dev/null 2>&1 </dev/null &"
        ))?;
    }
    Ok(())
}

/// How many kills there were, and the seconds of the slowest recovery.
fn kill_often(
    root: &mut dyn Shell,
    unknown_before: u64,
    back: Duration,
    moment: Duration,
) -> Result<(usize, f64), Error> {
    let mut slowest: f64 = 0.0;
    let script = pcpd::replace_script(MOMENT, "KILL");
    for kills in 1..=MOST_KILLS {
        let output =
            root.run(&script, moment + back)?.ok("killing portal-pcpd with an operation under way")?;
        slowest = slowest.max(pcpd::seconds(&output)?);
        if kills >= KILLS && count(root, UNKNOWN)? > unknown_before {
            return Ok((kills, slowest));
        }
    }
    Ok((MOST_KILLS, slowest))
}

fn count(root: &mut dyn Shell, command: &str) -> Result<u64, Error> {
    // grep ends with 1 if it counts none.
    let output = root.run(command, COMMAND_LIMIT)?.output;
    output.trim().parse().map_err(|_| Error::Finding(format!("no number from {command:?}: {output}")))
}

fn read_log(log: &str) -> Result<Vec<Told>, Error> {
    let line = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        let (operation, title) = (words.next()?, words.next()?);
        Some(Told { operation, title, status: words.next()?.parse().ok()? })
    };
    log.lines()
        .map(|text| line(text).ok_or_else(|| Error::Finding(format!("no operation in {text:?}"))))
        .collect()
}

/// How often each title of this run is a note.
fn noted(root: &mut dyn Shell, word: &str) -> Result<BTreeMap<String, usize>, Error> {
    let mut found = BTreeMap::new();
    let mut after = 0;
    loop {
        let result = ask(root, &format!("exec {NOTES}.list after:={after} limit:={PAGE}"))?.data()?;
        for note in result["data"]["notes"].as_array().into_iter().flatten() {
            let title = note["title"].as_str().unwrap_or_default();
            if title.starts_with(word) {
                *found.entry(title.to_owned()).or_insert(0) += 1;
            }
        }
        match result["data"]["next"].as_u64() {
            Some(next) => after = next,
            None => return Ok(found),
        }
    }
}

/// Holds every operation against its note and its record; counts how those without an answer ended.
fn ends(
    root: &mut dyn Shell,
    told: &[Told],
    noted: &BTreeMap<String, usize>,
) -> Result<BTreeMap<String, usize>, Error> {
    let mut ended = BTreeMap::new();
    for Told { operation, title, status } in told {
        let notes = noted.get(title).copied().unwrap_or(0);
        let what = format!("the number of notes {title} (operation {operation}, exit status {status})");
        if *status == 0 {
            same(&what, notes, 1)?;
            continue;
        }
        let known = ask(root, &format!("status {operation}"))?.data()?;
        let end = known["terminal"].as_str().unwrap_or(if known.is_null() { "no claim" } else { "no end" });
        match end {
            "succeeded" => same(&what, notes, 1)?,
            "outcome_unknown" if notes <= 1 => {}
            "no claim" | "failed" | "rejected" => same(&what, notes, 0)?,
            _ => return Err(Error::Finding(format!("{what} is {notes}; its record says {end}: {known}"))),
        }
        *ended.entry(end.to_owned()).or_insert(0) += 1;
    }
    let unasked = noted.keys().find(|title| !told.iter().any(|told| &told.title == *title));
    match unasked {
        Some(title) => Err(Error::Finding(format!("nobody asked for the note {title}"))),
        None => Ok(ended),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_line_by_line_and_anything_else_is_refused() {
        let told = read_log("op-1 crash-5.1.1 0\nop-2 crash-5.1.2 9").unwrap();
        assert_eq!(
            (told[1].operation.as_str(), told[1].title.as_str(), told[1].status),
            ("op-2", "crash-5.1.2", 9)
        );
        for bad in ["op-1", "op-1 crash", "op-1 crash x"] {
            assert!(read_log(bad).is_err(), "{bad}");
        }
    }
}
