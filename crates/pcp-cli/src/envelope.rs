//! The one line that programs read: `{"ok":true,"data":…}` or `{"ok":false,"error":{…}}`.
//!
//! S3's verbs have exactly the members `code` and `message` in an error. The others may add `hint`, `stage`
//! and `audit_hash`, and `data` beside the error where a verb found something and that is the trouble: the
//! checks of `doctor`, the trails of `audit verify`, the result of an `exec` that was refused.

use pcp_core::{ErrorCode, PcpError, Stage};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::escape;

/// What is wrong, as the envelope says it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// The stable word; it decides the exit code.
    pub(crate) code: ErrorCode,
    /// The thing, the value, the limit.
    pub(crate) message: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
    /// The stage of the pipeline that refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stage: Option<Stage>,
    /// The record of it in the trail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) audit_hash: Option<String>,
}

impl Problem {
    /// A problem without further members.
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, stage: None, audit_hash: None }
    }

    /// With the next step.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// As S3 has it: two members.
    pub(crate) fn bare(self) -> Self {
        Self::new(self.code, self.message)
    }
}

impl From<&PcpError> for Problem {
    fn from(error: &PcpError) -> Self {
        let hint = error.hint.as_deref().map(str::to_owned);
        Self { hint, stage: error.stage, ..Self::new(error.code, &*error.message) }
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let message = match error.cause() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        let stage = match error {
            Error::Daemon(pcp_ipc::Error::Refused(refusal)) => refusal.error.stage,
            _ => None,
        };
        Self { hint: error.hint(), stage, ..Self::new(error.code(), message) }
    }
}

#[derive(Serialize)]
struct Envelope<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Problem>,
}

/// The envelope's line, its end included. `data` is JSON.
///
/// # Errors
/// When `data` is none.
pub(crate) fn line(data: Option<&str>, problem: Option<&Problem>) -> Result<String, Error> {
    let data = data.map(serde_json::from_str::<&RawValue>).transpose()?;
    let envelope = Envelope { ok: problem.is_none(), data, error: problem };
    let mut line = escape::json(&serde_json::to_string(&envelope)?);
    line.push('\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_has_the_members_of_the_contract_and_no_others() {
        let refused = PcpError::new(ErrorCode::PermissionDenied, "not yours").hint("ask").at(Stage::Classify);
        let mut full = Problem::from(&refused);
        full.audit_hash = Some("5f".into());
        let table = [
            (line(Some("{\"pong\":1}"), None), "{\"ok\":true,\"data\":{\"pong\":1}}\n"),
            (line(Some("null"), None), "{\"ok\":true,\"data\":null}\n"),
            (
                line(None, Some(&full.clone().bare())),
                "{\"ok\":false,\"error\":{\"code\":\"permission_denied\",\"message\":\"not yours\"}}\n",
            ),
            (
                line(Some("[]"), Some(&full)),
                "{\"ok\":false,\"data\":[],\"error\":{\"code\":\"permission_denied\",\"message\":\"not yours\",\
                 \"hint\":\"ask\",\"stage\":\"classify\",\"audit_hash\":\"5f\"}}\n",
            ),
        ];
        for (found, wanted) in table {
            assert_eq!(found.unwrap(), wanted);
        }
    }

    #[test]
    fn what_an_application_laid_out_in_lines_is_one_harmless_line() {
        let found = line(Some("{\n  \"a\": \"\u{202e}x\u{9b}\"\n}"), None).unwrap();
        assert_eq!(found, "{\"ok\":true,\"data\":{   \"a\": \"\\u202ex\\u009b\" }}\n");
    }

    #[test]
    fn data_that_is_no_json_is_refused() {
        for bad in ["", "{", "{} {}", "nul"] {
            assert_eq!(line(Some(bad), None).unwrap_err().code(), ErrorCode::SerializationError, "{bad}");
        }
    }
}
