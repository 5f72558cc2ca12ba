//! `manifest`: what an author does with a manifest before it is installed. Needs no daemon.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use pcp_core::ErrorCode;
use pcp_core::manifest::MAX_MANIFEST_BYTES;
use pcp_native::{
    JudgedManifest, ManifestQuestion, ManifestReport, Outcome, inspect_manifest, judge_manifest,
};
use pcp_trust::ed25519::SECRET_KEY_BYTES;
use pcp_trust::root_file::{FileRule, read_once};
use pcp_trust::{CanonicalJson, Rejection, Signer};
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::digits::hex;
use crate::envelope::Problem;
use crate::error::Error;
use crate::page::{Cell, Page};
use crate::signature_text::with_signature;

/// Sign, verify and print the canonical form of manifests
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli manifest sign --key org.example.notes manifest.json --out org.example.notes.json
  pcp-cli manifest verify org.example.notes.json --key org.example.notes.pub
  pcp-cli manifest canon org.example.notes.json | sha256sum

Exit codes: 0 ok, 2 usage, 4 no such file, 5 not allowed, 10 cannot be written,
11 refused or not verified.")]
pub(crate) struct Manifest {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Print the exact bytes that a signature is about
    ///
    /// RFC 8785 without the top-level signature, and without a line end.
    Canon {
        /// The manifest
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Sign a manifest, leaving its layout as it is
    Sign {
        /// The file with the 32 secret bytes that `key gen` made
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The manifest
        #[arg(value_name = "IN")]
        input: PathBuf,
        /// Where the signed manifest goes; may be IN, and is replaced in one step
        #[arg(long, value_name = "OUT")]
        out: PathBuf,
    },
    /// Check a manifest against a public key
    Verify {
        /// The manifest
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The file with the 32 public bytes
        #[arg(long, value_name = "PUB")]
        key: PathBuf,
    },
}

impl Manifest {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::Canon { file } => canon(file),
            Verb::Sign { key, input, out } => sign(key, input, out),
            Verb::Verify { file, key } => {
                Ok(Answer::report(Verified(inspect_manifest(file, Some(key), None).report)))
            }
        }
    }
}

fn canon(file: &Path) -> Result<Answer, Error> {
    Ok(Answer::Document(document(file, &read(file)?)?.signed_bytes().to_vec()))
}

fn sign(key: &Path, input: &Path, out: &Path) -> Result<Answer, Error> {
    let signer = secret_key(key)?;
    let bytes = read(input)?;
    let document = document(input, &bytes)?;
    let refused = |judged: JudgedManifest| Error::Manifest {
        path: input.to_owned(),
        reason: judged.report.reason.unwrap_or("malformed"),
        why: judged.report.why.unwrap_or_default(),
    };
    let signature = signer.sign(document.signed_bytes()).to_base64();
    let text = std::str::from_utf8(&bytes).ok().and_then(|text| with_signature(text, &signature));
    let signed = text.ok_or_else(|| Error::Manifest {
        path: input.to_owned(),
        reason: "malformed",
        why: "it is no JSON object".to_owned(),
    })?;
    // What is written is what the device will judge, so it is judged here first.
    let public = signer.verifier().to_bytes();
    let judged = judge_manifest(
        signed.as_bytes(),
        ManifestQuestion { key: Some(&public), ..ManifestQuestion::default() },
    );
    if judged.report.outcome != Outcome::Verified {
        return Err(refused(judged));
    }
    replace(out, signed.as_bytes())?;
    Ok(Answer::report(Signed {
        file: out.display().to_string(),
        app_id: judged.report.app_id.unwrap_or_default(),
        version: judged.report.version.unwrap_or_default(),
        capabilities: judged.report.capabilities.len(),
        canonical_sha256: hex(&document.sha256()),
        public_hex: hex(&public),
    }))
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    read_once(file, FileRule { owner: None, max_bytes: MAX_MANIFEST_BYTES })
        .map_err(|source| Error::Untrusted { what: "manifest", path: file.to_owned(), source })
}

