//! What was installed with the application: its signed manifest, and the user that the daemon runs under.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use pcp_core::manifest::MAX_MANIFEST_BYTES;
use pcp_core::{AppId, CapabilityManifest};

use crate::call::{ACTIONS, APP_ID};
use crate::error::Error;

/// Reads the manifest, to be served byte for byte: one changed space and its signature would be another's.
///
/// Whether the signature is good is the daemon's question. Here it only has to be this application's, and to
/// promise nothing that this build does not serve.
///
/// # Errors
/// [`Error::Manifest`].
pub fn read_manifest(path: &Path) -> Result<String, Error> {
    let refuse = |why: String| Error::Manifest { path: path.to_owned(), why };
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_MANIFEST_BYTES as u64 + 1).read_to_string(&mut text))
        .map_err(|error| refuse(format!("{error}; install it, or pass --manifest")))?;
    if text.len() > MAX_MANIFEST_BYTES {
        return Err(refuse(format!("larger than the {MAX_MANIFEST_BYTES}-byte limit")));
    }
    let manifest: CapabilityManifest =
        serde_json::from_str(&text).map_err(|error| refuse(format!("no manifest: {error}")))?;
    let app_id = AppId::parse(APP_ID).map_err(|error| refuse(error.to_string()))?;
    manifest.check(Some(&app_id)).map_err(|error| refuse(error.to_string()))?;
    for capability in &manifest.capabilities {
        let id = capability.capability_id().map_err(|error| refuse(error.to_string()))?;
        if id.app() != APP_ID || !ACTIONS.contains(&id.action()) {
            return Err(refuse(format!("this build does not serve {id}")));
        }
    }
    Ok(text)
}

/// The uid of `name` in a file like `/etc/passwd`.
///
/// The file and not the C library's lookup: the daemon's user is a local one, and a lookup that goes to the
/// network could be answered by somebody else.
///
/// # Errors
/// [`Error::NoUser`], [`Error::Disk`].
pub fn daemon_uid(passwd: &Path, name: &str) -> Result<u32, Error> {
    let text = fs::read_to_string(passwd).map_err(|source| Error::Disk {
        what: "read",
        path: passwd.to_owned(),
        source,
    })?;
    text.lines()
        .filter_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == name).then(|| fields.nth(1)?.parse().ok())?
        })
        .next()
        .ok_or_else(|| Error::NoUser { path: passwd.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_daemons_uid_is_that_of_its_line() {
        let space = tempfile::tempdir().unwrap();
        let passwd = space.path().join("passwd");
        fs::write(&passwd, "root:x:0:0::/root:/bin/sh\npcpx:x:7:7:::\npcp:x:990:990::/:/bin/false\n")
            .unwrap();

        assert_eq!(daemon_uid(&passwd, "pcp").unwrap(), 990);

        let error = daemon_uid(&passwd, "nobody").unwrap_err().to_string();
        assert!(error.contains("no user \"nobody\"") && error.contains("--daemon-uid"), "{error}");
        fs::write(&passwd, "pcp:x:many:1::/:\n").unwrap();
        assert!(matches!(daemon_uid(&passwd, "pcp"), Err(Error::NoUser { .. })));
    }

    #[test]
    fn a_manifest_of_another_application_or_with_more_than_is_served_is_refused() {
        let space = tempfile::tempdir().unwrap();
        let path = space.path().join("manifest.json");
        let with = |app: &str, id: &str| {
            format!(
                r#"{{"app_id":"{app}","version":"1","manifest_version":"1.0","capabilities":[{{"id":"{id}",
                   "name":"n","parameters":{{}},"returns":true,"side_effects":false}}]}}"#
            )
        };
        let table = [
            (with("org.example.other", "app.org.portal.notes.read"), "not for org.portal.notes"),
            (with(APP_ID, "app.org.portal.notes.fly"), "does not serve app.org.portal.notes.fly"),
            (with(APP_ID, "app.other.read"), "does not serve app.other.read"),
            ("{".into(), "no manifest"),
            (" ".repeat(MAX_MANIFEST_BYTES + 1), "larger than"),
        ];
        for (text, why) in table {
            fs::write(&path, text).unwrap();
            let error = read_manifest(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        let good = with(APP_ID, "app.org.portal.notes.read") + "\n\n";
        fs::write(&path, &good).unwrap();
        assert_eq!(read_manifest(&path).unwrap(), good);
        assert!(read_manifest(&space.path().join("none")).unwrap_err().to_string().contains("--manifest"));
    }
}
