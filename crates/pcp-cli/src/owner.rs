//! Who has to be listening at the daemon's socket: the user `pcp` where there is one.
//!
//! `/etc/passwd` is read by hand: a static program cannot load the C library's name services, and the user is
//! the image's own, never one of a directory server.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The daemon's user on the image.
const DAEMON_USER: &str = "pcp";

/// The account file.
const PASSWD: &str = "/etc/passwd";

/// Longest account file that is read, in bytes: 20 000 accounts; the daemon's is among the first.
const MAX_PASSWD_BYTES: u64 = 1024 * 1024;

/// The uid the daemon runs as: that of user `pcp`, or the caller's own where a person runs it for themselves.
pub(crate) fn daemon_uid() -> u32 {
    daemon_uid_in(Path::new(PASSWD)).unwrap_or_else(|| nix::unistd::geteuid().as_raw())
}

fn daemon_uid_in(passwd: &Path) -> Option<u32> {
    let mut bytes = Vec::new();
    File::open(passwd).ok()?.take(MAX_PASSWD_BYTES).read_to_end(&mut bytes).ok()?;
    uid_of(DAEMON_USER, &bytes)
}

/// The third field of the line that begins with `name:`.
fn uid_of(name: &str, passwd: &[u8]) -> Option<u32> {
    passwd.split(|byte| *byte == b'\n').find_map(|line| {
        let rest = line.strip_prefix(name.as_bytes())?.strip_prefix(b":")?;
        std::str::from_utf8(rest.split(|byte| *byte == b':').nth(1)?).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_user_is_found_by_its_whole_name_and_numeric_id() {
        let file =
            b"root:x:0:0::/:/bin/sh\npcpx:x:1:1:::\nxpcp:x:2:2:::\n\xff\xfe:x:3:3:::\npcp:x:642:642:::\n";
        assert_eq!(uid_of("pcp", file), Some(642));
        for none in [&b""[..], b"pcp", b"pcp:x", b"pcp:x:", b"pcp:x:-1:", b"pcp:x:six:", b"pcp:x:4294967296:"]
        {
            assert_eq!(uid_of("pcp", none), None);
        }
    }

    #[test]
    fn without_an_account_file_there_is_no_such_user() {
        assert_eq!(daemon_uid_in(Path::new("/nonexistent/passwd")), None);
    }

    #[test]
    fn an_account_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("passwd");
        let line = b"pcp:x:642:642:::\n";
        let fill = usize::try_from(MAX_PASSWD_BYTES).unwrap() - line.len();
        for (fill, found) in [(fill, Some(642)), (fill + line.len(), None)] {
            let mut bytes = vec![b'\n'; fill];
            bytes.extend_from_slice(line);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(daemon_uid_in(&path), found);
        }
    }
}
