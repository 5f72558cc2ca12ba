//! The emulator's side of a device, with a shell script in the emulator's place: it says on its console what an
//! image says, so that every way a boot can go is met in seconds. A real image is met by the stories.

#![allow(clippy::unwrap_used, reason = "a test stops at what it cannot do")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use pcp_harness::story::{self, Outcome, Tally};
use pcp_harness::target::{Settings, Target};
use pcp_harness::{Device, Error, Need, Shell as _, Story, stories};

/// A console that boots, asks for Enter, and is a root shell with the device's own words in it.
const GOOD: &str = r#"PATH=${0%/*}:$PATH
echo 'U-Boot 2025.01'; echo 'Starting kernel ...'
printf 'Please press Enter to activate this console. '
echo 'PCP-READY uptime=5.00'; read key
poweroff() { echo 'reboot: Power down'; exit 0; }
dmesg() { [ "$#" -gt 0 ] || echo 'EXT4-fs (vda8): mounted'; }
printf '# '
while IFS= read -r line; do eval "$line"; printf '%s' "$PS1"; done
"#;

/// The emulator gives the guest a real terminal, and complains if the guest ends badly.
const EMULATOR: &str = r#"#!/bin/sh
script -qefc "/bin/sh '${0%/*}/guest'" /dev/null && exit 0
echo "guest ended with $?" >&2
exit 9
"#;

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new(guest: &str) -> Self {
        let lab = Self { folder: tempfile::tempdir().unwrap() };
        fs::write(lab.path("image.img"), vec![7; 4096]).unwrap();
        fs::write(lab.path("u-boot.bin"), "firmware").unwrap();
        fs::write(lab.path("guest"), guest).unwrap();
        fs::write(lab.path("emulator"), EMULATOR).unwrap();
        fs::write(lab.path("pcp-cli"), "#!/bin/sh\n[ \"$1\" = ping ]\n").unwrap();
        for program in ["emulator", "pcp-cli"] {
            fs::set_permissions(lab.path(program), Permissions::from_mode(0o755)).unwrap();
        }
        let board = format!("QEMU=\"{}\"\nQEMU_ARGS=\"\"\n", lab.path("emulator").display());
        fs::write(lab.path("board.conf"), board).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn device(&self) -> Device {
        self.device_with(|_| {})
    }

    fn device_with(&self, change: impl FnOnce(&mut Settings)) -> Device {
        let mut settings = Settings {
            image: Some(self.path("image.img")),
            board: Some(self.path("board.conf")),
            ..Settings::default()
        };
        change(&mut settings);
        Device::new(&[Target::Qemu], &settings).unwrap()
    }
}

#[test]
fn a_boot_is_marked_from_firmware_to_ready_and_gives_a_root_shell() {
    let lab = Lab::new(GOOD);
    let mut device = lab.device();
    let report = device.reach_ready().unwrap();
    let names: Vec<_> = report.marks.iter().map(|mark| mark.name).collect();
    assert_eq!(names, ["firmware", "kernel", "console", "ready"]);
    assert!(report.marks.iter().all(|mark| mark.cpu_s.is_some()));
    assert_eq!(device.root().unwrap().check("echo up").unwrap(), "up");
    assert!(device.reach_ready().unwrap().marks.is_empty(), "a device that is up is not booted again");
    device.close().unwrap();
}

#[test]
fn a_device_that_is_switched_off_comes_up_again() {
    let lab = Lab::new(GOOD);
    let mut device = lab.device();
    device.reach_ready().unwrap();
    device.power_off().unwrap();
    assert!(device.machine().is_none());
    assert_eq!(device.root().unwrap().check("echo again").unwrap(), "again");
    device.cut_power().unwrap();
    assert!(device.machine().is_none());
    device.close().unwrap();
}

#[test]
fn a_boot_that_fails_says_what_the_device_said() {
    let table = [
        (
            "echo 'PCP-NOT-READY uptime=60 reason=\"no socket\"'; read x",
            "PCP-NOT-READY uptime=60 reason=\"no socket\"",
        ),
        ("echo 'Kernel panic - not syncing: VFS'; read x", "Kernel panic - not syncing: VFS"),
        ("echo 'U-Boot 2025.01'; exit 1", "guest ended with 1"),
    ];
    for (guest, said) in table {
        let lab = Lab::new(guest);
        let mut device = lab.device();
        let error = device.reach_ready().unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(device.machine().is_none());
        device.close().unwrap();
    }
}

#[test]
fn a_device_that_is_not_ready_can_be_looked_at_all_the_same() {
    let lab = Lab::new(&GOOD.replace("PCP-READY", "PCP-NOT-READY"));
    let mut device = lab.device_with(|settings| settings.unready = true);
    assert_eq!(device.reach_ready().unwrap().marks.last().unwrap().name, "not ready");
    assert_eq!(device.root().unwrap().check("echo why").unwrap(), "why");
    device.close().unwrap();

    let mut device = lab.device_with(|settings| settings.unready = true);
    let told = story::named(stories::ALL, "boot").unwrap();
    assert_eq!(
        story::tell(told[0], &mut device).outcome,
        Outcome::Failed,
        "being looked at is not being ready"
    );
}