fn document(file: &Path, bytes: &[u8]) -> Result<CanonicalJson, Error> {
    CanonicalJson::parse(bytes).map_err(Rejection::Document).map_err(|rejection| Error::Manifest {
        path: file.to_owned(),
        reason: rejection.reason(),
        why: rejection.to_string(),
    })
}

/// Permission bits by which others than its owner read a file.
const READABLE_BY_OTHERS: u32 = 0o044;

fn secret_key(file: &Path) -> Result<Signer, Error> {
    let refused = |source| Error::Untrusted { what: "secret key", path: file.to_owned(), source };
    // One byte more than a key, so that a longer file is told by its length.
    let rule = FileRule { owner: None, max_bytes: SECRET_KEY_BYTES + 1 };
    let bytes = read_once(file, rule).map_err(refused)?;
    let secret: &[u8; SECRET_KEY_BYTES] = bytes.as_slice().try_into().map_err(|_| {
        Error::usage(
            format!("{} is no secret key: it has not exactly {SECRET_KEY_BYTES} bytes", file.display()),
            "name the file that `pcp-cli key gen` made, not the one that ends in .pub",
        )
    })?;
    let mode = std::fs::symlink_metadata(file).map(|facts| facts.permissions().mode() & 0o7777);
    match mode {
        // Whoever can read it can sign in its owner's name; a public half has the same length and is readable.
        Ok(mode) if mode & READABLE_BY_OTHERS != 0 => Err(Error::usage(
            format!("{} can be read by others (mode {mode:04o}), so it is no secret key", file.display()),
            "name the file that `pcp-cli key gen` made, not the one that ends in .pub; a secret key has mode 0600",
        )),
        _ => Ok(Signer::from_secret_bytes(secret)),
    }
}

/// Puts `bytes` under the name `path` in one step: a reader sees the old file or the whole new one.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = path.with_file_name(name);
    let written = write_new(&fresh, bytes).and_then(|()| std::fs::rename(&fresh, path));
    written.map_err(|source| {
        let _ = std::fs::remove_file(&fresh);
        Error::file("write", path, source)
    })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| Error::file("sync", folder, source))
}

fn write_new(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[derive(Debug, Serialize)]
struct Signed {
    file: String,
    app_id: String,
    version: String,
    capabilities: usize,
    canonical_sha256: String,
    public_hex: String,
}

impl Show for Signed {
    fn show(&self, page: &mut Page) {
        page.fields(&[
            ("Signed", Cell::new(&self.file)),
            ("Application", Cell::new(&self.app_id)),
            ("Version", Cell::new(&self.version)),
            ("Capabilities", Cell::new(self.capabilities)),
            ("Canonical SHA-256", Cell::new(&self.canonical_sha256)),
            ("By public key", Cell::new(&self.public_hex)),
        ]);
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Verified(ManifestReport);

impl Show for Verified {
    fn show(&self, page: &mut Page) {
        super::inspect::manifest_page(&self.0, page);
    }

    fn problem(&self) -> Option<Problem> {
        let file = self.0.file.as_deref().unwrap_or_default();
        match self.0.outcome {
            Outcome::Verified => None,
            Outcome::Unsigned => Some(
                Problem::new(ErrorCode::InvalidManifest, format!("manifest {file} has no signature"))
                    .hint("sign it with `pcp-cli manifest sign`"),
            ),
            Outcome::Rejected => {
                let reason = self.0.reason.unwrap_or("malformed");
                let code =
                    if reason == "unreadable" { ErrorCode::NotFound } else { ErrorCode::InvalidManifest };
                let why = self.0.why.as_deref().unwrap_or_default();
                Some(Problem::new(code, format!("manifest {file} is refused ({reason}): {why}")))
            }
        }
    }
}
