//! A device with the ways in that its targets give it, and what can be done through each.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::expect::Expect;
use crate::story::Need;
use crate::target::qemu::{BootReport, Machine, Qemu};
use crate::target::serial::{self, ConsoleShell, SerialAddress};
use crate::target::ssh::{HostKeys, SshShell};
use crate::target::{Settings, Target};

/// Time for one command, unless it says otherwise.
pub const COMMAND_LIMIT: Duration = Duration::from_secs(60);
/// Time for a shell to answer on the console of a device that is up.
const WAKE_LIMIT: Duration = Duration::from_secs(60);
/// Time for the SSH server of a device that is up: it starts after the console, and makes its keys once.
const SSH_LIMIT: Duration = Duration::from_secs(60);
/// Time from `poweroff` to darkness: services stop, the journal is written, file systems are released.
const POWER_OFF_LIMIT: Duration = Duration::from_secs(60);

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its exit status.
    pub status: i32,
    /// What it printed, both streams, without the last line end.
    pub output: String,
}

impl Answer {
    /// The output of a command that had to succeed.
    ///
    /// # Errors
    /// [`Error::Status`] with the output if it did not.
    pub fn ok(self, command: &str) -> Result<String, Error> {
        match self.status {
            0 => Ok(self.output),
            status => Err(Error::Status { command: command.to_owned(), status, output: self.output }),
        }
    }
}

/// A way to run commands on a device.
pub trait Shell {
    /// `console` or `ssh`.
    fn name(&self) -> &'static str;
    /// Runs a command of the device's shell to its end.
    ///
    /// # Errors
    /// Those of the way there; a command that fails is an [`Answer`].
    fn run(&mut self, command: &str, limit: Duration) -> Result<Answer, Error>;
    /// Puts a file on the device: whole, checked, under its name only then.
    ///
    /// # Errors
    /// Those of the way there, [`Error::FileTooLarge`].
    fn copy_in(&mut self, local: &Path, remote: &str, mode: u32) -> Result<(), Error>;
    /// The output of a command that has to succeed within the usual time.
    ///
    /// # Errors
    /// [`Error::Status`] if it fails.
    fn check(&mut self, command: &str) -> Result<String, Error> {
        self.run(command, COMMAND_LIMIT)?.ok(command)
    }
}

/// Writes `word` so that a shell reads it as one word.
#[must_use]
pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The device's half of a copy: `source` prints the content; the file gets its name once its digest is right.
pub(crate) fn receive_script(remote: &str, mode: u32, digest: &str, source: &str) -> String {
    let (part, remote) = (quote(&format!("{remote}.part")), quote(remote));
    format!(
        "{source} > {part} && echo '{digest}  '{part} | sha256sum -c - >/dev/null && \
         chmod {mode:o} {part} && mv -f {part} {remote}"
    )
}

/// A device under test.
#[derive(Debug)]
pub struct Device {
    qemu: Option<Qemu>,
    machine: Option<Machine>,
    serial: Option<SerialAddress>,
    console: Option<ConsoleShell>,
    ssh: Option<SshShell>,
    ssh_answered: bool,
    log: Option<File>,
    patience: u32,
    unready: bool,
    last_boot: Option<BootReport>,
}

