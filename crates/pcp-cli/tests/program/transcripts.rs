//! Every file of `tests/transcripts`: what is typed, what comes back.
//!
//! `$ ` begins a command for `sh`, run in a fresh folder that holds the project's test data as `data`; lines up
//! to the next command are its output, `? N` is its exit code when it is not 0. Standard error comes after
//! standard output, each line with `! ` before it. The words of a path that change from run to run are written
//! as `[DIR]`; `# ` begins a remark. `UPDATE_TRANSCRIPTS=1` writes the files anew, for somebody to read the difference.

use std::fmt::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::{data, told};

#[test]
fn the_program_does_what_its_transcripts_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts");
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 8, "{names:?}");
    for path in names {
        let wanted = std::fs::read_to_string(&path).unwrap();
        let found = replay(&wanted);
        if std::env::var_os("UPDATE_TRANSCRIPTS").is_some() {
            std::fs::write(&path, &found).unwrap();
            continue;
        }
        assert!(found == wanted, "{}\n--- found\n{found}\n--- wanted\n{wanted}", path.display());
    }
}

fn replay(transcript: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    symlink(data("").canonicalize().unwrap(), folder.path().join("data")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_pcp-cli")).parent().unwrap();
    let mut found = String::new();
    for line in transcript.lines() {
        if line.starts_with("# ") {
            writeln!(found, "{line}").unwrap();
        }
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let output = Command::new("sh")
            .args(["-c", command])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("TZ", "UTC")
            .output()
            .unwrap();
        let (code, out, err) = told(&output);
        let plain = |text: &str| text.replace(&folder.path().display().to_string(), "[DIR]");
        writeln!(found, "$ {command}").unwrap();
        found.push_str(&plain(&out));
        if !out.is_empty() && !out.ends_with('\n') {
            found.push('\n');
        }
        for line in plain(&err).lines() {
            writeln!(found, "! {line}").unwrap();
        }
        if code != 0 {
            writeln!(found, "? {code}").unwrap();
        }
    }
    found
}
