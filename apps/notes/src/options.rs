//! The command line: four options, each with the value that an installed application has.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::Error;

/// The text of `--help`.
pub(crate) const HELP: &str = "\
pcp-notes serves notes to the PCP daemon.

Usage: pcp-notes [OPTIONS]

  --data DIR         where the notes are (default /var/lib/pcp-notes)
  --manifest FILE    the signed manifest (default /usr/share/portal/apps/org.portal.notes/manifest.json)
  --socket-dir DIR   where the socket is made (default /run/portal/pcp)
  --daemon-uid UID   the only uid that is answered (default: that of user pcp in /etc/passwd)
  --help             this text
";

/// What the command line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where the notes are.
    pub data: PathBuf,
    /// The installed manifest.
    pub manifest: PathBuf,
    /// Where the socket is made.
    pub socket_dir: PathBuf,
    /// The only uid that is answered; `None`: that of the daemon's user.
    pub daemon_uid: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            data: "/var/lib/pcp-notes".into(),
            manifest: "/usr/share/portal/apps/org.portal.notes/manifest.json".into(),
            socket_dir: "/run/portal/pcp".into(),
            daemon_uid: None,
        }
    }
}

impl Options {
    /// Reads the arguments after the program's name; `None` if help is asked for.
    ///
    /// # Errors
    /// [`Error::Usage`].
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Option<Self>, Error> {
        let mut options = Self::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let name = argument.to_string_lossy().into_owned();
            if matches!(name.as_str(), "--help" | "-h") {
                return Ok(None);
            }
            let place = match name.as_str() {
                "--data" => Some(&mut options.data),
                "--manifest" => Some(&mut options.manifest),
                "--socket-dir" => Some(&mut options.socket_dir),
                "--daemon-uid" => None,
                _ => return Err(Error::Usage(format!("unknown argument {name:?}"))),
            };
            let value = arguments.next().ok_or_else(|| Error::Usage(format!("{name} needs a value")))?;
            match place {
                Some(place) => *place = value.into(),
                None => options.daemon_uid = Some(uid(&value)?),
            }
        }
        Ok(Some(options))
    }
}

fn uid(value: &OsString) -> Result<u32, Error> {
    let text = value.to_string_lossy();
    text.parse().map_err(|_| Error::Usage(format!("--daemon-uid {text:?} is no uid")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Option<Options>, Error> {
        Options::parse(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn options_have_defaults_and_can_be_given() {
        assert_eq!(parse("").unwrap(), Some(Options::default()));
        let given = parse("--data /d --manifest /m --socket-dir /s --daemon-uid 7").unwrap().unwrap();
        let expected = Options {
            data: "/d".into(),
            manifest: "/m".into(),
            socket_dir: "/s".into(),
            daemon_uid: Some(7),
        };
        assert_eq!(given, expected);
        assert_eq!(parse("--data /d --help").unwrap(), None);
    }

    #[test]
    fn a_wrong_command_line_is_refused_with_the_argument() {
        for (text, why) in [
            ("--date /d", "unknown argument \"--date\""),
            ("--data", "--data needs a value"),
            ("--daemon-uid root", "\"root\" is no uid"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("--help"), "{error}");
        }
    }

    #[test]
    fn the_help_names_every_default() {
        let options = Options::default();
        for path in [options.data, options.manifest, options.socket_dir] {
            assert!(HELP.contains(&format!("(default {})", path.display())));
        }
    }
}