#[test]
fn a_person_gets_the_console_from_the_first_word_on() {
    let lab = Lab::new(GOOD);
    let mut device = lab.device();
    let (machine, console) = device.raw_console().unwrap();
    let (keys, mut person) = std::os::unix::net::UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut person, b"\rpoweroff\r").unwrap();
    let mut screen = Vec::new();

    assert!(!console.attach(keys, &mut screen).unwrap(), "the device ends the line");

    let screen = String::from_utf8(screen).unwrap();
    assert!(screen.contains("U-Boot") && screen.contains("reboot: Power down"), "{screen}");
    drop((person, machine));
    device.close().unwrap();
}

#[test]
fn a_power_off_that_the_emulator_ends_badly_is_a_finding() {
    let lab = Lab::new(&GOOD.replace("Power down'; exit 0", "Power down'; exit 4"));
    let mut device = lab.device();
    device.reach_ready().unwrap();
    let error = device.power_off().unwrap_err();
    assert!(
        matches!(error, Error::Finding(_)) && error.to_string().contains("guest ended with 4"),
        "{error}"
    );
}

#[test]
fn an_image_that_changed_is_found_out() {
    let lab = Lab::new(GOOD);
    let mut device = lab.device();
    device.reach_ready().unwrap();
    fs::write(lab.path("image.img"), vec![8; 4096]).unwrap();
    assert!(matches!(device.close(), Err(Error::ImageChanged { .. })));
}

#[test]
fn the_power_off_story_passes_on_a_device_that_keeps_its_word() {
    let lab = Lab::new(GOOD);
    let mut device = lab.device();
    let told = story::named(stories::ALL, "poweroff").unwrap();
    let ending = story::tell(told[0], &mut device);
    assert_eq!(ending.outcome, Outcome::Passed, "{ending}");
    device.close().unwrap();
}

#[test]
fn a_console_that_waits_for_no_key_press_fails_the_boot_story() {
    let lab = Lab::new(&GOOD.replace("printf 'Please press Enter to activate this console. '", "true"));
    let mut device = lab.device();
    let told = story::named(stories::ALL, "boot").unwrap();
    let ending = story::tell(told[0], &mut device);
    assert_eq!(ending.to_string(), "FAILED   boot: the console does not wait for a key press");
    device.close().unwrap();
}

#[test]
fn all_are_the_stories_that_are_not_told_by_name_only_and_every_name_is_found() {
    let all: Vec<_> = story::named(stories::ALL, "all").unwrap().iter().map(|told| told.name).collect();
    assert_eq!((all.first(), all.last()), (Some(&"boot"), Some(&"poweroff")));
    assert!(!all.contains(&"demo"), "{all:?}");
    for told in stories::ALL {
        assert_eq!(story::named(stories::ALL, told.name).unwrap().len(), 1, "{}", told.name);
    }
    let error = story::named(stories::ALL, "balance").unwrap_err().to_string();
    assert!(error.starts_with("no story \"balance\"; there are: all, boot, ping"), "{error}");
}

#[test]
fn an_unclean_end_fails_the_power_off_story_with_the_kernels_line() {
    let lab = Lab::new(&GOOD.replace("mounted'", "recovery complete'"));
    let mut device = lab.device();
    let told = story::named(stories::ALL, "poweroff").unwrap();
    let ending = story::tell(told[0], &mut device);
    assert_eq!(ending.outcome, Outcome::Failed);
    assert!(ending.to_string().contains("EXT4-fs (vda8): recovery complete"), "{ending}");
}

#[test]
fn a_story_whose_need_is_missing_is_skipped_by_name_with_the_reason() {
    let story = Story {
        name: "remote",
        about: "",
        needs: &[Need::Console, Need::Ssh],
        only_by_name: false,
        tell: |_| unreachable!(),
    };
    let lab = Lab::new(GOOD);
    let mut tally = Tally::default();
    tally.add(story::tell(&story, &mut lab.device()));
    assert_eq!(tally.stories[0].to_string(), "skipped  remote: no SSH key: give --ssh-key");
    assert_eq!(tally.to_string(), "0 passed, 0 failed, 1 skipped");
}

#[test]
fn files_that_are_not_there_are_named_before_anything_is_started() {
    let lab = Lab::new(GOOD);
    let gone = PathBuf::from("/nonexistent/file");
    let good = Settings { image: Some(lab.path("image.img")), ..Settings::default() };
    let table = [
        (Settings { image: Some(gone.clone()), ..good.clone() }, "image/build makes an image"),
        (Settings { bios: Some(gone.clone()), ..good.clone() }, "give --bios FILE"),
        (Settings { ssh_key: Some(gone), ..good }, "give --ssh-key"),
    ];
    for (settings, next) in table {
        let error = Device::new(&[Target::Qemu], &settings).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/file") && error.contains(next), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn targets_that_exclude_each_other_are_refused() {
    let lab = Lab::new(GOOD);
    let settings = Settings { image: Some(lab.path("image.img")), ..Settings::default() };
    let ssh: Target = "ssh://operator@board".parse().unwrap();
    let serial: Target = "serial:/dev/ttyUSB0".parse().unwrap();
    for targets in [
        vec![],
        vec![Target::Qemu, ssh.clone()],
        vec![ssh.clone(), ssh.clone()],
        vec![Target::Qemu, Target::Qemu],
    ] {
        assert!(matches!(Device::new(&targets, &settings), Err(Error::Usage(_))), "{targets:?}");
    }
    let both = Device::new(&[serial, ssh], &settings).unwrap();
    assert_eq!((both.has(Need::Console), both.has(Need::Ssh)), (Ok(()), Ok(())));
}
