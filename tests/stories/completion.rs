//! Tab in the real shells: the ids that the daemon has now.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::support::{Device, Plan, uids};

/// A script for a shell that has loaded `complete` and prints what Tab offers for `@LINE@`, whose words are
/// `@WORDS@`, the last of them `@LAST@`, with `@COUNT@` before it.
const SHELLS: [(&str, &str); 3] = [
    (
        "bash",
        "source ./complete; complete -p pcp-cli >/dev/null || exit 9
         COMP_WORDS=(@WORDS@); COMP_CWORD=@COUNT@
         _pcp__cli pcp-cli '@LAST@' \"${COMP_WORDS[@COUNT@-1]}\"; printf '%s\\n' \"${COMPREPLY[@]}\"",
    ),
    (
        "zsh",
        // Without a line editor there is nobody to hand the words to: they are printed instead.
        "compdef() { :; }; compadd() { [[ $1 == -- ]] && shift; print -rl -- \"$@\"; }; _arguments() { :; }
         source ./complete; words=(@WORDS@); CURRENT=$((@COUNT@ + 1)); PREFIX='@LAST@'; _pcp-cli",
    ),
    ("fish", "source ./complete; complete -C '@LINE@' | string replace -r '\\t.*' ''"),
];

/// Those that are there; of the others it is said that they are not.
fn installed() -> Vec<&'static str> {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there = |shell: &&str| {
        let found = path.split(':').any(|folder| Path::new(folder).join(shell).is_file());
        if !found {
            uids::skipped(&format!("completion in {shell}"), "it is not installed");
        }
        found
    };
    SHELLS.iter().map(|(shell, _)| *shell).filter(is_there).collect()
}

/// What a shell offers for the last word of `line`.
fn offered(device: &Device, shell: &str, line: &str) -> Vec<String> {
    let (_, script) = SHELLS.iter().find(|(name, _)| *name == shell).unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let last = words.last().unwrap();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let script = script
        .replace("@WORDS@", &quoted.join(" "))
        .replace("@COUNT@", &(words.len() - 1).to_string())
        .replace("@LAST@", last)
        .replace("@LINE@", line);
    fs::write(device.path("complete"), device.cli(&["completion", shell]).out).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new(shell);
    command.arg("-c").arg(script).current_dir(device.path(""));
    command.env("PATH", format!("{}:{path}", device.path("shell").display()));
    command.env("PCP_SOCKET", device.socket()).env("HOME", device.path(""));
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() != Some(9) && err.is_empty(), "{shell}: {err}");
    let out = String::from_utf8(output.stdout).unwrap();
    out.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// `pcp-cli` as shells find it.
fn install_program(device: &Device) {
    device.folder("shell", uids::own(), 0o755);
    let program =
        device.write("shell/pcp-cli", format!("#!/bin/sh\nexec {} pcp-cli \"$@\"\n", device.exe.display()));
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn tab_offers_the_ids_that_the_daemon_has_now() {
    let (mut device, _fake, _app) = Device::with_fake(&Plan::default());
    install_program(&device);
    let daemon = format!("pcp-cli --expect-uid {}", device.uids.daemon);
    let create: &[&str] = &["app.org.example.fake.create"];
    let app: &[&str] = &["org.example.fake"];
    let table = [
        ("show app.org.example.fake.c", create),
        ("exec app.org.example.fake.c", create),
        ("explain app.org.example.fake.c", create),
        ("classify app.org.example.fake.c", create),
        ("policy test me app.org.example.fake.c", create),
        ("app show org.", app),
        ("apps org.ex", app),
        ("events --app org.", app),
        ("show app.org.example.ghost.", &[]),
    ];
    let shells = installed();
    for shell in &shells {
        for (line, wanted) in table {
            let found = offered(&device, shell, &format!("{daemon} {line}"));
            if wanted.is_empty() {
                assert!(!found.iter().any(|word| word.contains("org.")), "{shell}: {line}: {found:?}");
            } else {
                assert_eq!(found, wanted, "{shell}: {line}");
            }
        }
        let all = offered(&device, shell, &format!("{daemon} show app.org.example.fake."));
        assert_eq!(all.len(), 7, "{shell}: {all:?}");
    }

    device.stop();

    for shell in shells {
        let silent = offered(&device, shell, &format!("{daemon} show app.org.example.fake.c"));
        assert!(!silent.iter().any(|word| word.contains("create")), "{shell}: {silent:?}");
    }
}

#[test]
fn verbs_and_options_are_offered_as_before() {
    let device = Device::new(&Plan::default());
    install_program(&device);
    // zsh hands words to its line editor, which is not there.
    for shell in installed().into_iter().filter(|shell| *shell != "zsh") {
        let table = [
            ("pcp-cli snaps", "snapshot"),
            ("pcp-cli manifest si", "sign"),
            ("pcp-cli events --que", "--queue"),
            ("pcp-cli events --topic app_a", "app_added"),
        ];
        for (line, wanted) in table {
            assert_eq!(offered(&device, shell, line), [wanted], "{shell}: {line}");
        }
        let hidden = offered(&device, shell, "pcp-cli __");
        assert!(hidden.is_empty(), "{shell}: what nobody types is not offered: {hidden:?}");
    }
}