impl Device {
    /// A device reached by `targets`, one of each kind at most. Nothing is started or opened yet.
    ///
    /// # Errors
    /// [`Error::Usage`] if targets exclude each other or lack something, [`Error::Io`] for the log.
    pub fn new(targets: &[Target], settings: &Settings) -> Result<Self, Error> {
        let log = settings.log.as_ref().map(|path| {
            File::create(path).map_err(Error::io(format!("cannot write the log {}", path.display())))
        });
        // ssh itself goes on without the key and is refused by the device, which hides the cause.
        if let Some(key) = settings.ssh_key.as_ref().filter(|key| !key.is_file()) {
            let key = key.display();
            return Err(Error::Usage(format!("no file {key}: give --ssh-key the operator's private key")));
        }
        let mut device = Self {
            qemu: None,
            machine: None,
            serial: None,
            console: None,
            ssh: None,
            ssh_answered: false,
            log: log.transpose()?,
            patience: settings.patience.max(1),
            unready: settings.unready,
            last_boot: None,
        };
        let twice =
            || Error::Usage("give one target for the console and one for SSH, not two of a kind".to_owned());
        for target in targets {
            match target {
                Target::Qemu if device.qemu.is_none() => device.qemu = Some(Qemu::new(settings)?),
                Target::Serial(address) if device.serial.is_none() => device.serial = Some(address.clone()),
                Target::Ssh(address) if device.ssh.is_none() => {
                    let keys = settings.known_hosts.clone().map_or(HostKeys::Own, HostKeys::File);
                    device.ssh = Some(SshShell::new(address.clone(), settings.ssh_key.clone(), keys));
                }
                _ => return Err(twice()),
            }
        }
        match (&device.qemu, &device.serial, &device.ssh) {
            (None, None, None) => Err(Error::Usage("name a target: --target qemu".to_owned())),
            (Some(_), None, None) | (None, _, _) => Ok(device),
            _ => Err(Error::Usage(
                "qemu brings its own console and SSH: give it as the only target".to_owned(),
            )),
        }
    }

