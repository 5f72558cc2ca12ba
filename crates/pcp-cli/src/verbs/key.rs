//! `key gen`: a key pair for signing manifests, as files. Needs no daemon.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pcp_trust::Signer;
use serde::Serialize;

use crate::context::{Answer, Context, Show};
use crate::digits::hex;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// Permission bits of a secret key: its owner alone.
const SECRET_MODE: u32 = 0o600;
/// Permission bits of a public key.
const PUBLIC_MODE: u32 = 0o644;

/// Make keys for signing manifests
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli key gen --out org.example.notes
  install -m 644 org.example.notes.pub /etc/portal/keys/trusted/     (on the device, as root)

Exit codes: 0 ok, 2 usage, 5 not allowed there, 10 the file exists or cannot be written.")]
pub(crate) struct Key {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Make a key pair: FILE gets the 32 secret bytes, FILE.pub the 32 public ones
    ///
    /// No file is ever overwritten.
    Gen {
        /// The secret key's file; the public key's has .pub after it
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}

#[derive(Debug, Serialize)]
struct Pair {
    secret: String,
    public: String,
    public_hex: String,
}

impl Key {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        let Verb::Gen { out } = &self.verb;
        let mut public = out.clone().into_os_string();
        public.push(".pub");
        let public = PathBuf::from(public);
        let signer = Signer::generate().map_err(|source| Error::Untrusted {
            what: "the random source for",
            path: out.clone(),
            source,
        })?;
        let verifier = signer.verifier().to_bytes();
        // The public half first: a secret whose public half could not be written would be of no use.
        create(&public, PUBLIC_MODE, &verifier)?;
        if let Err(error) = create(out, SECRET_MODE, &signer.to_secret_bytes()) {
            let _ = std::fs::remove_file(&public);
            return Err(error);
        }
        Ok(Answer::report(Pair {
            secret: out.display().to_string(),
            public: public.display().to_string(),
            public_hex: hex(&verifier),
        }))
    }
}

/// Makes a file that did not exist and puts it on the medium.
fn create(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), Error> {
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|source| Error::file("make", path, source))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.map_err(|source| {
        let _ = std::fs::remove_file(path);
        Error::file("write", path, source)
    })
}

impl Show for Pair {
    fn show(&self, page: &mut Page) {
        page.fields(&[
            ("Secret key", Cell::new(&self.secret)),
            ("Public key", Cell::new(&self.public)),
            ("Public bytes", Cell::new(&self.public_hex)),
        ]);
        page.line(
            Tone::Faint,
            "Keep the secret file off the device. Root trusts the public one as \
             /etc/portal/keys/trusted/APP_ID.pub.",
        );
    }
}
