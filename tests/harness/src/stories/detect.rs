//! Applications that are installed while the device runs are known at once, and all of them after a restart.

use std::time::Duration;

use serde_json::json;

use crate::device::{COMMAND_LIMIT, Device, Shell};
use crate::error::Error;
use crate::stories::ask::{ask, same};
use crate::stories::measure::{daemon_rss_mib, within_budgets};
use crate::stories::pcpd::{BACK_LIMIT, replace};
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "detect",
    about: "300 applications are installed and known without running; a restart finds them again within its budget, and \
            2 000 of 10 000 capabilities stay within the daemon's memory",
    needs: &[Need::Console],
    only_by_name: false,
    tell,
};

/// How many are installed.
const APPS: usize = 300;
/// How many are installed for the memory, and the capabilities that they make together at least.
const MANY_APPS: usize = 2_000;
const MANY_CAPABILITIES: usize = 10_000;
/// What the daemon gets to come to rest after a start with as many.
const REST: Duration = Duration::from_secs(20);
/// Where containers export theirs: on the data partition, and not there on a fresh device.
const FOLDER: &str = "/var/lib/flatpak/exports/share/applications";
/// What the device may take to write the files and to see them: an emulated processor, and a serial line.
const SEEN_LIMIT: Duration = Duration::from_secs(120);

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    let root = device.root()?;
    root.check("rm -rf /var/lib/flatpak")?;
    let before = listed(root)?;

    root.run(&install(APPS), SEEN_LIMIT)?.ok("installing applications")?;
    wait_for(root, before + APPS)?;
    let row = ask(root, "show app.org.example.app7.search")?.data()?;
    same("the stability", &row["stability"], &json!("predicted"))?;
    same("whether it runs", &row["executable"], &json!(false))?;
    ask(root, "exec app.org.example.app7.search")?.refused(5, "not_validated")?;

    let warm_start_s = replace(root, "TERM", BACK_LIMIT)?;
    same("the applications after a restart", listed(root)?, before + APPS)?;
    let rss = daemon_rss_mib(root)?;

    root.run(&install(MANY_APPS), SEEN_LIMIT)?.ok("installing many applications")?;
    wait_for(root, before + MANY_APPS)?;
    replace(root, "TERM", BACK_LIMIT)?;
    root.run(&format!("sleep {}", REST.as_secs()), REST + COMMAND_LIMIT)?.ok("waiting")?;
    let capabilities = counted(root, "list")?;
    if capabilities < MANY_CAPABILITIES {
        return Err(Error::Finding(format!("{capabilities} capabilities, fewer than {MANY_CAPABILITIES}")));
    }
    let many_rss = daemon_rss_mib(root)?;

    root.check("rm -rf /var/lib/flatpak")?;
    wait_for(root, before)?;
    within_budgets(&[
        ("warm_start_s", Some(warm_start_s)),
        ("daemon_rss_300_apps_mib", Some(rss)),
        ("daemon_rss_10000_capabilities_mib", Some(many_rss)),
    ])?;
    Ok(Figures::from_iter([
        ("applications".to_owned(), json!(APPS)),
        ("warm_start_s".to_owned(), json!(warm_start_s)),
        ("daemon_rss_mib".to_owned(), json!(rss)),
        ("capabilities".to_owned(), json!(capabilities)),
        ("daemon_rss_with_them_mib".to_owned(), json!(many_rss)),
    ]))
}

/// A script that installs so many, with programs that the image has.
fn install(apps: usize) -> String {
    format!(
        "set -e; mkdir -p {FOLDER}; i=0; while [ $i -lt {apps} ]; do \
         printf '[Desktop Entry]\\nType=Application\\nName=Mail %d\\nExec=/usr/bin/busybox mail\\nCategories=Network;Email;\\n' $i \
         >{FOLDER}/org.example.app$i.desktop; i=$((i + 1)); done"
    )
}

/// How many applications the daemon knows.
fn listed(shell: &mut dyn Shell) -> Result<usize, Error> {
    counted(shell, "apps")
}

/// The number in the last line of a listing.
fn counted(shell: &mut dyn Shell, verb: &str) -> Result<usize, Error> {
    let last = shell.check(&format!("pcp-cli {verb} --format table --color never | tail -n 1"))?;
    let count = last.split_whitespace().next().and_then(|word| word.parse().ok());
    count.ok_or_else(|| Error::Finding(format!("no number in {last:?}, the last line of `pcp-cli {verb}`")))
}

fn wait_for(shell: &mut dyn Shell, wanted: usize) -> Result<(), Error> {
    let script = format!(
        "n=0; while [ $n -lt 100 ]; do pcp-cli apps --format table --color never | tail -n 1 | grep -q '^{wanted} ' && exit 0; \
         usleep 200000; n=$((n + 1)); done; pcp-cli apps --format table --color never | tail -n 1; exit 1"
    );
    let limit = SEEN_LIMIT.max(COMMAND_LIMIT);
    shell.run(&script, limit)?.ok(&format!("{wanted} applications")).map(|_| ())
}
