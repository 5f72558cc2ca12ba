//! An image file under emulation. The image is only read: the machine writes to an overlay that goes with the run.

use std::ffi::OsString;
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::error::Error;
use crate::expect::{Expect, plain};
use crate::power::{Process, run_tool, sha256_of};
use crate::target::Settings;
use crate::target::ssh::SshAddress;

/// Time from power to ready: 17 s on an idle host, ten times that on one that builds at the same time.
const BOOT_LIMIT: Duration = Duration::from_secs(300);
/// Time for the rest of a line whose beginning was seen.
const LINE_LIMIT: Duration = Duration::from_secs(5);
/// Time for the emulator to end once the guest has switched itself off.
const EXIT_LIMIT: Duration = Duration::from_secs(10);
/// Who logs in over SSH on an image.
const OPERATOR: &str = "operator";
/// The package of the emulator, for the message that it is missing.
const QEMU_PACKAGE: &str = "qemu-system-arm";
/// Where Debian's u-boot-qemu puts the firmware, if it is not beside the image.
const SYSTEM_BIOS: &str = "/usr/lib/u-boot/qemu_arm64/u-boot.bin";
/// Where the project keeps the facts of its boards.
const BOARDS: &str = "board";
/// What stands in the facts of the board that is emulated.
const EMULATED: &str = "RUNS=\"qemu\"";
/// What the kernel says last when it was asked to switch off.
const POWER_DOWN: &str = "reboot: Power down";

/// What the console says on the way up, with the name of the mark.
const MARKS: [(&str, &str); 4] = [
    ("U-Boot 20", "firmware"),
    ("Starting kernel", "kernel"),
    ("Please press Enter", "console"),
    ("PCP-READY", "ready"),
];
/// What it says when it is up and does not work.
const NOT_READY: &str = "PCP-NOT-READY";
/// What it says when it will not come up.
const PANIC: &str = "Kernel panic";

/// The emulated board, from the `KEY="value"` lines of `board.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Board {
    emulator: String,
    arguments: Vec<String>,
    disk: String,
    net: String,
}

impl Default for Board {
    fn default() -> Self {
        let arguments = "-M virt,gic-version=3 -cpu cortex-a76 -smp 2 -m 256 -accel tcg,thread=multi \
                         -device virtio-rng-pci";
        Self {
            emulator: "qemu-system-aarch64".to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            disk: "virtio-blk-pci".to_owned(),
            net: "virtio-net-pci,romfile=".to_owned(),
        }
    }
}

/// The facts of the first board, by name, that QEMU runs.
fn emulated_board() -> Option<String> {
    let mut boards: Vec<_> =
        fs::read_dir(BOARDS).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    boards.sort();
    let facts = boards.iter().filter_map(|board| fs::read_to_string(board.join("board.conf")).ok());
    facts.into_iter().find(|text| text.lines().any(|line| line == EMULATED))
}

