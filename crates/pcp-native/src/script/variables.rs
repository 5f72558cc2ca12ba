//! The variables of a shell script, as far as their values can be known without running it.

use std::collections::HashMap;
use std::path::Path;

use super::base_name;
use super::word::is_name;

/// Most variables of a script that are remembered.
const MAX_VARIABLES: usize = 256;

/// Variables that come from outside: what they hold cannot be known.
const OUTSIDE: [&str; 12] = [
    "HOME", "PATH", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "DISPLAY", "LANG", "TMPDIR", "UID",
    "HOSTNAME",
];

/// What a script has set so far.
#[derive(Debug)]
pub(super) struct Variables {
    script: String,
    set: HashMap<String, Option<String>>,
}

impl Variables {
    pub(super) fn new(script: &Path) -> Self {
        Self { script: script.to_string_lossy().into_owned(), set: HashMap::new() }
    }

    /// The path of the script itself.
    pub(super) fn script(&self) -> &str {
        &self.script
    }

    /// Remembers a value. A value that is known is kept when another branch sets one that is not.
    pub(super) fn set(&mut self, name: String, value: Option<String>) {
        let known = self.set.contains_key(&name);
        if (known && value.is_none()) || (!known && self.set.len() >= MAX_VARIABLES) {
            return;
        }
        self.set.insert(name, value);
    }

    /// The value of a variable: empty where nobody sets it, as in the shell.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        match self.set.get(name) {
            Some(value) => value.clone(),
            None if OUTSIDE.contains(&name) || name.starts_with("XDG_") => None,
            None => Some(String::new()),
        }
    }
}

/// `${NAME}`, `${NAME:-other}`, `${0%/*}`: what stands in the braces.
pub(super) fn braces(inner: &str, variables: &Variables) -> Option<String> {
    let length = inner.bytes().position(|byte| !is_name(byte)).unwrap_or(inner.len());
    let (name, rest) = inner.split_at_checked(length)?;
    let value = if name == "0" { Some(variables.script.clone()) } else { variables.get(name) };
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    if name.is_empty() || (digits && name != "0") {
        return None;
    }
    match rest {
        "" => value,
        "%/*" => value.map(|path| folder(&path)),
        "##*/" => value.map(|path| base_name(&path).to_owned()),
        _ => {
            let other = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'))?;
            let simple = !other.contains(['$', '`', '\\']);
            let other = simple.then(|| other.trim_matches(['"', '\'']).to_owned());
            value.filter(|value| !value.is_empty()).or(other)
        }
    }
}

/// The folder of a path, as `dirname` prints it.
pub(super) fn folder(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => ".".to_owned(),
    }
}
