//! The life of the process: read what was installed, open the store, bind, serve, end.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pcp_ipc::PcpServerRunner;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;
use crate::installed::{daemon_uid, read_manifest};
use crate::options::{HELP, Options};
use crate::server::NotesServer;
use crate::store::Store;

/// Where the users of this system are listed.
const PASSWD: &str = "/etc/passwd";
/// The user that the daemon runs under.
const DAEMON_USER: &str = "pcp";
/// Exit code of a wrong command line, as everywhere in PCP.
const USAGE: u8 = 2;

/// Runs the application until it gets SIGTERM, SIGINT or the daemon's AppShutdown. `args` begins with the
/// program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let outcome = match Options::parse(args.into_iter().skip(1)) {
        Ok(Some(options)) => run(&options),
        Ok(None) => {
            say(HELP.trim_end());
            Ok(())
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            if matches!(error, Error::Usage(_)) { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let manifest = read_manifest(&options.manifest)?;
    let daemon = match options.daemon_uid {
        Some(uid) => uid,
        None => daemon_uid(Path::new(PASSWD), DAEMON_USER)?,
    };
    let store = Store::open(&options.data)?;
    store.problems().iter().for_each(complain);
    let socket_dir = options.socket_dir.as_path();
    let refuse = |why: String| Error::Serve { path: socket_dir.to_owned(), why };
    let app = NotesServer::new(manifest, store).map_err(|error| refuse(error.to_string()))?;
    // One thread answers; the store's work has a pool of its own, which this runtime waits for when it ends.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refuse(error.to_string()))?
        .block_on(serve(socket_dir, app, daemon))
        .map_err(refuse)
}

async fn serve(socket_dir: &Path, app: NotesServer, daemon: u32) -> Result<(), String> {
    // Before the socket is there: a signal right after that must not kill.
    let signals = Signals::listen().map_err(|error| format!("no signal handler: {error}"))?;
    let runner =
        PcpServerRunner::bind(socket_dir, Arc::new(app), daemon).map_err(|error| error.to_string())?;
    say(&format!("pcp-notes: ready on {}", runner.path().display()));
    let stopper = runner.stopper();
    tokio::spawn(async move {
        signals.any().await;
        stopper.send_replace(true);
    });
    runner.run().await;
    Ok(())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn any(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Nobody may be reading: a closed pipe must not end the application.
fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn complain(error: &Error) {
    let _ = writeln!(std::io::stderr(), "pcp-notes: {error}");
}
