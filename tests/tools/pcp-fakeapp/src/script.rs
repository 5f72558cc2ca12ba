//! What the application is told to do wrong.

use std::str::FromStr;
use std::time::Duration;

use pcp_core::{ErrorCode, StateSource};

use crate::error::Error;

/// Longest delay that may be asked for: longer than every budget of the daemon.
pub const MAX_DELAY: Duration = Duration::from_secs(600);

/// What an invocation comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Act {
    /// The effect, then the declared result.
    #[default]
    Succeed,
    /// A failure that certifies that nothing changed; and nothing did.
    Refuse(ErrorCode),
    /// The effect, then a failure that certifies nothing: what the daemon must not take for *failed*.
    Fail(ErrorCode),
    /// No effect and no answer, ever.
    HangBefore,
    /// The effect, and then no answer, ever.
    HangAfter,
    /// The effect, then a result that the manifest does not declare.
    WrongResult,
    /// The effect, and the process dies at once.
    DieAfterEffect,
}

/// The whole behaviour, given by flags and changed for one request by its `behave` member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// What an invocation comes to.
    pub act: Act,
    /// Waits this long before anything else.
    pub delay: Duration,
    /// What results say about their source; [`StateSource::Unknown`] is what "not said" means.
    pub state_source: StateSource,
    /// Where `validate_params` finds fault; `None`: nowhere.
    pub reject: Option<String>,
}

impl Default for Script {
    fn default() -> Self {
        Self { act: Act::Succeed, delay: Duration::ZERO, state_source: StateSource::Rust, reject: None }
    }
}

impl FromStr for Act {
    type Err = Error;

    /// `succeed`, `hang_before`, `hang_after`, `wrong_result`, `die_after_effect`, `fail:CODE`,
    /// `fail:CODE:no_effect`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || Error::Behaviour(text.to_owned());
        Ok(match text {
            "succeed" => Self::Succeed,
            "hang_before" => Self::HangBefore,
            "hang_after" => Self::HangAfter,
            "wrong_result" => Self::WrongResult,
            "die_after_effect" => Self::DieAfterEffect,
            _ => {
                let code = text.strip_prefix("fail:").ok_or_else(unknown)?;
                match code.strip_suffix(":no_effect") {
                    Some(code) => Self::Refuse(code.parse().map_err(|_| unknown())?),
                    None => Self::Fail(code.parse().map_err(|_| unknown())?),
                }
            }
        })
    }
}

impl Script {
    /// This script, changed by the words of a request: an [`Act`], `delay:MS`, `state:SOURCE` (`none` is not said)
    /// or `reject:POINTER`; several are separated by commas.
    ///
    /// # Errors
    /// [`Error::Behaviour`] names the word.
    pub fn with(mut self, words: &str) -> Result<Self, Error> {
        for word in words.split(',').map(str::trim) {
            let unknown = || Error::Behaviour(word.to_owned());
            match word.split_once(':') {
                Some(("delay", ms)) => self.delay = delay(ms.parse().map_err(|_| unknown())?),
                Some(("state", source)) => self.state_source = state_source(source).ok_or_else(unknown)?,
                Some(("reject", pointer)) => self.reject = Some(pointer.to_owned()),
                _ => self.act = word.parse()?,
            }
        }
        Ok(self)
    }
}

/// A delay within [`MAX_DELAY`].
pub(crate) fn delay(ms: u64) -> Duration {
    Duration::from_millis(ms).min(MAX_DELAY)
}

/// A source by its word; `none` is a source that is not said.
pub(crate) fn state_source(word: &str) -> Option<StateSource> {
    if word == "none" { Some(StateSource::Unknown) } else { word.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_behaviour_has_its_word() {
        let table = [
            ("succeed", Act::Succeed),
            ("hang_before", Act::HangBefore),
            ("hang_after", Act::HangAfter),
            ("wrong_result", Act::WrongResult),
            ("die_after_effect", Act::DieAfterEffect),
            ("fail:not_found", Act::Fail(ErrorCode::NotFound)),
            ("fail:execution_failed:no_effect", Act::Refuse(ErrorCode::ExecutionFailed)),
        ];
        for (word, act) in table {
            assert_eq!(word.parse::<Act>().unwrap(), act, "{word}");
        }
        for word in ["", "hang", "fail", "fail:", "fail:x", "fail:not_found:effect"] {
            assert!(word.parse::<Act>().is_err(), "{word}");
        }
    }

    #[test]
    fn a_request_changes_what_it_names_and_keeps_the_rest() {
        let flags = Script { state_source: StateSource::Stale, ..Script::default() };
        let script = flags.clone().with("hang_after, delay:25").unwrap();
        let expected = Script { act: Act::HangAfter, delay: Duration::from_millis(25), ..flags };
        assert_eq!(script, expected);
        let script = Script::default().with("state:none,reject:/value").unwrap();
        assert_eq!((script.state_source, script.reject.as_deref()), (StateSource::Unknown, Some("/value")));
        assert_eq!(Script::default().with("delay:99999999").unwrap().delay, MAX_DELAY);
        for words in ["fly", "delay:x", "state:x", "hang_after,"] {
            assert!(Script::default().with(words).is_err(), "{words}");
        }
    }
}