    /// Whether the targets have what a step needs, or why not.
    ///
    /// # Errors
    /// The reason, for the line that says that the step is skipped.
    pub fn has(&self, need: Need) -> Result<(), &'static str> {
        let (emulated, key) = (self.qemu.is_some(), self.qemu.as_ref().is_some_and(Qemu::has_ssh_key));
        match need {
            Need::Console if !emulated && self.serial.is_none() => Err("no target has a console"),
            Need::Ssh if emulated && !key => Err("no SSH key: give --ssh-key"),
            Need::Ssh if !emulated && self.ssh.is_none() => Err("no target has SSH"),
            Need::PowerSwitch if !emulated => Err("no target can be switched on again from here"),
            Need::Console | Need::Ssh | Need::PowerSwitch => Ok(()),
        }
    }

    /// Brings the device to where it can be used: boots a machine that is off, asks one that is on.
    ///
    /// # Errors
    /// [`Error::NotReady`] with the device's own reason; those of the way there.
    pub fn reach_ready(&mut self) -> Result<BootReport, Error> {
        if let Some(qemu) = &self.qemu {
            if self.machine.is_none() {
                let (mut machine, console) = qemu.start(self.log()?)?;
                let report = machine.boot(&console, self.patience, self.unready)?;
                let ssh = SshShell::new(machine.ssh_address(), qemu.ssh_key(), HostKeys::Throwaway);
                // Before the machine is kept: one without a shell is of no use to anybody and goes at once.
                self.console = Some(ConsoleShell::wake(console, self.patient(WAKE_LIMIT))?);
                (self.machine, self.ssh) = (Some(machine), Some(ssh));
                self.last_boot = Some(report.clone());
                return Ok(report);
            }
            return Ok(BootReport::default());
        }
        let answer = self.shell()?.run("pcp-cli ping", COMMAND_LIMIT)?;
        match answer.status {
            0 => Ok(BootReport::default()),
            _ if self.unready => Ok(BootReport::default()),
            _ => Err(Error::NotReady(format!("pcp-cli ping: {}", answer.output))),
        }
    }

    /// The root shell on the console.
    ///
    /// # Errors
    /// [`Error::Absent`] if no target has one; those of reaching it.
    pub fn root(&mut self) -> Result<&mut ConsoleShell, Error> {
        if self.console.is_none() {
            if self.qemu.is_some() {
                self.reach_ready()?;
            } else if let Some(address) = &self.serial {
                let console = serial::open(address, self.log()?)?;
                self.console = Some(ConsoleShell::wake(console, self.patient(WAKE_LIMIT))?);
            }
        }
        self.console.as_mut().ok_or(Error::Absent("console"))
    }

    /// The console for a person: from the first word of the firmware on if the machine is emulated, which is
    /// switched on for it and has to be kept as long as the console is used.
    ///
    /// # Errors
    /// [`Error::Absent`] if no target has a console; those of opening it.
    pub fn raw_console(&mut self) -> Result<(Option<Machine>, Expect), Error> {
        match (&self.qemu, &self.serial) {
            (Some(qemu), _) => qemu.start(self.log()?).map(|(machine, console)| (Some(machine), console)),
            (None, Some(address)) => serial::open(address, self.log()?).map(|console| (None, console)),
            (None, None) => Err(Error::Absent("console")),
        }
    }

    /// The operator's shell over SSH.
    ///
    /// # Errors
    /// [`Error::Absent`] if no target has one; those of reaching it.
    pub fn operator(&mut self) -> Result<&mut SshShell, Error> {
        if self.qemu.is_some() {
            self.reach_ready()?;
        }
        let limit = self.patient(SSH_LIMIT);
        let ssh = self.ssh.as_mut().ok_or(Error::Absent("SSH"))?;
        if !self.ssh_answered {
            ssh.connect(limit)?;
            self.ssh_answered = true;
        }
        Ok(ssh)
    }

    /// The shell there is: the console's, or else the operator's.
    ///
    /// # Errors
    /// Those of reaching it.
    pub fn shell(&mut self) -> Result<&mut dyn Shell, Error> {
        if self.has(Need::Console).is_ok() { Ok(self.root()?) } else { Ok(self.operator()?) }
    }

    /// The image that is booted, and its digest before the run.
    #[must_use]
    pub fn image(&self) -> Option<(String, String)> {
        self.qemu.as_ref().map(|qemu| (qemu.image().display().to_string(), qemu.sha256().to_owned()))
    }

    /// How the last boot in this run went; `None` if the device was up already.
    #[must_use]
    pub fn last_boot(&self) -> Option<&BootReport> {
        self.last_boot.as_ref()
    }

    /// The emulated machine, while it is on.
    #[must_use]
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_ref()
    }

    /// Asks the device to switch itself off, and waits until it has.
    ///
    /// # Errors
    /// [`Error::Absent`] without a power switch; [`Error::Finding`] if the end was not a clean one.
    pub fn power_off(&mut self) -> Result<(), Error> {
        let limit = self.patient(POWER_OFF_LIMIT);
        self.root()?;
        let (Some(machine), Some(console)) = (self.machine.take(), self.console.take()) else {
            return Err(Error::Absent("power switch"));
        };
        self.forget_machine();
        machine.power_off(console.into_console(), limit)
    }

    /// Cuts the power; what the device had not written is lost.
    ///
    /// # Errors
    /// [`Error::Absent`] without a power switch.
    pub fn cut_power(&mut self) -> Result<(), Error> {
        let machine = self.machine.take().ok_or(Error::Absent("power switch"))?;
        self.forget_machine();
        machine.cut()
    }

    /// Ends the run: what is still on is cut, and an image must be what it was.
    ///
    /// # Errors
    /// [`Error::ImageChanged`].
    pub fn close(mut self) -> Result<(), Error> {
        if self.machine.is_some() {
            self.cut_power()?;
        }
        self.qemu.map_or(Ok(()), Qemu::check_image)
    }

    fn forget_machine(&mut self) {
        self.console = None;
        self.ssh = None;
        self.ssh_answered = false;
    }

    fn log(&self) -> Result<Option<File>, Error> {
        self.log.as_ref().map(|log| log.try_clone().map_err(Error::io("cannot share the log"))).transpose()
    }

    pub(crate) fn patient(&self, limit: Duration) -> Duration {
        limit.saturating_mul(self.patience)
    }
}
