//! Where a device is: the word after `--target`.

pub mod qemu;
pub mod serial;
pub mod ssh;

use std::path::PathBuf;
use std::str::FromStr;

use crate::error::Error;
use crate::target::serial::SerialAddress;
use crate::target::ssh::SshAddress;

/// A way to a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An image file, booted under emulation: a console and SSH.
    Qemu,
    /// A running device on the network.
    Ssh(SshAddress),
    /// A running device on a serial line.
    Serial(SerialAddress),
}

impl FromStr for Target {
    type Err = Error;

    /// Reads `qemu`, `ssh://USER@HOST[:PORT]` or `serial:/dev/ttyX[@BAUD]`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "qemu" {
            return Ok(Self::Qemu);
        }
        if let Some(address) = text.strip_prefix("ssh://") {
            return address.parse().map(Self::Ssh);
        }
        if let Some(address) = text.strip_prefix("serial:") {
            return address.parse().map(Self::Serial);
        }
        let forms = "qemu, ssh://USER@HOST[:PORT] or serial:/dev/ttyX[@BAUD]";
        Err(Error::Usage(format!("target {text:?} is none of {forms}")))
    }
}

/// What a target needs to be opened, gathered from the command line.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The image file; the QEMU target boots an overlay of it.
    pub image: Option<PathBuf>,
    /// U-Boot for QEMU's `-bios`.
    pub bios: Option<PathBuf>,
    /// The facts of the emulated board.
    pub board: Option<PathBuf>,
    /// Private key of the operator.
    pub ssh_key: Option<PathBuf>,
    /// Known hosts of `ssh://` targets; the person's own file if absent.
    pub known_hosts: Option<PathBuf>,
    /// Where the console's bytes go.
    pub log: Option<PathBuf>,
    /// How many times as long as usual to wait: 1, or more on a slow host.
    pub patience: u32,
    /// Whether a device that says that it is not ready is used all the same.
    pub unready: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_their_words() {
        let ssh = |user: &str, host: &str, port| {
            Target::Ssh(SshAddress { user: user.to_owned(), host: host.to_owned(), port })
        };
        let serial = |path: &str, baud| Target::Serial(SerialAddress { path: PathBuf::from(path), baud });
        let table = [
            ("qemu", Target::Qemu),
            ("ssh://operator@10.0.0.7", ssh("operator", "10.0.0.7", 22)),
            ("ssh://operator@board:2222", ssh("operator", "board", 2222)),
            ("ssh://operator@[fe80::1%eth0]:2222", ssh("operator", "fe80::1%eth0", 2222)),
            ("serial:/dev/ttyUSB0", serial("/dev/ttyUSB0", 1_500_000)),
            ("serial:/dev/ttyS1@115200", serial("/dev/ttyS1", 115_200)),
        ];
        for (text, target) in table {
            assert_eq!(text.parse::<Target>().unwrap(), target, "{text}");
        }
    }

    #[test]
    fn words_that_name_no_target_are_refused_with_the_forms() {
        for text in [
            "",
            "qemu:x",
            "ssh://host",
            "ssh://@host",
            "ssh://-oProxyCommand=x@h",
            "ssh://u@-h",
            "ssh://u@h:0",
            "ssh://u@h:x",
            "serial:",
            "serial:ttyS0",
            "serial:/dev/ttyS0@9",
        ] {
            assert!(matches!(text.parse::<Target>(), Err(Error::Usage(_))), "{text}");
        }
    }
}
