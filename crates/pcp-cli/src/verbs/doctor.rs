//! `doctor`: what is wrong with this device, and what to do about it.
//!
//! First what a client can see for itself (the socket and who serves it), then what the daemon says of itself.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use pcp_core::ErrorCode;
use pcp_ipc::{Client, Json};
use serde::{Deserialize, Serialize};

use crate::cli::Globals;
use crate::context::{Answer, Context, Show};
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Page, Tone};

/// Permission bits that let strangers reach the daemon's socket.
const OPEN_TO_STRANGERS: u32 = 0o007;
/// Permission bits by which a directory's files can be replaced by others than their owners.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Protects the files of a shared directory from each other's owners.
const STICKY: u32 = 0o1000;

/// What to do when no daemon answers.
const START: &str = "start portal-pcpd and see its log if it does not stay up (on the image: /var/log/messages); who may not \
     connect joins the group of the socket";

/// Check this device: the socket, who serves it, and the daemon's own checks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pcp-cli doctor
  pcp-cli doctor --json | jq '.data.checks[] | select(.state == \"problem\")'

Exit codes: 0 no problem (there may be warnings), 13 a problem was found; each comes with its fix.")]
pub(crate) struct Doctor {}

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    /// As it should be.
    Ok,
    /// It works, with less certainty than it could.
    Warning,
    /// It does not work.
    Problem,
    /// This device has no such thing, and need not.
    Absent,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Check {
    name: String,
    state: State,
    detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

/// The daemon's answer to the topic `doctor`, and the verb's own.
#[derive(Debug, Serialize, Deserialize)]
struct Checks {
    checks: Vec<Check>,
}

impl Doctor {
    pub(crate) fn run(&self, context: &mut Context<'_>) -> Result<Answer, Error> {
        let globals: &Globals = context.globals;
        let mut checks = vec![check_directory(&globals.socket), check_socket(&globals.socket)];
        match globals.connect() {
            Ok(client) => checks.extend(ask_daemon(client, globals.daemon_uid())),
            Err(error) => checks.push(Check::new("daemon", State::Problem, error).fix(START)),
        }
        Ok(Answer::report(Checks { checks }))
    }
}

impl Check {
    fn new(name: &str, state: State, detail: impl std::fmt::Display) -> Self {
        Self { name: name.to_owned(), state, detail: detail.to_string(), fix: None }
    }

    fn fix(self, fix: impl Into<String>) -> Self {
        Self { fix: Some(fix.into()), ..self }
    }
}

fn check_directory(socket: &Path) -> Check {
    const NAME: &str = "socket directory";
    let directory = socket.parent().filter(|path| !path.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Err(error) => Check::new(NAME, State::Problem, format_args!("{shown}: {error}")).fix(START),
        Ok(facts) => {
            let mode = facts.mode() & 0o7777;
            let detail = format!("{shown} mode {mode:04o} owner {}:{}", facts.uid(), facts.gid());
            if mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0 {
                Check::new(NAME, State::Problem, format_args!("{detail}: others can replace the socket"))
                    .fix(format!("chmod 3771 {shown}"))
            } else {
                Check::new(NAME, State::Ok, detail)
            }
        }
    }
}

fn check_socket(socket: &Path) -> Check {
    const NAME: &str = "socket";
    let shown = socket.display();
    match std::fs::symlink_metadata(socket) {
        Err(error) => Check::new(NAME, State::Problem, format_args!("{shown}: {error}")).fix(START),
        Ok(facts) if !facts.file_type().is_socket() => {
            Check::new(NAME, State::Problem, format_args!("{shown} is no socket: somebody put it there"))
                .fix(format!("remove {shown}, then {START}"))
        }
        Ok(facts) => {
            let mode = facts.mode() & 0o7777;
            let detail = format!("{shown} mode {mode:04o} owner {}:{}", facts.uid(), facts.gid());
            if mode & OPEN_TO_STRANGERS != 0 {
                Check::new(NAME, State::Warning, format_args!("{detail}: every user can connect"))
                    .fix(format!("chmod 0660 {shown}"))
            } else {
                Check::new(NAME, State::Ok, detail)
            }
        }
    }
}

/// The connection stands, so the listener is of the right user; the rest is for the daemon to say.
fn ask_daemon(mut client: Client, uid: u32) -> Vec<Check> {
    let mut checks = vec![Check::new("listener", State::Ok, format_args!("served by uid {uid}"))];
    if let Err(error) = client.ping() {
        let error = Error::from(error);
        // It answers, and says what to do; what does not answer is another matter.
        let fix = error.hint().unwrap_or_else(|| START.to_owned());
        checks.push(Check::new("daemon", State::Problem, &error).fix(fix));
        return checks;
    }
    checks.push(Check::new("daemon", State::Ok, "answers"));
    let own = client.query_state("doctor", Json::EMPTY_OBJECT).map_err(Error::from).and_then(|state| {
        serde_json::from_str::<Checks>(state.data_json.as_str())
            .map_err(|source| Error::Reply { what: "list of checks", source })
    });
    match own {
        Ok(own) => checks.extend(own.checks),
        Err(error) => {
            let check = Check::new("daemon's own checks", State::Problem, &error);
            checks
                .push(check.fix(error.hint().unwrap_or_else(|| "look at the log of portal-pcpd".to_owned())));
        }
    }
    checks
}

impl Checks {
    fn count(&self, state: State) -> usize {
        self.checks.iter().filter(|check| check.state == state).count()
    }
}

impl Show for Checks {
    fn show(&self, page: &mut Page) {
        let width = self.checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
        for check in &self.checks {
            let (word, tone) = match check.state {
                State::Ok => ("ok", Tone::Good),
                State::Warning => ("warning", Tone::Careful),
                State::Problem => ("problem", Tone::Bad),
                State::Absent => ("absent", Tone::Faint),
            };
            page.marked(tone, &format!("{word:<7}"), &format!("  {:<width$}  {}", check.name, check.detail));
            if let (Some(fix), State::Problem | State::Warning) = (&check.fix, check.state) {
                page.line(Tone::Plain, format_args!("{:<7}  {:<width$}  fix: {fix}", "", ""));
            }
        }
        page.gap();
        let (problems, warnings) = (self.count(State::Problem), self.count(State::Warning));
        page.line(
            Tone::Faint,
            format_args!("{} checks, {problems} problems, {warnings} warnings.", self.checks.len()),
        );
    }

    fn problem(&self) -> Option<Problem> {
        let names: Vec<&str> = self
            .checks
            .iter()
            .filter(|check| check.state == State::Problem)
            .map(|check| check.name.as_str())
            .collect();
        (!names.is_empty()).then(|| {
            Problem::new(ErrorCode::ProblemFound, format!("a problem was found with: {}", names.join(", ")))
                .hint("each check says how to fix it")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_wrong_with_a_socket_is_said_with_its_fix() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pcpd.sock");
        assert_eq!(check_socket(&path).state, State::Problem);
        std::fs::write(&path, "planted").unwrap();
        let planted = check_socket(&path);
        assert_eq!(planted.state, State::Problem);
        assert!(planted.fix.unwrap().starts_with("remove "));
        std::fs::remove_file(&path).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        for (mode, state) in [(0o660, State::Ok), (0o600, State::Ok), (0o666, State::Warning)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_socket(&path).state, state, "{mode:o}");
        }
    }

    #[test]
    fn a_directory_in_which_others_can_replace_the_socket_is_a_problem() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("pcpd.sock");
        for (mode, state) in
            [(0o3771, State::Ok), (0o755, State::Ok), (0o770, State::Problem), (0o1777, State::Ok)]
        {
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(check_directory(&socket).state, state, "{mode:o}");
        }
        assert_eq!(check_directory(Path::new("/nonexistent/pcpd.sock")).state, State::Problem);
    }

    #[test]
    fn only_problems_make_the_verb_fail_and_only_they_and_warnings_show_a_fix() {
        let check = |state| Check::new("keys", state, "detail").fix("do it");
        let page = |state| {
            let checks = Checks { checks: vec![check(state)] };
            let mut page = Page::default();
            checks.show(&mut page);
            (page.finish(false), checks.problem().map(|problem| problem.code.exit_code()))
        };
        assert_eq!(
            page(State::Problem),
            (
                "problem  keys  detail\n               fix: do it\n\n1 checks, 1 problems, 0 warnings.\n"
                    .into(),
                Some(13)
            )
        );
        assert_eq!(page(State::Warning).1, None);
        assert!(!page(State::Ok).0.contains("fix:"));
        assert!(!page(State::Absent).0.contains("fix:"));
    }

    #[test]
    fn the_daemons_checks_are_read_whether_or_not_they_have_a_fix() {
        let read: Checks = serde_json::from_str(
            r#"{"checks":[{"name":"clock","state":"ok","detail":"d"},{"name":"k","state":"problem","detail":"d","fix":"f"},
                {"name":"x","state":"absent","detail":"d","fix":null}]}"#,
        )
        .unwrap();
        assert_eq!(read.count(State::Problem), 1);
        assert!(
            serde_json::from_str::<Checks>(r#"{"checks":[{"name":"x","state":"fine","detail":""}]}"#)
                .is_err()
        );
    }
}
