//! Lines of the trails, as they stand on the disk.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The trails, by the names of their files.
pub(crate) const TRAILS: [&str; 3] = ["application", "compositor", "system"];

/// One record.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) trail: &'static str,
    pub(crate) text: String,
    pub(crate) record: Value,
}

impl Line {
    /// What the next line calls it, and a result its audit hash.
    pub(crate) fn hash(&self) -> String {
        hex(&Sha256::digest(self.text.as_bytes()))
    }

    /// A member that is a word, empty where it is none.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.record[name].as_str().unwrap_or_default()
    }
}

/// All records of the audit directory, trail by trail.
pub(crate) fn lines(directory: &Path) -> Vec<Line> {
    TRAILS.iter().flat_map(|trail| of_trail(directory, trail)).collect()
}

fn of_trail(directory: &Path, trail: &'static str) -> Vec<Line> {
    let mut found = Vec::new();
    for number in 1.. {
        let Ok(text) = std::fs::read_to_string(directory.join(format!("{trail}.{number:06}.jsonl"))) else {
            break;
        };
        assert!(text.is_empty() || text.ends_with('\n'), "{trail} ends inside a line");
        found.extend(text.split_terminator('\n').map(|line| Line {
            trail,
            text: line.to_owned(),
            record: serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")),
        }));
    }
    found
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