impl Board {
    fn read(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path else {
            // Away from the project's folder the figures that it started with are still good.
            return Ok(emulated_board().map_or_else(Self::default, |text| Self::parse(&text)));
        };
        let text = fs::read_to_string(path)
            .map_err(|source| Error::Io { what: format!("cannot read {}", path.display()), source })?;
        Ok(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let mut board = Self::default();
        for line in text.lines() {
            let Some((key, value)) = line.trim().split_once('=') else { continue };
            let value = value.trim_matches('"').to_owned();
            match key {
                "QEMU" => board.emulator = value,
                "QEMU_ARGS" => board.arguments = value.split_whitespace().map(str::to_owned).collect(),
                "QEMU_DISK" => board.disk = value,
                "QEMU_NET" => board.net = value,
                _ => {}
            }
        }
        board
    }

    fn command(&self, overlay: &Path, bios: &Path, ssh_port: u16) -> Command {
        let mut drive = OsString::from("format=qcow2,if=none,id=d0,cache=unsafe,file=");
        drive.push(overlay.to_string_lossy().replace(',', ",,"));
        let forward = format!("user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:{ssh_port}-:22");
        let mut command = Command::new(&self.emulator);
        command.args(&self.arguments).args(["-display", "none", "-monitor", "none", "-serial", "stdio"]);
        command.arg("-bios").arg(bios).arg("-drive").arg(drive);
        command.args(["-device", &format!("{},drive=d0", self.disk)]);
        command.args(["-netdev", &forward, "-device", &format!("{},netdev=n0", self.net)]);
        command
    }
}

/// An image that can be booted, and what it was before the run.
#[derive(Debug)]
pub struct Qemu {
    image: PathBuf,
    sha256: String,
    bios: PathBuf,
    board: Board,
    ssh_key: Option<PathBuf>,
    folder: tempfile::TempDir,
}

impl Qemu {
    /// Looks at everything a boot needs, and makes the overlay.
    ///
    /// # Errors
    /// [`Error::Usage`] if something is not given, [`Error::MissingTool`], [`Error::Io`].
    pub fn new(settings: &Settings) -> Result<Self, Error> {
        let usage = |text: &str| Error::Usage(text.to_owned());
        let image = settings
            .image
            .as_deref()
            .ok_or_else(|| usage("qemu needs --image FILE: image/build makes one"))?;
        let image = fs::canonicalize(image).map_err(|error| {
            usage(&format!("cannot read {}: {error}; image/build makes an image", image.display()))
        })?;
        let beside = image.with_file_name("u-boot.bin");
        let bios = settings
            .bios
            .clone()
            .or_else(|| [beside, PathBuf::from(SYSTEM_BIOS)].into_iter().find(|path| path.is_file()));
        let bios = bios.ok_or_else(|| {
            usage("no u-boot.bin beside the image: give --bios FILE, or install u-boot-qemu")
        })?;
        if !bios.is_file() {
            return Err(usage(&format!("no file {}: give --bios FILE, or leave it out", bios.display())));
        }
        let folder = tempfile::Builder::new().prefix("pcp-harness-").tempdir();
        let folder = folder.map_err(Error::io("cannot make a temporary folder"))?;
        let sha256 = sha256_of(&image)?;
        let mut create = Command::new("qemu-img");
        create
            .args(["create", "-q", "-f", "qcow2", "-F", "raw", "-b"])
            .arg(&image)
            .arg(folder.path().join("overlay.qcow2"));
        run_tool(&mut create, "qemu-utils")?;
        let board = Board::read(settings.board.as_deref())?;
        Ok(Self { image, sha256, bios, board, ssh_key: settings.ssh_key.clone(), folder })
    }

    /// The image's digest before the run.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The image.
    #[must_use]
    pub fn image(&self) -> &Path {
        &self.image
    }

    /// Whether SSH can be used.
    #[must_use]
    pub fn has_ssh_key(&self) -> bool {
        self.ssh_key.is_some()
    }

    /// The operator's private key.
    #[must_use]
    pub fn ssh_key(&self) -> Option<PathBuf> {
        self.ssh_key.clone()
    }

    /// Switches the machine on. A second time in the same run it sees what it wrote the first time.
    ///
    /// # Errors
    /// [`Error::MissingTool`], [`Error::Io`].
    pub fn start(&self, log: Option<File>) -> Result<(Machine, Expect), Error> {
        let ssh_port = free_port()?;
        let overlay = self.folder.path().join("overlay.qcow2");
        let started = Instant::now();
        let command = self.board.command(&overlay, &self.bios, ssh_port);
        let (process, output, input) = Process::start(command, QEMU_PACKAGE)?;
        Ok((Machine { process, ssh_port, started }, Expect::new(output, input, log)))
    }

    /// Checks that the image is what it was.
    ///
    /// # Errors
    /// [`Error::ImageChanged`].
    pub fn check_image(self) -> Result<(), Error> {
        let after = sha256_of(&self.image)?;
        if after == self.sha256 {
            return Ok(());
        }
        Err(Error::ImageChanged { path: self.image.clone(), before: self.sha256.clone(), after })
    }
}

/// Asks the kernel for a port nobody has. Another process could take it before the emulator does; the emulator
/// then says so and ends.
fn free_port() -> Result<u16, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(listener.map_err(Error::io("no free port on 127.0.0.1"))?.port())
}

/// How long the way up took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct BootReport {
    /// The marks in the order in which they were seen; empty if the device was up already.
    pub marks: Vec<Mark>,
}

/// A point on the way up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// `firmware`, `kernel`, `console` (it waits for a key press), `ready` or `not ready`.
    pub name: &'static str,
    /// Seconds since power.
    pub wall_s: f64,
    /// Processor seconds the emulator had used: the figure to compare between hosts.
    pub cpu_s: Option<f64>,
}

/// A machine that is on.
#[derive(Debug)]
pub struct Machine {
    process: Process,
    ssh_port: u16,
    started: Instant,
}

impl Machine {
    /// Follows the console up to the ready mark. With `unready` a device that says that it is not ready is taken
    /// as it is, for somebody who wants to see why.
    ///
    /// # Errors
    /// [`Error::NotReady`] with what the device says, [`Error::Timeout`], [`Error::Ended`] with the emulator's
    /// complaint.
    pub fn boot(&mut self, console: &Expect, patience: u32, unready: bool) -> Result<BootReport, Error> {
        match self.watch(console, BOOT_LIMIT.saturating_mul(patience), unready) {
            Err(Error::Ended { what, seen }) => {
                self.process.wait(EXIT_LIMIT)?;
                Err(Error::Ended { what, seen: format!("{seen}\n{}", self.process.complaint()) })
            }
            other => other,
        }
    }

