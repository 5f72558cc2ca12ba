//! Everything that root does for an application: manifest, trusted key, apps.d file (R-205, R-221).

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pcp_core::AppId;
use pcp_trust::Signer;

use crate::error::Error;
use crate::manifest::FakeManifest;

/// Everybody reads, only the owner writes; whatever the umask of who runs the story.
const FILE_MODE: u32 = 0o644;
/// As for files.
const FOLDER_MODE: u32 = 0o755;

/// Where root's files are, for one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// A folder for each application's manifest.
    pub manifests: PathBuf,
    /// Trusted keys.
    pub keys: PathBuf,
    /// One file for each application.
    pub apps: PathBuf,
}

/// What was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Whose.
    pub app_id: AppId,
    /// The signed manifest.
    pub manifest: PathBuf,
    /// The public key.
    pub key: PathBuf,
    /// The apps.d file.
    pub app_file: PathBuf,
}

impl Places {
    /// The places of a system whose root is `root`.
    #[must_use]
    pub fn under(root: &Path) -> Self {
        Self {
            manifests: root.join("usr/share/portal/apps"),
            keys: root.join("etc/portal/keys/trusted"),
            apps: root.join("etc/portal/pcp/apps.d"),
        }
    }

    /// Writes the manifest signed by `signer`, the key that verifies it, and the apps.d file with `uid` and an
    /// extra `prefix` if there is one. What was there is replaced.
    ///
    /// # Errors
    /// [`Error::File`], [`Error::Manifest`].
    pub fn install(
        &self,
        manifest: &FakeManifest,
        signer: &Signer,
        uid: u32,
        prefix: Option<&str>,
    ) -> Result<Installed, Error> {
        let app_id = manifest.app_id.clone();
        let installed = Installed {
            manifest: self.manifests.join(app_id.as_str()).join("manifest.json"),
            key: self.keys.join(format!("{app_id}.pub")),
            app_file: self.apps.join(format!("{app_id}.toml")),
            app_id,
        };
        put(&installed.manifest, &manifest.signed(signer)?)?;
        put(&installed.key, &signer.verifier().to_bytes())?;
        // Debug text of a string is a TOML basic string for every path a test makes.
        let mut toml = format!("uid = {uid}\nmanifest = {:?}\n", installed.manifest.to_string_lossy());
        if let Some(prefix) = prefix {
            toml.push_str(&format!("prefix = {prefix:?}\n"));
        }
        put(&installed.app_file, toml.as_bytes())?;
        Ok(installed)
    }
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let written = || {
        if let Some(folder) = path.parent() {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
            fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE))?;
        }
        fs::write(path, bytes)?;
        fs::set_permissions(path, Permissions::from_mode(FILE_MODE))
    };
    written().map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcp_trust::{Keyring, ManifestVerdict, PrincipalTable, verify_manifest};

    #[test]
    fn what_is_installed_is_what_the_daemon_believes() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::under(root.path());
        let signer = Signer::from_secret_bytes(&[9; 32]);
        let app_id = AppId::parse(crate::APP_ID).unwrap();
        let manifest = FakeManifest::standard(app_id.clone());

        let installed = places.install(&manifest, &signer, 4711, Some("system.fake")).unwrap();

        let owner = nix::unistd::getuid().as_raw();
        let table = PrincipalTable::load(&root.path().join("none"), &places.apps, owner);
        assert!(table.problems().is_empty(), "{:?}", table.problems());
        let registration = table.app(&app_id).unwrap();
        assert_eq!((registration.uid, &registration.manifest), (4711, &installed.manifest));
        assert_eq!(registration.prefix.as_deref(), Some("system.fake"));
        let key = Keyring::new(&places.keys, owner).read(&app_id).unwrap().unwrap();
        let verdict = verify_manifest(&fs::read(&installed.manifest).unwrap(), Some(&app_id), Some(&key));
        assert!(matches!(verdict, ManifestVerdict::Verified(_)), "{verdict:?}");
    }

    #[test]
    fn a_second_installation_replaces_the_first() {
        let root = tempfile::tempdir().unwrap();
        let places = Places::under(root.path());
        let signer = Signer::from_secret_bytes(&[9; 32]);
        let manifest = FakeManifest::standard(AppId::parse(crate::APP_ID).unwrap());
        places.install(&manifest, &signer, 4711, None).unwrap();

        let newer = FakeManifest { version: "2.0".into(), ..manifest };
        let installed = places.install(&newer, &signer, 4711, None).unwrap();

        let text = fs::read_to_string(installed.manifest).unwrap();
        assert!(text.contains(r#""version":"2.0""#), "{text}");
    }
}
