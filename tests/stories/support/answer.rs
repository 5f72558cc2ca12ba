//! What a run of `pcp-cli` gave.

use std::process::Output;

use serde_json::Value;

/// Exit code, standard output and standard error.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Answer {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout.clone()).unwrap(),
            err: String::from_utf8(output.stderr.clone()).unwrap(),
        }
    }

    /// The envelope: one line, nothing on standard error.
    pub(crate) fn envelope(&self) -> Value {
        assert_eq!(self.err, "", "an envelope leaves standard error alone: {self:?}");
        assert_eq!(self.out.matches('\n').count(), 1, "an envelope is one line: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The data of a run that has to have gone well.
    pub(crate) fn data(&self) -> Value {
        let envelope = self.envelope();
        assert_eq!((self.code, &envelope["ok"]), (0, &Value::Bool(true)), "{self:?}");
        envelope["data"].clone()
    }

    /// The error of a run that has to have ended with `exit` and `code`; gives its message.
    pub(crate) fn refused(&self, exit: i32, code: &str) -> String {
        let envelope = self.envelope();
        let error = &envelope["error"];
        assert_eq!((self.code, error["code"].as_str()), (exit, Some(code)), "{self:?}");
        assert_eq!(envelope["ok"], Value::Bool(false), "{self:?}");
        error["message"].as_str().unwrap().to_owned()
    }
}
