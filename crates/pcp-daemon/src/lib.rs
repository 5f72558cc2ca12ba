//! `portal-pcpd`: the only crate that names every concrete part and puts them together.
//!
//! It holds no law (core does) and no order of an intent (`pcp-execution` does). Start with [`Daemon`]; the
//! binary is one call of [`main`].

pub mod adapters;
pub mod clock;
pub mod config;
pub mod daemon;
pub mod detection;
pub mod dispatch;
mod doctor;
mod engine;
pub mod error;
mod explain;
pub mod ipc;
mod memory;
mod policy;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

pub use config::Config;
pub use daemon::Daemon;
pub use error::Error;
use tracing::level_filters::LevelFilter;

/// Threads on which files are looked through: one for passes, one to spare.
const MAX_BLOCKING_THREADS: usize = 2;
/// What a pass that is under way gets at the end.
const LAST_PASS: std::time::Duration = std::time::Duration::from_millis(300);
/// How long such a thread waits for more before it goes.
const BLOCKING_THREAD_IDLE: std::time::Duration = std::time::Duration::from_secs(1);

const HELP: &str = "portal-pcpd - the daemon of the Portal Capability Protocol

usage: portal-pcpd [--config FILE] [--check-config | --print-config]

  --config FILE    configuration (default /etc/portal/pcp/pcpd.toml; absent means defaults)
  --check-config   check the configuration and end: 0 good, 2 not
  --print-config   print the whole configuration as it is in force, and end
  --version        print the version and end
  --help           print this and end

It serves pcpd.sock in the folder paths.sockets until SIGTERM, SIGINT or SIGHUP and logs to standard error. Its files
(configuration, principals.d, apps.d, keys) are read once, at start: restart it after a change.
";

/// What the command line asks for.
enum Command {
    Serve(Box<Config>),
    CheckConfig(PathBuf),
    Print(String),
}

/// Runs the program. The exit code is 0 for a clean end, 2 for wrong usage or configuration, 1 otherwise.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    memory::settle();
    match command(arguments).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("portal-pcpd: {error}");
            ExitCode::from(if matches!(error, Error::Usage(_) | Error::Config { .. } | Error::NoGroup(_)) {
                2
            } else {
                1
            })
        }
    }
}

fn command(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    let mut arguments = arguments.into_iter().skip(1);
    let (mut path, mut check, mut print) = (None, false, false);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--config") => {
                let file = arguments.next().ok_or_else(|| Error::Usage("--config needs a file".into()))?;
                path = Some(PathBuf::from(file));
            }
            Some("--check-config") => check = true,
            Some("--print-config") => print = true,
            Some("--version") => {
                return Ok(Command::Print(format!("portal-pcpd {}\n", env!("CARGO_PKG_VERSION"))));
            }
            Some("--help" | "-h") => return Ok(Command::Print(HELP.into())),
            _ => return Err(Error::Usage(format!("unknown argument {argument:?}"))),
        }
    }
    let config = match &path {
        Some(path) => Config::load(path)?,
        None if std::path::Path::new(config::CONFIG_PATH).exists() => {
            Config::load(config::CONFIG_PATH.as_ref())?
        }
        None => Config::default(),
    };
    Ok(match (check, print) {
        (true, _) => Command::CheckConfig(path.unwrap_or_else(|| config::CONFIG_PATH.into())),
        (_, true) => Command::Print(config.to_toml()),
        _ => Command::Serve(Box::new(config)),
    })
}

fn run(command: Command) -> Result<(), Error> {
    match command {
        Command::Print(text) => {
            use std::io::Write as _;
            let error = |error| Error::System { what: "write to standard output", error };
            std::io::stdout().write_all(text.as_bytes()).map_err(error)
        }
        Command::CheckConfig(path) => {
            eprintln!("portal-pcpd: configuration {} is good", path.display());
            Ok(())
        }
        Command::Serve(config) => serve(*config),
    }
}

/// Assembles the daemon and serves until it is told to end.
///
/// # Errors
/// As [`Daemon::assemble`] and [`Daemon::run`].
pub fn serve(config: Config) -> Result<(), Error> {
    log_to_stderr(config.log.level);
    serve_with(config, Arc::new(clock::SystemClock))
}

/// [`serve`] with another clock and no logging of its own.
///
/// # Errors
/// As [`serve`].
pub fn serve_with(config: Config, clock: Arc<dyn pcp_core::Clock>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_name("pcpd-scan")
        .max_blocking_threads(MAX_BLOCKING_THREADS)
        .thread_keep_alive(BLOCKING_THREAD_IDLE)
        .build()
        .map_err(|error| Error::System { what: "start the runtime", error })?;
    let ended = runtime.block_on(async { Daemon::assemble(config, clock)?.run().await });
    // A look through the files that does not end must not keep the daemon from ending.
    runtime.shutdown_timeout(LAST_PASS);
    ended
}

fn log_to_stderr(level: config::Level) {
    let level = match level {
        config::Level::Error => LevelFilter::ERROR,
        config::Level::Warn => LevelFilter::WARN,
        config::Level::Info => LevelFilter::INFO,
        config::Level::Debug => LevelFilter::DEBUG,
    };
    // A second daemon in one process (a test's) logs through the first one's.
    let _ = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(std::io::stderr)
        .try_init();
}
