//! A snapshot in a file: what `snapshot --json` wrote, read back as rows by their ids.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::Error;

/// Longest snapshot that is read, in bytes: what a verb takes from the daemon for each kind of row, and the envelope.
const MAX_SNAPSHOT_BYTES: u64 = 129 * 1024 * 1024;

const HINT: &str = "write one by `pcp-cli snapshot --json > FILE`";

/// The members of a row.
pub(super) type Row = Map<String, Value>;

/// What a snapshot holds.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) apps: BTreeMap<String, Row>,
    pub(super) capabilities: BTreeMap<String, Row>,
}

/// The envelope; its data alone, as `jq .data` gives it, has no such member.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Envelope {
    data: Option<Lists>,
    #[serde(flatten)]
    rest: Row,
}

/// What `snapshot` prints.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Lists {
    apps: Vec<Row>,
    capabilities: Vec<Row>,
}

/// The texts of two snapshots, of which one may be standard input.
pub(super) fn read_both(old: &Path, new: &Path) -> Result<[String; 2], Error> {
    if old == Path::new("-") && new == old {
        return Err(Error::usage("standard input cannot be both snapshots", "name a file for one of them"));
    }
    Ok([read(old)?, read(new)?])
}

/// The text of a snapshot; `-` is standard input.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let read = |source: &mut dyn Read| {
        let mut text = String::new();
        // One byte more tells a full file from one that is too long.
        source.take(MAX_SNAPSHOT_BYTES + 1).read_to_string(&mut text).map(|_| text)
    };
    let text = if path == Path::new("-") {
        read(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| read(&mut file))
    };
    match text {
        Ok(text) if text.len() as u64 > MAX_SNAPSHOT_BYTES => Err(refused(format!(
            "{} exceeds the {MAX_SNAPSHOT_BYTES}-byte limit of a snapshot",
            path.display()
        ))),
        Ok(text) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(refused(format!("{} is no snapshot: it is not UTF-8", path.display())))
        }
        Err(error) => Err(Error::file("read the snapshot", path, error)),
    }
}

/// The rows of a snapshot.
pub(super) fn rows(text: &str) -> Result<Rows, Error> {
    let no_snapshot = |why: &dyn std::fmt::Display| {
        refused(format!("a snapshot has a list of apps and one of capabilities: {why}"))
    };
    let envelope: Envelope = serde_json::from_str(text).map_err(|error| no_snapshot(&error))?;
    let data = match envelope.data {
        Some(data) => data,
        None => serde_json::from_value(Value::Object(envelope.rest)).map_err(|error| no_snapshot(&error))?,
    };
    let by_id = |rows: Vec<Row>| {
        let mut found = BTreeMap::new();
        for mut row in rows {
            let Some(Value::String(id)) = row.remove("id") else {
                return Err(no_snapshot(&"a row has no id"));
            };
            found.insert(id, row);
        }
        Ok(found)
    };
    Ok(Rows { apps: by_id(data.apps)?, capabilities: by_id(data.capabilities)? })
}

fn refused(message: String) -> Error {
    Error::usage(message, HINT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcp_core::ErrorCode;

    #[test]
    fn a_snapshot_is_read_with_and_without_its_envelope() {
        let data = r#"{"apps":[{"id":"org.x","version":"1"}],"capabilities":[]}"#;
        for text in [data.to_owned(), format!("{{\"ok\":true,\"data\":{data}}}\n")] {
            let rows = rows(&text).unwrap();
            assert_eq!(rows.apps["org.x"]["version"], "1");
            assert!(rows.capabilities.is_empty());
        }
    }

    #[test]
    fn what_is_no_snapshot_is_a_wrong_command_line() {
        let bad = [
            "",
            "[]",
            "{}",
            r#"{"ok":false,"error":{"code":"x","message":"y"}}"#,
            r#"{"apps":[]}"#,
            r#"{"apps":[{}],"capabilities":[]}"#,
            r#"{"apps":[{"id":1}],"capabilities":[]}"#,
            r#"{"ok":true,"data":[]}"#,
        ];
        for text in bad {
            assert_eq!(rows(text).unwrap_err().code(), ErrorCode::Usage, "{text}");
        }
        let both = read_both(Path::new("-"), Path::new("-")).unwrap_err();
        assert_eq!(both.code(), ErrorCode::Usage);
        let missing = read(Path::new("/nonexistent/before.json")).unwrap_err();
        assert_eq!(missing.code(), ErrorCode::NotFound);
    }

    #[test]
    fn a_snapshot_past_the_limit_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Holes: neither the disk nor the test has to write them.
        file.as_file().set_len(MAX_SNAPSHOT_BYTES + 1).unwrap();
        assert_eq!(read(file.path()).unwrap_err().code(), ErrorCode::Usage);
        file.as_file().set_len(3).unwrap();
        assert!(read(file.path()).is_ok());
    }
}
