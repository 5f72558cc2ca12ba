//! The life of the process: read, bind, say that it is ready, serve, end.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser as _;
use pcp_ipc::PcpServerRunner;
use tokio::signal::unix::{SignalKind, signal};

use crate::app::FakeApp;
use crate::error::Error;
use crate::options::Options;

/// Exit code of a wrong command line, as everywhere in PCP.
const USAGE: u8 = 2;

/// Runs the application until it gets SIGTERM or the daemon's AppShutdown. `args` begins with the program's name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let options = match Options::try_parse_from(args) {
        Ok(options) => options,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "pcp-fakeapp: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let manifest = fs::read_to_string(&options.manifest).map_err(Error::file("read", &options.manifest))?;
    let app = FakeApp::new(options.app_id.clone(), manifest, &options.effects, options.script())?;
    let refuse = |why: String| Error::Serve { path: options.socket_dir.clone(), why };
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| refuse(error.to_string()))?
        .block_on(serve(options, app))
        .map_err(refuse)
}

async fn serve(options: &Options, app: FakeApp) -> Result<(), String> {
    let mut terminate =
        signal(SignalKind::terminate()).map_err(|error| format!("no signal handler: {error}"))?;
    let runner = PcpServerRunner::bind(&options.socket_dir, Arc::new(app), options.daemon_uid)
        .map_err(|error| error.to_string())?;
    let mut out = std::io::stdout();
    let _ = writeln!(out, "pcp-fakeapp: ready on {}", runner.path().display()).and_then(|()| out.flush());
    let stopper = runner.stopper();
    tokio::spawn(async move {
        terminate.recv().await;
        stopper.send_replace(true);
    });
    runner.run().await;
    Ok(())
}
