//! Probes a tree of unpacked packages: one JSON line for every application, with the field names of the independent
//! probe that it is compared with, and on standard error how many were told and how long it took.
//!
//! `cargo run -p pcp-native --example probe -- ROOT >found.jsonl`

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pcp_native::desktop::{TreeLimits, examine, list};
use pcp_native::predict::{predictions, toolkit_word};
use pcp_native::{Programs, Root};
use serde_json::json;

/// Where a program without a path is looked up.
const PATH: [&str; 8] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/local/games",
    "/usr/games",
];

fn main() -> io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("name the folder into which packages were unpacked"));
    };
    let folder = folder.canonicalize()?;
    let root = Root::beneath(&folder)?;
    let programs = Programs::new(&root, PATH.map(PathBuf::from));
    let below = |path: &Path| path.strip_prefix(&folder).map(|path| Path::new("/").join(path)).ok();
    let (mut buffer, mut out, mut told) = (Vec::new(), io::BufWriter::new(io::stdout()), BTreeMap::new());
    let start = Instant::now();
    let found = list(&[folder.join("usr/share")], TreeLimits::default())
        .resolve(|candidate| examine(candidate, &mut buffer, None));
    let entries = start.elapsed();
    let count = found.winners.len();
    for winner in found.winners {
        let report = programs.probe_entry(&winner.value);
        *told.entry(toolkit_word(report.toolkit)).or_insert(0_usize) += 1;
        // A command that is given to a shell is no file: the one that it starts is.
        let told = report.toolkit;
        let program = match report.starts.as_deref() {
            Some(started) if report.resolved.is_none() && started.resolved.is_some() => started,
            _ => &report,
        };
        let line = json!({
            "id": winner.candidate.id,
            "path": below(&winner.candidate.path),
            "terminal": winner.value.terminal,
            "nodisplay": winner.value.no_display,
            "dbus": winner.value.dbus_activatable,
            "categories": winner.value.categories,
            "program": winner.value.launch.program,
            "file": program.resolved,
            "target": program.kind,
            "needed": program.elf.as_ref().map(|elf| &elf.needed),
            "interpreter": program.interpreter,
            "toolkit": told,
            "evidence": report.evidence,
            "why": report.why,
            "starts": program.starts.as_ref().map(|started| &started.file),
            "predicted": predictions(&winner.value.categories, told).len(),
        });
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    let skipped: Vec<_> = found.skipped.kept().iter().map(|skip| skip.path.display().to_string()).collect();
    eprintln!("{count} applications, toolkits {told:?}");
    eprintln!("entries {entries:?}, with programs {:?}; left out: {skipped:?}", start.elapsed());
    Ok(())
}
