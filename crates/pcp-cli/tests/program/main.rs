//! The program as its users meet it: real process, real files, a daemon that says what the test wants.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod completing;
mod daemon;
mod files;
mod following;
mod output;
mod transcripts;
mod verbs_of_the_daemon;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// The program, without anything of the environment that runs the tests.
fn pcp_cli() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pcp-cli"));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("TZ", "UTC");
    command
}

/// Runs the program and gives exit code, standard output and standard error.
fn run(args: &[&str]) -> (i32, String, String) {
    told(&pcp_cli().args(args).output().unwrap())
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Runs the program for its envelope; nothing may stand on standard error.
fn envelope(args: &[&str]) -> (i32, Value) {
    let (code, out, err) = run(args);
    assert_eq!(err, "", "{args:?}");
    assert_eq!(out.matches('\n').count(), 1, "{args:?}: {out}");
    (code, serde_json::from_str(&out).unwrap())
}

/// The test data of the project.
fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/stories/data").join(path)
}
