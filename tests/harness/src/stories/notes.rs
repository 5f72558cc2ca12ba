//! The reference application, used over the network as a person would.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::device::{Device, Shell};
use crate::error::Error;
use crate::stories::ask::{ask, same};
use crate::story::{Figures, Need, Story};

pub(super) const STORY: Story = Story {
    name: "notes",
    about: "notes are made, found, read and edited over SSH, the trail has it; deleting waits for a person",
    needs: &[Need::Ssh],
    only_by_name: false,
    tell,
};

/// What every capability of the application begins with.
pub(super) const NOTES: &str = "app.org.portal.notes";

/// A word that no earlier run has used: stories leave their notes behind, since only a person may delete.
pub(super) fn fresh_word(story: &str) -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{story}-{}", since.as_millis())
}

/// The data of a result that had to succeed, with the result around it.
fn exec(shell: &mut dyn Shell, words: &str) -> Result<(Value, Value), Error> {
    let result = ask(shell, &format!("exec {NOTES}.{words}"))?.data()?;
    same(words, &result["terminal"], &json!("succeeded"))?;
    Ok((result["data"].clone(), result))
}

fn tell(device: &mut Device) -> Result<Figures, Error> {
    let title = fresh_word("notes");
    let operator = device.operator()?;
    let (made, created) = exec(operator, &format!("create title={title} body='two litres'"))?;
    same("the effect", &created["effect"], &json!("verified"))?;
    same("the first revision", &made["revision"], &json!(1))?;
    let id = made["id"].as_u64().ok_or_else(|| Error::Finding(format!("no id in {created}")))?;

    let (listed, _) = exec(operator, &format!("list after:={} limit:=1", id - 1))?;
    let row = &listed["notes"][0];
    same("the listed note", (&row["id"], &row["title"]), (&json!(id), &json!(title)))?;
    let (edited, edit) = exec(operator, &format!("edit id:={id} body='three litres' expected_revision:=1"))?;
    same("the second revision", &edited["revision"], &json!(2))?;
    let (found, _) = exec(operator, &format!("search query={title}"))?;
    same("the found note", &found["matches"][0]["id"], &json!(id))?;
    let stale = ask(operator, &format!("exec {NOTES}.edit id:={id} body=none expected_revision:=1"))?;
    stale.refused(10, "conflict")?;

    for words in [format!("delete id:={id}"), format!("export id:={id} format=text")] {
        let error =
            ask(operator, &format!("exec {NOTES}.{words}"))?.refused(6, "confirmation_unavailable")?;
        same("the stage", &error["stage"], &json!("check_permissions"))?;
    }
    let (read, _) = exec(operator, &format!("read id:={id}"))?;
    let text = (&read["title"], &read["body"], &read["revision"]);
    same("the note after the refusals", text, (&json!(title), &json!("three litres"), &json!(2)))?;

    // Only root reads the trails, and root is on the console.
    let trail = match device.has(Need::Console) {
        Ok(()) => {
            stands_in_the_trail(device, &created)?;
            stands_in_the_trail(device, &edit)?;
            "has the effects"
        }
        Err(reason) => reason,
    };
    Ok(Figures::from_iter([("trail".to_owned(), json!(trail))]))
}

/// The hash that the caller was given is the hash of the record that root reads.
fn stands_in_the_trail(device: &mut Device, result: &Value) -> Result<(), Error> {
    let operation = result["operation_id"].as_str().unwrap_or_default();
    let records = ask(device.root()?, &format!("audit show --op {operation}"))?.data()?;
    let records = records.as_array().map(Vec::as_slice).unwrap_or_default();
    let kinds: Vec<_> = records.iter().filter_map(|record| record["kind"].as_str()).collect();
    same("the records of an effect", kinds, vec!["intent", "terminal"])?;
    for record in records {
        same("the record's trail", &record["trail"], &json!("application"))?;
        same("the record's caller", &record["caller"]["modality"], &json!("remote"))?;
    }
    same("the hash of the last record", &records[1]["audit_hash"], &result["audit_hash"])
}
