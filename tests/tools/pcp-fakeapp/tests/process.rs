//! The binary through its socket: what stories do with it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getuid};
use pcp_core::{
    AppId, CapabilityId, Domain, InvocationContext, Modality, OperationId, StateSource, Tier, TrustLevel,
};
use pcp_fakeapp::{APP_ID, FakeManifest, Installed, Places, count};
use pcp_ipc::AppClient;
use pcp_trust::Signer;

struct Running {
    space: tempfile::TempDir,
    installed: Installed,
    log: PathBuf,
    child: Child,
}

fn start(flags: &[&str]) -> Running {
    let space = tempfile::tempdir().unwrap();
    let manifest = FakeManifest::standard(AppId::parse(APP_ID).unwrap());
    let signer = Signer::from_secret_bytes(&[3; 32]);
    let installed = Places::under(space.path()).install(&manifest, &signer, 4711, None).unwrap();
    let log = space.path().join("effects.log");
    let child = spawn(space.path(), &installed, &log, flags);
    Running { space, installed, log, child }
}

fn spawn(space: &Path, installed: &Installed, log: &Path, flags: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pcp-fakeapp"));
    command.args(["--app-id", APP_ID, "--daemon-uid", &getuid().to_string()]);
    command.arg("--socket-dir").arg(space).arg("--manifest").arg(&installed.manifest);
    command.arg("--effects").arg(log).args(flags);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("pcp-fakeapp: ready on {}\n", socket(space).display()));
    child
}

fn socket(space: &Path) -> PathBuf {
    space.join(format!("{APP_ID}.sock"))
}

fn terminate(mut child: Child) -> Option<i32> {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap().code()
}

fn create() -> CapabilityId {
    CapabilityId::parse(&format!("app.{APP_ID}.create")).unwrap()
}

fn operation() -> OperationId {
    OperationId::from_parts(1_700_000_000_000, [7; 10])
}

fn context() -> InvocationContext {
    InvocationContext {
        operation_id: operation(),
        uid: 1000,
        domain: Domain::App,
        trust: TrustLevel::USER,
        modality: Modality::Current,
        tier: Tier::One,
        budget_ms: 5000,
    }
}

#[tokio::test]
async fn it_serves_its_manifest_acts_counts_and_ends_cleanly() {
    let running = start(&["--state-source", "renderer"]);
    let mut daemon = AppClient::new(socket(running.space.path()), getuid().as_raw());
    let mut answer = Vec::new();

    daemon.manifest(&mut answer).await.unwrap();
    assert_eq!(answer, fs::read(&running.installed.manifest).unwrap(), "byte for byte");
    let reply = daemon.invoke(&create(), &context(), "{}", &mut answer).await.unwrap();

    assert_eq!((reply.success, reply.state_source), (true, StateSource::Renderer));
    assert_eq!(answer, br#"{"id":1}"#);
    assert_eq!(count(&running.log, operation()).unwrap(), 1);
    assert_eq!(terminate(running.child), Some(0));
    assert!(!socket(running.space.path()).exists());
}

#[tokio::test]
async fn it_dies_after_the_effect_without_a_reply_and_its_count_goes_on_after_a_restart() {
    let mut running = start(&["--die-after-effect"]);
    let mut daemon = AppClient::new(socket(running.space.path()), getuid().as_raw());
    let mut answer = Vec::new();

    let lost = daemon.invoke(&create(), &context(), "{}", &mut answer).await.unwrap_err();

    assert!(!lost.no_effect);
    assert_eq!(running.child.wait().unwrap().signal(), Some(9));
    assert_eq!(count(&running.log, operation()).unwrap(), 1);
    let again = spawn(running.space.path(), &running.installed, &running.log, &[]);
    assert!(daemon.invoke(&create(), &context(), "{}", &mut answer).await.unwrap().success);
    assert_eq!(count(&running.log, operation()).unwrap(), 2);
    assert_eq!(terminate(again), Some(0));
}

#[tokio::test]
async fn it_rejects_parameters_and_fails_through_the_socket_as_told() {
    let running = start(&["--reject-params", "/id", "--fail", "execution_failed:no_effect"]);
    let mut daemon = AppClient::new(socket(running.space.path()), getuid().as_raw());
    let mut answer = Vec::new();

    let judged = daemon.validate(&create(), "{}").await.unwrap();
    assert_eq!(judged.unwrap_err().pointer, "/id");
    let reply = daemon.invoke(&create(), &context(), "{}", &mut answer).await.unwrap();

    assert!(reply.failure.unwrap().no_effect);
    assert_eq!(count(&running.log, operation()).unwrap(), 0);
    assert_eq!(terminate(running.child), Some(0));
}

#[test]
fn a_wrong_command_line_is_2_and_a_missing_manifest_1() {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pcp-fakeapp"));
        command.args(arguments).stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(run(&["--fly"]), Some(2));
    let space = tempfile::tempdir().unwrap();
    let folder = space.path().to_str().unwrap();
    let log = space.path().join("e");
    let needed = ["--socket-dir", folder, "--manifest", "/nonexistent", "--effects", log.to_str().unwrap()];
    assert_eq!(run(&[&needed[..], &["--daemon-uid", "1"]].concat()), Some(1));
}
