//! The readers in another language, which share no code with the writers.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `program` of the folder `python`; gives exit code and standard output.
pub(crate) fn python(program: &str, arguments: &[&str], input: &[u8]) -> (i32, Vec<u8>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(program);
    let mut child = Command::new("python3")
        .arg(script)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is needed; ci/setup installs it");
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input));
        child.wait_with_output().unwrap()
    });
    (output.status.code().unwrap_or(-1), output.stdout)
}

/// Checks the three trails of `directory` by their document alone.
pub(crate) fn trails_are_whole(directory: &Path) {
    let (code, said) = python("trail.py", &[directory.to_str().unwrap()], b"");
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&said));
}
