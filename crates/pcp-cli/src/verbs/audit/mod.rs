//! `audit`: check the trails, and read them (R-157..R-161). Needs no daemon; only `setup-keys` changes anything.

use std::path::{Path, PathBuf};

use pcp_core::{OperationId, Trail};
use pcp_durable::{AUDIT_DIRECTORY, Filter, RealDisk, export};

use crate::context::{Answer, Context};
use crate::error::Error;

mod head;
mod keys;
mod show;
mod verify;

/// Most records that are shown at once; with the longest lines 64 MiB.
const MAX_SHOWN: u32 = 1000;
/// Longest export: eight full segments.
const MAX_EXPORT_BYTES: usize = 64 * 1024 * 1024;

/// Check the audit trails, and read them
#[derive(Debug, clap::Args)]
#[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
#[command(after_help = "\
Examples:
  pcp-cli audit verify
  pcp-cli audit verify --key key.txt --since-head head.txt
  pcp-cli audit verify --file copy/application.000001.jsonl
  pcp-cli audit show --last 20
  pcp-cli audit show --op 0191e7a0-0000-7000-8000-000000000001 --json | jq '.data[].terminal'
  pcp-cli audit head > head.txt
  pcp-cli audit export --trail system --from 100 --to 200 > system.jsonl

Exit codes: 0 intact, 2 usage, 11 tampered with or broken, 12 cannot be checked.")]
pub(crate) struct Audit {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Check every line of every trail and every seal, and name the first bad one
    Verify {
        #[command(flatten)]
        place: Place,
        #[command(flatten)]
        against: verify::Against,
    },
    /// Print the newest records
    Show {
        #[command(flatten)]
        place: Place,
        /// Only this trail: application, compositor, system
        #[arg(long, value_name = "TRAIL")]
        trail: Option<Trail>,
        /// Only this operation
        #[arg(long, value_name = "OP")]
        op: Option<OperationId>,
        /// Only this application
        #[arg(long, value_name = "APP")]
        app: Option<String>,
        /// The newest N of them
        #[arg(long, value_name = "N", default_value_t = 100,
              value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHOWN)))]
        last: u32,
    },
    /// Print where the trails stand, to be kept off the device
    Head {
        #[command(flatten)]
        directory: Directory,
    },
    /// Print records as they stand, on to the seal that covers them
    ///
    /// Every line is checked. The output is a journal file: `audit verify --file F --trail TRAIL --key FILE` checks it
    /// anywhere.
    Export {
        #[command(flatten)]
        directory: Directory,
        /// The trail: application, compositor, system
        #[arg(long, value_name = "TRAIL")]
        trail: Trail,
        /// From this record on
        #[arg(long, value_name = "N", default_value_t = 1)]
        from: u64,
        /// Up to this record
        #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
        to: u64,
    },
    /// Make the keys that seal the trails, and print the verification key once
    ///
    /// The daemon must not run. Without keys the trails are chained but not sealed.
    SetupKeys {
        #[command(flatten)]
        directory: Directory,
        /// The directory of the keys [default: `seal` beside the audit directory]
        #[arg(long, value_name = "DIR")]
        seals: Option<PathBuf>,
        /// Replace the keys that are there; the reason stands in the next seals
        #[arg(long, value_name = "REASON")]
        replace: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The audit directory
    #[arg(long, value_name = "DIR", default_value = AUDIT_DIRECTORY, conflicts_with = "file")]
    dir: PathBuf,
    /// One journal file, wherever it lies
    #[arg(long, value_name = "F")]
    file: Option<PathBuf>,
}

impl Place {
    /// Where the key and the anchor are, unless somebody says otherwise.
    fn seals(&self) -> PathBuf {
        seals_beside(&self.dir)
    }
}

#[derive(Debug, clap::Args)]
struct Directory {
    /// The audit directory
    #[arg(long, value_name = "DIR", default_value = AUDIT_DIRECTORY)]
    dir: PathBuf,
}

fn seals_beside(dir: &Path) -> PathBuf {
    dir.parent().unwrap_or(Path::new("")).join("seal")
}

impl Audit {
    pub(crate) fn run(&self, _: &mut Context<'_>) -> Result<Answer, Error> {
        match &self.verb {
            Verb::Verify { place, against } => Ok(Answer::report(verify::check(place, against)?)),
            Verb::Show { place, trail, op, app, last } => {
                let filter =
                    Filter { trail: *trail, operation_id: *op, app: app.clone(), ..Filter::default() };
                let last = usize::try_from(*last).unwrap_or(usize::MAX);
                Ok(Answer::report(show::records(place, filter, last)?))
            }
            Verb::Head { directory } => Ok(Answer::Document(head::text(&directory.dir)?.into_bytes())),
            Verb::Export { directory, trail, from, to } => {
                lines(&directory.dir, *trail, (*from, *to)).map(Answer::Document)
            }
            Verb::SetupKeys { directory, seals, replace } => {
                let seals = seals.clone().unwrap_or_else(|| seals_beside(&directory.dir));
                Ok(Answer::report(keys::set_up(&directory.dir, &seals, replace.as_deref())?))
            }
        }
    }
}

/// The lines of a range, in memory until all of them are known to be good.
fn lines(dir: &Path, trail: Trail, (from, to): (u64, u64)) -> Result<Vec<u8>, Error> {
    let disk = RealDisk::open_read_only(dir)?;
    let mut out = Vec::new();
    let exported = export::<Error>(&disk, trail, (from, to), &mut |line| {
        out.extend_from_slice(line);
        out.push(b'\n');
        if out.len() > MAX_EXPORT_BYTES {
            return Err(Error::usage(
                format!("the range has more than {MAX_EXPORT_BYTES} bytes"),
                "export it in parts by --from and --to",
            ));
        }
        Ok(())
    })?;
    match exported.records {
        Some(_) => Ok(out),
        None => Err(Error::NotFound {
            what: "record of the trail",
            name: format!("{trail} {from}"),
            hint: "`pcp-cli audit head` says how many there are",
        }),
    }
}
