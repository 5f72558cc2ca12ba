//! Asking the device's own `pcp-cli`, and reading its envelope.

use serde_json::Value;

use crate::device::{Answer, COMMAND_LIMIT, Shell, quote};
use crate::error::Error;

/// What `pcp-cli` answered.
#[derive(Debug, Clone)]
pub(super) struct Reply {
    asked: String,
    status: i32,
    envelope: Value,
}

/// Asks `pcp-cli` with `words`, which the device's shell reads.
pub(super) fn ask(shell: &mut dyn Shell, words: &str) -> Result<Reply, Error> {
    let command = format!("pcp-cli {words} --json");
    let answer = shell.run(&command, COMMAND_LIMIT)?;
    Reply::read(command, &answer)
}

/// Asks as another user; only root's shell can.
pub(super) fn ask_as(root: &mut dyn Shell, user: &str, words: &str) -> Result<Reply, Error> {
    let command = format!("pcp-cli {words} --json");
    let command = format!("su -s /bin/sh -c {} {user}", quote(&command));
    let answer = root.run(&command, COMMAND_LIMIT)?;
    Reply::read(command, &answer)
}

impl Reply {
    /// The envelope is one line; notices on the other stream may stand around it.
    fn read(asked: String, answer: &Answer) -> Result<Self, Error> {
        let line = answer.output.lines().rev().find(|line| line.starts_with('{'));
        match line.map(serde_json::from_str) {
            Some(Ok(envelope)) => Ok(Self { asked, status: answer.status, envelope }),
            _ => Err(Error::Finding(format!("{asked:?} gave no envelope but: {}", answer.output))),
        }
    }

    /// The data of what had to succeed.
    pub(super) fn data(self) -> Result<Value, Error> {
        match (self.status, &self.envelope["ok"]) {
            (0, Value::Bool(true)) => Ok(self.envelope["data"].clone()),
            _ => Err(self.unexpected("success")),
        }
    }

    /// The error of what had to end with `status` and `code`.
    pub(super) fn refused(self, status: i32, code: &str) -> Result<Value, Error> {
        let error = &self.envelope["error"];
        if self.status == status && self.envelope["ok"] == false && error["code"] == code {
            return Ok(error.clone());
        }
        Err(self.unexpected(&format!("status {status} and {code}")))
    }

    /// The word that says how it ended: `ok`, or the error's code.
    pub(super) fn code(&self) -> &str {
        match self.status {
            0 => "ok",
            _ => self.envelope["error"]["code"].as_str().unwrap_or("?"),
        }
    }

    /// Everything it said, whatever its status.
    pub(super) fn envelope(&self) -> &Value {
        &self.envelope
    }

    /// The exit status.
    pub(super) fn status(&self) -> i32 {
        self.status
    }

    /// That it came otherwise than `wanted`.
    pub(super) fn unexpected(&self, wanted: &str) -> Error {
        Error::Finding(format!(
            "{:?} was to end with {wanted}, and ended with status {}: {}",
            self.asked, self.status, self.envelope
        ))
    }
}

/// Fails with `what` unless both are the same.
pub(super) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), Error> {
    if found == wanted { Ok(()) } else { Err(Error::Finding(format!("{what} is {found:?}, not {wanted:?}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: i32, output: &str) -> Result<Reply, Error> {
        Reply::read("pcp-cli x".to_owned(), &Answer { status, output: output.to_owned() })
    }

    #[test]
    fn an_envelope_is_found_between_notices_and_read_by_its_end() {
        let done = reply(0, "waiting\n{\"ok\":true,\"data\":{\"id\":1}}\nlate notice").unwrap();
        assert_eq!(done.code(), "ok");
        assert_eq!(done.data().unwrap()["id"], 1);

        let text = "{\"ok\":false,\"error\":{\"code\":\"permission_denied\",\"message\":\"no\"}}";
        let denied = reply(5, text).unwrap();
        assert_eq!(denied.code(), "permission_denied");
        assert_eq!(denied.clone().refused(5, "permission_denied").unwrap()["message"], "no");
        for wrong in [denied.clone().refused(4, "permission_denied"), denied.clone().refused(5, "conflict")] {
            assert!(wrong.unwrap_err().to_string().contains("ended with status 5"));
        }
        assert!(denied.data().is_err());
        assert!(reply(0, text).unwrap().data().is_err(), "status and envelope have to agree");
        assert!(reply(127, "sh: pcp-cli: not found").is_err());
    }
}
