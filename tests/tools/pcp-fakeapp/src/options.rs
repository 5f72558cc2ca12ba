//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use pcp_core::{AppId, StateSource};

use crate::script::{Act, Script, delay, state_source};

/// A Tier-1 application that does what it is told, and counts what it did.
///
/// A request can change the behaviour for itself where its schema has a member `behave`:
/// succeed, hang_before, hang_after, wrong_result, die_after_effect, fail:CODE, fail:CODE:no_effect, delay:MS,
/// state:SOURCE, reject:POINTER; several are separated by commas.
#[derive(Debug, Clone, Parser)]
#[command(name = "pcp-fakeapp")]
pub struct Options {
    /// The application's id: the name of its socket
    #[arg(long, default_value = crate::manifest::APP_ID)]
    pub app_id: AppId,
    /// Where the socket is made
    #[arg(long, value_name = "DIR")]
    pub socket_dir: PathBuf,
    /// The installed manifest, served byte for byte
    #[arg(long, value_name = "FILE")]
    pub manifest: PathBuf,
    /// The file of effects; FILE.invocations gets everything that was invoked
    #[arg(long, value_name = "FILE")]
    pub effects: PathBuf,
    /// The only uid that is answered
    #[arg(long, value_name = "UID")]
    pub daemon_uid: u32,
    /// What results say about their source: rust, renderer, stale or none
    #[arg(long, value_name = "SOURCE", default_value = "rust", value_parser = source)]
    pub state_source: StateSource,
    /// Waits before anything else
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub delay_ms: u64,
    /// Fails after the effect; with :no_effect fails instead of it, and says so
    #[arg(long, value_name = "CODE[:no_effect]", group = "act", value_parser = failure)]
    pub fail: Option<Act>,
    /// Never answers, without an effect
    #[arg(long, group = "act")]
    pub hang_before: bool,
    /// Acts and never answers
    #[arg(long, group = "act")]
    pub hang_after: bool,
    /// Acts and answers what the manifest does not declare
    #[arg(long, group = "act")]
    pub wrong_result: bool,
    /// Acts and kills itself
    #[arg(long, group = "act")]
    pub die_after_effect: bool,
    /// Finds fault with every parameter object, at this place
    #[arg(long, value_name = "POINTER")]
    pub reject_params: Option<String>,
}

impl Options {
    /// The behaviour that the flags describe.
    #[must_use]
    pub fn script(&self) -> Script {
        let flags = [
            (self.hang_before, Act::HangBefore),
            (self.hang_after, Act::HangAfter),
            (self.wrong_result, Act::WrongResult),
            (self.die_after_effect, Act::DieAfterEffect),
        ];
        let flag = flags.into_iter().find_map(|(given, act)| given.then_some(act));
        let delay: Duration = delay(self.delay_ms);
        Script {
            act: self.fail.or(flag).unwrap_or_default(),
            delay,
            state_source: self.state_source,
            reject: self.reject_params.clone(),
        }
    }
}

fn source(word: &str) -> Result<StateSource, String> {
    state_source(word).ok_or_else(|| format!("{word:?} is none of rust, renderer, stale, none"))
}

fn failure(word: &str) -> Result<Act, String> {
    format!("fail:{word}")
        .parse()
        .map_err(|_| format!("{word:?} is no error code, with or without :no_effect"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcp_core::ErrorCode;

    fn script(flags: &str) -> Result<Script, clap::Error> {
        let needed = "fake --socket-dir /s --manifest /m --effects /e --daemon-uid 7 ";
        Options::try_parse_from((needed.to_owned() + flags).split_whitespace())
            .map(|options| options.script())
    }

    #[test]
    fn every_flag_is_a_behaviour() {
        let with = |act| Script { act, ..Script::default() };
        let table = [
            ("", Script::default()),
            ("--fail not_found", with(Act::Fail(ErrorCode::NotFound))),
            ("--fail not_found:no_effect", with(Act::Refuse(ErrorCode::NotFound))),
            ("--hang-before", with(Act::HangBefore)),
            ("--hang-after", with(Act::HangAfter)),
            ("--wrong-result", with(Act::WrongResult)),
            ("--die-after-effect", with(Act::DieAfterEffect)),
            ("--delay-ms 20", Script { delay: Duration::from_millis(20), ..Script::default() }),
            ("--state-source renderer", Script { state_source: StateSource::Renderer, ..Script::default() }),
            ("--state-source none", Script { state_source: StateSource::Unknown, ..Script::default() }),
            ("--reject-params /id", Script { reject: Some("/id".into()), ..Script::default() }),
        ];
        for (flags, expected) in table {
            assert_eq!(script(flags).unwrap(), expected, "{flags}");
        }
    }

    #[test]
    fn contradicting_and_unknown_behaviours_are_refused() {
        for flags in ["--hang-before --hang-after", "--fail nonsense", "--state-source x", "--fly"] {
            assert!(script(flags).is_err(), "{flags}");
        }
    }
}
