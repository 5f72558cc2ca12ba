//! The programs of this workspace under one name: the first argument says which `main` gets the rest.

mod load;

use std::ffi::OsString;
use std::process::ExitCode;

/// A wrong command line, as everywhere in PCP.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let name = words.first().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
    match name.as_str() {
        "portal-pcpd" => pcp_daemon::main(words),
        "pcp-cli" => pcp_cli::main(words.into_iter()),
        "pcp-notes" => pcp_notes::main(words),
        "pcp-fakeapp" => pcp_fakeapp::main(words),
        "pcp-probe" => pcp_probe::run(words),
        "load" => load::main(&words),
        _ => {
            eprintln!(
                "usage: under-test portal-pcpd|pcp-cli|pcp-notes|pcp-fakeapp|pcp-probe|load [ARGUMENT...]"
            );
            ExitCode::from(USAGE)
        }
    }
}
