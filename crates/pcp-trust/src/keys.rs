//! Trusted keys: one file per application, put there by root.

use std::path::{Path, PathBuf};

use pcp_core::AppId;

use crate::ed25519::Verifier;
use crate::error::Error;
use crate::root_file::RootDirectory;

/// Where root puts the keys of the applications it trusts.
pub const TRUSTED_KEYS: &str = "/etc/portal/keys/trusted";
/// Bytes read of a key file. A right one has 32; up to this many are read so that the refusal can say what
/// else was put there.
pub const MAX_KEY_FILE_BYTES: usize = 4096;
/// uid whose keys count on a system.
const ROOT: u32 = 0;

/// The directory of trusted keys.
#[derive(Debug, Clone)]
pub struct Keyring {
    directory: PathBuf,
    owner: u32,
}

impl Keyring {
    /// The keyring of this system.
    #[must_use]
    pub fn system() -> Self {
        Self::new(Path::new(TRUSTED_KEYS), ROOT)
    }

    /// A keyring elsewhere, whose directory and files must belong to `owner`.
    #[must_use]
    pub fn new(directory: &Path, owner: u32) -> Self {
        Self { directory: directory.to_owned(), owner }
    }

    /// The file that holds the key of `app_id`.
    #[must_use]
    pub fn path(&self, app_id: &AppId) -> PathBuf {
        self.directory.join(file_name(app_id))
    }

    /// The content of the key file, unjudged; `None` if no key is trusted for `app_id`. Asked anew each time: a
    /// key that root has removed counts no longer.
    ///
    /// # Errors
    /// Those of [`RootDirectory`]: a file or directory that somebody else could have changed.
    pub fn read(&self, app_id: &AppId) -> Result<Option<Vec<u8>>, Error> {
        match RootDirectory::open(&self.directory, self.owner)? {
            Some(directory) => directory.read(&file_name(app_id), MAX_KEY_FILE_BYTES),
            None => Ok(None),
        }
    }

    /// The key trusted for `app_id`, `None` if there is none.
    ///
    /// # Errors
    /// Those of [`Keyring::read`], and [`Error::KeyFile`] if the content is no usable key.
    pub fn load(&self, app_id: &AppId) -> Result<Option<Verifier>, Error> {
        let Some(bytes) = self.read(app_id)? else { return Ok(None) };
        Verifier::from_bytes(&bytes)
            .map(Some)
            .map_err(|source| Error::KeyFile { path: self.path(app_id), source: Box::new(source) })
    }
}

fn file_name(app_id: &AppId) -> String {
    format!("{app_id}.pub")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ed25519::Signer;
    use std::fs;

    fn keyring() -> (tempfile::TempDir, Keyring) {
        let folder = tempfile::tempdir().unwrap();
        let keyring = Keyring::new(folder.path(), nix::unistd::getuid().as_raw());
        (folder, keyring)
    }

    /// Not by the umask of whoever runs the tests.
    fn write(path: &Path, content: &[u8]) {
        fs::write(path, content).unwrap();
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    }

    fn app() -> AppId {
        AppId::parse("org.example.notes").unwrap()
    }

    #[test]
    fn the_key_of_an_application_is_the_32_bytes_of_its_file() {
        let (folder, keyring) = keyring();
        let key = Signer::from_secret_bytes(&[1; 32]).verifier();
        write(&folder.path().join("org.example.notes.pub"), &key.to_bytes());

        assert_eq!(keyring.load(&app()).unwrap(), Some(key));
        assert_eq!(keyring.load(&AppId::parse("org.example.other").unwrap()).unwrap(), None);
    }

    #[test]
    fn a_key_that_root_removed_counts_no_longer() {
        let (folder, keyring) = keyring();
        let path = folder.path().join("org.example.notes.pub");
        write(&path, &Signer::from_secret_bytes(&[1; 32]).verifier().to_bytes());
        assert!(keyring.load(&app()).unwrap().is_some());

        fs::remove_file(path).unwrap();

        assert!(keyring.load(&app()).unwrap().is_none());
    }

    #[test]
    fn a_bad_key_file_is_named_with_its_fault() {
        let (folder, keyring) = keyring();
        let path = folder.path().join("org.example.notes.pub");
        let mut weak = [0; 32];
        weak[0] = 1;
        for (content, fault) in [(&[9; 33][..], "33 bytes"), (&[][..], "0 bytes"), (&weak[..], "small order")]
        {
            write(&path, content);
            let text = keyring.load(&app()).unwrap_err().to_string();
            assert!(text.starts_with("cannot use trusted key /") && text.contains(fault), "{text}");
        }
        write(&path, &[0; MAX_KEY_FILE_BYTES + 1]);
        assert!(matches!(keyring.load(&app()), Err(Error::FileTooLarge { .. })));
    }

    #[test]
    fn a_keyring_of_another_owner_is_refused_whole() {
        let (folder, _) = keyring();
        let keyring = Keyring::new(folder.path(), nix::unistd::getuid().as_raw() + 1);
        assert!(matches!(keyring.load(&app()), Err(Error::WrongOwner { .. })));
    }

    #[test]
    fn without_a_keyring_nothing_is_trusted() {
        let keyring = Keyring::new(Path::new("/nonexistent/keys"), 0);
        assert!(keyring.load(&app()).unwrap().is_none());
    }
}
