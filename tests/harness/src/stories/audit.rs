//! The trails are whole, and a byte changed in a copy is found out and named.

use serde_json::{Value, json};

use crate::device::{Device, Shell};
use crate::error::Error;
use crate::stories::ask::{Reply, ask, same};
use crate::stories::notes::NOTES;
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "audit",
    about: "three trails are whole; one byte changed in a copy is found, with its file and line",
    needs: &[Need::Console],
    only_by_name: false,
    tell,
};

/// Where the copy lies; the trails themselves are never touched.
const COPY: &str = "/tmp/pcp-story-audit";
/// The line that is changed.
const LINE: u64 = 2;

/// Copies the trails, and says which file is the newest of the applications'.
const TAKE: &str = "set -e
rm -rf /tmp/pcp-story-audit
cp -r /var/lib/portal/pcp/audit /tmp/pcp-story-audit
cd /tmp/pcp-story-audit
ls application.*.jsonl | tail -n 1
";
/// Raises the trust of whoever stands in the second line of `$file`: one byte. Prints how many differ.
const TAMPER: &str = "set -e
cd /tmp/pcp-story-audit
cp $file original
sed -i '2s/\"trust\":[0-9]/\"trust\":9/' $file
cmp -l original $file | wc -l
rm original
";

/// The verdicts of three trails that are whole.
pub(super) fn three_are_whole(shell: &mut dyn Shell, place: &str) -> Result<Value, Error> {
    let data = ask(shell, &format!("audit verify {place}"))?.data()?;
    let trails = data["trails"].as_array().map(Vec::as_slice).unwrap_or_default();
    let verdicts: Vec<_> =
        trails.iter().filter_map(|trail| trail["name"].as_str().zip(trail["verdict"].as_str())).collect();
    let whole = ["application", "compositor", "system"].map(|name| (name, "whole"));
    same("the verdicts", verdicts, whole.to_vec())?;
    Ok(data)
}

fn tell(device: &mut Device) -> Result<Figures, Error> {
    device.reach_ready()?;
    let root = device.root()?;
    // Two lines at least, on a device that has done nothing yet too.
    for _ in 0..LINE {
        ask(root, &format!("exec {NOTES}.list limit:=1"))?.data()?;
    }
    let data = three_are_whole(root, "")?;
    let told = tamper(root);
    let cleared = root.check(&format!("rm -rf {COPY}"));
    told?;
    cleared?;
    let records: u64 =
        data["trails"].as_array().into_iter().flatten().filter_map(|t| t["records"].as_u64()).sum();
    Ok(Figures::from_iter([("records".to_owned(), json!(records))]))
}

fn tamper(root: &mut dyn Shell) -> Result<(), Error> {
    let file = root.check(TAKE)?;
    three_are_whole(root, &format!("--dir {COPY}"))?;
    let changed = root.check(&format!("file={file}\n{TAMPER}"))?;
    same("the number of changed bytes", changed.trim(), "1")?;

    let in_directory = ask(root, &format!("audit verify --dir {COPY}"))?;
    is_named(in_directory, &file)?;
    let alone = ask(root, &format!("audit verify --file {COPY}/{file}"))?;
    is_named(alone, &format!("{COPY}/{file}"))
}

/// The verdict of a broken trail names the place.
fn is_named(reply: Reply, file: &str) -> Result<(), Error> {
    let first_bad = reply.envelope()["data"]["trails"][0]["first_bad"].clone();
    let error = reply.refused(11, "integrity_broken")?;
    same("the bad file", &first_bad["file"], &json!(file))?;
    same("the bad line", &first_bad["line"], &json!(LINE))?;
    let message = error["message"].as_str().unwrap_or_default();
    if message.contains(&format!("{file} line {LINE} ")) {
        return Ok(());
    }
    Err(Error::Finding(format!("the message does not name {file} line {LINE}: {message}")))
}
