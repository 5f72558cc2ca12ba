//! SSH against a real server, started for the test on a loopback port with keys made for the test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at what it cannot do")]

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use pcp_harness::target::ssh::{HostKeys, SshAddress, SshShell};
use pcp_harness::target::{Settings, Target};
use pcp_harness::{Device, Error, Need, Shell as _};

const SOON: Duration = Duration::from_secs(60);
const SSHD: &str = "/usr/sbin/sshd";

struct Server {
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path).status();
    assert!(made.expect("ssh-keygen is missing: install openssh-client").success());
}

fn user() -> String {
    nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name
}

impl Server {
    fn start() -> Self {
        assert!(Path::new(SSHD).exists(), "{SSHD} is missing: install openssh-server");
        if nix::unistd::getuid().is_root() {
            // Where sshd locks its unprivileged half in; the package leaves making it to the boot.
            fs::create_dir_all("/run/sshd").unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        for name in ["host", "operator", "stranger"] {
            keygen(&folder.path().join(name));
        }
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             PasswordAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\n",
            path("host"),
            path("operator.pub"),
        );
        fs::write(folder.path().join("config"), config).unwrap();
        let mut process = Command::new(SSHD)
            .args(["-D", "-e", "-f", &path("config")])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line.contains("Server listening")), "sshd ended before it listened");
        // The rest of what it says goes nowhere, but somebody has to take it.
        std::thread::spawn(move || said.for_each(drop));
        Self { folder, port, process }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn address(&self) -> SshAddress {
        SshAddress { user: user(), host: "127.0.0.1".to_owned(), port: self.port }
    }

    fn shell(&self, key: &str) -> SshShell {
        SshShell::new(self.address(), Some(self.path(key)), HostKeys::File(self.path("known")))
    }
}

#[test]
fn commands_run_and_answer_with_their_status_and_both_streams() {
    let server = Server::start();
    let mut shell = server.shell("operator");
    shell.connect(SOON).unwrap();
    let table = [
        ("echo one; echo two >&2; exit 7", 7, "one\ntwo"),
        ("exit 255", 255, ""),
        ("true", 0, ""),
        ("echo \"it's\" # comment", 0, "it's"),
        ("printf 'PCP-RC=1=END'", 0, "PCP-RC=1=END"),
        ("cat <<'END'\na\n\nb\nEND", 0, "a\n\nb"),
        ("cat", 0, ""),
    ];
    for (command, status, output) in table {
        let answer = shell.run(command, SOON).unwrap();
        assert_eq!((answer.status, answer.output.as_str()), (status, output), "{command}");
    }
}

#[test]
fn a_key_that_the_device_does_not_know_is_an_ssh_error_and_not_an_answer() {
    let server = Server::start();
    let error = server.shell("stranger").run("true", SOON).unwrap_err();
    assert!(matches!(error, Error::Ssh { .. }), "{error}");
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[test]
fn the_server_is_asked_which_ways_to_log_in_it_offers() {
    let server = Server::start();
    let methods = server.shell("operator").offered_methods(SOON).unwrap();
    assert!(methods.contains(&"publickey".to_owned()), "{methods:?}");
    assert!(!methods.contains(&"password".to_owned()), "{methods:?}");
}

#[test]
fn another_host_key_at_the_same_address_is_refused() {
    let server = Server::start();
    server.shell("operator").check("true").unwrap();
    let other = fs::read_to_string(server.path("stranger.pub")).unwrap();
    fs::write(server.path("known"), format!("[127.0.0.1]:{} {other}", server.port)).unwrap();
    let error = server.shell("operator").run("true", SOON).unwrap_err();
    assert!(matches!(error, Error::Ssh { .. }), "{error}");

    let mut throwaway = SshShell::new(server.address(), Some(server.path("operator")), HostKeys::Throwaway);
    throwaway.check("true").unwrap();
}

#[test]
fn a_command_that_does_not_end_is_given_up() {
    let server = Server::start();
    let mut shell = server.shell("operator");
    shell.connect(SOON).unwrap();
    // A pipe whose other end is this test's: the command waits as long as the test lives, however that ends.
    let pipe = server.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let held = fs::OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
    let error = shell.run(&format!("echo begun; read x <{}", pipe.display()), Duration::from_secs(2));
    assert!(matches!(error, Err(Error::Timeout { .. })), "{error:?}");
    shell.check("true").unwrap();
    drop(held);
}

#[test]
fn a_file_arrives_whole_with_its_mode_and_nothing_beside_it() {
    let server = Server::start();
    let mut shell = server.shell("operator");
    let place = tempfile::tempdir().unwrap();
    for size in [0, 1, 300_000] {
        let content: Vec<u8> = (0..size).map(|i: u32| (i * 7 % 251) as u8).collect();
        let (local, remote) = (server.path("local"), place.path().join("it's here"));
        fs::write(&local, &content).unwrap();

        shell.copy_in(&local, remote.to_str().unwrap(), 0o750).unwrap();

        assert_eq!(fs::read(&remote).unwrap(), content, "{size}");
        assert_eq!(fs::metadata(&remote).unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
    let nowhere = place.path().join("none/x");
    assert!(matches!(
        shell.copy_in(&server.path("local"), nowhere.to_str().unwrap(), 0o600),
        Err(Error::Status { .. })
    ));
}

#[test]
fn an_ssh_target_has_ssh_and_nothing_else() {
    let server = Server::start();
    let settings = Settings {
        ssh_key: Some(server.path("operator")),
        known_hosts: Some(server.path("known")),
        ..Settings::default()
    };
    let mut device = Device::new(&[Target::Ssh(server.address())], &settings).unwrap();
    assert_eq!(device.has(Need::Ssh), Ok(()));
    assert!(device.has(Need::Console).is_err() && device.has(Need::PowerSwitch).is_err());
    assert_eq!(device.operator().unwrap().check("echo here").unwrap(), "here");
    assert!(matches!(device.root(), Err(Error::Absent("console"))));
    device.close().unwrap();
}

#[test]
fn a_server_that_is_not_there_is_tried_until_the_limit() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = SshAddress { user: user(), host: "127.0.0.1".to_owned(), port };
    let error =
        SshShell::new(address, None, HostKeys::Throwaway).connect(Duration::from_millis(100)).unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
}
