//! `audit setup-keys`: the first key of the seals, or new ones in place of lost ones.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use nix::unistd::geteuid;
use pcp_durable::{RealDisk, set_up_keys};
use pcp_trust::Signer;
use serde::Serialize;

use crate::context::Show;
use crate::error::Error;
use crate::page::{Cell, Page, Tone};

/// What is printed once.
#[derive(Debug, Serialize)]
pub(super) struct Keys {
    verification_key: String,
    first_epoch: u64,
    seals: String,
}

/// Makes keys while no daemon writes the trails.
pub(super) fn set_up(dir: &Path, seals: &Path, replace: Option<&str>) -> Result<Keys, Error> {
    check_owner(seals)?;
    let is_there = dir.symlink_metadata().is_ok();
    let trails = is_there.then(|| RealDisk::open(dir)).transpose().map_err(explain)?;
    let disk = Arc::new(RealDisk::open(seals).map_err(explain)?);
    let secret = Signer::generate().map_err(|source| Error::Untrusted {
        what: "the random source for",
        path: seals.to_owned(),
        source,
    })?;
    let trails = trails.as_ref().map(|disk| disk as &dyn pcp_durable::Disk);
    let key = set_up_keys(trails, disk, secret.to_secret_bytes(), replace).map_err(explain)?;
    Ok(Keys {
        verification_key: key.to_text(),
        first_epoch: key.first_epoch(),
        seals: seals.display().to_string(),
    })
}

/// What the caller can do about it.
fn explain(error: pcp_durable::Error) -> Error {
    let hint = match &error {
        pcp_durable::Error::KeysExist { .. } => "`--replace REASON` makes new ones",
        pcp_durable::Error::InUse { .. } => "stop the daemon, make the keys, start it again",
        pcp_durable::Error::Reason { .. } => "say in a few words why there are new keys",
        _ => return error.into(),
    };
    Error::usage(error.to_string(), hint)
}

/// Keys of another user than the daemon's would keep it from starting.
fn check_owner(seals: &Path) -> Result<(), Error> {
    let Some(parent) = seals.parent() else { return Ok(()) };
    let facts = parent.metadata().map_err(|source| Error::file("look at", parent, source))?;
    let me = geteuid().as_raw();
    if facts.uid() == me {
        return Ok(());
    }
    let message = format!("{} belongs to uid {}, not {me}", parent.display(), facts.uid());
    Err(Error::usage(message, format!("run it as the daemon's user: setpriv --reuid {} …", facts.uid())))
}

impl Show for Keys {
    fn show(&self, page: &mut Page) {
        page.fields(&[
            ("Verification key", Cell::new(&self.verification_key)),
            ("First epoch", Cell::new(self.first_epoch)),
            ("Keys of the device", Cell::new(&self.seals)),
        ]);
        page.line(
            Tone::Careful,
            "Keep the verification key off the device: this is the only time that it is shown. The daemon seals from its \
             next start on; check by `pcp-cli audit verify --key FILE`.",
        );
    }
}