    fn watch(&self, console: &Expect, limit: Duration, unready: bool) -> Result<BootReport, Error> {
        let texts: Vec<&str> = MARKS.iter().map(|(text, _)| *text).chain([NOT_READY, PANIC]).collect();
        let deadline = self.started + limit;
        let mut report = BootReport::default();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let found = console.expect("PCP-READY on the console", &texts, left)?;
            let name = match MARKS.get(found.index) {
                Some((_, name)) => name,
                None if unready && texts[found.index] == NOT_READY => "not ready",
                None => {
                    let rest = console
                        .expect("end of the line", &["\n"], LINE_LIMIT)
                        .map(|line| plain(&line.before));
                    let reason = format!("{}{}", texts[found.index], rest.unwrap_or_default());
                    return Err(Error::NotReady(reason.trim_end().to_owned()));
                }
            };
            let (wall_s, cpu_s) = (self.started.elapsed().as_secs_f64(), self.process.cpu_seconds());
            report.marks.push(Mark { name, wall_s, cpu_s });
            if name.ends_with("ready") {
                return Ok(report);
            }
        }
    }

    /// Where its SSH server is reached from this host.
    #[must_use]
    pub fn ssh_address(&self) -> SshAddress {
        SshAddress { user: OPERATOR.to_owned(), host: "127.0.0.1".to_owned(), port: self.ssh_port }
    }

    /// The emulator's process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Processor seconds the emulator has used.
    #[must_use]
    pub fn cpu_seconds(&self) -> Option<f64> {
        self.process.cpu_seconds()
    }

    /// Types `poweroff` and waits until the kernel has said its last word and the emulator has ended well.
    ///
    /// # Errors
    /// [`Error::Timeout`] or [`Error::Ended`] if the last word does not come, [`Error::Finding`] if the emulator
    /// ends badly or not at all.
    pub fn power_off(mut self, console: Expect, limit: Duration) -> Result<(), Error> {
        console.send(b"poweroff\r")?;
        console.expect(&format!("{POWER_DOWN:?} after poweroff"), &[POWER_DOWN], limit)?;
        match self.process.wait(EXIT_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => {
                let complaint = self.process.complaint();
                Err(Error::Finding(format!("the emulator ended with {status} after power-off: {complaint}")))
            }
            None => Err(Error::Finding(format!(
                "the emulator (process {}) still runs {} s after the guest switched off",
                self.pid(),
                EXIT_LIMIT.as_secs()
            ))),
        }
    }

    /// Cuts the power.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn cut(mut self) -> Result<(), Error> {
        self.process.cut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_the_boards_with_an_overlay_and_a_loopback_port() {
        let board = Board::parse(
            "# facts\nQEMU=\"qemu-x\"\nQEMU_ARGS=\"-M virt -m 128\"\nQEMU_DISK=\"disk\"\nQEMU_NET=\"net,romfile=\"\nDTB=\"\"\n",
        );
        let command = board.command(Path::new("/t/a,b/overlay.qcow2"), Path::new("/u-boot.bin"), 2201);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
        assert_eq!(command.get_program(), "qemu-x");
        assert_eq!(
            words.join(" "),
            "-M virt -m 128 -display none -monitor none -serial stdio -bios /u-boot.bin \
             -drive format=qcow2,if=none,id=d0,cache=unsafe,file=/t/a,,b/overlay.qcow2 -device disk,drive=d0 \
             -netdev user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:2201-:22 -device net,romfile=,netdev=n0"
        );
    }

    #[test]
    fn a_board_file_that_was_named_must_be_there_and_the_usual_one_need_not() {
        assert!(matches!(Board::read(Some(Path::new("/nonexistent/board.conf"))), Err(Error::Io { .. })));
        assert_eq!(Board::parse(""), Board::default());
    }

    #[test]
    fn an_image_or_firmware_that_is_not_there_is_asked_for() {
        let error = Qemu::new(&Settings::default()).unwrap_err();
        assert_eq!(error.to_string(), "qemu needs --image FILE: image/build makes one");
        let settings = Settings { image: Some(PathBuf::from("/nonexistent/x.img")), ..Settings::default() };
        assert!(Qemu::new(&settings).unwrap_err().to_string().starts_with("cannot read /nonexistent/x.img"));
    }
}
